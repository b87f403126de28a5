"""Follow the log of a live run, without its lock and without ever seeing half a record."""

from collections.abc import Iterator
from pathlib import Path

from events.log import batches, read_start
from events.vocabulary import Record


class Tail:
    """A reader of one run that remembers how far it has read.

    Raises:
        LogError: there is no log, or its header cannot be read.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self._at = read_start(run)

    def fresh(self) -> Iterator[Record]:
        """Iterate over the records that have become whole since the last call.

        Raises:
            LogCorruptError: damage that no crash can cause.
            LogSchemaError: an event kind that is not known here.
        """
        for frame, records in batches(self._run, after=self._at):
            self._at = frame.end
            yield from records
