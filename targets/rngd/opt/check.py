"""Correctness of an artifact: the project's own test on the processor, confined."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from targets.protocol import FixtureResult
from targets.rngd.opt.artifact import Artifact
from targets.rngd.opt.jobs import margin_of, variables_of
from targets.rngd.opt.outcomes import Failed, Part, worst_error
from targets.sandbox.confined import ALONE, Limits, Reads, run

LIMITS: Final = Limits(
    wall_s=600.0, cpu_s=1200, space_bytes=32 << 30, file_bytes=16 << 20, processes=ALONE
)
_READS: Final = Reads(("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/proc/cpuinfo"))


def check(artifact: Artifact, seeds: Sequence[int]) -> tuple[FixtureResult, ...]:
    """Run the test on one fixture per seed and stop at the first that fails.

    Args:
        artifact: whose program is run; hostile.
        seeds: of the test's inputs.

    Raises:
        TargetError: this machine cannot confine.
    """
    results: list[FixtureResult] = []
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as name:
        program = Path(name) / "test"
        program.write_bytes(artifact.binary)
        program.chmod(0o755)
        for seed in seeds:
            results.append(_check_one(artifact.kernel, program, seed))
            if not results[-1].passed:
                break
    return tuple(results)


def _check_one(kernel: str, program: Path, seed: int) -> FixtureResult:
    label = f"seed-{seed}"
    printed = run(
        (str(program), kernel, "--exact", "--nocapture"),
        program.parent,
        LIMITS,
        _READS,
        variables=variables_of("cpu", label, seed, 1),
    )
    if printed.status is None:
        return FixtureResult(label, None, f"hung: not over after {LIMITS.wall_s:.0f} s")
    error = worst_error(Part(printed.out + printed.err, printed.status), kernel, label)
    if isinstance(error, Failed):
        return FixtureResult(label, None, str(error))
    return FixtureResult(label, margin_of(kernel, error), "")
