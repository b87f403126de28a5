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

/* TILE columns of all rows, then the next TILE: their part of x stays in registers, and rows are
   independent, so that no sum waits for another. */
static void project(const uint8_t *w, const uint8_t *s, long rows, long cols, const float *packed,
                    float *out)
{
    const float *x = packed + 512;
    memset(out, 0, (size_t)rows * sizeof *out);
    for (long c = 0; c < cols; c += TILE)
        for (long r = 0; r < rows; r++)
            for (long b = c; b < c + TILE; b += 16) {
                const uint8_t *p = w + (r * cols + b) / 2;
                float total = 0;
                for (int i = 0; i < 8; i++)
                    total += packed[2 * p[i]] * x[b + 2 * i] + packed[2 * p[i] + 1] * x[b + 2 * i + 1];
                out[r] += block_scale(s[(r * cols + b) / 16]) * total;
            }
}
