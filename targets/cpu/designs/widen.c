static inline float from_bf16(uint16_t b)
{
    const uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline void widen(const uint16_t *from, long n, float *to)
{
    for (long i = 0; i < n; i++)
        to[i] = from_bf16(from[i]);
}
