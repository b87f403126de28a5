/* Both sides as 8-bit integers, so that the sums are cheap integer ones: a table of 256 bytes for
   the weights (their largest value is 448), one scale for x. */
static void prepare(const float *x, long n, float *packed)
{
    int8_t *table = (int8_t *)(packed + 16), *to = table + 256;
    float largest = 0;
    for (long i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    packed[0] = largest / 127.0f * 448.0f / 127.0f;
    for (int code = 0; code < 256; code++) {
        const int exponent = code >> 3 & 15, mantissa = code & 7;
        const float size = exponent ? ldexpf((float)(8 + mantissa), exponent - 10)
                                    : ldexpf((float)mantissa, -9);
        const int level = (int)(size * (127.0f / 448.0f) + 0.5f);
        table[code] = (int8_t)(code & 128 ? -level : level);
    }
    for (long i = 0; i < n; i++)
        to[i] = (int8_t)(largest > 0 ? roundf(x[i] * (127.0f / largest)) : 0);
}

static inline void dot_rows(const uint8_t *w, long pitch, long cols, const float *packed, float *sum)
{
    const int8_t *table = (const int8_t *)(packed + 16), *x = table + 256;
    for (int r = 0; r < ROWS; r++) {
        int32_t total = 0;
        for (long c = 0; c < cols; c++)
            total += table[w[r * pitch + c]] * x[c];
        sum[r] = (float)total * packed[0];
    }
}
