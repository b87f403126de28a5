"""Rules on a traced kernel's text, without the vendor's packages."""

import pytest

from targets.rngd.chains import Chain, longest_chain
from targets.rngd.diagnostics import Diagnostic, stable
from targets.rngd.guard import MAX_UNROLL, judge
from targets.rngd.ir.reading import MAX_CHARACTERS, MAX_NESTED, Unreadable, read
from targets.rngd.ir.syntax import Function
from targets.rngd.task import Parameter, Task
from tests.support.rngd import PROJECT, TEXT

LOOP = """\
def project<K=3840, N=4096>(
    w: [N, K]/bf16,
    x: [K]/bf16
) -> [N]/bf16:
    assert K == 3840
    assert N == 4096
    R: Axis = 256
    C: Axis = 16
    w2: [C, R, K]/bf16 = reshape(w)
    out: [C, R]/bf16 = scratchpad()
    out_result: [C, R]/bf16 = for i in 0..16 [unroll=2] (out_acc = out):
        wt: [R, K]/bf16 = w2[i]
        y: [R]/bf16 = tk.EinsumByDpe(
            %0 = read(wt)
            %1 = read(x)
            %2 = dpe.exec(%0,%1 -> [R])
            %3 = ve.exec(%2 + f1.5e-06)
            %4 = ve.exec(if %3 >= f0.0 { %5 = %3 * f-2.0
        %6 = sqrt %5
        %6 } else { %3 })
            write.to([R]/bf16)
        ) @ context(operator = { Chip: None, Split: [R] }, heuristic_hint = { use: 3 })
        out_acc[i] = y
        yield out_acc;
    o: [N]/bf16 = reshape(out_result)
    return o
"""


def _refused(text: str, task: Task = PROJECT) -> str:
    judged = judge(task, text)
    assert isinstance(judged, Diagnostic), judged
    assert judged.stage == "rules"
    return judged.what


@pytest.mark.parametrize("text", [TEXT, LOOP])
def test_a_text_that_is_printed_says_what_was_read(text: str) -> None:
    """The compiler gets what is printed, so nothing can hide between its reading and ours."""
    function = judge(PROJECT, text)

    assert isinstance(function, Function)
    assert read(str(function)) == function
    assert str(function).split() == text.split()


def test_the_longest_chain_counts_what_branches_do() -> None:
    """An addition, a choice, and two operations in one of its ways."""
    assert longest_chain(read(LOOP)) == Chain(4, "y")


def _row(*statements: str) -> Chain:
    return longest_chain(
        read(TEXT.replace("    return y", "\n".join((*statements, "    return y"))))
    )


def _pass(name: str, of: str, *steps: str, to: str = "[N]/bf16") -> str:
    lines = [f"%{i} = ve.exec({step})" for i, step in enumerate(steps, 1)]
    return f"{name}: {to} = tk.Elementwise(%0 = read({of}) {' '.join(lines)} write.to({to}))"


@pytest.mark.parametrize(
    "between",
    [
        (),
        ("b: [N]/bf16 = reshape(a)",),
        ("b: [N]/bf16 = via_dram(a)",),
        ("s: [N]/bf16 = scratchpad()", "b: [N]/bf16 = copy(src=a, dst=s)"),
        ("b: [N]/bf16 = for i in 0..1 (c = a):", "yield c;"),
    ],
)
def test_a_chain_goes_on_through_what_is_no_work(between: tuple[str, ...]) -> None:
    """What the compiler makes one pass of is one, in whatever pieces it is written."""
    first = _pass("a", "y", "%0 * f2.0", "%1 + f1.0")
    last = _pass("d", "b" if between else "a", "exp %0")

    assert _row(first, *between, last) == Chain(3, "d")


def test_a_copy_is_read_by_the_name_that_it_went_to() -> None:
    """Else a chain would begin anew with every copy."""
    first = _pass("a", "y", "%0 * f2.0")
    copied = ("s: [N]/bf16 = scratchpad()", "b: [N]/bf16 = copy(src=a, dst=s)")

    assert _row(first, *copied, _pass("d", "s", "exp %0")) == Chain(2, "d")


def test_a_reduction_ends_a_chain_and_what_follows_it_begins_one() -> None:
    """The engine sums once in a pass."""
    before = _pass("a", "y", "%0 * f2.0", "%1 * f2.0")
    total = _pass("t", "a", "%0 * f3.0", "+ t[N] %1", "sqrt %2", to="[]/f32")

    assert _row(before, total) == Chain(5, "t")
    assert _row(before, total, _pass("d", "t", "exp %0", to="[]/f32")) == Chain(5, "t")
    assert _row(total.replace("read(a)", "read(y)"), _pass("d", "t", *["exp %0"] * 4)) == Chain(
        5, "d"
    )


