"""Every legality rule: the smallest program that breaks it, and a neighbour that does not."""

import re
from typing import Final, NamedTuple, get_args

import pytest

from events.predicates import occurrences, words
from events.vocabulary import Condition
from sim.npu.compiler import compile_source
from sim.npu.diagnostics import Code, Diagnostic
from sim.npu.printing import normalize
from sim.npu.program import Program
from sim.npu.signature import Argument, Signature
from sim.npu.toolchain import V1_0, V1_1, V1_2, Toolchain

SIGNATURE: Final = Signature(
    "tiny",
    (
        Argument("x", "bf16", (1024,), "in"),
        Argument("w", "f8e4m3", (64, 1024), "weight"),
        Argument("s", "f8e4m3", (64, 64), "weight"),
        Argument("at", "i64", (2,), "in"),
        Argument("y", "bf16", (1024,), "out"),
    ),
    results=("y",),
)
HEADER: Final = """kernel tiny
axis H = 1024
axis B = H / 16
axis R = 64
axis O = 2
hbm x: bf16[H] in
hbm w: f8e4m3[R, H] weight
hbm s: f8e4m3[R, B] weight
hbm at: i64[O] in
hbm y: bf16[H] out
place all = cluster one, slices copy:64
place seed = cluster one, slices idle:64
place rows = cluster one, slices R:64
place cols = cluster one, slices H:64
"""
PRELUDES: Final = {
    "$S": "$T load s0 from s to rows s1 = main s0 | lookup bf16 | commit dm bf16",
    "$T": "$X $W xt = main x0 | commit trf f8e4m3",
    "$X": "load x0 from x to all",
    "$C": "load x0 from x to cols",
    "$L": "load l0 from x[0] to all",
    "$W": "load w0 from w to rows",
}
TABLE: Final = """
E-SYNTAX: $X store «→x0» to y
E-SYNTAX: $X a = main x0 | mul 1/«0→3» | commit dm f32
E-SYNTAX: $X a = main x0 | mul «1e39→1e38» | commit dm f32
E-NAME: load a from «xx→x» to all
E-NAME: $X a = main x0 | sum «R→H» | commit dm f32
E-REDEFINED: $X load «x0→x1» from x to all
E-REDEFINED: hbm h: f32[«H→R», H] scratch
E-REDEFINED: hbm h: f32[«H→R», B] scratch
E-SIGNATURE: hbm h: f32[H] «in→scratch»
E-SIGNATURE: $X store x0 to «x→y»
E-HBM-SIZE: axis Z = «1048577→1048576» hbm z: f32[Z] scratch
E-CLUSTERS: place p = cluster copy:«4→2», slices copy:64
E-SLICES-POW2: place p = cluster one, slices copy:«48→64»
E-SLICES-SPAN: place p = cluster one, slices H:«32→64»
E-SPLIT-DIVIDES: axis Q = 96 place p = cluster one, slices «Q:64→Q:32 copy:2»
E-SPLIT-DIVIDES: axis Q = 96 place p = cluster Q:2, slices Q:«32→16» copy:«2→4»
E-SPLIT-DIVIDES: place p = cluster one, slices «B→H»:64
E-SPLIT-DIVIDES: axis Q = «100→96» axis C = Q / 16
E-SPLIT-DIVIDES: axis Q = «0→1»
E-SPLIT-TWICE: place p = cluster one, slices H:8 «H→R»:8
E-TILE-DIVIDES: for t in 0..«3→4» over H { load a from x to all }
E-TILE-DIVIDES: $W for t in 0..2 over «R→H» { a = main w0 | lookup bf16 | commit dm bf16 }
E-TILE-DIVIDES: for t in 0..«0→1» over H { $L }
E-TILE-BLOCK: place p = cluster one, slices H:«128→64» load a from s to p
E-TILE-BLOCK: $S for t in 0..«128→32» over H { a = sub s1 | commit vrf }
E-TILE-BLOCK: for t in 0..2 over «B→H» { $L }
E-TILE-BLOCK: axis C = H / «8→16»
E-LOOP-NESTED: for t in 0..2 over H { for u in 0..2 over «H→R» { $L } }
E-LOOP-NESTED: for t in 0..2 over H { for u in 0..2 over R { $L «→}»
    for v in 0..2 over O { $X «}→» } }
E-LOOP-PARTIAL: $T for t in 0..2 over H { a = main w0 | contract xt | commit dm f32 «→}»
    b = main a | exp | commit dm f32 «}→»
E-LOOP-SUM: $X for t in 0..2 over «H→R» { a = main x0 | sum H | commit dm f32 }
E-LOOP-SUM: $X for t in 0..2 over «H→R» { a = main x0 roll H | commit dm f32 }
E-LOOP-SUM: $C for t in 0..2 over «H→R» { a = main x0 | switch gather H | commit dm f32 }
E-LOOP-SUM: $C for t in 0..2 over «H→R» { a = main x0 | sum H | reduce H | commit dm f32 }
E-LOOP-HBM: $X for t in 0..2 over H { store x0 to y «→}» load a from y to all «}→»
E-LOOP-HBM: $X for t in 0..2 over H { load a from «y→x» to all store x0 to y }
E-BUFFERS: for t in 0..2 over H buffers «9→8» { $L }
E-BUFFERS: for t in 0..2 over H buffers «0→1» { $L }
E-COMMANDS: for t in 0..1024 over H { for u in 0..«16→8» over R { load a from x[0] to all } }
E-DM-ALIGN: for t in 0..«1024→512» over H { load a from x to all }
E-DM-SIZE: axis Z = «131073→131072» hbm z: f32[Z] scratch load a from z to all
E-VRF-SIZE: axis Z = «2049→2048» hbm z: f32[Z] scratch load a from z to all v = sub a | commit vrf
E-TRF-SIZE: axis Z = «32784→32768» hbm z: bf16[Z] scratch load a from z to all
    t = main a | commit trf bf16
E-BLOCK-DIVIDES: load a from x to all block «48→64»
E-BLOCK-DIVIDES: load a from x to all block «8→16»
E-BLOCK-DIVIDES: load a from x to all block «0→1024»
E-LOAD-LIST: load a, b, c, d«, e→» from x, x, x, x«, x→» to all
E-LOAD-LIST: load a, b from x«→, x» to all
E-DMA-F4: hbm h: f8e4m3[R, H] scratch hbm g: bf16[R, H] scratch $W
    v = main w0 | lookup bf16 | commit dm bf16 store «w0 to h→v to g»
E-STORE-SHAPE: $X hbm h: «f32→bf16»[H] scratch store x0 to h
E-STORE-SHAPE: $X hbm h: bf16[«R→R, H»] scratch store x0 to h
E-STORE-SHAPE: hbm g: bf16[R, H] scratch hbm h: bf16[«H, R→R, H»] scratch
    load a from g to all store a to h
E-INDEX: load a from x[«1024→1023»] to all
E-INDEX: load a from w[at[«2→1»]] to all
E-INDEX: load a from w[«x→at»[0]] to all
E-STAGE-ORDER: $X a = main x0 | «exp | mul 2→mul 2 | exp» | commit dm f32
E-STAGE-ORDER: $X a = main x0 | mul 2 | mul 2 | «mul 2→fma 2 0» | commit dm f32
E-STAGE-ORDER: $X a = main x0 | «add 2→fma 1 2» | max 2 | commit dm f32
E-STAGE-ORDER: $C a = main x0 | «→sum H |» reduce H | commit dm f32
E-LOOKUP-DTYPE: $W a = main w0 | lookup «f8e4m3→bf16» | commit dm «f8e4m3→bf16»
E-LOOKUP-DTYPE: $W a = main w0 | lookup «f32→bf16» | commit dm f32
E-LOOKUP-SUB: $W a = «sub→main» w0 | lookup bf16 | commit dm bf16
E-LOOKUP-TRF: $W a = main w0 | lookup bf16 | commit «trf→dm» bf16
E-FETCH-CAST: $W a = main w0 | «→lookup bf16 |» mul 2 | commit dm f32
E-FETCH-CAST: $W a = main w0 | commit dm «bf16→f8e4m3»
E-FETCH-CAST: $W $X a = main «w0→x0» | commit vrf
E-FETCH-CAST: $X a = main x0 | commit dm «f4e2m1→f8e4m3»
E-CONTRACT-DTYPE: $T a = main w0 | «lookup bf16 |→» contract xt | commit dm f32
E-CONTRACT-DTYPE: $X a = main x0 | commit trf «f32→bf16»
E-CONTRACT-AXES: $T hbm h: bf16[«H, R→R, H»] scratch load a from h to all
    b = main a | commit dm f8e4m3 c = main b | contract xt | commit dm f32
E-CONTRACT-CLUSTER: place p = cluster «H→copy»:2, slices copy:64 load a from x to p
    b = main a | sum H | commit dm f32
E-PARTIAL: $C a = main x0 | sum H | «→reduce H |» commit dm f32
E-REDUCE-INNER: place p = cluster one, slices «H:8 R:8→R:8 H:8» load a from w to p
    b = main a | lookup bf16 | sum H | reduce H | commit dm f32
E-REDUCE-INNER: $X a = main x0 | sum H | «reduce H |→» commit dm f32
E-PLACE-MATCH: $X v = sub x0 | commit vrf load a from x to «cols→all»
    b = main a | mul v | commit dm f32
E-PLACE-MATCH: $X v = sub x0 | commit vrf place p = cluster one, slices «copy:128→idle:64»
    load a from x to p b = main a | mul v | commit dm f32
E-PLACE-MATCH: $X v = sub x0 | commit vrf a = main x0 | «sum H |→» div v | commit dm f32
E-PLACE-MATCH: $X a = main x0 | «sum H |→» div self | commit dm f32
E-LANES: $X a = main x0 | commit trf bf16 lanes «3→4»
E-LANES: axis Z = 96 hbm z: bf16[Z] scratch load a from z to all
    t = main a | commit trf bf16 lanes «4→2»
E-PIECES: $X a = main x0 | commit trf f8e4m3 pieces «4→3»
E-PIECES: $X a = main x0 | commit trf «bf16→f8e4m3» pieces 2
E-SCALE-AXES: $S v = sub «x0→s1» | commit vrf a = main w0 | contract xt scale v | commit dm f32
E-SCALE-AXES: $S a = main s1 | «sum B→mul 2» | commit dm f32
E-VRF-OPERAND: $X v = sub x0 | commit vrf a = main x0 | mul «x0→v» | commit dm f32
E-VRF-OPERAND: $X a = main «x→x0» | commit dm f32
E-VRF-OPERAND: $X store x0 to «x0→y»
E-FMA-ADDEND: $X a = main x0 | fma «2 self→self 2» | commit dm f32
E-TRF-SUB: $X a = «sub→main» x0 | commit trf bf16
E-ROLL-SPLIT: load a from x to «cols→all» b = main a roll H | commit dm f32
E-ROLL-SPLIT: axis Z = «9→8» hbm z: f32[Z] scratch load a from z to all
    b = main a roll Z | commit dm f32
E-SWITCH-NOTHING: load a from x to «all→seed» b = main a | switch broadcast | commit dm bf16
E-SWITCH-NOTHING: load a from x to «all→cols» b = main a | switch gather H | commit dm bf16
E-COMMIT-WIDTH: hbm h: f32[R] scratch load a from h to rows b = main a | commit dm «bf16→f32»
"""
"""Bodies behind `HEADER` and preludes, with ``«what is illegal→what is not»``."""


