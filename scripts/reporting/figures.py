"""The run's charts: which readings each one shows."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from events.projections.tree import Status
from events.vocabulary import CandidateAccepted, PairsMeasured, ProgramsMeasured
from scripts.reporting import charts, wording
from scripts.reporting.charts import Mark, Series
from scripts.reporting.history import Job, Run
from scripts.reporting.results import Result
from scripts.reporting.trials import Trial
from scripts.reporting.truth import Claim, Truth

MAX_DOTS = 1500
"""Probes shown per kernel; of more, every n-th."""
CLOCK_S = 1e-9
"""A probe counts as at least this, so that a target without one has a place on the axis."""


def speedups(run: Run, done: tuple[Job, ...]) -> Markup:
    """Speed-up claimed by the accepts over device time, one line per kernel."""
    end = done[-1].device_s if done else 0.0
    series = []
    for colour, kernel in enumerate(run.kernels):
        marks = [Mark(0.0, 1.0), *_accepts(run, done, kernel)]
        marks.append(Mark(end, marks[-1].y))
        series.append(Series(kernel, colour, tuple(marks)))
    values = [mark.y for one in series for mark in one.marks]
    y = charts.log_axis("speed-up (log)", values, lambda v: f"{v:g}×")  # noqa: RUF001
    desc = "Steps at accepts. Product of the effects at the accepts, not the final pairs."
    return charts.steps("Speed-up over device time", desc, series, _device_axis(end), y)


def bounds(run: Run, done: tuple[Job, ...]) -> Markup | None:
    """Best version's time over its bound over device time; None without a bound job."""
    series = []
    for colour, kernel in enumerate(run.kernels):
        marks = tuple(_over_bound(done, kernel))
        if marks:
            end = Mark(done[-1].device_s, marks[-1].y)
            series.append(Series(kernel, colour, (*marks, end)))
    if not series:
        return None
    values = [1.0, *(mark.y for one in series for mark in one.marks)]
    y = charts.log_axis("time / bound (log)", values, lambda v: f"{v:g}")
    desc = "Each from one job that interleaves the best version with load-only variants."
    axis = _device_axis(done[-1].device_s)
    return charts.steps("Time over bound over device time", desc, series, axis, y)


