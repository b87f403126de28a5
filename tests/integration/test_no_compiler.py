"""A machine without gcc or clang: the compiler of the wheel does everything."""

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.device, pytest.mark.timeout(400)]

PROGRAM = """
from targets.gemma4.kernels import KERNELS
from targets.cpu.target import CpuTarget
from targets.protocol import Built, Measured
from targets.sandbox.compiler import compiler

N_TRIES = 4

print(compiler().family)
target = CpuTarget("small")
for kernel in KERNELS:
    sources = target.sources(kernel)
    built = target.build(kernel, sources.baseline)
    assert isinstance(built, Built), built
    (checked,) = target.check(kernel, built.artifact, (1,))
    assert checked.passed, checked
    wrong = target.build(kernel, sources.canary_wrong)
    assert isinstance(wrong, Built), wrong
    (checked,) = target.check(kernel, wrong.artifact, (1,))
    assert checked.margin is not None and checked.margin > 1, checked
    arms = (built.artifact, built.artifact)
    for seed in range(N_TRIES):  # as in a run: a busy machine fails a job, not the kernel
        measured = target.measure(
            kernel, arms, (0, 1), group=2, launches=1, checked=(True, True), seed=seed, limit_s=60
        )
        if isinstance(measured, Measured):
            break
    assert isinstance(measured, Measured), measured
for family in target.microbenchmarks(KERNELS[-1]):
    *_, last = family.points.values()
    built = target.build(KERNELS[-1], last.source)
    assert isinstance(built, Built), built
print("all")
"""


def test_the_wheel_compiler_builds_the_sandbox_and_every_baseline() -> None:
    """The demo's promise: Python and make are enough."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PATH": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["zig", "all"]
