"""Controls of the harness, made from a kernel's baseline: one is wrong, one is slow."""

import re
from typing import Final

from targets.gemma4.kernels import Buffer, Kernel
from targets.protocol import TargetError

SLOWDOWN: Final = 3
_FLIPPED: Final = 64
"""Outputs whose sign the wrong one flips."""
_MAX_SAVED: Final = 65536
"""Bytes of an updated buffer that fit the stack; larger ones are caches, written and not read."""


def canary_wrong(kernel: Kernel, baseline: str) -> str:
    """Return the baseline with the signs of some outputs flipped."""
    written = [b for b in kernel.buffers if b.part == "out"] or _updated(kernel)
    if not written:
        raise TargetError(f"kernel {kernel.name} has no output")
    name, n = written[0].name, min(_FLIPPED, written[0].shape[0])
    return f"""{_renamed(baseline)}
void kernel(const struct args *a) {{
    honest(a);
    for (int i = 0; i < {n}; i++) {{
        a->{name}[i] ^= 0x8000;
    }}
}}
"""


def canary_slow(kernel: Kernel, baseline: str) -> str:
    """Return the baseline doing its work `SLOWDOWN` times, with the right result."""
    saved = [b for b in _updated(kernel) if b.n_bytes <= _MAX_SAVED]
    declare = "".join(f"    unsigned char saved_{b.name}[{b.n_bytes}];\n" for b in saved)
    save = "".join(
        f"    memcpy(saved_{b.name}, a->{b.name}, sizeof saved_{b.name});\n" for b in saved
    )
    restore = "".join(
        f"        memcpy(a->{b.name}, saved_{b.name}, sizeof saved_{b.name});\n" for b in saved
    )
    return f"""{_renamed(baseline)}
#include <string.h>

void kernel(const struct args *a) {{
    volatile int times = {SLOWDOWN};
{declare}{save}    for (int i = 0; i < times; i++) {{
{restore}        honest(a);
    }}
}}
"""


def _updated(kernel: Kernel) -> list[Buffer]:
    return [b for b in kernel.buffers if b.part == "inout"]


def _renamed(baseline: str) -> str:
    honest = "static __attribute__((noinline)) void honest("
    text, n = re.subn(r"\bvoid\s+kernel\s*\(", honest, baseline)
    if n != 1:
        raise TargetError("the baseline must define `void kernel(` exactly once")
    return text