def probes(run: Run, done: tuple[Job, ...]) -> Markup | None:
    """Condition probes over wall time, with their median; None without pairs."""
    series = []
    for colour, kernel in enumerate(run.kernels):
        marks = [
            Mark(run.hours(job.record), max(pair.probe_s, CLOCK_S))
            for job in done
            if job.request.kernel == kernel and isinstance(job.reply, PairsMeasured)
            for pair in job.reply.pairs
        ]
        marks = marks[:: -(-len(marks) // MAX_DOTS) or 1]
        if marks:
            series.append(Series(kernel, colour, tuple(marks)))
    if not series:
        return None
    readings = sorted(mark.y for one in series for mark in one.marks)
    median = readings[len(readings) // 2]
    desc = "The same small workload before every pair: what it takes is the machine's state."
    size, unit = wording.unit(median)
    axis = charts.log_axis(f"probe, {unit} (log)", [r / size for r in readings], _plain)
    y = axis.scaled(size)
    return charts.dots("Condition probe", desc, series, _wall_axis(run), y, level=median)


def capital(trial: Trial) -> Markup:
    """Capital after each pair of one candidate, up to the limit."""
    marks = [Mark(0, 1.0), *(Mark(i, r.capital) for i, r in enumerate(trial.readings, 1))]
    floor = 1e-6
    shown = tuple(Mark(mark.x, max(mark.y, floor)) for mark in marks)
    values = [trial.limit, *(mark.y for mark in shown)]
    y = charts.log_axis("capital (log)", values, lambda v: f"{v:g}")
    return charts.dots(
        "Capital after each pair",
        f"Accepted at {trial.limit:g}, the dashed line.",
        (Series("capital", 0, shown),),
        _pair_axis(trial),
        y,
        level=trial.limit,
        joined=True,
    )


def effects(trial: Trial) -> Markup:
    """Effect of each pair of one candidate, without the slot effect."""
    marks = tuple(Mark(i, r.effect) for i, r in enumerate(trial.readings, 1))
    y = charts.linear_axis("effect, log-%", [0.0, *(m.y for m in marks)], _plain)
    return charts.dots(
        "Effect of each pair",
        "Below the dashed line the candidate was faster.",
        (Series("effect", 1, marks),),
        _pair_axis(trial),
        y,
        level=0.0,
    )


def claims(found: Truth, kernels: Sequence[str]) -> Markup | None:
    """Gain that each accept claimed over its true gain; None without a true gain."""
    gains = [-value for claim in found.claims for value in (claim.true, claim.effect) if value < 0]
    if all(claim.is_false for claim in found.claims):
        return None
    axis = charts.log_axis("true gain, log-% (log)", gains, lambda v: f"{v:g}")
    series = []
    for colour, kernel in enumerate(kernels):
        own = (claim for claim in found.claims if claim.kernel == kernel)
        series.append(Series(kernel, colour, tuple(_claim(claim, axis.low) for claim in own)))
    desc = "On the dashed line a claim is true; a bar is its interval."
    return charts.against("Claimed and true gains", desc, series, axis, "claimed gain, log-% (log)")


def _claim(claim: Claim, least: float) -> Mark:
    true, effect = wording.effect(claim.true), wording.effect(claim.effect)
    x, y, low, high = (max(-v, least) for v in (claim.true, claim.effect, claim.high, claim.low))
    return Mark(x, y, f"c{claim.candidate}: claimed {effect}, true {true}", (low, high))


def times(result: Result) -> Markup | None:
    """Times of baseline, best version and bound as bars; None before there are any."""
    best_s, ratio = result.best_s, result.time_over_bound
    # Best and bound as in the one job that had both: times of two jobs do not compare.
    bound_s = best_s / ratio if best_s is not None and ratio else None
    rows = [("baseline", result.baseline_s, 6), ("best", best_s, 7), ("bound", bound_s, 8)]
    known = [(name, s, wording.seconds(s), c) for name, s, c in rows if s is not None]
    return charts.bars(f"Time per launch of {result.kernel}", known) if known else None


def _accepts(run: Run, done: tuple[Job, ...], kernel: str) -> Iterator[Mark]:
    """The accepts of a kernel at the device time that had passed."""
    passed = {job.seq: job.device_s for job in done}
    now = 0.0
    for record in run.records:
        now = passed.get(record.seq, now)
        event = record.event
        if not isinstance(event, CandidateAccepted):
            continue
        node = run.state.tree.nodes[event.candidate]
        if node.kernel == kernel and node.status is Status.ACCEPTED:
            value = run.state.tree.speedup(event.candidate)
            after = wording.duration(now)
            yield Mark(now, value, f"c{event.candidate}: {wording.factor(value)} after {after}")


def _over_bound(done: tuple[Job, ...], kernel: str) -> Iterator[Mark]:
    for job in done:
        is_bound = job.request.kernel == kernel and job.request.purpose == "bound"
        if is_bound and isinstance(job.reply, ProgramsMeasured):
            value = job.reply.incumbent_s / min(s.median for s in job.reply.times_s.values())
            note = f"c{job.request.incumbent}: {wording.ratio(value)} times the bound"
            yield Mark(job.device_s, value, note)


def _device_axis(end_s: float) -> charts.Axis:
    size, unit = _unit(end_s)
    return charts.running_axis(f"device time, {unit}", end_s / size, _plain).scaled(size)


def _wall_axis(run: Run) -> charts.Axis:
    end_s = 3600 * run.hours(run.records[-1])
    size, unit = _unit(end_s)
    axis = charts.running_axis(f"since the start, {unit}", end_s / size, _plain)
    return axis.scaled(size / 3600)


def _pair_axis(trial: Trial) -> charts.Axis:
    return charts.running_axis("pair", len(trial.readings), _plain, least=1)


def _unit(most_s: float) -> tuple[float, str]:
    """Seconds of a unit that suits times up to ``most_s``, and its name."""
    for size, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if most_s > 2 * size:
            return size, name
    return 1.0, "seconds"


def _plain(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")  # noqa: RUF001
