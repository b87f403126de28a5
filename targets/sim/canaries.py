"""Controls of the harness, made from a kernel's baseline: one is wrong, one is slow."""

import re
from typing import Final

SLOWDOWN: Final = 4
_MEAN: Final = re.compile(r"fma 1/(\d+) ")
_LOOP: Final = re.compile(r"^for .*?^}\n", re.MULTILINE | re.DOTALL)
_OUTPUT: Final = re.compile(r"^\s*(?:load (\w+) from|(\w+) =)", re.MULTILINE)


def canary_wrong(baseline: str) -> str:
    """Return the baseline with every mean square twice as large as it is."""
    return _MEAN.sub(lambda mean: f"fma 1/{int(mean[1]) // 2} ", baseline)


def canary_slow(baseline: str) -> str:
    """Return the baseline doing every loop `SLOWDOWN` times, with the right result.

    It takes at least twice the time.
    """
    return _LOOP.sub(lambda loop: "".join(_copies(loop[0])), baseline)


def _copies(loop: str) -> list[str]:
    """Return the loop after copies of it whose outputs nobody reads."""
    outputs = "|".join(loaded or computed for loaded, computed in _OUTPUT.findall(loop))
    copies = [re.sub(rf"\b({outputs})\b", rf"\1_{n}", loop) for n in range(1, SLOWDOWN)]
    return [*copies, loop]
