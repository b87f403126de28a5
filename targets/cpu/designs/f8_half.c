static void prepare(const float *x, long n, float *packed)
{
    memcpy(packed, x, (size_t)n * sizeof *x);
}

/* f8 has the layout of IEEE half precision with a shorter mantissa: shifted by seven it is a half
   2^-8 times as large, subnormals included, and the processor converts sixteen halves at once. */
static inline void dot_rows(const uint8_t *w, long pitch, long cols, const float *packed, float *sum)
{
    const __m256i keep = _mm256_set1_epi16((short)0xbfff);
    __m512 acc[ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        acc[r] = _mm512_setzero_ps();
    for (long c = 0; c < cols; c += 16) {
        const __m512 x = _mm512_loadu_ps(packed + c);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *p = w + r * pitch + c;
            if (PREFETCH)
                __builtin_prefetch(p + PREFETCH, 0, LOCALITY);
            const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
            /* The sign, which widening has copied into the exponent, is removed there. */
            const __m256i half = _mm256_and_si256(_mm256_slli_epi16(wide, 7), keep);
            acc[r] = _mm512_fmadd_ps(_mm512_cvtph_ps(half), x, acc[r]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        sum[r] = _mm512_reduce_add_ps(acc[r]) * 0x1p8f;
}
