"""Surgery on syntax trees: find statements, replace them, say what they read and write."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from sim.npu.syntax import (
    AluText,
    AxisDecl,
    CommitText,
    ContractText,
    HbmDecl,
    Item,
    KernelText,
    LoadText,
    LoopText,
    Node,
    PassText,
    PlaceDecl,
    StageText,
    StatementText,
    StoreText,
    Word,
)

Path = tuple[int, ...]
"""Of a statement: its place among the items, then among the statements of each loop."""
N = TypeVar("N", bound=Node)


def walk(items: Iterable[Item], path: Path = ()) -> Iterator[tuple[Path, StatementText]]:
    """Yield every statement with its path, a loop before what is in it."""
    for k, item in enumerate(items):
        if isinstance(item, AxisDecl | HbmDecl | PlaceDecl):
            continue
        yield (*path, k), item
        if isinstance(item, LoopText):
            yield from walk(item.body, (*path, k))


def every(kernel: KernelText, kind: type[N]) -> Iterator[tuple[Path, N]]:
    """Yield every statement of one kind with its path."""
    return ((path, s) for path, s in walk(kernel.items) if isinstance(s, kind))


def body_of(kernel: KernelText, path: Path) -> tuple[Item, ...]:
    """Return the items among which a path ends."""
    items: tuple[Item, ...] = kernel.items
    for k in path[:-1]:
        loop = items[k]
        assert isinstance(loop, LoopText), path
        items = loop.body
    return items


def with_body(kernel: KernelText, path: Path, body: tuple[Item, ...]) -> KernelText:
    """Replace the items among which a path ends."""
    if len(path) == 1:
        return replace(kernel, items=body)
    above, k = body_of(kernel, path[:-1]), path[-2]
    loop = above[k]
    assert isinstance(loop, LoopText), path
    loop = replace(loop, body=statements(body))
    return with_body(kernel, path[:-1], (*above[:k], loop, *above[k + 1 :]))


def statements(items: Iterable[Item]) -> tuple[StatementText, ...]:
    """Leave out declarations."""
    return tuple(s for s in items if not isinstance(s, AxisDecl | HbmDecl | PlaceDecl))


def put(kernel: KernelText, path: Path, *new: Item) -> KernelText:
    """Put any number of items in the place of one; loops that this empties go."""
    body, k = body_of(kernel, path), path[-1]
    body = (*body[:k], *new, *body[k + 1 :])
    if not body and len(path) > 1:
        return put(kernel, path[:-1])
    return with_body(kernel, path, body)


def at(kernel: KernelText, path: Path) -> Item:
    """Return the item at a path."""
    return body_of(kernel, path)[path[-1]]


def reads(statement: StatementText) -> tuple[str, ...]:
    """Names of the tensors on chip that a statement reads, all that is in it for a loop."""
    match statement:
        case LoadText():
            return ()
        case StoreText(source):
            return (source.text,)
        case PassText():
            words = (w for stage in statement.stages for w in _operands(stage))
            return (statement.source.text, *(w.text for w in words))
        case LoopText():
            return tuple(name for inner in statement.body for name in reads(inner))


def writes(statement: StatementText) -> tuple[str, ...]:
    """Names of the tensors on chip that a statement writes."""
    match statement:
        case LoadText(outputs):
            return tuple(word.text for word in outputs)
        case StoreText():
            return ()
        case PassText(output):
            return (output.text,)
        case LoopText():
            return tuple(name for inner in statement.body for name in writes(inner))


def loaded(statement: StatementText) -> frozenset[str]:
    """Names of the tensors in HBM that a statement loads."""
    if isinstance(statement, LoopText):
        return frozenset[str]().union(*map(loaded, statement.body))
    sources = statement.sources if isinstance(statement, LoadText) else ()
    return frozenset(region.name.text for region in sources)


def stored(statement: StatementText) -> frozenset[str]:
    """Names of the tensors in HBM that a statement stores to."""
    if isinstance(statement, LoopText):
        return frozenset[str]().union(*map(stored, statement.body))
    return frozenset([statement.target.name.text] if isinstance(statement, StoreText) else ())


def _operands(stage: StageText) -> Iterator[Word]:
    if isinstance(stage, ContractText):
        yield stage.operand
        if stage.scale:
            yield stage.scale
    elif isinstance(stage, AluText):
        yield from (o for o in stage.operands if isinstance(o, Word) and o.text != "self")


def independent(before: StatementText, after: StatementText) -> bool:
    """Tell whether two neighbours may change places."""
    return not (
        {*writes(before)} & {*reads(after)}
        or stored(before) & (loaded(after) | stored(after))
        or loaded(before) & stored(after)
    )


def n_uses(kernel: KernelText, name: str) -> int:
    """Count the reads of a tensor on chip."""
    leaves = (s for _, s in walk(kernel.items) if not isinstance(s, LoopText))
    return sum(reads(s).count(name) for s in leaves)


def writer(kernel: KernelText, name: str) -> tuple[Path, LoadText | PassText] | None:
    """Find the statement that writes a tensor on chip."""
    for path, s in walk(kernel.items):
        if isinstance(s, LoadText | PassText) and name in writes(s):
            return path, s
    return None


def renamed(kernel: KernelText, names: Mapping[str, str]) -> KernelText:
    """Let all that reads one tensor on chip read another."""
    return replace(kernel, items=tuple(_renamed(item, names) for item in kernel.items))


def _renamed(item: Item, names: Mapping[str, str]) -> Item:
    def new(word: Word) -> Word:
        return Word(names.get(word.text, word.text))

    match item:
        case LoopText():
            body = statements(_renamed(inner, names) for inner in item.body)
            return replace(item, body=body)
        case StoreText():
            return replace(item, source=new(item.source))
        case PassText():
            stages = tuple(_stage_renamed(stage, names) for stage in item.stages)
            return replace(item, source=new(item.source), stages=stages)
        case _:
            return item


def _stage_renamed(stage: StageText, names: Mapping[str, str]) -> StageText:
    def new(word: Word) -> Word:
        return Word(names.get(word.text, word.text))

    if isinstance(stage, ContractText):
        return ContractText(new(stage.operand), stage.scale and new(stage.scale))
    if isinstance(stage, AluText):
        operands = tuple(new(o) if isinstance(o, Word) else o for o in stage.operands)
        return AluText(stage.function, operands)
    return stage


def fresh(kernel: KernelText, stem: str) -> str:
    """Return a name that no tensor, axis, placement or loop of a kernel has."""
    taken = {item.name.text for item in kernel.items if hasattr(item, "name")}
    for _, s in walk(kernel.items):
        taken |= {*writes(s)} | ({s.index.text} if isinstance(s, LoopText) else set())
    stem = stem.rstrip("0123456789_") or "t"
    return next(name for k in range(1, 10_000) if (name := f"{stem}_{k}") not in taken)


def to_dm(output: str, source: str, dtype: str, *stages: StageText) -> PassText:
    """Write a pass of main that commits to DM."""
    commit = CommitText(Word("dm"), Word(dtype), None, None)
    return PassText(Word(output), Word("main"), Word(source), None, stages, commit)
