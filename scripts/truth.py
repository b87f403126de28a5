"""Compare what a run claimed with what is true, where the target knows it: a simulated device.

The truth is computed here, from the artifacts that the run kept; the search has never seen it.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from events.pruned import KnownBlobs
from scripts.plain import one_line
from scripts.reporting import wording
from scripts.reporting.accounts import PURPOSES, device_use
from scripts.reporting.history import Run, jobs, load
from scripts.reporting.truth import MISSED, Claim, Truth, truth
from scripts.reporting.waiting import waiting
from scripts.runs import UsageError, truth_of, without_traceback

DAY_S = 86_400


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Print the truth of a run; return 0."""
    args = _parser().parse_args(argv)
    run = load(args.run)
    known = truth_of(run.state.begun.campaign)
    if known is None:
        name = run.state.begun.campaign.target
        raise UsageError(f"nobody knows the truth of target {name!r}; only a simulated one tells")
    found = truth(run, KnownBlobs.of(args.run, run.records).get, known)
    if args.as_json:
        print(json.dumps({"run": str(args.run), "head": run.head, **_values(run, found)}))
        return 0
    for line in _lines(run, found):
        print(line)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelwright truth", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")
    return parser


def _values(run: Run, found: Truth) -> dict[str, Any]:
    """For programs: effects in log-percent, times in seconds."""
    use = device_use(run, jobs(run.records))
    return {
        **asdict(found),
        "days": use.wall_s / DAY_S,
        "n_candidates": run.state.tree.n_search,
        "device_s": use.device_s,
        "device_s_by_purpose": dict(zip(PURPOSES, use.totals, strict=True)),
        **asdict(waiting(run)),
    }


def _lines(run: Run, found: Truth) -> Iterator[str]:
    """For people."""
    yield (
        f"{wording.count(len(found.claims), 'accept')}: {found.n_false} false "
        f"({found.n_worse} truly slower), {found.n_covered} intervals hold the true effect"
    )
    for claim in found.claims:
        yield f"  {_claim(claim)}"
    yield f"{wording.count(len(found.misses), 'gain')} of more than {MISSED} log-% missed"
    for miss in found.misses:
        why = f"{miss.status}: {one_line(miss.reason)}"
        yield f"  c{miss.candidate} {miss.kernel}: true {wording.effect(miss.true)}; {why}"
    for k in found.kernels:
        yield (
            f"{k.kernel}: true speed-up {k.speedup:.3f}x with c{k.best}, time/bound "
            f"{k.time_over_bound:.3f}, captured {_share(k.captured)}"
        )
    if found.geomean is not None:
        yield f"geomean {found.geomean:.3f}x, captured {_share(found.captured)} (both true)"
    yield from _spent(run)


def _claim(claim: Claim) -> str:
    verdict = "FALSE" if claim.is_false else "true"
    return (
        f"c{claim.candidate} {claim.kernel}: claimed {wording.effect(claim.effect)} "
        f"[{wording.effect(claim.low)}, {wording.effect(claim.high)}], {verdict} "
        f"{wording.effect(claim.true)}{'' if claim.is_covered else ', outside the interval'}"
    )


def _spent(run: Run) -> Iterator[str]:
    use, wait = device_use(run, jobs(run.records)), waiting(run)
    parts = zip(PURPOSES, use.totals, strict=True)
    shares = ", ".join(f"{purpose} {wording.percent(s, use.device_s)}" for purpose, s in parts)
    yield f"device time {wording.duration(use.device_s)}: {shares}"
    busy = wording.percent(wait.worked_s, wait.waited_s)
    yield f"device at work while a candidate waited: {busy}"
    n_candidates = wording.count(run.state.tree.n_search, "candidate")
    yield f"{use.wall_s / DAY_S:.2f} days, {n_candidates}"


def _share(value: float | None) -> str:
    return wording.NONE if value is None else wording.percent(value, 1.0)
