"""Random legal programs of the NPU: idioms are proposed, and kept if the compiler takes them."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from hypothesis import strategies as st

from sim.npu.compiler import compile_source
from sim.npu.program import Load, Loop, Pass, Program, Statement, Tensor
from sim.npu.signature import Argument, Signature
from sim.npu.toolchain import V1_0, Toolchain

SIGNATURE: Final = Signature(
    "random",
    (
        Argument("x", "bf16", (256,), "in"),
        Argument("n", "bf16", (256,), "in"),
        Argument("g", "f32", (4,), "in"),
        Argument("w", "f8e4m3", (128, 256), "weight"),
        Argument("w4", "f4e2m1", (128, 256), "weight"),
        Argument("s", "f8e4m3", (128, 16), "weight"),
        Argument("table", "bf16", (8, 256), "in"),
        Argument("at", "i64", (2,), "in"),
        Argument("y", "f32", (128,), "out"),
        Argument("r", "bf16", (256,), "inout"),
        Argument("cache", "bf16", (8, 256), "inout"),
    ),
    results=(),
)
"""Small enough to compute in milliseconds; offsets are multiples of 512 bytes, below 4,096."""
HEADER: Final = """kernel random
axis H = 256
axis B = H / 16
axis R = 128
axis G = 4
axis E = 8
axis O = 2
hbm x: bf16[H] in
hbm n: bf16[H] in
hbm g: f32[G] in
hbm w: f8e4m3[R, H] weight
hbm w4: f4e2m1[R, H] weight
hbm s: f8e4m3[R, B] weight
hbm table: bf16[E, H] in
hbm at: i64[O] in
hbm y: f32[R] out
hbm r: bf16[H] inout
hbm cache: bf16[E, H] inout
hbm hs: bf16[H] scratch
hbm ys: f32[R] scratch
place all = cluster one, slices copy:64
place seed = cluster one, slices copy:4 idle:16
place rows = cluster one, slices R:64
place cols = cluster one, slices R:4 H:16
place heads = cluster one, slices copy:4 H:16
place pair = cluster R:2, slices R:64
place both = cluster copy:2, slices copy:64
"""
_PLACES: Final = ("all", "seed", "rows", "cols", "pair", "both")
_ROWS: Final = ("x", "n", "r", "hs", "table[2]", "table[at[0]]", "cache[at[1]]")
"""Regions of axis H alone."""
_TARGETS: Final = ("y", "r", "hs", "ys", "cache[3]", "cache[at[1]]")
_ALU: Final = (
    *("mul self", "mul 0.5", "mul -2", "fma 1/256 1e-6", "fma self 1", "add self", "sub 1"),
    *("max 0", "exp", "erf", "rsqrt", "div 3"),
)
_ORDER: Final = ("mul", "fma", "add", "sub", "max", "exp", "erf", "rsqrt", "sum", "div", "reduce")


class Sample(NamedTuple):
    """A legal program and its text."""

    source: str
    program: Program


def compiled(source: str, toolchain: Toolchain = V1_0) -> Program | None:
    """Compile a source with the signature of this module; None if it is illegal."""
    answer = compile_source("random.npu", source, SIGNATURE, toolchain)
    return answer if isinstance(answer, Program) else None


@st.composite
def programs(draw: st.DrawFn, toolchain: Toolchain = V1_0, max_idioms: int = 6) -> Sample:
    """Draw programs that the toolchain takes; values may be NaN, and faults may be silent."""
    source, program = HEADER, compiled(HEADER, toolchain)
    assert program is not None
    for i in range(draw(st.integers(1, max_idioms))):
        known = list(tensors(program.body))
        longer = f"{source}{draw(_idioms(known, f't{i}'))}\n"
        answer = compiled(longer, toolchain)
        if answer is not None:
            source, program = longer, answer
    return Sample(source, program)


def tensors(body: Iterable[Statement]) -> Iterator[Tensor]:
    """Tensors on chip, in the order of the source."""
    for statement in body:
        if isinstance(statement, Loop):
            yield from tensors(statement.body)
        elif isinstance(statement, Load):
            yield from statement.outputs
        elif isinstance(statement, Pass):
            yield statement.output


def _idioms(known: list[Tensor], name: str) -> st.SearchStrategy[str]:
    in_dm = [t for t in known if t.memory == "dm" and t.dtype in ("bf16", "f32")]
    ways = [_norm(name), _contraction(name), _moved(name), _tiled(name)]
    if in_dm:
        source = st.sampled_from(in_dm)
        ways += [
            source.flatmap(lambda t: _vector_pass(known, t, name)),
            st.builds("{0} = sub {1.name} | commit vrf".format, st.just(name), source),
            st.builds(
                "store {0.name} to {1}\nload {2} from ys to {3}".format,
                source,
                st.sampled_from(_TARGETS),
                st.just(name),
                st.sampled_from(_PLACES),
            ),
        ]
    return st.one_of(ways)


@st.composite
def _norm(draw: st.DrawFn, name: str) -> str:
    place = draw(st.sampled_from(("all", "seed", "heads", "both")))
    reduced = " | reduce H" if place == "heads" else ""
    context = draw(st.sampled_from(("main", "sub")))
    dtype = draw(st.sampled_from(("bf16", "f32", "f8e4m3")))
    return f"""load {name}a from {draw(st.sampled_from(_ROWS))} to {place}
{name}s = {context} {name}a | mul self | sum H{reduced} | commit dm f32
{name}i = {context} {name}s | fma 1/256 1e-6 | rsqrt | commit dm f32
{name}v = sub {name}i | commit vrf
{name} = main {name}a | mul {name}v | commit dm {dtype}"""


@st.composite
def _contraction(draw: st.DrawFn, name: str) -> str:
    """A matrix times a vector, in one of many ways, most of them legal."""
    weight = draw(st.sampled_from(("w", "w4")))
    place, seed = draw(st.sampled_from((("rows", "all"), ("cols", "heads"), ("pair", "both"))))
    decoded = weight == "w" and draw(st.booleans())
    dtype = "bf16" if decoded else f"f8e4m3 pieces {draw(st.integers(1, 3))}"
    lookup = " | lookup bf16" if decoded else " | lookup f8e4m3 keep" if weight == "w4" else ""
    loop = f"for i in 0..{draw(st.sampled_from((1, 2, 4)))} over {draw(st.sampled_from('HR'))}"
    scale = f" scale {name}v" if draw(st.booleans()) else ""
    reduced = " | reduce H" if place == "cols" else ""
    scaled = f"""load {name}c from s to {place}
{name}d = main {name}c | lookup bf16 | commit dm bf16
{name}v = sub {name}d | commit vrf
"""
    return f"""load {name}a from {draw(st.sampled_from(_ROWS))} to {seed}
{name}x = main {name}a | commit trf {dtype} lanes {draw(st.sampled_from((1, 1, 2, 8)))}
{loop} buffers {draw(st.integers(1, 4))} {{
load {name}w from {weight} to {place}
{scaled if scale else ""}{name} = main {name}w{lookup} | contract {name}x{scale}
  | mul 0.5{reduced} | commit dm f32
}}"""


@st.composite
def _moved(draw: st.DrawFn, name: str) -> str:
    place, switch = draw(st.sampled_from((("seed", "broadcast"), ("heads", "gather H"))))
    context, roll = draw(st.sampled_from((("main", ""), ("sub", ""), ("main", " roll H"))))
    return f"""load {name}a from {draw(st.sampled_from(_ROWS))} to {place}
{name}b = {context} {name}a | switch {switch} | commit dm {draw(st.sampled_from(("bf16", "f32")))}
{name} = {context} {name}b{roll} | commit dm bf16"""


@st.composite
def _tiled(draw: st.DrawFn, name: str) -> str:
    region, place = draw(st.sampled_from(_ROWS)), draw(st.sampled_from(_PLACES))
    block = draw(st.sampled_from(("", " block 32")))
    count, buffers = draw(st.sampled_from((1, 2, 4))), draw(st.integers(1, 4))
    return f"""for i in 0..{count} over H buffers {buffers} {{
load {name}a from {region} to {place}{block}
{name} = main {name}a | {draw(st.sampled_from(_ALU))} | commit dm f32
}}"""


@st.composite
def _vector_pass(draw: st.DrawFn, known: list[Tensor], source: Tensor, name: str) -> str:
    operands = [
        f"mul {t.name}" for t in known if t.memory == "vrf" and {*t.names} <= {*source.names}
    ]
    stages = draw(st.lists(st.sampled_from((*_ALU, *operands)), max_size=3))
    if source.axes and draw(st.booleans()):
        axis = source.names[-1]
        stages.append(f"sum {axis}")
        if source.placement and source.placement.n_slice_parts(axis) > 1:
            stages.append(f"reduce {axis}")
    stages.sort(key=lambda stage: _ORDER.index(stage.split()[0]))
    commit = draw(st.sampled_from(("dm bf16", "dm f32", "dm f8e4m3")))
    return " | ".join((f"{name} = main {source.name}", *stages, f"commit {commit}"))
