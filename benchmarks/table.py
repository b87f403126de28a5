"""The table that a benchmark prints, and the clocks that it reads."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """A line of the table."""

    what: str
    reached: str
    target: str = ""

    def __str__(self) -> str:
        return f"{self.what:<76}{self.reached:>14}  {self.target}".rstrip()


def wall_s(work: Callable[[], object]) -> float:
    """Seconds that something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cpu_s(work: Callable[[], object]) -> float:
    """Seconds of processor time that something takes."""
    start = time.process_time()
    work()
    return time.process_time() - start
