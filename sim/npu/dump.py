"""A schedule as JSON, with the field names of the vendor's dump, so that one profiler reads both.

There are no addresses, pages and fingerprints: this compiler does not place tensors in memory.
Transfers have their bytes besides.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from sim.npu.check.memory import taken_bytes
from sim.npu.expand import Command, Engine
from sim.npu.program import Alu, Contract, Load, Memory, Pass, Position, Store, Sum, Tensor
from sim.npu.schedule import Schedule
from sim.npu.static import StaticCost

TOTAL_MEMORY: Final = 2 * 256 * 512 * 1024
"""Bytes on chip."""
PAGE_SIZE: Final = 32 * 1024
_CONTEXTS: Final[dict[Engine, str]] = {
    "dma": "DmaEngine",
    "main": "MainContext",
    "sub": "SubContext",
}
_BUFFERS: Final[dict[Memory, str]] = {"hbm": "Dram", "dm": "Sram", "trf": "Trf", "vrf": "Vrf"}


def schedule_json(schedule: Schedule) -> str:
    """Return the dump. The makespan is its greatest ``lifetime.end``; cycles are rounded."""
    title, entries = schedule.program.kernel, _Entries(taken_bytes(schedule.program))
    instructions: list[dict[str, Any]] = [
        {
            "index": index,
            "history": _iterations(command),
            "tpe": _type(command),
            "contexts": _contexts(command),
            "lifetime": {"begin": round(begin), "end": round(begin + cost.cycles)},
            "util": _utilisation(cost),
            "description": _place(title, command.site.statement.position),
            "input_tensors": entries.enter(_inputs(command), index),
            "output_tensors": entries.enter(_outputs(command), index),
            **_moved(command),
        }
        for index, (command, cost, begin) in enumerate(
            zip(schedule.commands, schedule.costs, schedule.begins, strict=True)
        )
    ]
    last = max((i["lifetime"]["end"] for i in instructions), default=0)
    dump = {
        "title": title,
        "total_memory": TOTAL_MEMORY,
        "page_size": PAGE_SIZE,
        "instructions": [
            *instructions,
            _closing(len(instructions), last, round(schedule.makespan)),
        ],
        "tensors": [vars(entry) for entry in entries.tensors.values()],
    }
    return json.dumps(dump, separators=(",", ":"))


@dataclass
class _Entry:
    """A tensor of the dump."""

    index: int
    name: str
    buffer_type: str
    size: int
    """Bytes of the whole tensor, on chip those that it takes of one slice."""
    shape: tuple[int, ...]
    block_begin: int
    block_end: int
    """First and last instruction that touch it."""


class _Entries:
    """The tensors of the dump by name, as instructions touch them."""

    def __init__(self, taken: Mapping[str, int]) -> None:
        self.tensors: dict[str, _Entry] = {}
        self._taken = taken

    def enter(self, tensors: tuple[Tensor, ...], instruction: int) -> list[int]:
        """Note that an instruction touches ``tensors``; return their numbers."""
        return [self._entry(t, instruction).index for t in tensors]

    def _entry(self, tensor: Tensor, instruction: int) -> _Entry:
        entry = self.tensors.get(tensor.name)
        if entry is None:
            entry = self.tensors[tensor.name] = _Entry(
                len(self.tensors),
                tensor.name,
                _BUFFERS[tensor.memory],
                self._taken.get(tensor.name, tensor.n_bytes),
                tensor.shape,
                instruction,
                instruction,
            )
        entry.block_end = instruction
        return entry


def _inputs(command: Command) -> tuple[Tensor, ...]:
    statement = command.site.statement
    if isinstance(statement, Load):
        return tuple(r.tensor for r in statement.sources)
    return command.site.reads


def _outputs(command: Command) -> tuple[Tensor, ...]:
    statement = command.site.statement
    return (statement.target.tensor,) if isinstance(statement, Store) else command.site.writes


def _moved(command: Command) -> dict[str, int]:
    """Return the bytes that a transfer moves from or to memory, each once however often copied."""
    match command.site.statement:
        case Load(outputs=moved):
            pass
        case Store(source=source):
            moved = (source,)
        case _:
            return {}
    counts = command.site.counts
    tiles = (prod(counts.get(axis.root, 1) for axis in tensor.axes) for tensor in moved)
    return {"bytes": round(sum(t.n_bytes / n for t, n in zip(moved, tiles, strict=True)))}


def _iterations(command: Command) -> list[str]:
    loops = zip(command.site.loops, command.iterations, strict=True)
    return [f"{loop.index} = {i} of {loop.count}" for loop, i in loops]


def _type(command: Command) -> str:
    match command.site.statement:
        case Load():
            return "DmaLoad"
        case Store():
            return "DmaStore"
        case Pass() if command.table:
            return "StoTab"
        case Pass(output=output):
            return {"trf": "StoTrf", "vrf": "StoVrf"}.get(output.memory, "TuExec")


def _contexts(command: Command) -> list[str]:
    statement = command.site.statement
    stages = statement.stages if isinstance(statement, Pass) else ()
    vector = any(isinstance(s, Alu | Sum) or (isinstance(s, Contract) and s.scale) for s in stages)
    return [_CONTEXTS[command.site.engine], *(["VectorEngine"] if vector else [])]


def _utilisation(cost: StaticCost) -> dict[str, float]:
    """Return the shares of the time in which a unit is busy, and in which it does useful work."""
    total, base = cost.busy / cost.cycles, cost.useful / cost.cycles
    efficiency = base / total if total else 0.0
    return {
        "total_util": round(total, 4),
        "base_util": round(base, 4),
        "efficiency": round(efficiency, 4),
    }


def _place(title: str, position: Position) -> str:
    return f"--> {title}.npu:{position.line}:{position.column}"


def _closing(index: int, begin: int, end: int) -> dict[str, Any]:
    """Return the instruction that ends the launch."""
    return {
        "index": index,
        "history": [],
        "tpe": "ExplicitSync",
        "contexts": ["PeCore"],
        "lifetime": {"begin": begin, "end": end},
        "util": {"total_util": 0.0, "base_util": 0.0, "efficiency": 0.0},
        "description": "",
        "input_tensors": [],
        "output_tensors": [],
    }