def test_a_contraction_begins_a_chain() -> None:
    """The dot product engine comes before the vector engine."""
    before = _pass("a", "x", *["exp %0"] * 9, to="[K]/bf16")
    product = TEXT.replace("read(x)", "read(a)").replace("    y: ", f"    {before}\n    y: ")

    assert longest_chain(read(product)) == Chain(9, "a")


STRANGE = {
    "a configuration": ("def project", '@compiler_config({"dma": 1})\ndef project', "construct"),
    "a second function": ("def project", "def a() -> None:\ndef project", "construct"),
    "an extern function": ("def project", "extern helper\ndef project", "construct"),
    "imperative code": (
        "    return y",
        "    j: [N]/i32 = imp_cmd([y], [j], fn())\n    return y",
        "construct",
    ),
    "a symbolic expression": (
        "    return y",
        "    j: [N]/i32 = sym_expr(N + 1)\n    return y",
        "construct",
    ),
    "a dump": ("    return y", '    d: [N]/bf16 = dump(y, "d")\n    return y', "construct"),
    "a lower language": (
        "    return y",
        "    d: [N]/bf16 = visa_call(path=p)\n    return y",
        "construct",
    ),
    "a collective": (
        "    return y",
        "    d: [N]/bf16 = all_reduce(y, N)\n    return y",
        "construct",
    ),
    "an operation divided among chips": (
        "        write.to([N]/bf16)\n    )",
        "        write.to([N]/bf16)\n    ) @ context(operator = { Chip: N })",
        "layout",
    ),
    "a layout that names chips otherwise": (
        "        write.to([N]/bf16)\n    )",
        "        write.to([N]/bf16)\n    ) @ context(operator = { Chip : [None, N] })",
        "layout",
    ),
    "two tensors of a name": ("    return y", "    y: [N]/bf16 = reshape(y)\n    return y", "name"),
    "a tensor named as a parameter": (
        "    return y",
        "    x: [N]/bf16 = reshape(y)\n    return y",
        "name",
    ),
    "another kernel's call": (
        "    return y",
        "    d: [N]/bf16 = helper(y)\n    return y",
        "construct",
    ),
    "a layout of a parameter": ("x: [K]/bf16", "x: dram([]|[K])/bf16", "construct"),
    "a comment": ("    return y", "    # nothing\n    return y", "construct"),
    "an unknown way to read": ("read(x)", "read(x, secret=1)", "construct"),
    "an unknown hint": (
        "        write.to([N]/bf16)\n    )",
        "        write.to([N]/bf16)\n    ) @ context(secret = { a: 1 })",
        "construct",
    ),
    "two contractions": (
        "        write",
        "        %3 = dpe.exec(%0,%1 -> [N])\n        write",
        "contraction",
    ),
    "another size": ("<K=3840", "<K=38", "bindings"),
    "another assertion": ("assert K == 3840", "assert K == 38", "bindings"),
    "a size asserted twice": (
        "assert K == 3840",
        "assert K == 3840\n    assert K == 38",
        "bindings",
    ),
    "an assertion of something else": (
        "assert K == 3840",
        "assert K == 3840\n    assert N < 5",
        "bindings",
    ),
    "another name": ("def project", "def projects", "signature"),
    "another dtype": ("x: [K]/bf16", "x: [K]/f32", "signature"),
    "another order": (
        "    w: [N, K]/bf16,\n    x: [K]/bf16\n",
        "    x: [K]/bf16,\n    w: [N, K]/bf16\n",
        "signature",
    ),
    "one parameter more": ("x: [K]/bf16\n", "x: [K]/bf16,\n    z: [K]/bf16\n", "signature"),
    "another result": (") -> [N]/bf16", ") -> [K]/bf16", "signature"),
    "an axis declared again": ("    y: ", "    K: Axis = 2\n    y: ", "axis"),
    "an axis without size": ("    y: ", "    A: Axis = B\n    y: ", "axis"),
    "an empty axis": ("    y: ", "    A: Axis = 0\n    y: ", "axis"),
    "an endless axis": ("    y: ", f"    A: Axis = {10**18}\n    y: ", "axis"),
    "an axis from nowhere": ("    return y", "    z: [Q]/bf16 = full(1.0)\n    return y", "axis"),
    "a 64-bit format": ("    return y", "    z: [N]/f64 = full(1.0)\n    return y", "dtype"),
    "a written parameter": (
        "    return y",
        "    z: [K]/bf16 = copy(src=x, dst=x)\n    return y",
        "mutation",
    ),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_not_allowed_is_refused(name: str) -> None:
    """Each a line away from a kernel that passes."""
    old, new, rule = STRANGE[name]
    assert old in TEXT

    assert _refused(TEXT.replace(old, new, 1)) == rule


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("unroll=2", f"unroll={MAX_UNROLL + 1}"),
        ("unroll=2", "unroll=N"),
        ("unroll=2", "estimated_iter_count=1"),
        ("0..16", "0..steps"),
        ("0..16", "0..0"),
    ],
)
def test_a_loop_runs_a_known_number_of_times_and_is_unrolled_little(old: str, new: str) -> None:
    """Evaluation time grows with what is unrolled, and nobody knows what an unknown bound costs."""
    assert _refused(LOOP.replace(old, new)) == "loop"


