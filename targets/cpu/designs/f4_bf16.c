/* A 16-bit lane holds four codes, so x is stored as every fourth element, 128 elements at a time. */
static void prepare(const float *x, long n, float *packed)
{
    uint16_t *to = (uint16_t *)packed;
    for (long c = 0; c < n; c += 128)
        for (int k = 0; k < 4; k++)
            for (int i = 0; i < 32; i++)
                to[c + 32 * k + i] = to_bf16(x[c + 4 * i + k]);
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

/* Thirty-two words in a register are the table. A lookup reads five bits of each word; the table is
   repeated, so that the fifth, which belongs to the next code, does not matter. */
static inline void dot_rows(const uint8_t *w, const uint8_t *s, long pitch, long cols,
                            const float *packed, float *sum)
{
    const __m512i table = _mm512_broadcast_i64x4(_mm256_setr_epi16(
        0, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, 0, (short)0xbf00, (short)0xbf80,
        (short)0xbfc0, (short)0xc000, (short)0xc040, (short)0xc080, (short)0xc0c0));
    const uint16_t *x = (const uint16_t *)packed;
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
            __m512 dot = _mm512_setzero_ps();
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++) {
                const __m512i value = _mm512_permutexvar_epi16(_mm512_srli_epi16(codes, 4 * k), table);
                dot = _mm512_dpbf16_ps(dot, (__m512bh)value,
                                      (__m512bh)_mm512_loadu_si512(x + 128 * i + 32 * k));
            }
            /* 8 elements a lane, two lanes a block: the block's scale is applied here. */
            acc[r] = _mm512_fmadd_ps(dot, block_scales(s + r * (pitch / 16) + 8 * i), acc[r]);
        }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        sum[r] = _mm512_reduce_add_ps(acc[r]) * 0x1p120f;
}
