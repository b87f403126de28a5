"""What a run's readings are readings of, where it is no device that anybody could touch."""

from collections.abc import Mapping

from scripts.plain import one_line


def stand_in(toolchain: Mapping[str, str]) -> str:
    """Return what stood for the device, by a run's fingerprint; "" where it says nothing.

    Whoever shows a time of such a run shows this with it.
    """
    return one_line(toolchain.get("device", ""))
