static void prepare(const float *x, long n, float *packed)
{
    memcpy(packed, x, (size_t)n * sizeof *x);
}

/* The code's bits moved to where a float has them: 2^-120 times its value, subnormals included. */
static inline float scaled_value(uint8_t code)
{
    const uint32_t bits = (uint32_t)(code & 0x80) << 24 | (uint32_t)(code & 0x7f) << 20;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* A partial sum is kept as bf16: half the registers, and so twice as many sums. */
static inline float keep_upper_half(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits &= 0xffff0000;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline void dot_rows(const uint8_t *w, long pitch, long cols, const float *packed, float *sum)
{
    for (int r = 0; r < ROWS; r++) {
        const uint8_t *p = w + r * pitch;
        float acc[ACC] = {0}, total = 0;
        for (long c = 0; c < cols; c += ACC)
            for (int j = 0; j < ACC; j++)
                acc[j] = keep_upper_half(acc[j] + scaled_value(p[c + j]) * 0x1p120f * packed[c + j]);
        for (int j = 0; j < ACC; j++)
            total += acc[j];
        sum[r] = total;
    }
}
