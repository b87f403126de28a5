typedef float floats __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef uint32_t codes __attribute__((vector_size(4 * LANES), aligned(1), may_alias));
typedef float loads __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* A word holds four codes, so x is stored as every fourth element, 4 * LANES elements at a time. */
static void prepare(const float *x, long n, float *packed)
{
    for (long c = 0; c < n; c += 4 * LANES)
        for (int k = 0; k < 4; k++)
            for (int i = 0; i < LANES; i++)
                packed[c + k * LANES + i] = x[c + 4 * i + k];
}

/* Codes k of LANES words as floats, 2^-120 times as large: their bits are moved to where a float has
   them, and a subnormal code becomes a subnormal float. */
static inline floats values(words w, int k)
{
    const words top = w << (24 - 8 * k);
    return (floats)((top >> 4 & 0x07f00000) | (top & 0x80000000));
}

/* The compiler's own vectors: no intrinsics, so this runs on every processor. */
static inline void dot_rows(const uint8_t *w, long pitch, long cols, const float *packed, float *sum)
{
    floats acc[ROWS][4];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            acc[r][k] = (floats){0};
    for (long c = 0; c < cols; c += 4 * LANES) {
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *p = w + r * pitch + c;
            if (PREFETCH)
                __builtin_prefetch(p + PREFETCH, 0, LOCALITY);
            const words word = *(const codes *)p;
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++)
                acc[r][k] += values(word, k) * *(const loads *)(packed + c + k * LANES);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
        const floats total = (acc[r][0] + acc[r][1]) + (acc[r][2] + acc[r][3]);
        sum[r] = 0;
        for (int i = 0; i < LANES; i++)
            sum[r] += total[i] * 0x1p120f;
    }
}
