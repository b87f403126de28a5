"""A stand-in for a model: answers a role's prompt with the work of a patient beginner.

As a program it reads the prompt from stdin and writes the reply to stdout.
"""

import re
import sys

SOURCE = """\
#include "kernel.h"
#include <math.h>
#include <string.h>

#define N_SUMS 8

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Shifting the code into a half of the exponent scales it by a constant power of two. */
static float from_f8(uint8_t code)
{
    uint32_t bits = ((uint32_t)(code & 0x80) << 24) | ((uint32_t)(code & 0x7f) << 20);
    return from_bits(bits) * 0x1p120f;
}

static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

void kernel(const struct args *a)
{
    float *x = a->scratch, *y = a->scratch + QS;
    float squares = 0;
    for (int j = 0; j < QS; j++)
        x[j] = from_bits((uint32_t)a->x[j] << 16);
    for (int i = 0; i < H; i++) {
        const uint8_t *row = a->wo + (long)i * QS;
        float sums[N_SUMS] = {0}, sum = 0;
        for (int j = 0; j < QS; j += N_SUMS)
            for (int k = 0; k < N_SUMS; k++)
                sums[k] += from_f8(row[j + k]) * x[j + k];
        for (int k = 0; k < N_SUMS; k++)
            sum += sums[k];
        y[i] = sum * from_bits((uint32_t)a->so[i] << 16);
        squares += y[i] * y[i];
    }
    float scale = 1 / sqrtf(squares / H + EPS);
    for (int i = 0; i < H; i++) {
        float add = y[i] * scale * from_bits((uint32_t)a->w_post[i] << 16);
        a->residual[i] = to_bf16(from_bits((uint32_t)a->residual[i] << 16) + add);
    }
}
"""

ROLE = re.compile(r"You are the (architect|implementer|optimizer|analyst|reviewer)")


def reply(prompt: str) -> str:
    """Answer as the role that the prompt names; half of the knob turns do not fit at first."""
    role = ROLE.search(prompt)
    match role[1] if role else "":
        case "architect":
            why = "<hypothesis>eight sums hide the latency of the adds</hypothesis>"
            limit = "<bottleneck>the decoding</bottleneck><bytes>1e6</bytes>"
            return f"<design>{why}{limit}<plan>so</plan></design>"
        case "implementer":
            why = "<hypothesis>eight sums hide the latency of the adds</hypothesis>"
            return f"{why}\n<source>\n{SOURCE}</source>"
        case "optimizer" if "could not be used" in prompt or "cannot be used" in prompt:
            return _step("#define N_SUMS 8", "#define N_SUMS 16")
        case "optimizer":
            return _step("#define SUMS 8", "#define SUMS 16")
        case "analyst":
            return "<bottleneck>the decoding</bottleneck><advice>wider vectors</advice>"
        case "reviewer":
            return "<review>go</review><reason>it does what it says</reason>"
        case _:
            return "what?"


def _step(search: str, replace: str) -> str:
    edit = f"<edit><search>{search}</search><replace>{replace}</replace></edit>"
    return f"<hypothesis>more sums, fewer waits</hypothesis>{edit}"


if __name__ == "__main__":
    sys.stdout.write(reply(sys.stdin.read()))
