#include "kernel.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const float F4[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                             -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

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

/* Weight j of a row, without the global scale. */
static float weight(const uint8_t *codes, const uint8_t *scales, int j) {
    uint8_t byte = codes[j / 2];
    uint8_t code = j % 2 ? byte >> 4 : byte & 15;
    return F4[code] * f8_to_float(scales[j / 16]);
}

static float dot(const uint8_t *codes, const uint8_t *scales, const float *x, int n) {
    float sum = 0.0f;
    for (int j = 0; j < n; j++) {
        sum += weight(codes, scales, j) * x[j];
    }
    return sum;
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

static float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

void kernel(const struct args *a) {
    float *x = a->scratch;
    float *h = x + H;
    float *y = h + L;

    for (int i = 0; i < H; i++) {
        x[i] = bf16_to_float(a->residual[i]);
    }
    normalize(x, H);
    for (int i = 0; i < H; i++) {
        x[i] *= bf16_to_float(a->w_pre[i]);
    }

    for (int i = 0; i < L; i++) {
        size_t codes = (size_t)i * (H / 2);
        size_t scales = (size_t)i * (H / 16);
        float up = a->globals[0] * dot(a->w_up + codes, a->s_up + scales, x, H);
        float gate = a->globals[1] * dot(a->w_gate + codes, a->s_gate + scales, x, H);
        h[i] = up * gelu(gate);
    }

    for (int i = 0; i < H; i++) {
        size_t codes = (size_t)i * (L / 2);
        size_t scales = (size_t)i * (L / 16);
        y[i] = a->globals[2] * dot(a->w_down + codes, a->s_down + scales, h, L);
    }
    normalize(y, H);

    float layer_scalar = bf16_to_float(a->layer_scalar[0]);
    for (int i = 0; i < H; i++) {
        float sum = bf16_to_float(a->residual[i]) + y[i] * bf16_to_float(a->w_post[i]);
        a->residual[i] = float_to_bf16(sum * layer_scalar);
    }
}
