"""Microbenchmarks of the simulated NPU: small programs whose times say what one thing costs.

They bind the buffers of a kernel and store nothing, so that each runs beside its best version.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Final

from sim.npu.kernels import SIGNATURES
from sim.npu.program import BITS, DType
from targets.protocol import Microbenchmark, Point

RUNS: Final = (64, 128, 256, 384, 512, 640, 1_024, 1_280, 1_920, 2_048, 3_840)
"""Bytes of a run; those that divide a slice's row are loaded."""
_MEGA: Final = 1_000_000
_N_BUSY: Final = 11
"""Passes over a whole vector that take about as long as one load of a weight matrix."""


@dataclass(frozen=True)
class _Layout:
    """How a kernel's arguments are cut: a matrix of weights, its first row, a vector."""

    matrix: str
    grid: str
    """Placement of the matrix: it takes every slice of both clusters."""
    row: str
    halves: str
    """Placements of ``matrix[0]``: the second one leaves half as much to a slice."""
    block: str = ""
    """In which both are loaded in runs of the same length."""
    vector: str = "residual"


_LAYOUTS: Final[Mapping[str, _Layout]] = {
    "sliding_project_qkv": _Layout(
        "wq",
        "cluster A16:2, slices A16:8 A256:32",
        "cluster A256:2, slices A256:128 idle:2",
        "cluster A256:2, slices A256:128 A3840:2",
        block=" block 640",
        vector="x",
    ),
    "sliding_attention_output": _Layout(
        "wo",
        "cluster A3840:2, slices A3840:128 A4096:2",
        "cluster one, slices idle:256",
        "cluster one, slices idle:128 A4096:2",
    ),
    "decoder_feedforward": _Layout(
        "w_down",
        "cluster A3840:2, slices A3840:128 A15360:2",
        "cluster one, slices idle:256",
        "cluster one, slices idle:128 A15360:2",
    ),
}


@lru_cache
def microbenchmarks(kernel: str) -> tuple[Microbenchmark, ...]:
    """Return the families of programs on a kernel's buffers."""
    bench = _Bench(kernel, _LAYOUTS[kernel])
    families = (
        bench.loads, bench.stream, bench.passes, bench.lookup, bench.broadcast, bench.overlap,
    )  # fmt: skip
    return tuple(Microbenchmark(family.__name__, dict(family())) for family in families)


@lru_cache
def programs(kernel: str) -> frozenset[str]:
    """Return the sources of all of them."""
    families = microbenchmarks(kernel)
    return frozenset(point.source for family in families for point in family.points.values())


