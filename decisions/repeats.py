"""Ideas that were had before: a hypothesis that says what an earlier one of its kernel said.

An earlier verdict stands while its premises do: the best version it was made on, the bottleneck
that its author was told of, and the toolchain. A source that screening refused is no verdict on its
idea.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from rapidfuzz import fuzz

from events.projections.desk import Thread
from events.projections.state import State
from events.projections.tree import OPEN, Node, Status

SAME = 90.0
"""Similarity from which two hypotheses are the same in words: a hundred times the share of their
characters, in sorted words, that a longest common subsequence keeps."""
N_COMPARED = 1000
"""Latest candidates of a kernel that a hypothesis is compared with."""
QUOTED = 300
"""Characters of an earlier hypothesis that its author is reminded of."""

_GAIN = re.compile(r"\d+(?:\.\d+)?\s*(?:%|percent|x\b|times\b)")
_WORD = re.compile(r"[a-z0-9_]+")
_SMALL_WORDS = frozenset(
    ("a", "an", "as", "at", "be", "by", "do", "if", "in", "is", "it", "no", "of", "on", "or", "so",
     "to", "up", "we")
)  # fmt: skip


def is_same(one: str, other: str) -> bool:
    """Whether two hypotheses say the same.

    Most of their words have to agree, and all of what a change is told apart by: numbers, names
    with digits or underscores, and single letters. The gain that they expect does not matter.
    """
    ours, theirs = _said(one), _said(other)
    if ours.particulars != theirs.particulars:
        return False
    return fuzz.ratio(ours.words, theirs.words, score_cutoff=SAME) > 0


def earlier_verdict(state: State, thread: Thread, hypothesis: str) -> str:
    """What became of a hypothesis when it was tried before, for its author; "" if it was not."""
    for node in islice(_comparable(state, thread), N_COMPARED):
        idea = state.desk.of(node.kernel).ideas.get(node.candidate, node.hypothesis)
        if is_same(hypothesis, idea) or is_same(hypothesis, node.hypothesis):
            said = f"c{node.candidate} was this idea: {_short(idea)} -> {_became(node)}"
            return (
                f"{said}. The best version, its bottleneck and the toolchain are the same as then. "
                "Propose something else, or say in the hypothesis what is different"
            )
    return ""


def _comparable(state: State, thread: Thread) -> Iterator[Node]:
    """Earlier candidates whose premises are those of a thread's reply, the latest first."""
    parent = thread.turn.parent
    analysed = state.desk.of(thread.kernel).analysed.get(parent, -1)
    for candidate in reversed(state.tree.branches[thread.kernel].nodes):
        node = state.tree.nodes[candidate]
        if (
            (node.form, node.parent) == (thread.form, parent)
            and analysed < node.proposed < thread.reply_seq
            and node.toolchain in ("", state.toolchain_digest)
            and node.status is not Status.REFUSED
        ):
            yield node


def _became(node: Node) -> str:
    return "on its way" if node.status in OPEN else f"{node.status}: {node.reason}"


def _short(text: str) -> str:
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}..."


class _Said(NamedTuple):
    particulars: frozenset[str]
    words: str
    """All of them, sorted."""


@lru_cache(maxsize=4 * N_COMPARED)
def _said(text: str) -> _Said:
    words = _WORD.findall(_GAIN.sub("", text.lower()))
    particulars = frozenset(w for w in words if not w.isalpha() or len(w) < 3) - _SMALL_WORDS
    return _Said(particulars, " ".join(sorted(words)))
