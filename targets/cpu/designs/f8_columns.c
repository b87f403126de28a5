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

/* TILE columns of all rows, then the next TILE: their part of x stays in registers, and rows are
   independent, so that no sum waits for another. */
static void project(const uint8_t *w, long rows, long cols, const float *packed, float *out)
{
    const float *value = packed, *x = packed + 256;
    memset(out, 0, (size_t)rows * sizeof *out);
    for (long c = 0; c < cols; c += TILE)
        for (long r = 0; r < rows; r++) {
            float total = 0;
            for (int j = 0; j < TILE; j++)
                total += value[w[r * cols + c + j]] * x[c + j];
            out[r] += total;
        }
}
