"""Calls of many threads done in groups: those that arrive while one group is done form the next."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

Given = TypeVar("Given")
Answer = TypeVar("Answer")


class Call(Generic[Given, Answer]):
    """One call on its way.

    Attributes:
        given: what it was called with.
        answer: what it returns; None as long as there is nothing.
        error: what it raises instead.
        turn: released when the call has its outcome, or must do its group.
    """

    __slots__ = ("answer", "error", "given", "turn")

    def __init__(self, given: Given) -> None:
        self.given = given
        self.answer: Answer | None = None
        self.error: Exception | None = None
        self.turn = Lock()
        self.turn.acquire()

    @property
    def is_done(self) -> bool:
        """Whether it has its outcome."""
        return self.answer is not None or self.error is not None


class Together(Generic[Given, Answer]):
    """A function that any number of threads may call, and that does one group of calls at a time.

    There is no thread of its own: the first of the callers that wait does the work of all of them.
    """

    def __init__(self, do: Callable[[Sequence[Call[Given, Answer]]], None]) -> None:
        """Take what does a group: it gives every call an answer or an error, even if it raises."""
        self._do = do
        self._gate = Lock()
        self._waiting: list[Call[Given, Answer]] = []
        self._leader: Call[Given, Answer] | None = None

    def __call__(self, given: Given) -> Answer:
        """Return the answer to ``given``, or raise its error."""
        call: Call[Given, Answer] = Call(given)
        self._join(call)
        try:
            call.turn.acquire()
            if not call.is_done:
                self._lead(call)
        finally:
            self._leave(call)
        if call.answer is None:
            raise call.error or AssertionError("a call was left without an outcome")
        return call.answer

    def _join(self, call: Call[Given, Answer]) -> None:
        with self._gate:
            self._waiting.append(call)
            if self._leader is None:
                self._leader = call
                call.turn.release()

    def _lead(self, own: Call[Given, Answer]) -> None:
        with self._gate:
            group, self._waiting = self._waiting, []
        try:
            self._do(group)
        finally:
            for call in group:
                if call is not own:
                    call.turn.release()

    def _leave(self, call: Call[Given, Answer]) -> None:
        with self._gate:
            if not call.is_done and call in self._waiting:  # it was interrupted before its turn
                self._waiting.remove(call)
            if self._leader is call:
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader:
                    self._leader.turn.release()