class Case(NamedTuple):
    """One rule, two sources."""

    code: str
    bad: str
    good: str


def case(row: str) -> Case:
    code, body = row.split(": ", 1)
    for name, text in PRELUDES.items():
        body = body.replace(name, text)
    bad, good = (re.sub("«(.*?)→(.*?)»", rf"\{side}", body, flags=re.DOTALL) for side in (1, 2))
    return Case(code, f"{HEADER}{bad}", f"{HEADER}{good}")


CASES: Final = tuple(case(row) for row in re.split(r"\n(?=E-)", TABLE.strip()))


def compiled(source: str, toolchain: Toolchain = V1_0) -> Program | Diagnostic:
    return compile_source("k.npu", source, SIGNATURE.load_only(), toolchain)


def refused(source: str, toolchain: Toolchain = V1_0) -> Diagnostic:
    answer = compiled(source, toolchain)
    assert isinstance(answer, Diagnostic)
    return answer


@pytest.mark.parametrize("rule", CASES, ids=lambda rule: rule.code)
def test_a_rule_refuses_its_smallest_program_and_not_its_neighbour(rule: Case) -> None:
    """A rule that is too wide hides designs; one that is too narrow lets faults through."""
    diagnostic = refused(rule.bad)
    assert diagnostic.code == rule.code, str(diagnostic)
    neighbour = compiled(rule.good)
    assert isinstance(neighbour, Program), str(neighbour)


