/* Decodes n bytes as they arrive, or with HOT the first 4096 again and again. */
static line decode(const uint8_t *p, long n, line total)
{
    floats sums[4] = {(floats)total};
    for (long i = 0; i < n; i += 64)
        add_numbers(p + (HOT ? i & 4095 : i), sums);
    return (line)(sums[0] + sums[1] + sums[2] + sums[3]);
}
