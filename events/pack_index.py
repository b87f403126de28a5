"""Where each blob of a run lies, as far as somebody has looked."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple, TypeVar

from events import packs

MAX_TRIES = 3
"""Looks at a blob that a prune moves again and again."""

_PACK_NAME = re.compile(r"([0-9]{4}|[1-9][0-9]{4,8})\.pack")
_OFFSET_BITS = 32

T = TypeVar("T")


class Place(NamedTuple):
    """Where something begins in a pack."""

    path: Path
    offset: int


class Last(NamedTuple):
    """The last pack, and its last blob; begin and end are the same if there is none."""

    number: int
    head: packs.Head
    begin: int
    end: int


class PackIndex:
    """The places of all blobs in a folder of packs.

    A later blob of the same name counts for more: it was put because the earlier one is damaged.

    Attributes:
        last: the last pack; None if there is none.
    """

    def __init__(self, root: Path) -> None:
        self.last: Last | None = None
        self._root = root
        self._places: dict[bytes, int] = {}

    def __iter__(self) -> Iterator[bytes]:
        """The names that are known."""
        return iter(self._places)

    def find(self, name: bytes) -> Place | None:
        """Where a blob is; None if there was none at the last look."""
        place = self._places.get(name)
        if place is None:
            return None
        return Place(self.path(place >> _OFFSET_BITS), place & (1 << _OFFSET_BITS) - 1)

    def place(self, name: bytes) -> Place:
        """Where a blob is, after another look if need be.

        Raises:
            KeyError: there is no such blob.
        """
        place = self.find(name)
        if place is None:
            self.refresh()
            place = self.find(name)
        if place is None:
            raise KeyError(name)
        return place

    def use(self, name: bytes, do: Callable[[FileIO, packs.Entry], T]) -> T:
        """Do something with a blob in its pack, even if a prune moves it meanwhile.

        Raises:
            KeyError: there is no such blob.
        """
        for _ in range(MAX_TRIES):
            place = self.place(name)
            with suppress(FileNotFoundError), FileIO(place.path) as file:
                entry = packs.entry_at(file, place.offset)
                if entry and entry.name == name:
                    return do(file, entry)
            self.forget()
        raise KeyError(name)

    def has_moved(self, name: bytes) -> bool:
        """Whether another look finds a blob in another place."""
        before = self.find(name)
        self.refresh()
        return self.find(name) != before

    def path(self, number: int) -> Path:
        """Where the pack of this number is, or would be."""
        return self._root / f"{number:04d}.pack"

    def paths(self) -> list[Path]:
        """The packs that there are, in order."""
        return [self.path(number) for number in self._numbers()]

    def add(self, blobs: Iterable[tuple[bytes, int]]) -> None:
        """Note the blobs that were just put behind the last one: name and bytes of each.

        Looking for them would read the whole spare behind them, since no blob begins there.
        """
        assert self.last is not None
        number, _, begin, end = self.last
        for name, n_bytes in blobs:
            begin, end = end, end + n_bytes
            self._places[name] = number << _OFFSET_BITS | begin
        self.last = self.last._replace(begin=begin, end=end)

    def forget(self) -> None:
        """Begin anew, because packs have been rewritten."""
        self.last = None
        self._places.clear()

    def refresh(self) -> None:
        """Take in what was added since the last look."""
        if self.last and not self._holds(self.last):
            self.forget()
        last = self.last
        for number in self._numbers():
            if last is None or number > last.number:
                self._read(number)

    def _holds(self, last: Last) -> bool:
        """Whether the last pack is still what it was; if so, its new blobs are taken in.

        A prune may have rewritten it, and a writer on a full disk may have cut it.
        """
        try:
            with FileIO(self.path(last.number)) as file:
                if packs.head_of(file) != last.head or not self._is_at(file, last):
                    return False
                if packs.entry_at(file, last.end):
                    self._take(file, last)
                return True
        except FileNotFoundError:
            return False

    def _is_at(self, file: FileIO, last: Last) -> bool:
        if last.begin == last.end:
            return True
        entry = packs.entry_at(file, last.begin)
        known = entry and self._places.get(entry.name)
        return known == last.number << _OFFSET_BITS | last.begin

    def _read(self, number: int) -> None:
        with FileIO(self.path(number)) as file:
            start = packs.HEADER_BYTES
            self._take(file, Last(number, packs.head_of(file), start, start))

    def _take(self, file: FileIO, last: Last) -> None:
        """Take in the blobs of a pack from ``last.end`` on."""
        first, begin, end = last.number << _OFFSET_BITS, last.begin, last.end
        for name, begin, end in packs.walk(file, last.head.mark, last.end):  # noqa: B007
            self._places[name] = first | begin
        self.last = last._replace(begin=begin, end=end)

    def _numbers(self) -> list[int]:
        try:
            with os.scandir(self._root) as files:
                found = [_PACK_NAME.fullmatch(file.name) for file in files if file.is_file()]
        except FileNotFoundError:
            return []
        return sorted(int(match[1]) for match in found if match)
