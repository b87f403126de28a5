"""Artifacts of the simulated NPU: the tokens of a source and the toolchain that compiled them."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final

from sim.npu.compiler import compile_source
from sim.npu.device import launch
from sim.npu.diagnostics import Diagnostic
from sim.npu.dump import schedule_json
from sim.npu.interpret import Meaning, meaning
from sim.npu.kernels import SIGNATURES
from sim.npu.program import Program
from sim.npu.schedule import Schedule, schedule
from sim.npu.signature import Signature
from sim.npu.toolchain import TOOLCHAINS, Toolchain
from targets.protocol import Cost

CLOCK_HZ: Final = 2e9
"""Of the device."""


@lru_cache(maxsize=512)
def compiled(text: str, signature: Signature, toolchain: Toolchain) -> Program | Diagnostic:
    """Compile the tokens of a source, once in a process."""
    return compile_source(f"{signature.kernel}.npu", text, signature, toolchain)


def pack(text: str, toolchain: Toolchain) -> bytes:
    """Return the artifact of a source's tokens that ``toolchain`` compiles."""
    return f"{_head(text, toolchain)}\n{text}\n".encode()


@dataclass(frozen=True, eq=False)
class Loaded:
    """An artifact, ready to be launched."""

    program: Program
    toolchain: Toolchain
    """That compiled it."""

    @cached_property
    def plan(self) -> Schedule:
        """When its commands would run if the compiler were right."""
        return schedule(self.program, self.toolchain)

    @cached_property
    def meaning(self) -> Meaning:
        """What it computes."""
        return meaning(self.program)


@lru_cache(maxsize=512)
def load(kernel: str, artifact: bytes) -> Loaded:
    """Read an artifact; load-only ones as well.

    Raises:
        ValueError: this is no artifact of this kernel.
    """
    head, _, text = artifact.decode("utf-8", "replace").partition("\n")
    text = text.removesuffix("\n")
    toolchain = next((t for t in TOOLCHAINS.values() if head == _head(text, t)), None)
    if toolchain is None:
        raise ValueError(
            f"{head[:100]!r} begins no artifact of the simulated NPU, or a damaged one"
        )
    signature = SIGNATURES[kernel]
    program = compiled(text, signature, toolchain)
    if isinstance(program, Diagnostic):
        program = compiled(text, signature.load_only(), toolchain)
    if isinstance(program, Diagnostic):
        raise ValueError(f"an artifact that is no {kernel}: {program}; build it from its source")
    return Loaded(program, toolchain)


@lru_cache(maxsize=4096)
def launch_s(kernel: str, artifact: bytes, installed: Toolchain) -> float:
    """Return the true time of a launch in seconds, infinite if it hangs.

    Args:
        kernel: its name.
        artifact: of it; the order of its commands and its tables are those of its compiler.
        installed: whose firmware runs it.

    Raises:
        ValueError: this is no artifact of this kernel.
    """
    loaded = load(kernel, artifact)
    tables = loaded.toolchain.device
    device = replace(installed.device, f4_table=tables.f4_table, f8_table=tables.f8_table)
    return launch(loaded.plan, replace(loaded.toolchain, device=device)).cycles / CLOCK_HZ


def static_cost(kernel: str, artifact: bytes) -> Cost:
    """Return the schedule that the compiler of an artifact made for it.

    Raises:
        ValueError: this is no artifact of this kernel.
    """
    plan = load(kernel, artifact).plan
    return Cost(round(plan.makespan), schedule_json(plan).encode())


def _head(text: str, toolchain: Toolchain) -> str:
    told = f"npu {toolchain.version}"
    return f"{told} {hashlib.sha256(f'{told} {text}'.encode()).hexdigest()}"
