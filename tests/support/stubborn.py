"""A scripted agent that makes the same illegal kinds of changes again and again, as a model does.

Beside the catalogue's good moves it proposes slips: each breaks one rule that the manual leaves
out or that a reader forgets, here and there with other numbers and names.
"""

import hashlib
import random
import re
from collections.abc import Callable, Mapping
from typing import Final

from targets.protocol import Ask, Catalogue
from targets.sim.durations import THOUGHT_S
from targets.sim.target import SimTarget

Slip = Callable[[str, random.Random], str | None]
"""Turns a source into an illegal one; None if it has no place for it."""
NAMES: Final = ("q", "half", "part", "next", "tmp")


def _number(pattern: str, numbers: tuple[int, ...]) -> Slip:
    """Put one of ``numbers`` for the first group at a random place."""

    def slip(source: str, draw: random.Random) -> str | None:
        places = list(re.finditer(pattern, source))
        if not places:
            return None
        place = draw.choice(places)
        return source[: place.start(1)] + str(draw.choice(numbers)) + source[place.end(1) :]

    return slip


def _text(pattern: str, new: str) -> Slip:
    """Rewrite one random place."""

    def slip(source: str, draw: random.Random) -> str | None:
        places = list(re.finditer(pattern, source, re.MULTILINE))
        if not places:
            return None
        place = draw.choice(places)
        text = place.expand(new)
        for mark in re.findall(r"@\w", text):
            text = text.replace(mark, draw.choice(NAMES) + str(draw.randrange(100)), 1)
        return source[: place.start()] + text + source[place.end() :]

    return slip


SLIPS: Final[Mapping[str, Slip]] = {
    "E-BUFFERS": _number(r"buffers (\d+)", (9, 10, 12, 16, 24, 32)),
    "E-LANES": _number(r"lanes (\d+)", (3, 5, 6, 7, 12, 16)),
    "E-SLICES-POW2": _number(r"(?:copy|idle):(\d+)", (48, 96, 120, 192, 240)),
    "E-CLUSTERS": _text(r"cluster (?:one|copy:\d)", "cluster copy:4"),
    "E-LOAD-LIST": _text(
        r"^( *)load (\w+) from (\w+) to (\w+)$",
        r"\1load @a, @b, @c, @d, @e, @f, @g from \3, \3, \3, \3, \3, \3, \3 to \4",
    ),
    "E-LOOKUP-SUB": _text(r"= main (\w+ \| lookup)", r"= sub \1"),
    "E-LOOKUP-TRF": _text(r"(\| lookup bf16) \| commit dm bf16", r"\1 | commit trf bf16"),
    "E-TRF-SUB": _text(r"= main (\w+ \| commit trf)", r"= sub \1"),
    "E-STAGE-ORDER": _text(r"= main (\w+) \| mul", r"= main \1 | exp | mul"),
    "E-FMA-ADDEND": _text(r"\| fma (\S+) \S+", r"| fma \1 self"),
}
"""By the code of the rule that each breaks, in every version of the toolchain."""


class Stubborn:
    """A catalogue of which a share of the steps are slips.

    Args:
        catalogue: whose moves the others are.
        share: of slips among its steps.
        think: takes the time that a slip takes.
    """

    def __init__(self, catalogue: Catalogue, share: float, think: Callable[[], None]) -> None:
        self._catalogue, self._share, self._think = catalogue, share, think

    def reply(self, ask: Ask) -> str:
        """Answer as the catalogue does, or with a slip; deterministic given ``ask``."""
        asked = repr((ask.kernel, ask.incumbent_source, sorted(ask.tried), ask.seed))
        draw = random.Random(hashlib.sha256(asked.encode()).digest())
        if ask.task == "step" and draw.random() < self._share:
            for code in draw.sample(sorted(SLIPS), len(SLIPS)):
                wrong = SLIPS[code](ask.incumbent_source, draw)
                if wrong is not None and wrong != ask.incumbent_source:
                    self._think()
                    return _step(ask, f"slip:{code}:{len(ask.tried)}", wrong)
        return self._catalogue.reply(ask)


def _step(ask: Ask, move: str, source: str) -> str:
    """A reply that puts a whole source for another."""
    edit = f"<search>{ask.incumbent_source}</search><replace>{source}</replace>"
    return f"<hypothesis>{move} is faster</hypothesis><move>{move}</move><edit>{edit}</edit>"


class StubbornTarget(SimTarget):
    """The simulated NPU with a stubborn author, who takes ``slip_s`` virtual seconds for a slip."""

    def __init__(
        self, preset: str, share: float = 0.5, slip_s: float = THOUGHT_S, n_updates: int = 0
    ) -> None:
        super().__init__(preset, n_updates)
        self.share, self.slip_s = share, slip_s
        self.catalogue = Stubborn(self.catalogue, share, lambda: self.clock.spend(slip_s))

    def updated(self, n_updates: int) -> "StubbornTarget":
        """Return it with the toolchain so many versions later, as stubborn as before."""
        later = StubbornTarget(self._preset, self.share, self.slip_s, n_updates)
        later.clock = self.clock
        return later
