/* A 32-bit lane holds eight codes, so x is stored as every eighth element, 128 elements at a time. */
static void prepare(const float *x, long n, float *packed)
{
    for (long c = 0; c < n; c += 128)
        for (int k = 0; k < 8; k++)
            for (int i = 0; i < 16; i++)
                packed[c + 16 * k + i] = x[c + 8 * i + k];
}

/* Eight block scales as floats times 2^-120, each in two neighbouring lanes. Any eight bits of the
   eight bytes can become a byte: those from four below and four above the start of a scale put its
   seven bits where a float has exponent and mantissa (scales are not negative). */
static inline __m512 block_scales(const uint8_t *s)
{
    const __m512i from = _mm512_set_epi8(
        60, 52, 0, 0, 60, 52, 0, 0, 52, 44, 0, 0, 52, 44, 0, 0, 44, 36, 0, 0, 44, 36, 0, 0,
        36, 28, 0, 0, 36, 28, 0, 0, 28, 20, 0, 0, 28, 20, 0, 0, 20, 12, 0, 0, 20, 12, 0, 0,
        12, 4, 0, 0, 12, 4, 0, 0, 4, 60, 0, 0, 4, 60, 0, 0);
    int64_t bytes;
    memcpy(&bytes, s, sizeof bytes);
    const __m512i bits = _mm512_multishift_epi64_epi8(from, _mm512_set1_epi64(bytes));
    return _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(0x07f00000)));
}

/* A register of sixteen floats is the whole table. A lookup reads four bits of each lane, so shifting
   brings one code after the other into place, without masking. */
static inline void dot_rows(const uint8_t *w, const uint8_t *s, long pitch, long cols,
                            const float *packed, float *sum)
{
    const __m512 table = _mm512_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6);
    __m512 acc[ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        acc[r] = _mm512_setzero_ps();
    for (long i = 0; i < cols / 128; i++)
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *p = w + r * (pitch / 2) + 64 * i;
            if (PREFETCH)
                __builtin_prefetch(p + PREFETCH, 0, LOCALITY);
            const __m512i codes = _mm512_loadu_si512(p);
            __m512 part[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
#pragma GCC unroll 8
            for (int k = 0; k < 8; k++) {
                const __m512 value = _mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4 * k), table);
                part[k % 2] = _mm512_fmadd_ps(value, _mm512_loadu_ps(packed + 128 * i + 16 * k), part[k % 2]);
            }
            /* 8 elements a lane, two lanes a block: the block's scale is applied here. */
            acc[r] = _mm512_fmadd_ps(_mm512_add_ps(part[0], part[1]),
                                     block_scales(s + r * (pitch / 16) + 8 * i), acc[r]);
        }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        sum[r] = _mm512_reduce_add_ps(acc[r]) * 0x1p120f;
}
