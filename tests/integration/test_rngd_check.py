"""Kernels of RNGD, run by the vendor's functional runtime and judged against the reference."""

from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from targets.gemma4.kernels import kernel
from targets.gemma4.launches import launches
from targets.protocol import Built, FixtureResult
from targets.rngd.artifact import unpack
from targets.rngd.build import build
from targets.rngd.card import signature
from targets.rngd.check import check, check_one
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.environment import Environment, runtime
from targets.rngd.guard import judge
from targets.rngd.kernels import TASKS
from targets.rngd.launching import Launcher
from targets.rngd.serving import Server
from targets.rngd.sources import sources
from targets.rngd.tracing import Traced, trace
from tests.support.rngd import NEWER, PROJECT, TEXT, toolchain

pytestmark = [pytest.mark.rngd_check, pytest.mark.timeout(900)]

WEIGHTS: Final = np.full((4096, 3840), 0x3F80, np.uint16)
"""Codes of 1 in bf16."""
SUM_OF_ONES: Final = 0x4570
"""The code of 3840."""
OUTPUT, QKV = "sliding_attention_output", "sliding_project_qkv"


@pytest.fixture(scope="module")
def functional() -> Environment:
    """Return an environment with the functional runtime; without one skip."""
    toolchain(NEWER)
    if (found := runtime()) is None:
        pytest.skip("no environment has furiosa-torch")
    return found


def text_of(name: str, source: str) -> str:
    built = build(toolchain(NEWER), TASKS[name], source)
    assert isinstance(built, Built), built
    return unpack(name, built.artifact).text


def checked(environment: Environment, name: str, source: str, seed: int = 1) -> FixtureResult:
    (result,) = check(environment, TASKS[name], text_of(name, source), [seed])
    return result


def defined(name: str, *body: str) -> str:
    """Return a source of a kernel with a body of one's own."""
    begin = "from __future__ import annotations\n\nimport furiosa.tcl as tcl\n\n"
    return "\n    ".join([begin + signature(TASKS[name]), *body, ""])


def text_without_cost(environment: Environment, name: str, source: str) -> str:
    """Return a text that the evaluator would refuse: it leaves inputs unread."""
    traced = trace(environment, name, source)
    assert isinstance(traced, Traced), traced
    return traced.ir


@pytest.mark.parametrize("name", TASKS)
def test_the_baseline_passes_with_room_and_the_wrong_control_fails(
    functional: Environment, name: str
) -> None:
    """At full size, both launches of the first fixture."""
    own = sources(TASKS[name])
    right = checked(functional, name, own.baseline)
    wrong = checked(functional, name, own.canary_wrong)

    assert right.passed, right
    assert right.margin is not None
    assert 0.1 < right.margin < 0.7
    assert wrong.margin is not None
    assert wrong.margin > 10
    assert "tolerances" in wrong.detail


def test_every_distribution_is_passed_by_the_baseline(functional: Environment) -> None:
    """Subnormal weights, heavy tails, small and large amplitudes."""
    text = text_of(OUTPUT, sources(TASKS[OUTPUT]).baseline)
    results = check(functional, TASKS[OUTPUT], text, range(1, 7))

    assert len({result.fixture for result in results}) == 6
    assert all(result.passed for result in results), results


def test_the_slow_control_is_right(functional: Environment) -> None:
    """It is to fail on the device, not here."""
    assert checked(functional, OUTPUT, sources(TASKS[OUTPUT]).canary_slow).passed


def test_a_row_more_in_a_cache_is_seen(functional: Environment) -> None:
    """The right row is right; the next one belongs to another token."""
    baseline = sources(TASKS[QKV]).baseline
    honest = "    k_updated = tcl.scatter(k_new, cache_row, TS, init=k_cache)\n"
    assert honest in baseline
    source = baseline.replace(
        honest,
        "    other = following(cache_row)\n"
        "    k_twice = tcl.scatter(k_new, other, TS, init=k_cache)\n"
        "    k_updated = tcl.scatter(k_new, cache_row, TS, init=k_twice)\n",
    ).replace(
        "@tcl.kernel",
        "@tcl.tensor_operation\ndef following(row):\n"
        "    return commit(operation.bit_xori(row, 1))\n\n\n@tcl.kernel",
    )
    result = checked(functional, QKV, source)

    assert result.margin is None
    assert result.detail.startswith("k_cache[")
    assert "may be written" in result.detail


