"""Work under the toolchain of the run, or none at all."""

from actors.messages import Actor, Answer, Command
from events.toolchain import toolchain_digest
from events.vocabulary import ToolchainChanged
from targets.protocol import Target


class Guarded:
    """An actor that answers `ToolchainChanged` where the toolchain is not the run's.

    It looks before the work and after it: what was done while the toolchain was replaced is of
    neither.
    """

    def __init__(self, actor: Actor, target: Target) -> None:
        self._actor, self._target = actor, target

    def handle(self, command: Command) -> Answer:
        """Do what the command says, or say which toolchain was found."""
        if change := self._change(command):
            return change
        answer = self._actor.handle(command)
        return self._change(command) or answer

    def _change(self, command: Command) -> Answer | None:
        found = self._target.fingerprint()
        if toolchain_digest(found) == command.toolchain:
            return None
        return Answer(ToolchainChanged(toolchain=found))
