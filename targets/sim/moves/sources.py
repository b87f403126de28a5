"""What a kernel contracts, and where that comes from."""

from collections.abc import Iterator

from sim.npu.syntax import (
    ContractText,
    KernelText,
    LoadText,
    PassText,
    StoreText,
)
from targets.sim.moves.tree import Path, every, writer


def contractions(kernel: KernelText) -> Iterator[tuple[PassText, str]]:
    """Yield the passes that contract, and what they contract with."""
    for _, run in every(kernel, PassText):
        for stage in run.stages:
            if isinstance(stage, ContractText):
                yield run, stage.operand.text


def origin(kernel: KernelText, name: str) -> tuple[Path, LoadText] | None:
    """Find the load that a tensor comes from."""
    while found := writer(kernel, name):
        path, made = found
        if isinstance(made, LoadText):
            return path, made
        name = made.source.text
    return None


def is_late(kernel: KernelText, operand: str) -> bool:
    """Tell whether a tensor comes from one that the kernel stores before it loads it."""
    found = origin(kernel, operand)
    if found is None:
        return False
    path, load = found
    earlier = (store for p, store in every(kernel, StoreText) if p < path)
    return load.sources[0].name in {store.target.name for store in earlier}
