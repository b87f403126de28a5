/* 256 floats, the value of every code, then x as it is. */
static void prepare(const float *x, long n, float *packed)
{
    for (int code = 0; code < 256; code++) {
        const int exponent = code >> 3 & 15, mantissa = code & 7;
        const float size = exponent ? ldexpf((float)(8 + mantissa), exponent - 10)
                                    : ldexpf((float)mantissa, -9);
        packed[code] = code & 128 ? -size : size;
    }
    memcpy(packed + 256, x, (size_t)n * sizeof *x);
}

/* Eight table lookups in one instruction. */
static inline void dot_rows(const uint8_t *w, long pitch, long cols, const float *packed, float *sum)
{
    const float *x = packed + 256;
    __m256 acc[ROWS];
    for (int r = 0; r < ROWS; r++)
        acc[r] = _mm256_setzero_ps();
    for (long c = 0; c < cols; c += 8) {
        const __m256 xc = _mm256_loadu_ps(x + c);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const __m128i code = _mm_loadl_epi64((const __m128i *)(w + r * pitch + c));
            const __m256 value = _mm256_i32gather_ps(packed, _mm256_cvtepu8_epi32(code), 4);
            acc[r] = _mm256_fmadd_ps(value, xc, acc[r]);
        }
    }
    for (int r = 0; r < ROWS; r++) {
        float lane[8];
        _mm256_storeu_ps(lane, acc[r]);
        sum[r] = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
}
