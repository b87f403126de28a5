"""What a kernel's source must declare."""

from dataclasses import dataclass, replace

from sim.npu.program import DType, Part


@dataclass(frozen=True)
class Argument:
    """A tensor in HBM that the caller passes."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    part: Part

    def __str__(self) -> str:
        """Write it as a declaration does, with extents for axes."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}] {self.part}"


@dataclass(frozen=True)
class Signature:
    """The arguments of a kernel."""

    kernel: str
    arguments: tuple[Argument, ...]
    results: tuple[str, ...]
    """Arguments that a program must store to."""

    def load_only(self) -> "Signature":
        """Return the signature of programs that measure loads: nothing need be stored."""
        return replace(self, results=())
