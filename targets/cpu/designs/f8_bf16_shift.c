/* x as bf16, 64 elements at a time in the order in which unpacking, which works within 16 bytes,
   gives the weights. */
static void prepare(const float *x, long n, float *packed)
{
    uint16_t *to = (uint16_t *)packed;
    for (long c = 0; c < n; c += 64)
        for (int half = 0; half < 2; half++)
            for (int i = 0; i < 32; i++)
                to[c + 32 * half + i] = to_bf16(x[c + 16 * (i / 8) + 8 * half + i % 8]);
}

static inline void dot_rows(const uint8_t *w, long pitch, long cols, const float *packed,
                            float *sum)
{
    const __m512i keep = _mm512_set1_epi16((short)0x87f0);
    const uint16_t *x = (const uint16_t *)packed;
    __m512 acc[ROWS][2];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        acc[r][0] = acc[r][1] = _mm512_setzero_ps();
    for (long c = 0; c < cols; c += 64) {
        const __m512bh x0 = (__m512bh)_mm512_loadu_si512(x + c);
        const __m512bh x1 = (__m512bh)_mm512_loadu_si512(x + c + 32);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *p = w + r * pitch + c;
            if (PREFETCH)
                __builtin_prefetch(p + PREFETCH, 0, LOCALITY);
            const __m512i code = _mm512_loadu_si512(p);
            /* With the code in its upper byte, a word shifted by four is the weight's bf16, 2^-120
               times as large: no table at all. */
            const __m512i zero = _mm512_setzero_si512();
            const __m512i up0 = _mm512_srai_epi16(_mm512_unpacklo_epi8(zero, code), 4);
            const __m512i up1 = _mm512_srai_epi16(_mm512_unpackhi_epi8(zero, code), 4);
            const __m512bh w0 = (__m512bh)_mm512_and_si512(up0, keep);
            const __m512bh w1 = (__m512bh)_mm512_and_si512(up1, keep);
            acc[r][0] = _mm512_dpbf16_ps(acc[r][0], w0, x0);
            acc[r][1] = _mm512_dpbf16_ps(acc[r][1], w1, x1);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        sum[r] = _mm512_reduce_add_ps(_mm512_add_ps(acc[r][0], acc[r][1])) * 0x1p120f;
}
