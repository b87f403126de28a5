/* Passes over the activations, which the first one brings into the first level of cache. SUMS 0 makes
   floats of bf16; otherwise their squares are added in so many independent sums. */
void kernel(const struct args *a)
{
    float *x = a->scratch + 16, sum[SUMS ? SUMS : 1] = {0};
    widen(ACTIVATIONS, N_ACTIVATIONS, x);
    for (int pass = 0; pass < PASSES; pass++) {
        if (!SUMS)
            widen(ACTIVATIONS, N_ACTIVATIONS, x);
        else
            for (long i = 0; i < N_ACTIVATIONS; i += SUMS)
                for (int j = 0; j < SUMS; j++)
                    sum[j] += x[i + j] * x[i + j];
    }
    memcpy(a->scratch, sum, sizeof sum);
}
