"""Whether the optional package for Parquet is there."""

from importlib.util import find_spec

from scripts.runs import UsageError


def check_installed() -> None:
    """Refuse to go on without pyarrow.

    Raises:
        UsageError: it is not installed; the text says how to install it.
    """
    if find_spec("pyarrow") is None:
        raise UsageError("Parquet needs pyarrow: pip install 'kernelwright[parquet]'")
