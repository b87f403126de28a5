/* Even, then odd elements of each block, as its bytes hold them. */
static void prepare(const float *x, long n, float *packed)
{
    for (long c = 0; c < n; c += 16)
        for (int i = 0; i < 16; i++)
            packed[c + i % 2 * 8 + i / 2] = x[c + i];
}

static inline float add_lanes(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* A block scale is not negative: its bits where a float has them are 2^-120 times its value. */
static inline __m256 block_scale(uint8_t code)
{
    return _mm256_castsi256_ps(_mm256_set1_epi32(code << 20));
}

/* A byte shuffle looks up all sixteen codes of a block at once: twice their values as integers. Two
   neighbouring blocks have scales of the same size, so every second one is enough. */
static inline void dot_rows(const uint8_t *w, const uint8_t *s, long pitch, long cols,
                            const float *packed, float *sum)
{
    const __m128i table = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    const __m128i nibble = _mm_set1_epi8(15);
    __m256 acc[ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        acc[r] = _mm256_setzero_ps();
    for (long b = 0; b < cols / 16; b++) {
        const __m256 even = _mm256_loadu_ps(packed + 16 * b), odd = _mm256_loadu_ps(packed + 16 * b + 8);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *p = w + r * (pitch / 2) + 8 * b;
            if (PREFETCH)
                __builtin_prefetch(p + PREFETCH, 0, LOCALITY);
            const __m128i code = _mm_loadl_epi64((const __m128i *)p);
            const __m128i low = _mm_shuffle_epi8(table, _mm_and_si128(code, nibble));
            const __m128i high = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(code, 4), nibble));
            const __m256 w0 = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(low));
            const __m256 w1 = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(high));
            const __m256 part = _mm256_fmadd_ps(w1, odd, _mm256_mul_ps(w0, even));
            acc[r] = _mm256_fmadd_ps(part, block_scale(s[r * (pitch / 16) + b / 2 * 2]), acc[r]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        sum[r] = add_lanes(acc[r]) * 0x1p119f;
}
