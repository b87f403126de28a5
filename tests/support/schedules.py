"""Schedules made by hand, in the form of the dumps that the profiler reads."""

import json
from collections.abc import Sequence
from typing import Any


def instruction(
    begin: int,
    end: int,
    context: str = "MainContext",
    reads: Sequence[int] = (),
    makes: Sequence[int] = (),
    **more: Any,
) -> dict[str, Any]:
    """One instruction; tensors are numbers."""
    return {
        "index": "0",
        "contexts": [context],
        "lifetime": {"begin": begin, "end": end},
        "input_tensors": list(reads),
        "output_tensors": list(makes),
        **more,
    }


def tensor(index: int, name: str, **more: Any) -> dict[str, Any]:
    """A tensor on chip; its number is written as text, as a real dump does."""
    return {"index": str(index), "name": name, "buffer_type": "Sram", **more}


def dump(instructions: Sequence[dict[str, Any]], tensors: Sequence[dict[str, Any]] = ()) -> str:
    """A whole dump."""
    parts = {"title": "hand", "total_memory": 1024, "page_size": 16}
    return json.dumps({**parts, "instructions": list(instructions), "tensors": list(tensors)})


def two_loads() -> str:
    """Two weights loaded one after the other, each then multiplied; the last product is stored.

    ``w1`` 0-100 and ``w2`` 100-250 are loaded, ``y1`` 100-130 and ``y2`` 250-290 made, and ``y2``
    is stored 290-310. Critical: w1, w2, y2, the store. ``y1`` is hidden.
    """
    return dump(
        [
            instruction(0, 100, "DmaEngine", [10], [1], tpe="DmaLoad", bytes=1000),
            instruction(100, 130, reads=[1], makes=[3], description='x\nname: Einsum "hand_y1"\n'),
            instruction(100, 250, "DmaEngine", [11], [2], tpe="DmaLoad", bytes=3000),
            instruction(250, 290, reads=[2, 3], makes=[4], tpe="Einsum"),
            instruction(290, 310, "DmaEngine", [4], [12], tpe="DmaStore", bytes=20),
        ],
        [tensor(1, "w1", size=1000), tensor(2, "w2", size=3000), tensor(3, "y1", size=10),
         tensor(4, "y2", size=20)],
    )  # fmt: skip
