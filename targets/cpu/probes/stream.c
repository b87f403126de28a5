/* Reads n of n_all runs of RUN bytes, OFF bytes off a line, each far from the one before. With WAIT the
   place of a run depends on what the one before holds, so that their loads cannot overlap. */
static line runs(const uint8_t *p, long n, long n_all, long stride, line total)
{
    const volatile uint64_t unknown = 0;
    const uint64_t none = unknown;
    for (long i = 0, at = 0; i < n; i++) {
        total = fold(p + at * RUN + OFF, RUN, total);
        at += stride + (WAIT ? (long)(total[0] & none) : 0);
        at -= at < n_all ? 0 : n_all;
    }
    return total;
}
