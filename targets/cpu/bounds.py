"""Load-only kernels: a time that no kernel can beat on this machine, measured, not computed."""

from collections.abc import Iterator
from importlib.resources import files

from targets.gemma4.kernels import Kernel

STREAMS = (1, 4, 8, 16)
PREFETCHES = (0, 256, 1024)
"""Bytes ahead of the load; 0 for none."""


def bound_sources(kernel: Kernel) -> dict[str, str]:
    """Return load-only C sources by name (``s8-pf256``: eight streams, prefetch 256 bytes ahead).

    Each has the kernel's ABI and reads every byte of its weight buffers once; what it reads is
    folded into ``scratch``, so that no load can be left out. The fastest one is the bound: which
    one that is differs between machines and sizes.
    """
    return {
        f"s{streams}{f'-pf{prefetch}' if prefetch else ''}": _source(kernel, streams, prefetch)
        for streams in STREAMS
        for prefetch in PREFETCHES
    }


def _source(kernel: Kernel, streams: int, prefetch: int) -> str:
    fold = (files("targets.cpu") / "designs" / "bound.c").read_text(encoding="utf-8")
    head = (
        f"#define STREAMS {streams}\n#define PREFETCH {prefetch}\n\n"
        '#include "kernel.h"\n#include <stdint.h>\n#include <string.h>\n\n'
    )
    return head + fold + "\n".join(_body(kernel)) + "\n"


def _body(kernel: Kernel) -> Iterator[str]:
    yield "void kernel(const struct args *a)\n{"
    yield "    line total = {0};"
    for buffer in kernel.buffers:
        if buffer.part == "weight":
            yield f"    total = fold((const uint8_t *)a->{buffer.name}, {buffer.n_bytes}, total);"
    yield "    memcpy(a->scratch, &total, sizeof total);\n}"
