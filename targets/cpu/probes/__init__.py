"""Microbenchmarks of one core: small kernels whose times say what one thing costs.

They bind the buffers of a kernel, read its weights or activations, and write scratch alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Final

from targets.cpu.fragments import program, reading
from targets.gemma4.kernels import Buffer, Kernel
from targets.protocol import Microbenchmark, Point

RUNS: Final = (64, 256, 1_024, 4_096, 65_536)
"""Bytes that lie together; the next ones are far away."""
OFF: Final = 8
"""Bytes from the start of a line at which loads cross lines, whatever the width of vectors."""
_SHARES: Final = {"half": 0.5, "all": 1.0}
"""Of the weights: no program leaves so much unread that caches keep it until the next launch."""
_PASSES: Final = (16, 256)
_KILO: Final = 4_096 / 1000
"""Thousand codes, or products, of a pass in ``decode.c`` and ``rows.c``."""
_F8: Final = {"BITS": 8, "MANTISSA": 3}
_F4: Final = {"BITS": 4, "MANTISSA": 1}
_FOLD: Final = ("designs/line.c", "designs/bound.c")
_DECODE: Final = ("designs/line.c", "probes/numbers.c", "probes/overlap.c")


@lru_cache
def microbenchmarks(kernel: Kernel) -> tuple[Microbenchmark, ...]:
    """Return the families of programs on a kernel's buffers, cheapest first."""
    bench = _Bench(kernel)
    families = {
        "passes": bench.passes(),
        "rows": bench.rows(),
        "f8": bench.decoding("f8", _F8),
        "f4": bench.decoding("f4", _F4),
        "stream": bench.stream(),
        "misses": bench.misses(),
        "overlap": bench.overlap(),
    }
    return tuple(Microbenchmark(name, dict(points)) for name, points in families.items())


