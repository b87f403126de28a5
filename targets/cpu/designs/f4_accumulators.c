/* Even, then odd elements of each block, as its bytes hold them. */
static void prepare(const float *x, long n, float *packed)
{
    for (long c = 0; c < n; c += 16)
        for (int i = 0; i < 16; i++)
            packed[c + i % 2 * 8 + i / 2] = x[c + i];
}

/* A block scale is not negative: its bits where a float has them are 2^-120 times its value. */
static inline float block_scale(uint8_t code)
{
    const uint32_t bits = (uint32_t)code << 20;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f * 0x1p120f;
}

/* Twice the value of a code by integer arithmetic: 0 1 2 3 4 6 8 12. */
static inline int doubled(int code)
{
    const int size = code & 7;
    const int twice = size + (size > 4 ? size - 4 : 0) + (size > 6 ? 2 : 0);
    return code & 8 ? -twice : twice;
}

/* Eight sums, so that additions do not wait; the scale is applied to the sums of a block. */
static inline void dot_rows(const uint8_t *w, const uint8_t *s, long pitch, long cols,
                            const float *packed, float *sum)
{
    for (int r = 0; r < ROWS; r++) {
        float acc[8] = {0}, total = 0;
        for (long b = 0; b < cols / 16; b++) {
            const uint8_t *p = w + r * (pitch / 2) + 8 * b;
            const float *x = packed + 16 * b, scale = block_scale(s[r * (pitch / 16) + b]);
            for (int i = 0; i < 8; i++)
                acc[i] += scale * ((float)doubled(p[i] & 15) * x[i] + (float)doubled(p[i] >> 4) * x[8 + i]);
        }
        for (int i = 0; i < 8; i++)
            total += acc[i];
        sum[r] = 0.5f * total;
    }
}
