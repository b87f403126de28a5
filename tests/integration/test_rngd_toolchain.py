"""RNGD's own toolchain, called by path: what it builds, refuses, and would be fooled by."""

import hashlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import pytest

from targets.profiler.schedule import read as read_schedule
from targets.protocol import BuildFailed, Built, CostModel, Measured, TargetError
from targets.rngd import tracing
from targets.rngd.artifact import unpack
from targets.rngd.build import build
from targets.rngd.compiling import ASSEMBLER, compile_fully
from targets.rngd.costing import cost
from targets.rngd.device import CLOCK_HZ
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.environment import Environment
from targets.rngd.evaluating import evaluate
from targets.rngd.target import rngd_target
from targets.rngd.tracing import Traced, Untraced, trace
from tests.support.rngd import HEAD, NEWER, OLDER, PROJECT, SIGNATURE, SOURCE, TEXT, body, toolchain
from tests.support.rngd_illegal import ILLEGAL, VERDICTS

pytestmark = [pytest.mark.rngd, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def newer() -> Environment:
    return toolchain(NEWER)


@pytest.fixture(scope="module")
def older() -> Environment:
    return toolchain(OLDER)


def _cycles(environment: Environment, text: str) -> int:
    """What the evaluator says of a text that nobody judged; 0 where it says so."""
    evaluation = evaluate(environment, text)
    if isinstance(evaluation, Diagnostic):
        assert "0 cycles" in evaluation.message, evaluation
        return 0
    return evaluation.cycles


def test_a_source_builds_to_a_text_and_its_cost(newer: Environment) -> None:
    """What is printed of the tree that was read is what the tracer wrote, and costs the same."""
    traced = trace(newer, "project", SOURCE)
    assert isinstance(traced, Traced)
    assert traced.ir.strip() == TEXT.strip()

    built = build(newer, PROJECT, SOURCE)
    assert isinstance(built, Built)
    artifact = unpack("project", built.artifact)

    assert artifact.text == TEXT
    assert artifact.cycles == _cycles(newer, traced.ir)
    assert "longest chain of vector operations 0 of 16" in built.warnings


def test_costs_are_the_same_bytes_whenever_they_are_asked(newer: Environment) -> None:
    """Another line of text and another evaluation: the schedule does not change."""
    first = cost(newer, TEXT)
    again = cost(newer, TEXT + "\n")

    assert (first.cycles, first.schedule) == (again.cycles, again.schedule)
    assert first.sizes is not None
    assert first.sizes["w"] == PROJECT.weight_bytes


def test_the_older_toolchain_traces_to_the_same_kernel_and_tells_no_cost(
    newer: Environment, older: Environment
) -> None:
    """A campaign that starts on it can go on with the newer: the same source builds on both."""
    built = build(older, PROJECT, SOURCE)
    assert isinstance(built, Built)
    artifact = unpack("project", built.artifact)

    assert artifact.cycles is None
    assert artifact.versions["furiosa-tcc"] == OLDER
    assert _cycles(newer, artifact.text) == _cycles(newer, TEXT)


def test_illegal_sources_get_the_same_short_verdict_of_either_toolchain(
    newer: Environment, older: Environment
) -> None:
    """Stage, kind and the whole signature; what the older one cannot tell, it builds."""

    def verdict(environment: Environment, source: str) -> str:
        answer = build(environment, PROJECT, source)
        if isinstance(answer, Built):
            return ""
        assert answer.diagnostics
        kind = ": ".join(answer.signature.split(": ")[:2])
        return f"{kind} {hashlib.sha256(answer.signature.encode()).hexdigest()[:8]}"

    def both(name: str) -> tuple[str, str]:
        return verdict(newer, ILLEGAL[name]), verdict(older, ILLEGAL[name])

    assert len(ILLEGAL) >= 25
    with ThreadPoolExecutor(2) as pool:
        assert dict(zip(ILLEGAL, pool.map(both, ILLEGAL), strict=True)) == VERDICTS


HOSTILE = {
    "ends its process": ("import os\nos._exit(0)\n", "trace: no trace"),
    "is killed": ("import os, signal\nos.abort()\n", "trace: no trace"),
    "reads a file": ("open('/etc/passwd').read()\n", "trace: PermissionError"),
    "reads the vendor's kernels": (
        "import furiosa.kernels, pathlib\n"
        "list(pathlib.Path(furiosa.kernels.__path__[0]).glob('*.py'))[0].read_text()\n",
        "trace: ",
    ),
    "writes a file": ("open('/tmp/kernelwright-was-here', 'w')\n", "trace: PermissionError"),
    "forks": ("import os\nos.fork()\n", "trace: PermissionError"),
    "starts a program": ("import subprocess\nsubprocess.run(['true'])\n", "trace: PermissionError"),
    "asks the network": ("import socket\nsocket.socket()\n", "trace: PermissionError"),
    "kills its parent": ("import os\nos.kill(os.getppid(), 9)\n", "trace: PermissionError"),
    "never ends": ("while True: pass\n", "trace: limit"),
    "takes all memory": ("x = bytearray(8 << 30)\n", "trace: limit"),
    "prints without end": ("while True: print('x' * 65536)\n", "trace: no trace"),
    "recurses": ("def f(): f()\nf()\n", "trace: RecursionError"),
    "answers itself": (
        "import os, sys\nopen(sys.argv[3], 'w').write('[1]')\nos._exit(0)\n",
        "trace: no trace",
    ),
    "forges the text": (
        "import furiosa.tcl as tcl\n"
        "class Forged:\n    dsl = '@compiler_config({})'\n"
        "tcl.Kernel.from_edsl = lambda f: Forged\nproject = 1\n",
        "rules: construct",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_sources_end_in_a_verdict(
    newer: Environment, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that a source does while it is traced reaches beyond its own process and folder."""
    source, verdict = HOSTILE[name]
    monkeypatch.setattr(tracing, "LIMITS", tracing.LIMITS._replace(cpu_s=3))

    answer = build(newer, PROJECT, source)

    assert isinstance(answer, BuildFailed)
    assert answer.signature.startswith(verdict), answer


def test_garbage_on_the_standard_streams_does_not_matter(newer: Environment) -> None:
    """The text comes over a channel of its own."""
    source = f"print('def project<>', flush=True)\n{SOURCE}".replace(
        "from __future__ import annotations\n", ""
    )
    noisy = f"from __future__ import annotations\n{source}"

    assert isinstance(build(newer, PROJECT, noisy), Built)


def test_the_vendors_kernels_can_be_shown_to_agents(newer: Environment) -> None:
    """Where the campaign says so, and there alone."""
    peek = "import furiosa.kernels.common\nraise LookupError(furiosa.kernels.common.__file__)\n"

    hidden = trace(newer, "project", peek)
    shown = trace(newer, "project", peek, vendor_kernels=True)

    assert isinstance(hidden, Untraced)
    assert isinstance(shown, Untraced)
    assert shown.diagnostic.what == "LookupError"
    assert hidden.diagnostic.what != "LookupError"


def test_a_panic_a_hang_and_a_dynamic_size_are_verdicts_of_their_own(
    newer: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that the rules would refuse: the compiler itself must not end the search."""

    def what(text: str) -> str:
        answer = evaluate(newer, text)
        assert isinstance(answer, Diagnostic)
        return answer.what

    assert what(TEXT.replace("4096", str(10**18))) == "panic"
    assert what(TEXT.replace("    assert K == 3840\n", "")) == "no cost"
    monkeypatch.setattr(
        "targets.rngd.evaluating.LIMITS", tracing.LIMITS._replace(wall_s=0.05, cpu_s=1)
    )
    assert what(f"{TEXT}\n\n") == "time"
    monkeypatch.setattr(
        "targets.rngd.evaluating.LIMITS", tracing.LIMITS._replace(space_bytes=175 << 20)
    )
    assert what(f"{TEXT}\n\n\n") == "memory"


def test_a_verdict_names_the_line_of_the_source(newer: Environment) -> None:
    """The agent sees its own line, not the tracer's inside."""
    answer = build(newer, PROJECT, body("y = contract(weights, x, [N])", "return y"))

    assert isinstance(answer, BuildFailed)
    n_line = (HEAD + SIGNATURE).count("\n") + 1
    assert f"line {n_line}: NameError" in answer.diagnostics
    assert answer.snippet == "y = contract(weights, x, [N])"


def test_a_message_of_the_tracer_that_is_not_clear_gets_a_hint(newer: Environment) -> None:
    """Python's words for it name a class of the tracer, not what the author has to do."""
    answer = build(newer, PROJECT, body("x.copy_(x)", "y = contract(w, x, [N])", "return y"))

    assert isinstance(answer, BuildFailed)
    assert "trace: AttributeError" in answer.signature
    assert answer.diagnostics.endswith("(tcl.MutTensor) can be written in place")


SCALE = """\
def scale<N=512>(
    x: [N]/bf16
) -> [N]/bf16:
    assert N == 512
    y: [N]/bf16 = tk.Elementwise(
        %0 = read(x, typecast_to=f32)
        %1 = ve.exec(%0 * f2.0)
        write.to([N]/bf16)
    )
    return y
"""


def test_a_kernel_compiles_to_the_chips_program_where_the_assembler_is(newer: Environment) -> None:
    """Elsewhere the user is told which packages have it."""
    if shutil.which(ASSEMBLER) is None:
        with pytest.raises(TargetError, match="apt-get install gcc-aarch64-linux-gnu"):
            compile_fully(newer, SCALE)
        return

    compiled = compile_fully(newer, SCALE)
    refused = compile_fully(newer, SCALE.replace("bf16", "f64"))

    assert isinstance(compiled, Built)
    assert len(compiled.artifact) > 1000
    assert isinstance(refused, BuildFailed)
    assert refused.signature.startswith("compile: ")


def test_the_target_starts_on_the_older_toolchain_and_goes_on_with_the_newer(
    newer: Environment, older: Environment
) -> None:
    """The fingerprint tells an upgrade; what tells costs is the toolchain's to say."""
    first, then = rngd_target(OLDER), rngd_target(NEWER)

    assert newer.evaluates
    assert not older.evaluates
    assert first.fingerprint()["compiler"] == f"furiosa-tcc {OLDER}"
    assert first.fingerprint() != then.fingerprint()
    assert then.fingerprint()["device"].startswith("simulated device: vendor's static cost")
    assert isinstance(then, CostModel)
    assert not isinstance(first, CostModel)


def test_a_baseline_is_built_costed_and_timed_under_noise(newer: Environment) -> None:
    """Readings scatter around the static cost, and one that nobody can cost gives none."""
    target = rngd_target(newer.version)
    kernel = "sliding_attention_output"
    built = target.build(kernel, target.sources(kernel).baseline)
    assert isinstance(built, Built)

    measured = [
        target.measure(
            kernel,
            [built.artifact] * 2,
            (0, 1),
            group=2,
            launches=9,
            checked=(False, False),
            seed=seed,
            limit_s=90.0,
        )
        for seed in range(3)
    ]

    assert isinstance(target, CostModel)
    static = target.cost(kernel, built.artifact)
    schedule = read_schedule(static.schedule, bytes_of=static.bytes_of, sizes=static.sizes)
    cycles = unpack(kernel, built.artifact).cycles
    assert cycles is not None
    assert static.cycles == schedule.makespan
    assert cycles < static.cycles < 1.005 * cycles  # it has loops
    moved = sum(o.n_bytes or 0 for o in schedule.operations)
    assert moved > target.card(kernel).weight_bytes
    readings = [run for m in measured if isinstance(m, Measured) for run in m.runs]
    assert readings
    times = [median(run.launches_s) for run in readings]
    assert all(0.8 < t * CLOCK_HZ / cycles < 1.25 for t in times)
