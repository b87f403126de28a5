void kernel(const struct args *a)
{
    float *x = a->scratch, *packed = x + QS, *y = packed + QS + 1024;

    widen(a->x, QS, x);
    prepare(x, QS, packed);
    project(a->wo, H, QS, packed, y);

    for (long i = 0; i < H; i++)
        y[i] *= from_bf16(a->so[i]);
    const float r = inverse_rms(y, H);
    for (long i = 0; i < H; i++)
        a->residual[i] = to_bf16(from_bf16(a->residual[i]) + y[i] * r * from_bf16(a->w_post[i]));
}
