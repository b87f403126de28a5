/* 256 floats, the value of every code, then x as it is. */
static void prepare(const float *x, long n, float *packed)
{
    for (int code = 0; code < 256; code++) {
        const int exponent = code >> 3 & 15, mantissa = code & 7;
        const float size = exponent ? ldexpf((float)(8 + mantissa), exponent - 10)
                                    : ldexpf((float)mantissa, -9);
        packed[code] = code & 128 ? -size : size;
    }
    memcpy(packed + 256, x, (size_t)n * sizeof *x);
}

/* One lookup a weight instead of shifts and branches; ACC sums, so that additions do not wait. */
static inline void dot_rows(const uint8_t *w, long pitch, long cols, const float *packed, float *sum)
{
    const float *value = packed, *x = packed + 256;
    for (int r = 0; r < ROWS; r++) {
        const uint8_t *p = w + r * pitch;
        float acc[ACC] = {0}, total = 0;
        for (long c = 0; c < cols; c += ACC)
            for (int j = 0; j < ACC; j++)
                acc[j] += value[p[c + j]] * x[c + j];
        for (int j = 0; j < ACC; j++)
            total += acc[j];
        sum[r] = total;
    }
}
