typedef float floats __attribute__((vector_size(64), aligned(4), may_alias));
enum { COLUMNS = 1024, LANES = 16 };

/* ROWS rows at a time share the loads of x; each has SUMS independent sums. */
static inline void dot_rows(const float *w, const float *x, floats sum[ROWS][SUMS])
{
    for (long c = 0; c < COLUMNS; c += SUMS * LANES)
#pragma GCC unroll 4
        for (int s = 0; s < SUMS; s++) {
            const floats part = *(const floats *)(x + c + s * LANES);
#pragma GCC unroll 4
            for (int r = 0; r < ROWS; r++)
                sum[r][s] += *(const floats *)(w + r * COLUMNS + c + s * LANES) * part;
        }
}

/* Four rows of floats times x, again and again, all from the first level of cache. */
void kernel(const struct args *a)
{
    float *x = a->scratch + 16, *w = x + COLUMNS;
    floats sum[ROWS][SUMS] = {{{0}}}, total = {0};
    for (int row = 0; row < 5; row++)
        widen(ACTIVATIONS, COLUMNS, x + row * COLUMNS);
    for (int pass = 0; pass < PASSES; pass++)
        for (int row = 0; row < 4; row += ROWS)
            dot_rows(w + row * COLUMNS, x, sum);
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < SUMS; s++)
            total += sum[r][s];
    memcpy(a->scratch, &total, sizeof total);
}