@dataclass(frozen=True)
class _Bench:
    """Generates programs for one kernel's signature."""

    kernel: str
    layout: _Layout

    def loads(self) -> Iterator[tuple[str, Point]]:
        """A vector into one slice, again and again."""
        for n in (1, 2, 4, 8, 16):
            yield (
                f"{n}",
                self._point(self._loads("v", n, self.layout.vector, "head"), **{"small load": n}),
            )

    def stream(self) -> Iterator[tuple[str, Point]]:
        """A matrix of weights in runs of one length, once and twice in one command."""
        yield "none", self._point(self._loads("v", 1, self.layout.vector, "head"))
        n_bytes, row_bytes, bits = self._matrix()
        for run in (run for run in RUNS if row_bytes % run == 0):
            for n in (1, 2):
                outputs = ", ".join(f"m{i}" for i in range(n))
                sources = ", ".join([self.layout.matrix] * n)
                line = f"load {outputs} from {sources} to grid block {run * 8 // bits}"
                moved = n * n_bytes / _MEGA
                yield f"{run}x{n}", self._point([line], **{f"MB in runs of {run} B": moved})

    def passes(self) -> Iterator[tuple[str, Point]]:
        """Passes over much and over little of a vector."""
        for engine in ("main", "sub"):
            for place, parts in (("head", 1), ("parts", 128)):
                for n in (1, 4, 16):
                    lines = self._loads("v", 1, self.layout.vector, place)
                    lines += self._passes(engine, "v0", n)
                    kilo = n * self._size(self.layout.vector) / parts / 1000
                    counts = {f"pass on {engine}": n, f"1000 elements on {engine}": kilo}
                    yield f"{engine} {place} x{n}", self._point(lines, **counts)

    def lookup(self) -> Iterator[tuple[str, Point]]:
        """Decodings that load their table each, and some that find it there."""
        into = "f8e4m3" if self._dtype(self.layout.matrix) == "f4e2m1" else "bf16"
        for place in ("row", "halves"):
            for keep, counts in (("", (1, 3, 9)), (" keep", (3, 9))):
                for n in counts:
                    lines = [f"load c from {self.layout.matrix}[0] to {place}{self.layout.block}"]
                    step = f"main c | lookup {into}{keep} | commit dm {into}"
                    lines += [f"d{i} = {step}" for i in range(n)]
                    kilo = n * self._codes() / (2 if place == "halves" else 1) / 1000
                    done = {
                        "lookup table": 1 if keep else n,
                        "lookup pass": n,
                        "1000 codes looked up": kilo,
                    }
                    yield f"{place}{keep} x{n}", self._point(lines, **done)

    def broadcast(self) -> Iterator[tuple[str, Point]]:
        """A vector in all slices: loaded with copies, or handed on from one slice."""
        base = self._loads("v", 1, self.layout.vector, "head")
        yield "none", self._point(base)
        for n in (1, 2, 4):
            again = self._loads("w", n, self.layout.vector, "every")
            yield f"reload x{n}", self._point([*base, *again], **{"vector loaded to all slices": n})
        for n in (1, 2, 4):
            step = "main v0 | switch broadcast | commit dm bf16"
            handed = [f"b{i} = {step}" for i in range(n)]
            yield (
                f"switch x{n}",
                self._point([*base, *handed], **{"vector switched to all slices": n}),
            )

    def overlap(self) -> Iterator[tuple[str, Point]]:
        """Loads and passes alone and together, main and sub alone and together."""
        base = self._loads("v", 1, self.layout.vector, "head")
        for n in (1, 3):
            dma = self._loads("m", n, self.layout.matrix, "grid")
            main, sub = (self._passes(engine, "v0", n * _N_BUSY) for engine in ("main", "sub"))
            for name, lines in {
                "loads alone": dma,
                "main alone": main,
                "sub alone": sub,
                "loads beside main": [*dma, *main],
                "main beside sub": [*main, *sub],
            }.items():
                yield f"{name} x{n}", self._point([*base, *lines], **{name: n})

    # ---- pieces of programs ----------------------------------------------------------------

    def _point(self, lines: list[str], **counts: float) -> Point:
        return Point(self._head() + "".join(f"{line}\n" for line in lines), {"launch": 1, **counts})

    def _loads(self, name: str, n: int, source: str, place: str) -> list[str]:
        return [f"load {name}{i} from {source} to {place}" for i in range(n)]

    def _passes(self, engine: str, source: str, n: int) -> list[str]:
        step = f"{engine} {source} | mul 0.5 | commit dm bf16"
        return [f"{engine}{i} = {step}" for i in range(n)]

    def _head(self) -> str:
        arguments = SIGNATURES[self.kernel].arguments
        extents = sorted({extent for argument in arguments for extent in argument.shape})
        vector = f"A{self._size(self.layout.vector)}"
        lines = [f"kernel {self.kernel}", *(f"axis A{n} = {n}" for n in extents)]
        for a in arguments:
            axes = ", ".join(f"A{n}" for n in a.shape)
            lines.append(f"hbm {a.name}: {a.dtype}[{axes}] {a.part}")
        places = {
            "grid": self.layout.grid,
            "row": self.layout.row,
            "halves": self.layout.halves,
            "head": "cluster one, slices idle:256",
            "every": "cluster one, slices copy:256",
            "parts": f"cluster one, slices idle:2 {vector}:128",
        }
        lines += [f"place {name} = {how}" for name, how in places.items()]
        return "".join(f"{line}\n" for line in lines)

    def _shape(self, argument: str) -> tuple[int, ...]:
        return next(a.shape for a in SIGNATURES[self.kernel].arguments if a.name == argument)

    def _dtype(self, argument: str) -> DType:
        return next(a.dtype for a in SIGNATURES[self.kernel].arguments if a.name == argument)

    def _size(self, argument: str) -> int:
        return prod(self._shape(argument))

    def _matrix(self) -> tuple[float, int, int]:
        """Bytes of the matrix, bytes of a slice's row of it, bits of an element."""
        name = self.layout.matrix
        bits = BITS[self._dtype(name)]
        cut = f"A{self._shape(name)[-1]}:2" in self.layout.grid
        row = self._shape(name)[-1] // (2 if cut else 1)
        return self._size(name) * bits / 8, row * bits // 8, bits

    def _codes(self) -> int:
        """Codes of ``matrix[0]`` in a slice that holds a whole row of it."""
        return self._shape(self.layout.matrix)[-1]
