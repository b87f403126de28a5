/* out = w x, ROWS rows at a time: they share the loads of x, and each is a stream of its own.
   Rows of a block are neighbours, or (APART) far apart, so that a stream goes on in the next block. */
static void project(const uint8_t *w, long rows, long cols, const float *packed, float *out)
{
    const long between = APART ? rows / ROWS : 1;
    for (long b = 0; b < rows / ROWS; b++) {
        const long first = APART ? b : b * ROWS;
        float sum[ROWS];
        dot_rows(w + first * cols, between * cols, cols, packed, sum);
        for (int r = 0; r < ROWS; r++)
            out[first + r * between] = sum[r];
    }
}
