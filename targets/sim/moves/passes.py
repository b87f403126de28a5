"""Moves of passes: how much one run of the tensor unit does, in which context and format."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from sim.npu.syntax import (
    AluText,
    AxisStage,
    CommitText,
    ContractText,
    Count,
    KernelText,
    LookupText,
    PassText,
    StageText,
    SwitchText,
    Word,
)
from targets.sim.moves.change import Change, label, ready
from targets.sim.moves.layout import laid_out
from targets.sim.moves.tree import Path, every, fresh, n_uses, put, renamed, to_dm, writer

_LINE: Final = (
    ("lookup",),
    ("switch",),
    ("contract",),
    ("mul",),
    ("fma",),
    ("add", "sub", "max"),
    ("exp", "erf", "rsqrt"),
    ("sum",),
    ("div",),
    ("reduce",),
)
"""The stages in the order in which data passes them; there are two of ``mul``."""
_RANKS: Final = {name: rank for rank, unit in enumerate(_LINE) for name in unit}


def fuse(kernel: KernelText) -> Iterator[Change]:
    """Make one pass of two, where the second alone reads what the first commits."""
    for (p, first), (q, second) in _fusible(kernel):
        both = _fused(first, second)
        what = f"{label(first)} into {label(second)}"
        why = "a pass less to start, fetch and commit; its middle value is not rounded"
        yield Change(what, why, partial(_in_place, kernel, (q, both), p))
        yield Change(f"{what} early", why, partial(_in_place, kernel, (p, both), q))


def _fusible(kernel: KernelText) -> Iterator[tuple[tuple[Path, PassText], tuple[Path, PassText]]]:
    for q, second in every(kernel, PassText):
        p, first = writer(kernel, second.source.text) or ((), None)
        if not isinstance(first, PassText) or second.roll:
            continue
        if can_follow(first, second) and n_uses(kernel, first.output.text) == 1:
            yield (p, first), (q, second)


def _in_place(kernel: KernelText, new: tuple[Path, PassText], old: Path) -> KernelText:
    """Put a pass where one of two was, and nothing where the other was."""
    kernel = put(kernel, *new)
    return put(kernel, old)


def _fused(first: PassText, second: PassText) -> PassText:
    context = first.context if first.stages else second.context
    stages = _unreduced(first, second) + second.stages
    return replace(second, roll=first.roll, source=first.source, context=context, stages=stages)


def _unreduced(first: PassText, second: PassText) -> tuple[StageText, ...]:
    """Leave out the reduce of a pass that factors follow: it can come after them."""
    factors = all(isinstance(s, AluText) and s.function.text == "mul" for s in second.stages)
    return tuple(s for s in first.stages if not (factors and stage_name(s) == "reduce"))


def stage_name(stage: StageText) -> str:
    """Return the first word of a stage."""
    match stage:
        case AluText(function):
            return function.text
        case AxisStage(kind):
            return kind
        case LookupText():
            return "lookup"
        case SwitchText():
            return "switch"
        case ContractText():
            return "contract"


def _in_order(stages: tuple[StageText, ...]) -> bool:
    """Tell whether stages follow each other in the line of the tensor unit."""
    ranks = [_RANKS[stage_name(s)] for s in stages]
    twice = {rank for rank in ranks if ranks.count(rank) > 1 + (rank == _RANKS["mul"])}
    return ranks == sorted(ranks) and not twice


def can_follow(first: PassText, second: PassText) -> bool:
    """Tell whether the stages of one pass may mean the same behind those of another."""
    mine = any(_uses_self(stage) for stage in second.stages)
    vector = any(isinstance(stage, AluText) for stage in first.stages)
    to_vrf = second.commit.memory.text == "vrf" and bool(first.stages)
    if first.commit.memory.text != "dm" or (mine and vector) or to_vrf:
        return False
    return _in_order(_unreduced(first, second) + second.stages)


def _uses_self(stage: StageText) -> bool:
    return isinstance(stage, AluText) and any(o.text == "self" for o in stage.operands)


def split(kernel: KernelText) -> Iterator[Change]:
    """Make two passes of one."""
    for path, run in every(kernel, PassText):
        for k in range(1, len(run.stages)):
            before, after = run.stages[:k], run.stages[k:]
            name = fresh(kernel, run.output.text)
            dtype = "f32"
            if isinstance(before[-1], LookupText):
                dtype = before[-1].dtype.text
            first = replace(to_dm(name, run.source.text, dtype, *before), roll=run.roll)
            first = replace(first, context=run.context)
            second = replace(run, source=Word(name), stages=after, roll=None)
            if can_follow(first, second):
                what = f"{label(run)} cut after stage {k}"
                why = "the first half can be done ahead, or stay out of a slow second one"
                yield Change(what, why, partial(put, kernel, path, first, second))


def tidy(kernel: KernelText) -> Iterator[Change]:
    """Leave out all copies, and make all fusions within a body, at once."""
    why = "every pass less saves its fixed cost"
    for switches in (False, True):
        what = f"fuse all{' switches too' if switches else ''}"
        yield Change(what, why, partial(tidied, kernel, switches))


def tidied(kernel: KernelText, switches: bool = False) -> KernelText:
    """Leave out all copies and make all fusions within a body, those behind a switch if asked."""
    while copy := next(copies(kernel), None):
        kernel = copy.make()
    while new := next(_fusions(kernel, switches), None):
        kernel = new
    return kernel


def _fusions(kernel: KernelText, switches: bool) -> Iterator[KernelText]:
    for (p, first), (q, second) in _fusible(kernel):
        moves = any(isinstance(s, SwitchText) for s in first.stages)
        if p[:-1] == q[:-1] and (switches or not moves):
            yield _in_place(kernel, (q, _fused(first, second)), p)


def copies(kernel: KernelText) -> Iterator[Change]:
    """Leave out a pass that only copies."""
    layout = laid_out(kernel)
    for path, run in every(kernel, PassText):
        plain = not run.stages and not run.roll and run.commit.memory.text == "dm"
        if plain and layout.chip[run.source.text].dtype == layout.chip[run.output.text].dtype:
            new = renamed(put(kernel, path), {run.output.text: run.source.text})
            yield Change(f"{run.source.text} for {label(run)}", "a pass less", ready(new))


def unswitched(kernel: KernelText) -> Iterator[Change]:
    """Leave out the switch of a pass."""
    for path, run in every(kernel, PassText):
        stages = tuple(s for s in run.stages if not isinstance(s, SwitchText))
        if stages != run.stages:
            new = replace(run, stages=stages)
            yield Change(label(run), "no way around the ring", partial(put, kernel, path, new))


def context(kernel: KernelText) -> Iterator[Change]:
    """Let the other context of the tensor unit do a pass that commits to DM."""
    for path, run in every(kernel, PassText):
        if run.commit.memory.text == "dm":
            other = "sub" if run.context.text == "main" else "main"
            new = put(kernel, path, replace(run, context=Word(other)))
            yield Change(f"{label(run)} on {other}", "main and sub work side by side", ready(new))


def dtype(kernel: KernelText) -> Iterator[Change]:
    """Keep a middle value in the other of bf16 and f32."""
    for path, run in every(kernel, PassText):
        word = run.commit.dtype
        if run.commit.memory.text == "dm" and word and word.text in ("bf16", "f32"):
            other = "f32" if word.text == "bf16" else "bf16"
            new = replace(run, commit=replace(run.commit, dtype=Word(other)))
            why = "half the bytes" if other == "bf16" else "no rounding"
            yield Change(f"{label(run)} in {other}", why, partial(put, kernel, path, new))


def lanes(kernel: KernelText) -> Iterator[Change]:
    """Spread the operands of contractions over more or fewer lanes."""
    trf = [(p, r) for p, r in every(kernel, PassText) if r.commit.memory.text == "trf"]
    for n in (8, 4, 2, 1):
        changed = kernel
        for path, run in trf:
            changed = put(changed, path, _with_lanes(run, n))
            if len(trf) > 1 and _with_lanes(run, n) != run:
                why = "lanes share the contracted axis"
                yield Change(
                    f"{label(run)} on {n} lanes",
                    why,
                    partial(put, kernel, path, _with_lanes(run, n)),
                )
        if changed != kernel:
            yield Change(f"all on {n} lanes", "lanes share the contracted axis", ready(changed))


def _with_lanes(run: PassText, n: int) -> PassText:
    return replace(run, commit=replace(run.commit, lanes=Count(n)))


def pieces(kernel: KernelText) -> Iterator[Change]:
    """Split an operand in more or fewer f8 terms."""
    for path, run in every(kernel, PassText):
        if run.commit.pieces is None:
            continue
        for n in (1, 2, 3):
            if n != run.commit.pieces.value:
                new = replace(run, commit=replace(run.commit, pieces=Count(n)))
                why = "each piece is a contraction; fewer are faster and less exact"
                yield Change(f"{label(run)} in {n} pieces", why, partial(put, kernel, path, new))


def undecoded(kernel: KernelText) -> Iterator[Change]:
    """Split an operand in f8 pieces, so that f8 weights are contracted as they are."""
    for path, run in every(kernel, PassText):
        if run.commit.memory.text != "trf" or run.commit.dtype != Word("bf16"):
            continue
        for n in (2, 1, 3):
            commit = CommitText(Word("trf"), Word("f8e4m3"), Count(n), run.commit.lanes)
            changed = put(kernel, path, replace(run, commit=commit))
            changed = _without_lookups(changed, run.output.text)
            what = f"{n} pieces of {label(run)} instead of lookups"
            yield Change(what, "no table, no decoding: f8 times f8", ready(changed))


def _without_lookups(kernel: KernelText, operand: str) -> KernelText:
    for path, run in every(kernel, PassText):
        if not any(isinstance(s, ContractText) and s.operand.text == operand for s in run.stages):
            continue
        if isinstance(run.stages[0], LookupText):
            kernel = put(kernel, path, replace(run, stages=run.stages[1:]))
            continue
        found = writer(kernel, run.source.text)
        if found and isinstance(found[1], PassText) and _decodes(found[1]):
            kernel = put(kernel, path, replace(run, source=found[1].source))
    return kernel


def _decodes(run: PassText) -> bool:
    return len(run.stages) == 1 and isinstance(run.stages[0], LookupText)


def decoded(kernel: KernelText) -> Iterator[Change]:
    """Decode f8 weights by lookup, and keep the operand in bf16."""
    for path, run in every(kernel, PassText):
        if run.commit.pieces is None:
            continue
        commit = CommitText(Word("trf"), Word("bf16"), None, run.commit.lanes)
        changed = put(kernel, path, replace(run, commit=commit))
        for q, user in every(kernel, PassText):
            stages = user.stages
            if any(isinstance(s, ContractText) and s.operand == run.output for s in stages):
                table = LookupText(Word("bf16"), True)
                changed = put(changed, q, replace(user, stages=(table, *stages)))
        yield Change(f"{label(run)} in bf16", "one exact product instead of pieces", ready(changed))


def keep(kernel: KernelText) -> Iterator[Change]:
    """Leave tables in the unit, or load them again."""
    for on in (True, False):
        changed = kernel
        for path, run in every(kernel, PassText):
            new = replace(run, stages=tuple(_kept(s, on) for s in run.stages))
            if new != run:
                changed = put(changed, path, new)
                what = f"table of {label(run)} {'kept' if on else 'reloaded'}"
                yield Change(what, "a table takes long to load", partial(put, kernel, path, new))
        if changed != kernel:
            what = f"all tables {'kept' if on else 'reloaded'}"
            yield Change(what, "a table takes long to load", ready(changed))


def _kept(stage: StageText, on: bool) -> StageText:
    return replace(stage, keep=on) if isinstance(stage, LookupText) else stage
