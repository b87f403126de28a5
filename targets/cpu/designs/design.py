"""One whole-kernel design: what it claims, what it needs, and how its source is put together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from targets.cpu.fragments import fragment

Limit = Literal["decoding", "sums", "memory"]
"""What a design waits for: decoding weights, the arithmetic on them, or their arrival."""

AVX2 = frozenset({"avx2", "fma", "f16c"})
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
VBMI = AVX512 | {"avx512vbmi"}

KNOBS: Mapping[str, str] = {
    "ROWS": "rows of the weights at a time",
    "APART": "rows of a block far apart (1) or neighbours (0)",
    "STAGGER": "rows by which that distance is shorter than an even split",
    "PREFETCH": "bytes ahead of the load of a row's weights, 0 for none",
    "LOCALITY": "where prefetched lines go: 3 the first level of cache, 2 the second, 0 past both",
    "LANES": "floats in a vector",
    "ACC": "independent sums",
    "TILE": "columns at a time",
    "UNROLL": "steps at a time",
    "ERF_POLYNOMIAL": "gelu by a polynomial (1) or by libm (0)",
}
"""Parameters that a source may define at its top, and what they mean."""


@dataclass(frozen=True)
class Design:
    """A core for one weight format, with the parameters that it starts from."""

    name: str
    core: str
    """File of the core."""
    idea: str
    """What changes and why: the hypothesis."""
    speedup: float
    """Expected, over the baseline."""
    limit: Limit
    """Expected once it runs."""
    knobs: Mapping[str, int] = field(hash=False)
    needs: frozenset[str] = frozenset()
    """Processor features, as /proc/cpuinfo names them."""
    whole: bool = False
    """The core goes over all rows itself."""

    def start(self, kernel: str) -> dict[str, int]:
        """Return the parameters that it starts from in a kernel."""
        gelu = {"ERF_POLYNOMIAL": 0} if kernel == "decoder_feedforward" else {}
        return {**self.knobs, **gelu}

    def source(self, kernel: str, knobs: Mapping[str, int]) -> str:
        """Return the C source for a kernel.

        Args:
            kernel: picks the frame.
            knobs: values that differ from the design's own; others are ignored.
        """
        feedforward = kernel == "decoder_feedforward"
        values = {name: knobs.get(name, value) for name, value in self.start(kernel).items()}
        rows = [] if self.whole else ["rows_f4.c" if feedforward else "rows_f8.c"]
        parts = ["widen.c", "common.c", self.core, *rows, f"{kernel}.c"]
        texts = (fragment(f"designs/{part}") for part in parts)
        return "\n".join([self._head(values), *texts])

    def _head(self, values: Mapping[str, int]) -> str:
        meanings = "\n".join(f"   {name}: {KNOBS[name]}" for name in values)
        defines = "".join(f"#define {name} {value}\n" for name, value in values.items())
        headers = [
            "<math.h>",
            "<stdint.h>",
            "<string.h>",
            *(["<immintrin.h>"] if self.needs else []),
        ]
        includes = "".join(f"#include {header}\n" for header in headers)
        return f'/* Design {self.name}.\n{meanings} */\n{defines}\n#include "kernel.h"\n{includes}'
