/* Bits of |f8| as bf16: normal codes move the exponent's bias by 120, the first eight are listed. */
static inline uint16_t magnitude_as_bf16(int code)
{
    static const uint16_t small[8] = {0,      0x3b00, 0x3b80, 0x3bc0,
                                      0x3c00, 0x3c20, 0x3c40, 0x3c60};
    return code < 8 ? small[code] : (uint16_t)((code << 4) + (120 << 7));
}

/* 256 bytes of tables, the upper and the lower bytes of all 128 magnitudes; then x as two
   bf16 whose sum has 16 bits of precision, 64 elements at a time, in the order in which unpacking,
   which works within 16 bytes, gives the weights. */
static void prepare(const float *x, long n, float *packed)
{
    uint8_t *table = (uint8_t *)packed;
    uint16_t *to = (uint16_t *)(table + 256);
    for (int i = 0; i < 128; i++) {
        table[i] = (uint8_t)(magnitude_as_bf16(i) >> 8);
        table[128 + i] = (uint8_t)magnitude_as_bf16(i);
    }
    for (long c = 0; c < n; c += 64)
        for (int half = 0; half < 2; half++)
            for (int i = 0; i < 32; i++) {
                const float value = x[c + 16 * (i / 8) + 8 * half + i % 8];
                const uint16_t upper = to_bf16(value);
                to[2 * c + 64 * half + i] = upper;
                to[2 * c + 64 * half + 32 + i] = to_bf16(value - from_bf16(upper));
            }
}

static inline void dot_rows(const uint8_t *w, long pitch, long cols, const float *packed,
                            float *sum)
{
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    const __m512i high0 = _mm512_loadu_si512(packed), high1 = _mm512_loadu_si512(packed + 16);
    const __m512i low0 = _mm512_loadu_si512(packed + 32), low1 = _mm512_loadu_si512(packed + 48);
    const uint16_t *x = (const uint16_t *)(packed + 64);
    __m512 acc[ROWS][2];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        acc[r][0] = acc[r][1] = _mm512_setzero_ps();
    for (long c = 0; c < cols; c += 64) {
        const __m512bh x0 = (__m512bh)_mm512_loadu_si512(x + 2 * c);
        const __m512bh rest0 = (__m512bh)_mm512_loadu_si512(x + 2 * c + 32);
        const __m512bh x1 = (__m512bh)_mm512_loadu_si512(x + 2 * c + 64);
        const __m512bh rest1 = (__m512bh)_mm512_loadu_si512(x + 2 * c + 96);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *p = w + r * pitch + c;
            if (PREFETCH)
                __builtin_prefetch(p + PREFETCH, 0, LOCALITY);
            const __m512i code = _mm512_loadu_si512(p);
            /* The lookup reads seven bits of each index, the magnitude; the sign is put back. */
            __m512i high = _mm512_permutex2var_epi8(high0, code, high1);
            const __m512i low = _mm512_permutex2var_epi8(low0, code, low1);
            high = _mm512_ternarylogic_epi32(high, code, sign, 0xf8); /* high | (code & sign) */
            const __m512bh w0 = (__m512bh)_mm512_unpacklo_epi8(low, high);
            const __m512bh w1 = (__m512bh)_mm512_unpackhi_epi8(low, high);
            acc[r][0] = _mm512_dpbf16_ps(acc[r][0], w0, x0);
            acc[r][1] = _mm512_dpbf16_ps(acc[r][1], w1, x1);
            acc[r][0] = _mm512_dpbf16_ps(acc[r][0], w0, rest0);
            acc[r][1] = _mm512_dpbf16_ps(acc[r][1], w1, rest1);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        sum[r] = _mm512_reduce_add_ps(_mm512_add_ps(acc[r][0], acc[r][1]));
}
