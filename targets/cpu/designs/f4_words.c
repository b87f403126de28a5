/* x as 16-bit integers with one scale (which comes first, with all constant factors of the product);
   even, then odd elements of two blocks at a time, as their bytes hold them. */
static void prepare(const float *x, long n, float *packed)
{
    int16_t *to = (int16_t *)(packed + 16);
    float largest = 0;
    for (long i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    const float per_unit = largest > 0 ? 32767.0f / largest : 0;
    packed[0] = largest / 32767.0f * 0.5f * 0x1p120f;
    for (long c = 0; c < n; c += 32)
        for (int i = 0; i < 32; i++) {
            /* Adding 1.5 * 2^23 rounds to an integer, which is then in the lowest bits. */
            const float shifted = x[c + i] * per_unit + 12582912.0f;
            int32_t value;
            memcpy(&value, &shifted, sizeof value);
            to[c + i % 2 * 16 + i / 2] = (int16_t)(value - 0x4b400000);
        }
}

static inline float add_lanes(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* Two block scales as floats times 2^-120 in four lanes each; scales are not negative. */
static inline __m256 block_scales(const uint8_t *s)
{
    return _mm256_castsi256_ps(_mm256_set_m128i(_mm_set1_epi32(s[1] << 20), _mm_set1_epi32(s[0] << 20)));
}

/* Products of 16-bit integers, added in pairs: twice as many a step as with floats, and exact. */
static inline void dot_rows(const uint8_t *w, const uint8_t *s, long pitch, long cols,
                            const float *packed, float *sum)
{
    const __m128i table = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    const __m128i nibble = _mm_set1_epi8(15);
    const int16_t *x = (const int16_t *)(packed + 16);
    __m256 acc[ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        acc[r] = _mm256_setzero_ps();
    for (long i = 0; i < cols / 32; i++) {
        const __m256i even = _mm256_loadu_si256((const __m256i *)(x + 32 * i));
        const __m256i odd = _mm256_loadu_si256((const __m256i *)(x + 32 * i + 16));
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *p = w + r * (pitch / 2) + 16 * i;
            if (PREFETCH)
                __builtin_prefetch(p + PREFETCH, 0, LOCALITY);
            const __m128i code = _mm_loadu_si128((const __m128i *)p);
            const __m128i low = _mm_shuffle_epi8(table, _mm_and_si128(code, nibble));
            const __m128i high = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(code, 4), nibble));
            const __m256i dot = _mm256_add_epi32(_mm256_madd_epi16(_mm256_cvtepi8_epi16(low), even),
                                                 _mm256_madd_epi16(_mm256_cvtepi8_epi16(high), odd));
            acc[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot),
                                     block_scales(s + r * (pitch / 16) + 2 * i), acc[r]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        sum[r] = add_lanes(acc[r]) * packed[0];
}
