"""Rules of errors: they cross process borders and say what to do."""

import pickle
from pathlib import Path

import pytest

from events.errors import (
    BlobCorruptError,
    BlobMissingError,
    LogBusyError,
    LogCorruptError,
    LogError,
    LogMissingError,
    LogSchemaError,
    LogWriteError,
)


@pytest.mark.parametrize(
    "error",
    [
        LogMissingError(Path("run")),
        LogBusyError(Path("run"), "process 1"),
        LogWriteError(Path("run"), "full"),
        LogCorruptError(Path("run"), 40, 3, "checksum"),
        LogSchemaError(Path("run"), 40, 3, "unknown event kind 'x'"),
        BlobMissingError("ab"),
        BlobCorruptError("ab", "hash"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling_and_say_what_to_do(error: LogError) -> None:
    """They cross process borders, and people read them."""
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), copy.args, str(copy)) == (type(error), error.args, str(error))
    assert "; " in str(error)