def test_what_is_not_written_is_poison(functional: Environment) -> None:
    """Half of the result is never made; zeros might be close to right."""
    source = defined(
        OUTPUT,
        "Two = tcl.Axis(2)",
        "One = tcl.Axis(1)",
        "Half = tcl.Axis(1920)",
        "index: tcl.Tensor[tcl.i32, [One]] = tcl.full(0)",
        "parts = tcl.reshape(residual, to=[Two, Half])",
        "half: tcl.Tensor[tcl.bf16, [One, Half]] = tcl.slice(parts, Two, 0)",
        "halves = tcl.scatter(half, index, Two)",
        "result: tcl.Tensor[tcl.bf16, [H]] = tcl.reshape(halves)",
        "return result",
    )
    text = text_without_cost(functional, OUTPUT, source)
    (result,) = check(functional, TASKS[OUTPUT], text, [1])

    assert result.margin is not None
    assert result.margin > 1e30


def _launched_unguarded(server: Server, text: str, x: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Ask the runtime for a product with rows of ones, as nobody else does; return its codes."""
    arrays = [["bf16", [4096, 3840]], [dtype, [3840]]]
    ask = {"ticket": "", "kernel": "project", "text": text, "arrays": arrays, "back": []}
    with server.within(60.0):
        server.send(ask, [WEIGHTS, x])
        server.expect({"ticket": "", "arrays": [["bf16", [4096]]]})
        return server.array(np.dtype(np.uint16), (4096,))


def test_the_runtime_takes_any_bytes_for_any_format_and_nothing_here_does(
    functional: Environment,
) -> None:
    """Weights of half the bytes would cost half, and every launch would go well."""
    server, x, wide = Server(functional), WEIGHTS[0].copy(), np.ones(3840, np.float32)
    narrow = TEXT.replace("w: [N, K]/bf16", "w: [N, K]/f8_e4").replace(
        "x: [K]/bf16", "x: [K]/f8_e4"
    )

    assert (_launched_unguarded(server, TEXT, x, "bf16") == SUM_OF_ONES).all()
    assert (_launched_unguarded(server, narrow, x, "bf16") != SUM_OF_ONES).all()
    assert (_launched_unguarded(server, TEXT, wide, "f32") != SUM_OF_ONES).all()

    refused = judge(PROJECT, narrow)
    assert isinstance(refused, Diagnostic)
    assert refused.what == "signature"
    with pytest.raises(ValueError, match=r"x is float32\(3840,\), not \(dtype\('uint16'\)"):
        Launcher(functional).launch(PROJECT, TEXT, {"w": WEIGHTS, "x": wide})


def test_a_launch_that_takes_too_long_is_ended(functional: Environment) -> None:
    """The next one finds a process."""
    text = text_of(OUTPUT, sources(TASKS[OUTPUT]).baseline)
    fixture = launches(kernel(OUTPUT, "full"), 1, 0)
    hasty, patient = Launcher(functional, limit_s=0.01), Launcher(functional)

    late = check_one(hasty, TASKS[OUTPUT], text, fixture)
    assert (late.margin, late.detail) == (None, "time limit of 0.01 s")
    assert check_one(patient, TASKS[OUTPUT], text, fixture).passed


def test_a_text_that_the_runtime_refuses_is_a_verdict(functional: Environment) -> None:
    """A result that nothing makes; the launcher's process ends over it, and another starts."""
    task, fixture = TASKS[OUTPUT], launches(kernel(OUTPUT, "full"), 1, 0)
    source = defined(
        OUTPUT, "nothing: tcl.Tensor[tcl.bf16, [H]] = tcl.scratchpad()", "return nothing"
    )
    launcher = Launcher(functional)

    refused = check_one(launcher, task, text_without_cost(functional, OUTPUT, source), fixture)
    assert refused.margin is None
    assert refused.detail.startswith("the runtime refuses it: ")
    text = text_of(OUTPUT, sources(task).baseline)
    assert check_one(launcher, task, text, fixture).passed
