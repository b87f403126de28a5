typedef uint32_t words __attribute__((vector_size(64), aligned(1), may_alias));
typedef int32_t integers __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(64)));

/* Sixteen codes of BITS bits, MANTISSA of them mantissa, made floats without a branch: their bits where
   a float has them, with the float's bias; but subnormal codes are small integers. */
static inline floats numbers(words code)
{
    const int exponent = BITS - 1 - MANTISSA, bias = (1 << (exponent - 1)) - 1;
    const float unit = 1.0f / (1 << (bias - 1 + MANTISSA));
    const words sign = code >> (BITS - 1) << 31, size = code & ((1u << (BITS - 1)) - 1);
    const words normal = (size << (23 - MANTISSA)) + ((uint32_t)(127 - bias) << 23);
    const floats subnormal = __builtin_convertvector((integers)size, floats) * unit;
    const words is_normal = (words)(size >= 1u << MANTISSA);
    return (floats)((normal & is_normal) | ((words)subnormal & ~is_normal) | sign);
}

/* Adds all codes of 64 bytes up: each word's codes number k together. */
static inline void add_numbers(const uint8_t *from, floats sums[4])
{
    const words all = *(const words *)from;
#pragma GCC unroll 8
    for (int k = 0; k < 32 / BITS; k++)
        sums[k % 4] += numbers(all >> (k * BITS) & ((1u << BITS) - 1));
}
