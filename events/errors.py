"""What can go wrong with the record: each error says what, where and what to do."""

from pathlib import Path


class LogError(Exception):
    """Root of every error of the log and the blobs."""


class LogMissingError(LogError):
    """There is no log where one is to be read.

    Attributes:
        path: where it was looked for.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: no such log; check the run folder's name, or start the run first"


class FoldError(LogError):
    """A record that is whole does not fit the state before it: the log was not written by a run.

    Attributes:
        seq: number of the record.
        kind: of its event.
        reason: what does not fit.
    """

    def __init__(self, seq: int, kind: str, reason: str) -> None:
        super().__init__(seq, kind, reason)
        self.seq, self.kind, self.reason = seq, kind, reason

    def __str__(self) -> str:
        return (
            f"record {self.seq} ({self.kind}) does not fit the records before it: {self.reason}; "
            "no run wrote this log"
        )


class LogBusyError(LogError):
    """Another writer has the run.

    Attributes:
        path: the lock file.
        owner: process, host and boot of the writer, as it wrote them down.
    """

    def __init__(self, path: Path, owner: str) -> None:
        super().__init__(path, owner)
        self.path, self.owner = path, owner

    def __str__(self) -> str:
        return f"{self.path}: the run is being written by {self.owner}; stop that one first"


class LogWriteError(LogError):
    """Something could not be made durable; nothing that was acknowledged is lost.

    Attributes:
        path: the file or folder that was being written.
        reason: why not.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.reason}; everything acknowledged before is safe: "
            "remove the cause, then resume the run"
        )


class LogCorruptError(LogError):
    """The log is damaged where no crash can have damaged it; nothing was changed.

    Attributes:
        path: the damaged file.
        offset: byte at which the damaged part begins.
        seq: number of the first record that cannot be trusted.
        reason: which check failed.
    """

    def __init__(self, path: Path, offset: int, seq: int, reason: str) -> None:
        super().__init__(path, offset, seq, reason)
        self.path, self.offset, self.seq, self.reason = path, offset, seq, reason

    def __str__(self) -> str:
        return (
            f"{self.path}: record {self.seq} at byte {self.offset}: {self.reason}; "
            "restore it from a copy"
        )


class LogSchemaError(LogError):
    """Undamaged bytes that this version of the program does not understand.

    Attributes:
        path: the log.
        offset: byte at which the frame begins.
        seq: number of the first record of the frame.
        reason: what is unknown.
    """

    def __init__(self, path: Path, offset: int, seq: int, reason: str) -> None:
        super().__init__(path, offset, seq, reason)
        self.path, self.offset, self.seq, self.reason = path, offset, seq, reason

    def __str__(self) -> str:
        return (
            f"{self.path}: record {self.seq} at byte {self.offset}: {self.reason} "
            "(written by a newer version?); read it with the version that wrote it"
        )


class BlobMissingError(LogError):
    """A blob that a record may name is not there.

    Attributes:
        sha: its name.
        pruned_by: the record that says that it was removed on purpose; None if none is known.
    """

    def __init__(self, sha: str, pruned_by: int | None = None) -> None:
        super().__init__(sha, pruned_by)
        self.sha, self.pruned_by = sha, pruned_by

    def __str__(self) -> str:
        if self.pruned_by is not None:
            return (
                f"blob {self.sha} was pruned by record {self.pruned_by}; "
                "what needs it takes a copy of the run from before"
            )
        return (
            f"blob {self.sha} is missing; restore the run's blobs from a copy, unless "
            "`kernelwright log verify` says that it was pruned"
        )


class BlobCorruptError(LogError):
    """The bytes of a blob are not those it was named after.

    Attributes:
        sha: its name.
        reason: which check failed.
    """

    def __init__(self, sha: str, reason: str) -> None:
        super().__init__(sha, reason)
        self.sha, self.reason = sha, reason

    def __str__(self) -> str:
        return f"blob {self.sha} is damaged: {self.reason}; restore it from a copy"
