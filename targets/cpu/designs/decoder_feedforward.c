static inline float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t to_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* exp(t) for -87 <= t <= 0: 2^n by the exponent's bits, the rest by a polynomial. */
static inline float exp_negative(float t)
{
    const float shifted = t * 1.44269504f + 12582912.0f; /* adding 1.5 * 2^23 rounds to integer */
    const float n = shifted - 12582912.0f;
    const float f = (t - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.0f / 720;
    p = p * f + 1.0f / 120;
    p = p * f + 1.0f / 24;
    p = p * f + 1.0f / 6;
    p = p * f + 0.5f;
    p = p * f + 1.0f;
    p = p * f + 1.0f;
    return from_bits(to_bits(p) + ((to_bits(shifted) - 0x4b400000) << 23));
}

/* erf with an absolute error below 1e-6 (Abramowitz and Stegun 7.1.26), without a branch, so that
   the compiler can vectorize the loop around it; a libm call for every element would not be. */
static inline float erf_polynomial(float x)
{
    const uint32_t sign = to_bits(x) & 0x80000000, size = to_bits(x) & 0x7fffffff;
    const float z = from_bits(size < 0x41100000 ? size : 0x41100000); /* at most 9: erf is 1 there */
    const float t = 1.0f / (1.0f + 0.3275911f * z);
    float p = 1.061405429f;
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    return from_bits(to_bits(1.0f - p * t * exp_negative(-z * z)) | sign);
}

static inline float gelu(float g)
{
    const float t = g * 0.70710678f;
    return 0.5f * g * (1.0f + (ERF_POLYNOMIAL ? erf_polynomial(t) : erff(t)));
}

void kernel(const struct args *a)
{
    float *x = a->scratch, *packed = x + H, *up = packed + L + 1024, *gate = up + L;

    widen(a->residual, H, x);
    float r = inverse_rms(x, H);
    for (long i = 0; i < H; i++)
        x[i] *= r * from_bf16(a->w_pre[i]);
    prepare(x, H, packed);
    project(a->w_up, a->s_up, L, H, packed, up);
    project(a->w_gate, a->s_gate, L, H, packed, gate);

    const float g_up = a->globals[0], g_gate = a->globals[1];
    for (long i = 0; i < L; i++)
        up[i] = g_up * up[i] * gelu(g_gate * gate[i]);
    prepare(up, L, packed);
    project(a->w_down, a->s_down, H, L, packed, x);

    for (long i = 0; i < H; i++)
        x[i] *= a->globals[2];
    r = inverse_rms(x, H);
    const float last = from_bf16(a->layer_scalar[0]);
    for (long i = 0; i < H; i++)
        a->residual[i] = to_bf16(
            (from_bf16(a->residual[i]) + x[i] * r * from_bf16(a->w_post[i])) * last);
}