@pytest.mark.parametrize("rule", CASES, ids=lambda rule: rule.code)
def test_a_diagnostic_tells_the_place_and_the_text(rule: Case) -> None:
    """An author must find the place; a rule that is learned refuses the text alone."""
    diagnostic = refused(rule.bad)
    line, column = diagnostic.position.line, diagnostic.position.column
    assert str(diagnostic).startswith(f"k.npu:{line}:{column}: {rule.code}: ")
    rest = rule.bad.split("\n")[line - 1][column - 1 :]
    assert rest or "unexpected end" in diagnostic.message
    assert diagnostic.snippet in normalize(rule.bad)
    if diagnostic.certain:
        assert diagnostic.snippet
        text = Condition(tokens=words(diagnostic.snippet))
        assert not any(True for _ in occurrences(text, words(normalize(rule.good))))


def test_every_rule_has_a_smallest_program() -> None:
    """A rule without a case is one that nobody has seen refuse."""
    elsewhere = {"E-UNFILLED", "E-SUB-ROLL"}
    assert {rule.code for rule in CASES} | elsewhere == set(get_args(Code))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kernel tiny", "kernel huge"),
        ("hbm x: bf16[H] in\n", ""),
        ("hbm x: bf16[H] in", "hbm x: f32[H] in"),
        ("hbm x: bf16[H] in", "hbm x: bf16[B] in"),
        ("hbm x: bf16[H] in", "hbm x: bf16[H] inout"),
        ("hbm x: bf16[H] in", "hbm x: bf16[H] scratch"),
    ],
)
def test_the_declarations_must_be_the_signature(old: str, new: str) -> None:
    """The caller passes what the signature says, whatever the source believes."""
    assert refused(HEADER.replace(old, new)).code == "E-SIGNATURE"


