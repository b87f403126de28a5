"""Mailboxes in one process: commands are handled one after the other, oldest first."""

import heapq
from collections.abc import Mapping

import structlog

from actors.mailboxes import MAX_REASON, Delivery
from actors.messages import Actor, Answer, Command
from decisions.address import address
from events.vocabulary import RequestLost

_log = structlog.get_logger()


class LocalMailbox:
    """Runs each command when its answer is asked for.

    A command that is issued again keeps the place of the lost one, so that a resumed run hears
    its answers in the order of a run that was never killed.
    """

    def __init__(self, actors: Mapping[str, Actor]) -> None:
        self._actors = actors
        self._waiting: list[tuple[int, int, Command]] = []

    def send(self, command: Command) -> None:
        """Queue a command."""
        heapq.heappush(self._waiting, (command.place, command.seq, command))

    def receive(self, timeout_s: float) -> Delivery | None:
        """Handle the oldest command; ``timeout_s`` does not matter, since nobody else works."""
        if not self._waiting:
            return None
        command = heapq.heappop(self._waiting)[2]
        name = address(command.request)
        try:
            answer = self._actors[name].handle(command)
        except Exception as error:  # noqa: BLE001  # whatever an actor raises, its work is lost
            _log.exception("request lost", actor=name, request=command.seq)
            reason = f"{name}: {type(error).__name__}: {str(error)[:MAX_REASON]}"
            answer = Answer(RequestLost(by="mailbox", reason=reason))
        return Delivery(command.seq, name, answer)
