#include "kernel.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float bf16_to_float(uint16_t code) { return float_of_bits((uint32_t)code << 16); }

static uint16_t float_to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static float f8_to_float(uint8_t code) {
    uint32_t sign = (uint32_t)(code & 0x80u) << 24;
    uint32_t exponent = (code >> 3) & 15u;
    uint32_t mantissa = code & 7u;
    if (exponent == 0) {
        float value = (float)mantissa / 512.0f;
        return sign ? -value : value;
    }
    return float_of_bits(sign | (exponent + 120u) << 23 | mantissa << 20);
}

/* y[i] = s[i] * sum over j of w[i][j] * x[j] */
static void project(const uint8_t *w, const uint16_t *s, const float *x, float *y, int n_rows) {
    for (int i = 0; i < n_rows; i++) {
        const uint8_t *row = w + (size_t)i * H;
        float sum = 0.0f;
        for (int j = 0; j < H; j++) {
            sum += f8_to_float(row[j]) * x[j];
        }
        y[i] = bf16_to_float(s[i]) * sum;
    }
}

static void normalize(float *t, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        sum += t[i] * t[i];
    }
    float factor = 1.0f / sqrtf(sum / (float)n + EPS);
    for (int i = 0; i < n; i++) {
        t[i] *= factor;
    }
}

static void weigh_and_rotate(const float *t, const uint16_t *weight, const uint16_t *cosine,
                             const uint16_t *sine, uint16_t *out) {
    for (int i = 0; i < DS; i++) {
        int j = (i + DS / 2) % DS;
        float own = t[i] * bf16_to_float(weight[i]);
        float other = t[j] * bf16_to_float(weight[j]);
        out[i] = float_to_bf16(own * bf16_to_float(cosine[i]) + other * bf16_to_float(sine[i]));
    }
}

void kernel(const struct args *a) {
    float *x = a->scratch;
    float *q = x + H;
    float *k = q + QS;
    float *v = k + PS;
    const uint16_t *cosine = a->cos + a->offsets[0] / 2;
    const uint16_t *sine = a->sin + a->offsets[0] / 2;
    uint16_t *k_out = a->k_cache + a->offsets[1] / 2;
    uint16_t *v_out = a->v_cache + a->offsets[1] / 2;

    for (int i = 0; i < H; i++) {
        x[i] = bf16_to_float(a->x[i]);
    }
    normalize(x, H);
    for (int i = 0; i < H; i++) {
        x[i] *= bf16_to_float(a->w_rms[i]);
    }

    project(a->wq, a->sq, x, q, QS);
    project(a->wk, a->sk, x, k, PS);
    project(a->wv, a->sv, x, v, PS);

    for (int head = 0; head < NS * GS; head++) {
        normalize(q + head * DS, DS);
        weigh_and_rotate(q + head * DS, a->q_rms, cosine, sine, a->q_out + head * DS);
    }
    for (int head = 0; head < NS; head++) {
        normalize(k + head * DS, DS);
        weigh_and_rotate(k + head * DS, a->k_rms, cosine, sine, k_out + head * DS);
        normalize(v + head * DS, DS);
        for (int i = 0; i < DS; i++) {
            v_out[head * DS + i] = float_to_bf16(v[head * DS + i]);
        }
    }
}
