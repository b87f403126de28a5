"""Sources from syntax trees, in the one layout that sources of this project have."""

import re
from collections.abc import Iterator
from typing import Final

from sim.npu.syntax import (
    AluText,
    AxisDecl,
    AxisStage,
    CommitText,
    ContractText,
    Count,
    FactorText,
    HbmDecl,
    Item,
    KernelText,
    LoadText,
    LookupText,
    LoopText,
    OffsetText,
    PassText,
    PlaceDecl,
    RegionText,
    StageText,
    StoreText,
    SwitchText,
    Word,
)

_TOKEN: Final = re.compile(
    r"#[^\n]*|(-?[0-9][A-Za-z0-9_.]*(?:(?<=[eE])[+-][0-9]+)?|[A-Za-z0-9_.]+|[^\sA-Za-z0-9_.])"
)


def normalize(source: str) -> str:
    """Return the tokens of a source, or of a piece of one, with one blank between them."""
    return " ".join(filter(None, _TOKEN.findall(source)))


def print_kernel(kernel: KernelText) -> str:
    """Return a source that parses to ``kernel``."""
    return "".join(f"{line}\n" for line in (f"kernel {kernel.name.text}", *_lines(kernel.items)))


def _lines(items: tuple[Item, ...]) -> Iterator[str]:
    """Print statement by statement, without recursion: sources may nest deeper than Python."""
    open_bodies: list[Iterator[Item]] = [iter(items)]
    while open_bodies:
        indent = "  " * (len(open_bodies) - 1)
        item = next(open_bodies[-1], None)
        if item is None:
            open_bodies.pop()
            if open_bodies:
                yield f"{indent[2:]}}}"
        elif isinstance(item, LoopText):
            yield indent + _loop(item)
            open_bodies.append(iter(item.body))
        else:
            yield indent + _line(item)


def _loop(loop: LoopText) -> str:
    head = f"for {loop.index.text} in 0..{loop.count.value} over {loop.axis.text}"
    return f"{head}{_option('buffers', loop.buffers)} {{"


def _line(item: AxisDecl | HbmDecl | PlaceDecl | LoadText | StoreText | PassText) -> str:
    match item:
        case AxisDecl(name, parent, size):
            return f"axis {name.text} = {f'{parent.text} / ' if parent else ''}{size.value}"
        case HbmDecl(name, dtype, axes, part):
            return f"hbm {name.text}: {dtype.text}[{_names(axes)}] {part.text}"
        case PlaceDecl(name, cluster, slices):
            factors = " ".join(map(_factor, slices))
            return f"place {name.text} = cluster {_factor(cluster)}, slices {factors}"
        case LoadText(outputs, sources, place, block):
            regions = ", ".join(map(_region, sources))
            text = f"load {_names(outputs)} from {regions} to {place.text}"
            return text + _option("block", block)
        case StoreText(source, target):
            return f"store {source.text} to {_region(target)}"
        case PassText():
            return _pass(item)


def _pass(item: PassText) -> str:
    roll = f" roll {item.roll.text}" if item.roll else ""
    head = f"{item.output.text} = {item.context.text} {item.source.text}{roll}"
    return " | ".join((head, *map(_stage, item.stages), _commit(item.commit)))


def _stage(stage: StageText) -> str:
    match stage:
        case LookupText(dtype, keep):
            return f"lookup {dtype.text}{' keep' if keep else ''}"
        case SwitchText(axis):
            return f"switch gather {axis.text}" if axis else "switch broadcast"
        case ContractText(operand, scale):
            return f"contract {operand.text}{f' scale {scale.text}' if scale else ''}"
        case AluText(function, operands):
            return " ".join((function.text, *(o.text for o in operands)))
        case AxisStage(kind, axis):
            return f"{kind} {axis.text}"


def _commit(commit: CommitText) -> str:
    dtype = f" {commit.dtype.text}" if commit.dtype else ""
    options = _option("pieces", commit.pieces) + _option("lanes", commit.lanes)
    return f"commit {commit.memory.text}{dtype}{options}"


def _factor(factor: FactorText) -> str:
    return "one" if factor.kind.text == "one" else f"{factor.kind.text}:{factor.count.value}"


def _region(region: RegionText) -> str:
    match region.index:
        case None:
            return region.name.text
        case Count(value):
            return f"{region.name.text}[{value}]"
        case OffsetText(name, index):
            return f"{region.name.text}[{name.text}[{index.value}]]"


def _names(words: tuple[Word, ...]) -> str:
    return ", ".join(word.text for word in words)


def _option(keyword: str, count: Count | None) -> str:
    return f" {keyword} {count.value}" if count else ""
