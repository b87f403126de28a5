"""Load-only kernels: a time that no kernel can beat on this machine, measured, not computed."""

from targets.cpu.fragments import program, reading
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
    defines = {"STREAMS": streams, "PREFETCH": prefetch}
    calls = (f"fold((const uint8_t *)a->{b.name}, {b.n_bytes}, total)" for b in kernel.weights)
    return program(defines, ["designs/line.c", "designs/bound.c"]) + reading(calls)
