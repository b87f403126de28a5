enum { CODES = 4096, PER_BYTE = 8 / BITS, BYTES = CODES / PER_BYTE };

/* The values of the codes of all 256 bytes, the low code first. */
static void build(float *table)
{
    for (int k = 0; k < PER_BYTE; k++)
        for (int byte = 0; byte < 256; byte += 16) {
            words code;
            for (int i = 0; i < 16; i++)
                code[i] = (uint32_t)(byte + i) >> (k * BITS) & ((1u << BITS) - 1);
            const floats value = numbers(code);
            for (int i = 0; i < 16; i++)
                table[PER_BYTE * (byte + i) + k] = value[i];
        }
}

static inline void add_from_table(const uint8_t *from, const float *table, float *sum)
{
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < PER_BYTE; k++)
            sum[PER_BYTE * i + k] += table[PER_BYTE * from[i] + k];
}

/* The same codes again and again, from the first level of cache. */
void kernel(const struct args *a)
{
    float *table = a->scratch + 16, sum[16 * PER_BYTE] = {0};
    floats sums[4] = {0};
    uint8_t seen = 0;

    for (int i = 0; i < BYTES; i++)
        seen ^= WEIGHTS[i];
    if (TABLE)
        build(table);
    for (int pass = 0; pass < PASSES; pass++)
        if (TABLE)
            for (int i = 0; i < BYTES; i += 16)
                add_from_table(WEIGHTS + i, table, sum);
        else
            for (int i = 0; i < BYTES; i += 64)
                add_numbers(WEIGHTS + i, sums);

    float total = seen;
    for (int i = 0; i < 16 * PER_BYTE; i++)
        total += sum[i];
    sums[0] += sums[1] + sums[2] + sums[3] + total;
    memcpy(a->scratch, sums, sizeof sums[0]);
}
