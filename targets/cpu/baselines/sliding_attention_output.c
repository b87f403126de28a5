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

void kernel(const struct args *a) {
    float *x = a->scratch;
    float *y = x + QS;

    for (int j = 0; j < QS; j++) {
        x[j] = bf16_to_float(a->x[j]);
    }

    for (int i = 0; i < H; i++) {
        const uint8_t *row = a->wo + (size_t)i * QS;
        float sum = 0.0f;
        for (int j = 0; j < QS; j++) {
            sum += f8_to_float(row[j]) * x[j];
        }
        y[i] = bf16_to_float(a->so[i]) * sum;
    }

    float squares = 0.0f;
    for (int i = 0; i < H; i++) {
        squares += y[i] * y[i];
    }
    float factor = 1.0f / sqrtf(squares / (float)H + EPS);
    for (int i = 0; i < H; i++) {
        float update = y[i] * factor * bf16_to_float(a->w_post[i]);
        a->residual[i] = float_to_bf16(bf16_to_float(a->residual[i]) + update);
    }
}
