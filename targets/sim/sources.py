"""The target's own sources: baselines, controls, load-only kernels."""

import re
from functools import lru_cache
from importlib.resources import files
from typing import Final

from targets.protocol import Sources
from targets.sim.canaries import canary_slow, canary_wrong

_BLOCKS: Final = re.compile(r" block \d+")
_LAST_BLOCK: Final = re.compile(r"(?: block \d+)?\n\Z")
_CLUSTERS: Final = re.compile(r"cluster \w+:2")


@lru_cache
def sources(kernel: str) -> Sources:
    """Return a kernel's sources."""
    baseline = _text(f"{kernel}_baseline")
    return Sources(baseline, canary_wrong(baseline), canary_slow(baseline), bounds(kernel))


@lru_cache
def bounds(kernel: str) -> dict[str, str]:
    """Return the load-only variants by name.

    They load the weights once, in the largest commands there are: as fast as is known, with the
    last load in runs of 128 bytes, with one cluster, and in whole rows where that differs.
    """
    text = _text(f"{kernel}_bound")
    rows = _BLOCKS.sub("", text)
    variants = {
        "runs": text,
        "short": _LAST_BLOCK.sub(" block 128\n", text),
        "one": _CLUSTERS.sub("cluster one", text),
    }
    return variants if rows == text else {**variants, "rows": rows}


def _text(name: str) -> str:
    return files("targets.sim").joinpath("kernels", f"{name}.npu").read_text("utf-8")
