/* Round to nearest, ties to even. */
static inline uint16_t to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* 1 / rms; sixteen sums, because one chain of additions would wait for itself. */
static float inverse_rms(const float *x, long n)
{
    float sum[16] = {0}, total = 0;
    for (long i = 0; i < n; i += 16)
        for (int j = 0; j < 16; j++)
            sum[j] += x[i + j] * x[i + j];
    for (int j = 0; j < 16; j++)
        total += sum[j];
    return 1.0f / sqrtf(total / (float)n + EPS);
}
