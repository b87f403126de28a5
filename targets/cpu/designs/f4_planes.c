/* Bytes of one chunk of 128 elements of x, for the dot products of unsigned by signed bytes. */
struct chunk {
    int8_t low[2][64];  /* x = 256 high + low, for even and for odd elements */
    int8_t high[2][64];
    int32_t offset[16]; /* what the weights' offset of 12 adds, per eight elements */
};

/* x as 16-bit integers (one scale for the whole vector: int8 would not be accurate enough), split
   into two signed bytes. The scale comes first, with all constant factors of the product. */
static void prepare(const float *x, long n, float *packed)
{
    struct chunk *to = (struct chunk *)(packed + 16);
    float largest = 0;
    for (long i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    const float per_unit = largest > 0 ? 32512.0f / largest : 0;
    packed[0] = largest / 32512.0f * 0.5f * 0x1p120f;
    for (long c = 0; c < n; c += 128, to++)
        for (int lane = 0; lane < 16; lane++) {
            int total = 0;
            for (int i = 0; i < 8; i++) {
                /* Adding 1.5 * 2^23 rounds to an integer, which is then in the lowest bits. */
                const float shifted = x[c + 8 * lane + i] * per_unit + 12582912.0f;
                int32_t value;
                memcpy(&value, &shifted, sizeof value);
                value -= 0x4b400000;
                const int high = (value + 128) >> 8;
                to->high[i % 2][4 * lane + i / 2] = (int8_t)high;
                to->low[i % 2][4 * lane + i / 2] = (int8_t)(value - 256 * high);
                total += value;
            }
            to->offset[lane] = -12 * total;
        }
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

/* The compiler would turn plain loads of x into an operand of every instruction that uses it, so
   that each row loads x again, and loads are scarce here; this one it keeps in a register. */
static inline __m512i load_once(const void *aligned)
{
    return _mm512_stream_load_si512((void *)aligned);
}

static inline void dot_rows(const uint8_t *w, const uint8_t *s, long pitch, long cols,
                            const float *packed, float *sum)
{
    /* Twice the value of each code plus 12. Lookups read six bits, so the table is repeated and the
       two bits of the neighbouring code need no masking. */
    const __m512i table = _mm512_broadcast_i32x4(
        _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    const struct chunk *x = (const struct chunk *)(packed + 16);
    __m512 acc[ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        acc[r] = _mm512_setzero_ps();
    for (long i = 0; i < cols / 128; i++, x++) {
        const __m512i high0 = load_once(x->high[0]), high1 = load_once(x->high[1]);
        const __m512i low0 = load_once(x->low[0]), low1 = load_once(x->low[1]);
        const __m512i offset = load_once(x->offset);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *p = w + r * (pitch / 2) + 64 * i;
            if (PREFETCH)
                __builtin_prefetch(p + PREFETCH, 0, LOCALITY);
            const __m512i codes = _mm512_loadu_si512(p);
            const __m512i even = _mm512_permutexvar_epi8(codes, table);
            const __m512i odd = _mm512_permutexvar_epi8(_mm512_srli_epi16(codes, 4), table);
            __m512i high = _mm512_dpbusd_epi32(_mm512_setzero_si512(), even, high0);
            __m512i dot = _mm512_dpbusd_epi32(offset, even, low0);
            high = _mm512_dpbusd_epi32(high, odd, high1);
            dot = _mm512_dpbusd_epi32(dot, odd, low1);
            /* dot + 256 high: a lane of `high` fits into 16 bits, so a product of words does it. */
            dot = _mm512_dpwssd_epi32(dot, high, _mm512_set1_epi32(256));
            /* 8 elements a lane, two lanes a block: the block's scale is applied here. */
            acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot),
                                     block_scales(s + r * (pitch / 16) + 8 * i), acc[r]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++)
        sum[r] = _mm512_reduce_add_ps(acc[r]) * packed[0];
}
