"""Actors that die, for tests of mailboxes; importable in a Ray worker."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from actors.messages import Actor, Answer, Command
from events.vocabulary import FactLearned, LearningRequested


class Mortal:
    """Dies of its first message, unless another one of it has died before."""

    def __init__(self, tomb: Path) -> None:
        self._tomb = tomb

    def handle(self, command: Command) -> Answer:
        """Die, raise, or answer."""
        request = command.request
        assert isinstance(request, LearningRequested)
        if request.signature == "raise":
            raise ValueError("a defect")
        if request.signature == "meet":
            self._meet(command.seq)
        if request.signature == "die" and not self._tomb.exists():
            self._tomb.touch()
            os._exit(9)
        return Answer(
            FactLearned(kernel="k", topic="rule", claim=f"pid {os.getpid()}", toolchain="")
        )

    def _meet(self, seq: int) -> None:
        """Wait for another one who is here at the same time; the tomb is a folder then."""
        self._tomb.mkdir(exist_ok=True)
        (self._tomb / str(seq)).touch()
        while len(os.listdir(self._tomb)) < 2:
            time.sleep(0.02)


@dataclass(frozen=True)
class MortalMaker:
    """Makes a mortal keeper."""

    tomb: Path
    address: str = "keeper"
    at_once: int = 1

    def __call__(self) -> Actor:
        """Make it."""
        return Mortal(self.tomb)
