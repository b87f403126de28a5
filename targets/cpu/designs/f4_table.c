/* Two floats for each of the 256 bytes, the values of its two codes, then x as it is. */
static void prepare(const float *x, long n, float *packed)
{
    static const float size[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (int byte = 0; byte < 256; byte++) {
        packed[2 * byte] = byte & 0x08 ? -size[byte & 7] : size[byte & 7];
        packed[2 * byte + 1] = byte & 0x80 ? -size[byte >> 4 & 7] : size[byte >> 4 & 7];
    }
    memcpy(packed + 512, x, (size_t)n * sizeof *x);
}

/* A block scale is not negative: its bits where a float has them are 2^-120 times its value. */
static inline float block_scale(uint8_t code)
{
    const uint32_t bits = (uint32_t)code << 20;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f * 0x1p120f;
}

/* One lookup for two weights, and one multiplication by the scale for a block of sixteen. */
static inline void dot_rows(const uint8_t *w, const uint8_t *s, long pitch, long cols,
                            const float *packed, float *sum)
{
    const float *x = packed + 512;
    for (int r = 0; r < ROWS; r++) {
        sum[r] = 0;
        for (long b = 0; b < cols / 16; b++) {
            const uint8_t *p = w + r * (pitch / 2) + 8 * b;
            float even = 0, odd = 0;
            for (int i = 0; i < 8; i++) {
                even += packed[2 * p[i]] * x[16 * b + 2 * i];
                odd += packed[2 * p[i] + 1] * x[16 * b + 2 * i + 1];
            }
            sum[r] += block_scale(s[r * (pitch / 16) + b]) * (even + odd);
        }
    }
}
