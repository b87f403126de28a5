/* Load only: every weight byte once, STREAMS places at a time, folded so that no load can go. */
static line fold(const uint8_t *p, long n, line total)
{
    const long part = n / STREAMS / 64 * 64;
    line acc[STREAMS] = {0};
    for (long i = 0; i < part; i += 64)
#pragma GCC unroll 16
        for (int s = 0; s < STREAMS; s++) {
            const uint8_t *at = p + s * part + i;
            if (PREFETCH)
                __builtin_prefetch(at + PREFETCH);
            acc[s] ^= *(const line *)at;
        }
    long i = STREAMS * part;
    for (; i + 64 <= n; i += 64)
        total ^= *(const line *)(p + i);
    for (; i < n; i++)
        total[0] ^= p[i];
    for (int s = 0; s < STREAMS; s++)
        total ^= acc[s];
    return total;
}

