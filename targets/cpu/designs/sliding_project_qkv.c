/* Row scales and the head's RMS norm, in place; `weight` may be absent. */
static void finish_head(float *t, const uint16_t *scale, const uint16_t *weight)
{
    for (int i = 0; i < DS; i++)
        t[i] *= from_bf16(scale[i]);
    const float r = inverse_rms(t, DS);
    for (int i = 0; i < DS; i++)
        t[i] *= weight ? r * from_bf16(weight[i]) : r;
}

/* The sine's low half is stored negated, so both halves add. */
static void store_rotated(const float *t, const uint16_t *cosine, const uint16_t *sine, uint16_t *to)
{
    for (int i = 0; i < DS; i++)
        to[i] = to_bf16(t[i] * from_bf16(cosine[i]) + t[(i + DS / 2) % DS] * from_bf16(sine[i]));
}

void kernel(const struct args *a)
{
    float *x = a->scratch, *packed = x + H, *q = packed + H + 1024, *k = q + QS, *v = k + PS;
    const uint16_t *cosine = a->cos + a->offsets[0] / 2, *sine = a->sin + a->offsets[0] / 2;
    uint16_t *k_out = a->k_cache + a->offsets[1] / 2, *v_out = a->v_cache + a->offsets[1] / 2;

    widen(a->x, H, x);
    const float r = inverse_rms(x, H);
    for (long i = 0; i < H; i++)
        x[i] *= r * from_bf16(a->w_rms[i]);
    prepare(x, H, packed);
    project(a->wq, QS, H, packed, q);
    project(a->wk, PS, H, packed, k);
    project(a->wv, PS, H, packed, v);

    for (long h = 0; h < QS; h += DS) {
        finish_head(q + h, a->sq + h, a->q_rms);
        store_rotated(q + h, cosine, sine, a->q_out + h);
    }
    for (long h = 0; h < PS; h += DS) {
        finish_head(k + h, a->sk + h, a->k_rms);
        store_rotated(k + h, cosine, sine, k_out + h);
        finish_head(v + h, a->sv + h, 0);
        for (int i = 0; i < DS; i++)
            v_out[h + i] = to_bf16(v[h + i]);
    }
}
