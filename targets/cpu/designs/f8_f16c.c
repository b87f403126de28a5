static void prepare(const float *x, long n, float *packed)
{
    memcpy(packed, x, (size_t)n * sizeof *x);
}

static inline float add_lanes(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* f8 has the layout of IEEE half precision with a shorter mantissa: shifted by seven it is a half
   2^-8 times as large, subnormals included, and the processor converts halves exactly. */
static inline void dot_rows(const uint8_t *w, long pitch, long cols, const float *packed, float *sum)
{
    const __m256i keep = _mm256_set1_epi16((short)0xbfff);
    __m256 acc[ROWS][2];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    for (long c = 0; c < cols; c += 16) {
        const __m256 x0 = _mm256_loadu_ps(packed + c), x1 = _mm256_loadu_ps(packed + c + 8);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *p = w + r * pitch + c;
            if (PREFETCH)
                __builtin_prefetch(p + PREFETCH, 0, LOCALITY);
            const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
            /* The sign, which widening has copied into the exponent, is removed there. */
            const __m256i half = _mm256_and_si256(_mm256_slli_epi16(wide, 7), keep);
            const __m256 w0 = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
            const __m256 w1 = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
            acc[r][0] = _mm256_fmadd_ps(w0, x0, acc[r][0]);
            acc[r][1] = _mm256_fmadd_ps(w1, x1, acc[r][1]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        sum[r] = add_lanes(_mm256_add_ps(acc[r][0], acc[r][1])) * 0x1p8f;
}
