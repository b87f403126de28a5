"""What fools the vendor's evaluator: each cheat where nobody judges it, and then the guard."""

from typing import Final, NamedTuple

import pytest

from targets.profiler.schedule import read as read_schedule
from targets.protocol import BuildFailed, Built
from targets.rngd import evaluating
from targets.rngd.artifact import unpack
from targets.rngd.build import believed, build
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.environment import Environment
from targets.rngd.evaluating import Evaluation, evaluate, least_cycles
from targets.rngd.guard import MAX_UNROLL, MAX_VECTOR_OPERATIONS, judge
from targets.rngd.ir.reading import read
from targets.rngd.memory import SRAM_BYTES, peak
from targets.rngd.task import Parameter, Task
from tests.support.rngd import NEWER, PROJECT, SOURCE, TEXT, toolchain

pytestmark = [pytest.mark.rngd, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def newer() -> Environment:
    return toolchain(NEWER)


def _then(*lines: str) -> str:
    """Return the kernel with more after its contraction."""
    return TEXT.replace("    return y\n", "".join(f"    {line}\n" for line in lines))


def _passes(*lengths: int, between: str = "", loops: bool = False) -> str:
    """Return the kernel with multiplications after it, each an operation of its own.

    Args:
        lengths: multiplications in a row.
        between: a call between two rows.
        loops: whether each row stands in a loop of one turn.
    """
    lines, value = [], "y"
    for row, length in enumerate(lengths):
        indent = "    " if loops else ""
        if loops:
            lines.append(f"t{row}: [N]/bf16 = for i in 0..1 (a{row} = {value}):")
            value = f"a{row}"
        for i in range(length):
            lines += [
                f"{indent}z{row}_{i}: [N]/bf16 = tk.Elementwise(",
                f"    %0 = read({value})",
                f"    %1 = ve.exec(%0 * f1.{i + 1})",
                "    write.to([N]/bf16)",
                ")",
            ]
            value = f"z{row}_{i}"
        if loops:
            lines.append(f"{indent}yield {value};")
            value = f"t{row}"
        elif between:
            lines.append(f"v{row}: [N]/bf16 = {between}({value})")
            value = f"v{row}"
    return _then(*lines, f"return {value}")


def _fused(n: int) -> str:
    """Return the kernel with vector operations in the very pass of its contraction."""
    steps = "".join(f"        %{i + 3} = ve.exec(%{i + 2} * f1.5)\n" for i in range(n))
    return TEXT.replace("        write.to", f"{steps}        write.to")


class Kernel(NamedTuple):
    """A text, and what the evaluator says of it as it is: cycles, None where it refuses it."""

    text: str
    cycles: int | None


class Cheat(NamedTuple):
    """A text that is no honest kernel."""

    text: str
    cycles: int | None
    honest: Kernel
    """Which does the same, or less."""
    signature: str
    """Of the guard's refusal."""


TILES: Final = """\
def project<K=3840, N=4096>(
    w: [N, K]/bf16,
    x: [K]/bf16
) -> [N]/bf16:
    assert K == 3840
    assert N == 4096
    R: Axis = 256
    C: Axis = 16
    tiles: [C, R, K]/bf16 = reshape(w)
    out: [C, R]/bf16 = scratchpad()
    made: [C, R]/bf16 = for i in 0..16 (filled = out):
        tile: [R, K]/bf16 = tiles[i]
        rows: [R]/bf16 = tk.EinsumByDpe(
            %0 = read(tile)
            %1 = read(x)
            %2 = dpe.exec(%0,%1 -> [R])
            write.to([R]/bf16)
        )
        filled[i] = rows
        yield filled;
    y: [N]/bf16 = reshape(made)
    return y
"""
PLAIN: Final = Kernel(TEXT, 27_018)
LOOP: Final = Kernel(TILES, 52_114)
ADDED: Final = Kernel(
    _then(
        "M: Axis = 2048",
        "i: [M]/i32 = transmute(y)",
        "j: [M]/i32 = tk.Elementwise(",
        "    %0 = read(i)",
        "    %1 = ve.exec(%0 +_fxp i1)",
        "    write.to([M]/i32)",
        ")",
        "r: [N]/bf16 = transmute(j)",
        "return r",
    ),
    27_275,
)
"""One addition of integers."""
FOUR_PASSES: Final = Kernel(_passes(10, 10, 10, 10, between="via_dram"), 28_046)
"""Forty multiplications, of which the compiler fuses ten at a time, the first with the matrix."""


def _row_into(weights: str) -> str:
    """Return the kernel with the vector in the first row of its matrix."""
    lines = (
        "One: Axis = 1",
        "first: [One]/i32 = full(0)",
        "row: [One, K]/bf16 = reshape(x)",
        f"own: [N, K]/bf16 = {weights}",
        "changed: [N, K]/bf16 = scatter(row, first, N, init=own)",
    )
    before = "".join(f"    {line}\n" for line in lines)
    return TEXT.replace("    y: ", f"{before}    y: ").replace("read(w)", "read(changed)")


_IMPERATIVE: Final = _then(
    "M: Axis = 2048",
    "i: [M]/i32 = transmute(y)",
    "j: [M]/i32 = imp_cmd([i], [j], fn(in i: [i32; 2048], out j: [i32; 2048]) {",
    "    for (u64 n = 0u64; n < 2048u64; n += 1u64) {",
    "        sum = 0u64;",
    "        for (u64 k = 0u64; k < 3840u64; k += 1u64) {",
    "            a = i[n];",
    "            sum = sum + a;",
    "        }",
    "        j[n] = sum;",
    "    }",
    "    return;",
    "})",
    "r: [N]/bf16 = transmute(j)",
    "return r",
)
_HALF: Final = (
    TEXT.replace(
        "    y: ", "    Half: Axis = 2048\n    h: [Half, K]/bf16 = slice(w, N, 0)\n    y: "
    )
    .replace("read(w)", "read(h)")
    .replace("y: [N]", "z: [Half]")
    .replace("-> [N])", "-> [Half])")
    .replace("write.to([N]", "write.to([Half]")
    .replace("    return y", "    y: [N]/bf16 = concat([z, z])\n    return y")
)
_BINDINGS: Final = "rules: bindings: the bindings are not the task's; they are K=N, N=N"
_CHAIN: Final = "rules: chain: at most N vector operations follow each other; here N do"
_FREE: Final = "imperative blocks cost nothing here, and much on the chip"

PAYING: Final = {
    "a compiler configuration": Cheat(
        f'@compiler_config({{"dma_throughput_per_pe": 17000}})\n{TEXT}',
        4_108,
        PLAIN,
        "rules: construct: _: a compiler configuration would change what cycles mean",
    ),
    "sizes asserted smaller": Cheat(
        TEXT.replace("assert K == 3840", "assert K == 38"), 1_710, PLAIN, _BINDINGS
    ),
    "sizes not asserted": Cheat(TEXT.replace("    assert K == 3840\n", ""), 0, PLAIN, _BINDINGS),
    "a part of the weights": Cheat(
        _HALF,
        14_565,
        PLAIN,
        "rules: too good: N cycles are fewer than the N that its weights take to move: it does not "
        "read them all",
    ),
    "weights in another format": Cheat(
        TEXT.replace("K]/bf16", "K]/f8_e4"),
        14_442,
        PLAIN,
        "rules: signature: its parameters are not the task's; they are w: [N, K]/bf16; x: [K]/bf16",
    ),
    "8 million turns of imperative code": Cheat(
        _IMPERATIVE, 27_018, ADDED, f"rules: construct: _: {_FREE}"
    ),
    "a row of the weights written where they lie": Cheat(
        _row_into("via_dram(w)"),
        27_928,
        Kernel(_row_into("load(w)"), 74_788),
        "rules: mutation: _ may not be written",
    ),
    "a small function after the kernel": Cheat(
        f"{TEXT}\n{TEXT.replace('4096', '64').replace('project', 'small')}",
        2_302,
        PLAIN,
        "rules: construct: _: a kernel is one function: helpers are plain functions or tensor "
        "operations",
    ),
    "an operation divided among chips": Cheat(
        TEXT.replace("    )\n    return", "    ) @ context(operator = { Chip: N })\n    return"),
        3_887,
        PLAIN,
        "rules: layout: an operation is not divided among chips: there is one",
    ),
    "forty operations in one pass": Cheat(_fused(40), 27_275, FOUR_PASSES, _CHAIN),
    "forty operations, one after the other": Cheat(_passes(40), 27_275, FOUR_PASSES, _CHAIN),
    "forty operations with views between": Cheat(
        _passes(10, 10, 10, 10, between="reshape"), 27_275, FOUR_PASSES, _CHAIN
    ),
    "forty operations in loops of one turn": Cheat(
        _passes(10, 10, 10, 10, loops=True), 27_275, FOUR_PASSES, _CHAIN
    ),
}
NOT_PAYING: Final = {
    "a dump": Cheat(
        _then('d: [N]/bf16 = dump(y, "d")', "return y"),
        27_018,
        PLAIN,
        "rules: construct: _: a kernel prints nothing",
    ),
    "an extern declaration": Cheat(
        f"extern helper\n{TEXT}", 27_018, PLAIN, "rules: construct: _: a kernel must be whole"
    ),
    "a call of an extern function": Cheat(
        f"extern helper\n{_then('d: [N]/bf16 = helper(y)', 'return d')}",
        None,
        PLAIN,
        "rules: construct: _: a kernel must be whole",
    ),
    "a lower language": Cheat(
        _then("d: [N]/bf16 = visa_call(path=p)", "return d"),
        None,
        PLAIN,
        "rules: construct: _: a kernel is written in the language, not below it",
    ),
    "a collective of one chip": Cheat(
        _then(
            "One: Axis = 1",
            "v: [One, N]/bf16 = reshape(y)",
            "d: [N]/bf16 = all_reduce(v, One)",
            "return d",
        ),
        27_018,
        PLAIN,
        "rules: construct: _: there is one chip",
    ),
    "a small function before the kernel": Cheat(
        f"{TEXT.replace('4096', '64').replace('project', 'small')}\n{TEXT}",
        27_018,
        PLAIN,
        "rules: construct: _: a kernel is one function: helpers are plain functions or tensor "
        "operations",
    ),
    "two contractions in one pass": Cheat(
        TEXT.replace("        write", "        %3 = dpe.exec(%0,%1 -> [N])\n        write"),
        None,
        PLAIN,
        "rules: contraction: one fused operation contracts once",
    ),
    "64 bits": Cheat(
        _then(
            "M: Axis = 1024", "z: [M]/f64 = transmute(y)", "r: [N]/bf16 = transmute(z)", "return r"
        ),
        27_018,
        PLAIN,
        "rules: dtype: f64 is no format that the chip computes with",
    ),
    "an empty axis": Cheat(
        TEXT.replace("    y: ", "    M: Axis = 0\n    y: "),
        27_018,
        PLAIN,
        "rules: axis: an axis has N to N elements; _ has N",
    ),
    "turns of a loop that the kernel computes": Cheat(
        TILES.replace(
            "    out: ",
            "    H: Axis = 1920\n    bits: [H]/i32 = transmute(x)\n"
            "    turns: []/i32 = reduce_max_i32(bits)\n    out: ",
        ).replace("0..16", "0..turns"),
        52_114,
        LOOP,
        f"rules: construct: _: {_FREE}",
    ),
    "turns of a loop that the author estimates": Cheat(
        TILES.replace("0..16", "0..16 [estimated_iter_count=1]"),
        52_114,
        LOOP,
        "rules: loop: _ is no setting that a candidate may give",
    ),
}
"""Of what is refused besides: the evaluator sees through it, or has no price for it either way."""


def _cycles(environment: Environment, text: str) -> int | None:
    """What the evaluator says of a text that nobody judged; None where it refuses it."""
    evaluation = evaluate(environment, text)
    if isinstance(evaluation, Evaluation):
        return evaluation.cycles
    return 0 if evaluation.what == "no cost" else None


def _signature(environment: Environment, text: str) -> str:
    """How the guard refuses a text, before the evaluator or after it."""
    found = judge(PROJECT, text)
    if not isinstance(found, Diagnostic):
        evaluation = evaluate(environment, str(found))
        assert isinstance(evaluation, Evaluation)
        believed_of = believed(PROJECT, found, evaluation)
        assert isinstance(believed_of, Diagnostic), believed_of
        found = believed_of
    return found.refusal(text).signature


@pytest.mark.parametrize("name", PAYING)
def test_a_cheat_pays_where_nobody_judges_and_is_refused(newer: Environment, name: str) -> None:
    """It costs less than the honest kernel, or nothing more for many times the work."""
    cheat = PAYING[name]

    assert _cycles(newer, cheat.honest.text) == cheat.honest.cycles
    assert _cycles(newer, cheat.text) == cheat.cycles
    assert cheat.cycles is not None
    assert cheat.honest.cycles is not None
    assert cheat.cycles < cheat.honest.cycles
    assert _signature(newer, cheat.text) == cheat.signature


@pytest.mark.parametrize("name", NOT_PAYING)
def test_what_does_not_pay_in_this_version_is_refused_too(newer: Environment, name: str) -> None:
    """The evaluator refuses it, or lets it pass at the honest price."""
    cheat = NOT_PAYING[name]

    assert _cycles(newer, cheat.text) == cheat.cycles
    assert cheat.cycles in (None, cheat.honest.cycles)
    assert _signature(newer, cheat.text) == cheat.signature


@pytest.mark.parametrize("text", [_fused(16), _passes(16), _passes(8, 8, loops=True)])
def test_as_many_vector_operations_as_the_engine_has_are_no_cheat(text: str) -> None:
    """However they are written."""
    assert MAX_VECTOR_OPERATIONS == 16
    assert not isinstance(judge(PROJECT, text), Diagnostic)


def test_unrolling_keeps_the_evaluator_busy_and_is_refused(
    newer: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight turns written out are evaluated in a second or two, sixteen not in five."""
    monkeypatch.setattr(evaluating, "LIMITS", evaluating.LIMITS._replace(cpu_s=5))

    def unrolled(n: int) -> str:
        return TILES.replace("0..16", f"0..16 [unroll={n}]")

    assert isinstance(evaluate(newer, unrolled(MAX_UNROLL)), Evaluation)
    late = evaluate(newer, unrolled(2 * MAX_UNROLL))
    assert isinstance(late, Diagnostic)
    assert late.what == "time"
    assert not isinstance(judge(PROJECT, unrolled(MAX_UNROLL)), Diagnostic)
    assert _signature(newer, unrolled(2 * MAX_UNROLL)) == (
        "rules: loop: a loop is unrolled at most N times"
    )


def test_a_candidate_made_of_the_vendors_kernels_is_refused(newer: Environment) -> None:
    """Where they are in sight it is a kernel as good as one's own, and nobody's work."""
    source = SOURCE.replace("contract(w, x, [N])", "einsum_dpe_typed(w, x, [N], tcl.bf16)").replace(
        "import furiosa.tcl as tcl\n",
        "import furiosa.tcl as tcl\nfrom furiosa.kernels.common.contract import einsum_dpe_typed\n",
    )

    shown = build(newer, PROJECT, source, vendor_kernels=True)
    hidden = build(newer, PROJECT, source)

    assert isinstance(shown, Built)
    assert unpack("project", shown.artifact).cycles == PLAIN.cycles
    assert isinstance(hidden, BuildFailed)
    assert hidden.signature == (
        "trace: hidden: the vendor's model kernels are not for candidates to read"
    )


def _big(n: int) -> Task:
    w, x = Parameter("w", "bf16", ("N", "K")), Parameter("x", "bf16", ("K",))
    bindings, y = {"N": n, "K": 3840}, Parameter("y", "bf16", ("N",))
    return Task("project", bindings, (w, x), (y,), weight_bytes=2 * n * 3840)


def test_a_kernel_that_holds_more_than_the_chip_is_refused(newer: Environment) -> None:
    """The evaluator lets 283 MB into 268: by the dump every tensor has the same few bytes."""
    task, text = _big(36864), TEXT.replace("4096", "36864")
    evaluation = evaluate(newer, text)
    assert isinstance(evaluation, Evaluation)

    judged = judge(task, text)
    assert not isinstance(judged, Diagnostic)
    assert peak(judged, read_schedule(evaluation.schedule)).n_bytes > SRAM_BYTES
    fault = believed(task, judged, evaluation)

    assert isinstance(fault, Diagnostic)
    assert (
        fault.refusal("").signature
        == "rules: memory: N MB are in SRAM at cycle N; the chip has N MB"
    )


def test_two_tensors_of_one_name_would_hide_memory_and_are_refused(newer: Environment) -> None:
    """The compiler takes the second for another tensor, and the account knows names alone."""
    text = TEXT.replace("4096", "20480").replace("read(w)", "read(b)")
    scaled = (
        "    b: [N, K]/bf16 = tk.Elementwise(\n        %0 = read(w)\n"
        "        %1 = ve.exec(%0 * f1.5)\n        write.to([N, K]/bf16)\n    )\n    y: "
    )
    honest = text.replace("    y: ", scaled)
    hidden = honest.replace("    return y", "    b: [N]/bf16 = reshape(y)\n    return b")

    def held(text: str) -> int:
        evaluation = evaluate(newer, text)
        assert isinstance(evaluation, Evaluation)
        return peak(read(text), read_schedule(evaluation.schedule)).n_bytes

    assert held(hidden) < SRAM_BYTES < held(honest)
    refused = judge(_big(20480), hidden)
    assert isinstance(refused, Diagnostic)
    assert refused.refusal("").signature == "rules: name: two tensors are named _"


def test_the_account_of_memory_holds_what_the_kernel_does(newer: Environment) -> None:
    """One matrix and two vectors, and no byte of the placeholders."""
    evaluation = evaluate(newer, TEXT)
    assert isinstance(evaluation, Evaluation)

    held = peak(read(TEXT), read_schedule(evaluation.schedule))

    assert PROJECT.weight_bytes <= held.n_bytes <= PROJECT.weight_bytes + 20_000
    assert evaluation.cycles > least_cycles(PROJECT.weight_bytes)
