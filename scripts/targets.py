"""List targets, their kernels and presets, and whether they can be used on this machine."""

import argparse
import json
from collections.abc import Sequence
from typing import Any

from events.campaign import Campaign
from scripts.runs import without_traceback
from targets.protocol import TargetError
from targets.registry import load_target, target_names


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Print the list; return 0."""
    parser = argparse.ArgumentParser(prog="kernelwright targets", description=__doc__)
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")
    args = parser.parse_args(argv)
    found = {name: about(name) for name in target_names()}
    if args.as_json:
        print(json.dumps(found))
    else:
        print("\n".join(line for name in found for line in _lines(name, found[name])))
    return 0


def about(name: str) -> dict[str, Any]:
    """Presets of a target with the weight bytes per kernel, its fingerprint, and what is wrong."""
    try:
        target = load_target(name, Campaign.model_fields["preset"].default)
        presets = {preset: _weights(name, preset) for preset in target.presets()}
    except TargetError as e:
        return {"presets": {}, "fingerprint": {}, "problem": str(e)}
    try:
        return {"presets": presets, "fingerprint": target.fingerprint(), "problem": None}
    except TargetError as e:
        return {"presets": presets, "fingerprint": {}, "problem": str(e)}


def _weights(name: str, preset: str) -> dict[str, int]:
    target = load_target(name, preset)
    return {kernel: target.card(kernel).weight_bytes for kernel in target.kernels()}


def _lines(name: str, found: dict[str, Any]) -> list[str]:
    state = "works here" if found["problem"] is None else f"not here: {found['problem']}"
    lines = [f"{name}: {state}"]
    for preset, kernels in found["presets"].items():
        lines.append(f"  preset {preset}")
        lines += [f"    {kernel:<28} {n / 1e6:9.2f} MB of weights" for kernel, n in kernels.items()]
    shown = ("compiler", "processor")
    lines += [
        f"  {key}: {found['fingerprint'][key]}" for key in shown if key in found["fingerprint"]
    ]
    return lines