def test_an_out_argument_must_be_stored() -> None:
    """Only a program that measures loads may leave its results alone."""
    source = f"{HEADER}load x0 from x to all "
    missing = compile_source("k", source, SIGNATURE, V1_0)
    assert isinstance(missing, Diagnostic)
    assert missing.code == "E-UNFILLED"
    assert isinstance(compiled(source), Program)
    assert isinstance(compile_source("k", f"{source}store x0 to y", SIGNATURE, V1_0), Program)


@pytest.mark.parametrize(
    ("body", "verdicts"),
    [
        ("for t in 0..2 over H buffers 5 { load a from x to all }", ("", "E-BUFFERS", "E-BUFFERS")),
        ("load a, b, c, d, e from x, x, x, x, x to all", ("E-LOAD-LIST", "", "")),
        ("load a, b, c, d, e, f, g from x, x, x, x, x, x, x to all", ("E-LOAD-LIST",) * 3),
        ("load a from x to all b = sub a roll H | commit vrf", ("", "", "E-SUB-ROLL")),
        ("load a from x to all b = main a roll H | commit dm bf16", ("", "", "")),
    ],
)
def test_versions_differ_in_what_they_refuse(body: str, verdicts: tuple[str, ...]) -> None:
    """One rule is tightened, one relaxed, one new: what was learned must be checked again."""
    answers = [compiled(HEADER + body, version) for version in (V1_0, V1_1, V1_2)]
    assert tuple(getattr(answer, "code", "") for answer in answers) == verdicts


def test_one_diagnostic_is_reworded() -> None:
    """The class of an error is its code; its words may change."""
    source = f"{HEADER}load a from x to all b = main a | sum H | reduce H | commit dm f32"
    old, new, newest = (refused(source, version) for version in (V1_0, V1_1, V1_2))
    assert old.code == new.code == "E-REDUCE-INNER"
    assert old.message != new.message == newest.message


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ("load a from z to all load b from z to all", True),
        ("load a from z to all load b from z to all c = main a | sum Z | commit dm f32", False),
        ("load a from z to all b = main a | commit dm f32", False),
        ("for t in 0..2 over Z { load a from z to all b = main a | commit dm f32 }", True),
        (
            "for t in 0..2 over Z buffers 2 { load a from z to all b = main a | commit dm f32 }",
            False,
        ),
        ("for t in 0..2 over Z { load a from z to all } b = main a | commit dm f32", False),
        ("for t in 0..2 over Z { load a from z to all } b = main a | sum Z | commit dm f32", False),
    ],
)
def test_memory_is_counted_from_the_first_write_to_the_last_read(body: str, fits: bool) -> None:
    """Tiles share memory; what crosses the border of a loop is whole while it runs."""
    source = f"{HEADER}axis Z = 131072 hbm z: f32[Z] scratch {body}"
    answer = compiled(source)
    assert isinstance(answer, Program) is fits, str(answer)
    assert fits or getattr(answer, "code", "") == "E-DM-SIZE"


def test_the_first_error_in_the_source_is_reported() -> None:
    """An author fixes errors from the top."""
    first, second = "load a from nothing to all", "load x0 from x to nowhere"
    assert "`nothing`" in refused(f"{HEADER}{first} {second}").message
    assert "`nowhere`" in refused(f"{HEADER}{second} {first}").message
    assert refused(f"{HEADER}{first} load").code == "E-SYNTAX"


def test_a_name_that_is_almost_right_is_proposed() -> None:
    """Most unknown names are slips."""
    assert "did you mean `rows`" in refused(f"{HEADER}load a from w to row").message
