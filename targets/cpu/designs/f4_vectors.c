typedef float floats __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef uint32_t codes __attribute__((vector_size(4 * LANES), aligned(1), may_alias));
typedef float loads __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* A word holds eight codes, so x is stored as every eighth element, 8 * LANES elements at a time. */
static void prepare(const float *x, long n, float *packed)
{
    for (long c = 0; c < n; c += 8 * LANES)
        for (int k = 0; k < 8; k++)
            for (int i = 0; i < LANES; i++)
                packed[c + k * LANES + i] = x[c + 8 * i + k];
}

/* Codes k of LANES words. 0 and 0.5 have no leading one: they get one like the codes 1 and 1.5,
   which is subtracted again. */
static inline floats values(words w, int k)
{
    const words size = (k ? w >> (4 * k) : w) & 7, tiny = (words)(size < 2);
    const words bits = (size << 22) + 0x3f000000 + (tiny & 0x00800000);
    const floats value = (floats)bits - (floats)(tiny & 0x3f800000);
    return (floats)((words)value | (w << (28 - 4 * k) & 0x80000000));
}

/* The scales of LANES / 2 blocks as floats times 2^-120, each in two neighbouring lanes. */
static inline floats block_scales(const uint8_t *s)
{
    words bits;
    for (int i = 0; i < LANES; i++)
        bits[i] = s[i / 2];
    return (floats)(bits << 20);
}

/* The compiler's own vectors: no intrinsics, so this runs on every processor. */
static inline void dot_rows(const uint8_t *w, const uint8_t *s, long pitch, long cols,
                            const float *packed, float *sum)
{
    floats acc[ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        acc[r] = (floats){0};
    for (long i = 0; i < cols / (8 * LANES); i++) {
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *p = w + r * (pitch / 2) + 4 * LANES * i;
            if (PREFETCH)
                __builtin_prefetch(p + PREFETCH, 0, LOCALITY);
            const words word = *(const codes *)p;
            floats part = {0};
#pragma GCC unroll 8
            for (int k = 0; k < 8; k++)
                part += values(word, k) * *(const loads *)(packed + 8 * LANES * i + k * LANES);
            acc[r] += part * block_scales(s + r * (pitch / 16) + LANES / 2 * i);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
        sum[r] = 0;
        for (int i = 0; i < LANES; i++)
            sum[r] += acc[r][i] * 0x1p120f;
    }
}
