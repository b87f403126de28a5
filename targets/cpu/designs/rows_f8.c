static inline void block(const uint8_t *w, long first, long between, long cols, const float *packed,
                         float *out)
{
    float sum[ROWS];
    dot_rows(w + first * cols, between * cols, cols, packed, sum);
    for (int r = 0; r < ROWS; r++)
        out[first + r * between] = sum[r];
}

/* out = w x, ROWS rows at a time: they share the loads of x. With APART they are far apart, so that
   each is a stream that goes on in the next block. A distance of 1 / ROWS of all rows is a multiple
   of the page size, and then the streams compete for the same cache sets; STAGGER makes it shorter.
   What is left at the end are blocks of neighbours. */
static void project(const uint8_t *w, long rows, long cols, const float *packed, float *out)
{
    const long between = APART ? rows / ROWS - STAGGER : 0;
    for (long first = 0; first < between; first++)
        block(w, first, between, cols, packed, out);
    for (long first = ROWS * between; first < rows; first += ROWS)
        block(w, first, 1, cols, packed, out);
}
