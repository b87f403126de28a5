"""Kernels of RNGD are run by the vendor's own functional runtime; skipped where it is missing."""

from collections.abc import Callable
from functools import lru_cache

import pytest

from targets.protocol import Built, FixtureResult, TargetError
from targets.rngd.artifact import unpack
from targets.rngd.build import build
from targets.rngd.card import signature
from targets.rngd.check import arguments, check, check_one
from targets.rngd.environment import Environment, environment
from targets.rngd.kernels import TASKS
from targets.rngd.launching import Launcher
from targets.rngd.serving import StoppedError
from targets.rngd.sources import SLOWDOWN, sources
from targets.gemma4.kernels import kernel
from targets.gemma4.launches import launches

pytestmark = [pytest.mark.rngd_check, pytest.mark.timeout(600)]

EVERY = pytest.mark.parametrize("name", TASKS)
OUTPUT, QKV = "sliding_attention_output", "sliding_project_qkv"
BEGIN = """\
from __future__ import annotations

import furiosa.tcl as tcl
from furiosa.tcl import commit, fetch, operation


"""


@pytest.fixture(scope="module")
def toolchain() -> Environment:
    """Return an environment with the functional runtime."""
    try:
        found = environment()
    except TargetError as e:
        pytest.skip(str(e))
    if not found.functional:
        pytest.skip("the newest environment has no furiosa-torch")
    return found


@lru_cache(maxsize=32)
def built(toolchain_path: str, name: str, source: str) -> tuple[str, int]:
    """Return the text and the cycles of a source that builds."""
    result = build(environment(), TASKS[name], source)
    assert isinstance(result, Built), result
    artifact = unpack(name, result.artifact)
    assert artifact.cycles is not None
    return artifact.text, artifact.cycles


def checked(toolchain: Environment, name: str, source: str, *seeds: int) -> FixtureResult:
    """Return the last result of a source that builds."""
    text, _ = built(str(toolchain.python), name, source)
    return check(toolchain, TASKS[name], text, seeds)[-1]


@EVERY
def test_the_baseline_passes_with_room_and_the_wrong_control_fails(
    toolchain: Environment, name: str
) -> None:
    """At full size, both launches: all speed-ups are measured from the baseline."""
    own = sources(TASKS[name])
    right = checked(toolchain, name, own.baseline, 1)
    wrong = checked(toolchain, name, own.canary_wrong, 1)

    assert right.passed, right
    assert right.margin is not None
    assert 0.1 < right.margin < 0.8
    assert wrong.margin is not None
    assert wrong.margin > 10
    assert "tolerances" in wrong.detail
