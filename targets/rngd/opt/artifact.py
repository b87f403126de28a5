"""What a build leaves: the test binary with the kernel in it, its schedule, and whence.

The first line names the kernel, the toolchain and the content of the project with the candidate's
file in it, so that no binary can be taken for that of another source.
"""

import json
import zlib
from dataclasses import dataclass
from typing import Final

_MAGIC: Final = b"rngd-opt1\n"
MAX_BYTES: Final = 256 << 20
"""Of a binary and its schedule, unpacked."""


@dataclass(frozen=True)
class Artifact:
    """A kernel that the toolchain took."""

    kernel: str
    toolchain: str
    """Version."""
    content: str
    """SHA-256 of the project's files, the candidate's among them."""
    cycles: int
    """Makespan of the static schedule."""
    schedule: bytes
    """JSON, as dumped."""
    binary: bytes
    """The release build of the project's test."""


def pack(artifact: Artifact) -> bytes:
    """Return an artifact as bytes, the same for the same artifact."""
    a = artifact
    head = json.dumps([a.kernel, a.toolchain, a.content, a.cycles, len(a.schedule)])
    return _MAGIC + head.encode() + b"\n" + zlib.compress(a.schedule + a.binary, 6)


def unpack(kernel: str, data: bytes) -> Artifact:
    """Return what `pack` packed.

    Raises:
        ValueError: this is no artifact of this kernel.
    """
    head, _, packed = data.removeprefix(_MAGIC).partition(b"\n")
    if not data.startswith(_MAGIC):
        raise ValueError("no artifact of furiosa-opt")
    name, toolchain, content, cycles, n_schedule = json.loads(head)
    if name != kernel:
        raise ValueError(f"an artifact of {name}, not of {kernel}")
    unpacking = zlib.decompressobj()
    try:
        both = unpacking.decompress(packed, MAX_BYTES)
    except zlib.error as e:
        raise ValueError("a damaged artifact of furiosa-opt") from e
    if not unpacking.eof:
        raise ValueError("an artifact of furiosa-opt that is cut off, or too large")
    return Artifact(name, toolchain, content, cycles, both[:n_schedule], both[n_schedule:])
