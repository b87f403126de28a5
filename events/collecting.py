"""Spare the search for reference cycles where there are many new objects and no cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Leave out the cyclic garbage collector, which looks at every record again and again.

    Records refer to nothing but their values, so that none of them waits for it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