@dataclass(frozen=True)
class _Bench:
    """Writes programs for one kernel's arguments."""

    kernel: Kernel

    # ---- what is in the first level of cache ------------------------------------------------

    def passes(self) -> Iterator[tuple[str, Point]]:
        """Activations made floats, and their squares added up."""
        parts = ("designs/widen.c", "probes/passes.c")
        launch, kilo = "launch that loads activations", self.kernel.buffers[0].shape[0] / 1000
        yield "none", self._hot(parts, {launch: 1}, PASSES=0, SUMS=1)
        things = {0: "made floats", 1: "squared in one sum", 16: "squared in 16 sums"}
        for sums, thing in things.items():
            for n in _PASSES:
                counts = {launch: 1, f"1000 elements {thing}": n * kilo}
                yield f"{thing} x{n}", self._hot(parts, counts, PASSES=n, SUMS=sums)

    def rows(self) -> Iterator[tuple[str, Point]]:
        """Products of rows by activations, which are loaded for each row or for four at a time."""
        parts = ("designs/widen.c", "probes/rows.c")
        launch = "launch that loads activations"
        yield "none", self._hot(parts, {launch: 1}, PASSES=0, ROWS=1, SUMS=1)
        ways = {"row by row": (1, 1), "row by row in 4 sums": (1, 4), "4 rows at a time": (4, 1)}
        for way, (rows, sums) in ways.items():
            for n in _PASSES:
                counts = {launch: 1, f"1000 products {way}": n * _KILO}
                yield f"{way} x{n}", self._hot(parts, counts, PASSES=n, ROWS=rows, SUMS=sums)

    def decoding(self, dtype: str, layout: Mapping[str, int]) -> Iterator[tuple[str, Point]]:
        """Codes made floats by a table, which is built first, and by arithmetic."""
        parts = ("probes/numbers.c", "probes/decode.c")
        launch = "launch that loads 4096 codes"
        for way, built in {"arithmetic": {}, "table": {f"{dtype} table built": 1}}.items():
            for n in (0, *_PASSES):
                counts = {launch: 1, **built, f"1000 {dtype} codes by {way}": n * _KILO}
                point = self._hot(parts, counts, PASSES=n, TABLE=len(built), **layout)
                yield f"{way} x{n}", point

    # ---- what is in main memory ------------------------------------------------------------

    def stream(self) -> Iterator[tuple[str, Point]]:
        """The weights in runs of one length, and in runs whose loads cross lines."""
        yield "none", self._nothing()
        for run in RUNS:
            yield from self._runs(f"MB in runs of {run} B", 1e6, RUN=run, OFF=0, WAIT=0)
        run = RUNS[-1]
        yield from self._runs(f"MB in runs of {run} B off a line", 1e6, RUN=run, OFF=OFF, WAIT=0)

    def misses(self) -> Iterator[tuple[str, Point]]:
        """Lines here and there, whose loads may overlap or have to wait for each other."""
        yield "none", self._nothing()
        yield from self._runs("1000 lines here and there", 64e3, RUN=64, OFF=0, WAIT=0)
        yield from self._runs("1000 lines one after the other", 64e3, RUN=64, OFF=0, WAIT=1)

    def overlap(self) -> Iterator[tuple[str, Point]]:
        """Weights loaded, as much decoded from cache, and both at once."""
        yield "none", self._nothing()
        ways = {
            "loaded": ("fold", program({"STREAMS": 1, "PREFETCH": 0}, _FOLD)),
            "decoded": ("decode", program({**_F8, "HOT": 1}, _DECODE)),
            "loaded and decoded": ("decode", program({**_F8, "HOT": 0}, _DECODE)),
        }
        for way, (function, text) in ways.items():
            for name, share in _SHARES.items():
                sizes = {_bytes(b): int(b.n_bytes * share) for b in self.kernel.weights}
                calls = (f"{function}({place}, {n}, total)" for place, n in sizes.items())
                counts = {"launch": 1, f"MB {way}": sum(sizes.values()) / 1e6}
                yield f"{way} {name}", Point(text + reading(calls), counts)

    # ---- pieces of programs ----------------------------------------------------------------

    def _nothing(self) -> Point:
        """A kernel that does nothing."""
        return Point(program({}, ["probes/nothing.c"]), {"launch": 1})

    def _runs(self, thing: str, unit: float, **defines: int) -> Iterator[tuple[str, Point]]:
        """Half of the weights and all of them in runs; the thing is ``unit`` bytes."""
        text = program({"STREAMS": 1, "PREFETCH": 0, **defines}, [*_FOLD, "probes/stream.c"])
        for name, share in _SHARES.items():
            calls, n_bytes = [], 0
            for buffer in self.kernel.weights:
                n_all = (buffer.n_bytes - defines["OFF"]) // defines["RUN"]
                n = int(n_all * share)
                calls.append(f"runs({_bytes(buffer)}, {n}, {n_all}, {_stride(n_all)}, total)")
                n_bytes += n * defines["RUN"]
            counts = {"launch": 1, thing: n_bytes / unit}
            yield f"{thing} {name}", Point(text + reading(calls), counts)

    def _hot(self, names: Sequence[str], counts: Mapping[str, float], **defines: int) -> Point:
        """A program that goes PASSES times over what is in the first level of cache."""
        activations = self.kernel.buffers[0]
        places: dict[str, int | str] = {
            "ACTIVATIONS": f"a->{activations.name}",
            "N_ACTIVATIONS": activations.shape[0],
            "WEIGHTS": f"({_bytes(self.kernel.weights[0])})",
        }
        return Point(program({**places, **defines}, names), counts)


def _bytes(buffer: Buffer) -> str:
    return f"(const uint8_t *)a->{buffer.name}"


def _stride(n: int) -> int:
    """Return a step of about 0.62 n which comes by all of ``n`` places before any again."""
    return next((step for step in range(int(0.618 * n), n) if gcd(step, n) == 1), 0)