def test_a_parameter_is_not_written_under_another_name() -> None:
    """A loop gives what it carries a name of its own."""
    text = LOOP.replace("(out_acc = out)", "(out_acc = w2)").replace(
        "    w2: [C, R, K]/bf16 = reshape(w)\n", ""
    )

    assert _refused(text.replace("= w2)", "= w)").replace("w2[i]", "w[i]")) == "mutation"


_COPY = "z: [K]/bf16 = copy(src=f, dst={})"
WRITTEN = {
    "a view": ("v: [K]/bf16 = reshape(x)", _COPY.format("v")),
    "a view of a view": (
        "u: [K]/i16 = transmute(x)",
        "v: [K]/bf16 = transmute(u)",
        _COPY.format("v"),
    ),
    "a part": ("v: [K]/bf16 = slice(w, N, 0)", _COPY.format("v")),
    "a row": (
        "t: [K]/bf16 = for i in 0..1 (a = f):",
        "r: [K]/bf16 = w[i]",
        "b: [K]/bf16 = copy(src=a, dst=r)",
        "yield b;",
    ),
    "what is in DRAM already": ("v: [K]/bf16 = via_dram(x)", _COPY.format("v")),
    "what a loop gave": ("t: [K]/bf16 = for i in 0..1 (a = x):", "yield a;", _COPY.format("t")),
    "what a loop carries in its second turn": (
        "s: [K]/bf16, t: [K]/bf16 = for i in 0..2 (a = f, b = x):",
        _COPY.format("a"),
        "yield b, a;",
    ),
    "what a scatter begins with": ("z: [N, K]/bf16 = scatter(f, j, N, init=w)",),
}


@pytest.mark.parametrize("lines", WRITTEN.values(), ids=WRITTEN)
def test_a_parameters_memory_is_not_written_however_it_is_reached(lines: tuple[str, ...]) -> None:
    """A view moves nothing, and the evaluator charges a scatter for its rows alone."""
    body = "\n".join(("f: [K]/bf16 = full(1.0)", "j: []/i32 = full(0)", *lines, "return y"))

    assert _refused(TEXT.replace("return y", body)) == "mutation"


@pytest.mark.parametrize("move", ["load", "store"])
def test_what_was_moved_may_be_written(move: str) -> None:
    """It is memory of its own."""
    body = f"v: [K]/bf16 = {move}(x)\nz: [K]/bf16 = copy(src=x, dst=v)\nreturn y"

    assert isinstance(judge(PROJECT, TEXT.replace("return y", body)), Function)


def test_a_mutable_parameter_may_be_written() -> None:
    """A cache is."""
    parameters = (PROJECT.parameters[0], Parameter("x", "bf16", ("K",), mutable=True))
    task = Task("project", PROJECT.bindings, parameters, PROJECT.results, PROJECT.weight_bytes)
    text = TEXT.replace("    return y", "    z: [K]/bf16 = copy(src=x, dst=x)\n    return y")

    assert isinstance(judge(task, text), Function)


@pytest.mark.parametrize(
    "text", ["", "\0", "def", TEXT[:-30], "(" * 100_000, "x" * (MAX_CHARACTERS + 1)]
)
def test_any_text_is_read_or_refused(text: str) -> None:
    """It comes from the candidate's process, and may be anything."""
    with pytest.raises(Unreadable):
        read(text)


def test_deep_nesting_is_no_deep_recursion() -> None:
    """Trees are built while the text is read."""
    deep = "[" * 20_000 + "]" * 20_000

    assert _refused(TEXT.replace("    return y", f"    z: [N]/bf16 = f({deep})\n    return y")) == (
        "construct"
    )


def test_loops_are_not_nested_deeply() -> None:
    """Whatever reads them goes as deep as they do."""

    def nested(n: int) -> str:
        loops = "".join(f"    for i{k} in 0..1:\n" for k in range(n)) + "    yield ;\n" * n
        return TEXT.replace("    return y", f"{loops}    return y")

    assert isinstance(judge(PROJECT, nested(MAX_NESTED)), Function)
    assert _refused(nested(MAX_NESTED + 1)) == "construct"
    assert _refused(nested(500)) == "construct"


def test_signatures_hold_neither_names_nor_numbers() -> None:
    """Two authors who make the same mistake get the same class."""
    one = stable("axis 'Rows' of Rows_2 has 17, not 4.5 (T12) {a: {b}}", ["Rows", "Rows_2"])
    other = stable("axis 'B' of Cols has 1, not 2 (T3) {x}", ["B", "Cols", "of", "has"])

    assert one == other == "axis _ of _ has N, not N (N) {}"
