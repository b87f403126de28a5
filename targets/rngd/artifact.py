"""What a build leaves: a kernel's text, what it costs, and the toolchain that said so."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_MAGIC: Final = b"rngd1\n"


@dataclass(frozen=True)
class Artifact:
    """A kernel that passed every rule."""

    kernel: str
    versions: Mapping[str, str]
    """Of the toolchain."""
    cycles: int | None
    """None where the toolchain cannot tell."""
    text: str
    """What the compiler reads."""


def pack(artifact: Artifact) -> bytes:
    """Return an artifact as bytes, the same for the same artifact."""
    about = [artifact.kernel, sorted(artifact.versions.items()), artifact.cycles]
    head = json.dumps(about, separators=(",", ":"))
    return _MAGIC + f"{head}\n{artifact.text}".encode()


def unpack(kernel: str, data: bytes) -> Artifact:
    """Return what `pack` packed.

    Raises:
        ValueError: this is no artifact of this kernel.
    """
    head, _, text = data.removeprefix(_MAGIC).partition(b"\n")
    if not data.startswith(_MAGIC):
        raise ValueError("no artifact of this target")
    name, versions, cycles = json.loads(head)
    if name != kernel:
        raise ValueError(f"an artifact of {name}, not of {kernel}")
    return Artifact(name, dict(versions), cycles, text.decode())
