"""A small kernel of the RNGD target, and the toolchains that tests find."""

import os
from typing import Final

import pytest

from targets.protocol import TargetError
from targets.rngd.environment import VARIABLE, Environment, environment
from targets.rngd.task import Parameter, Task

NEWER: Final = "2026.4.0"
OLDER: Final = "2026.3.0"
PROJECT: Final = Task(
    "project",
    {"N": 4096, "K": 3840},
    (Parameter("w", "bf16", ("N", "K")), Parameter("x", "bf16", ("K",))),
    (Parameter("y", "bf16", ("N",)),),
    weight_bytes=2 * 4096 * 3840,
)
HEAD: Final = """\
from __future__ import annotations
import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation


@tcl.tensor_operation
def contract(w, x, to):
    return commit.typecast(operation.contract(w, x, to=to), tcl.bf16)


@tcl.tensor_operation
def double(x):
    return commit.typecast(operation.mulf(fetch.typecast(x, tcl.f32), 2.0), tcl.bf16)


"""
SIGNATURE: Final = """\
@tcl.kernel(bindings={"N": 4096, "K": 3840}, strict=True)
def project(
    w: tcl.Tensor[tcl.bf16, [N, K]], x: tcl.Tensor[tcl.bf16, [K]]
) -> tcl.Tensor[tcl.bf16, [N]]:
"""
RESULT: Final = """\
    y = contract(w, x, [N])
    return y
"""
SOURCE: Final = HEAD + SIGNATURE + RESULT
TEXT: Final = """\
def project<K=3840, N=4096>(
    w: [N, K]/bf16,
    x: [K]/bf16
) -> [N]/bf16:
    assert K == 3840
    assert N == 4096
    y: [N]/bf16 = tk.EinsumByDpe(
        %0 = read(w)
        %1 = read(x)
        %2 = dpe.exec(%0,%1 -> [N])
        write.to([N]/bf16)
    )
    return y
"""
"""What the newer toolchain makes of the source."""


def body(*lines: str) -> str:
    """Return a source whose kernel does something else before its result."""
    return HEAD + SIGNATURE + "".join(f"    {line}\n" for line in lines)


def toolchain(version: str) -> Environment:
    """Return a version of the vendor's toolchain; without one skip, unless one was promised."""
    try:
        return environment(version)
    except TargetError as e:
        if os.environ.get(VARIABLE):  # noqa: TID251 the test run's own promise
            raise
        pytest.skip(str(e))
