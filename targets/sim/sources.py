"""The target's own sources: baselines, controls, load-only kernels."""

import re
from functools import lru_cache
from importlib.resources import files

from targets.protocol import Sources
from targets.sim.canaries import canary_slow, canary_wrong

_BLOCK = re.compile(r" block \d+")
_CLUSTERS = re.compile(r"cluster \w+:2")


@lru_cache
def sources(kernel: str) -> Sources:
    """Return a kernel's sources."""
    baseline = _text(f"{kernel}_baseline")
    return Sources(baseline, canary_wrong(baseline), canary_slow(baseline), bounds(kernel))


@lru_cache
def bounds(kernel: str) -> dict[str, str]:
    """Return the load-only variants by name.

    They load the weights once, in the largest commands there are: in runs of 256 bytes where
    that is possible, in whole rows, in runs of 128 bytes, and with one cluster.
    """
    text = _text(f"{kernel}_bound")
    rows = _BLOCK.sub("", text)
    short = _BLOCK.sub(" block 128", text) if rows != text else f"{text.rstrip()} block 128\n"
    variants = {
        "runs": text,
        "rows": rows,
        "short": short,
        "one": _CLUSTERS.sub("cluster one", text),
    }
    return {
        name: text for name, text in variants.items() if name == "runs" or text != variants["runs"]
    }


def _text(name: str) -> str:
    return files("targets.sim").joinpath("kernels", f"{name}.npu").read_text("utf-8")
