"""What the run spent, what became of its candidates, what it learned, what went wrong."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from decisions.acceptance import SENTINEL_LIMIT, sentinel
from decisions.capital import Scale, scale
from events.projections.ledger import MAX_AA_PAIRS
from events.vocabulary import (
    CandidateId,
    HarnessChecked,
    JobFailed,
    LogRepaired,
    Pair,
    PairsMeasured,
    Purpose,
    Record,
    RequestLost,
    RoleReplied,
    RunInterrupted,
    RunResumed,
    TurnDropped,
    TurnFailed,
    WorkAbandoned,
)
from scripts.reporting import wording
from scripts.reporting.branches import Row
from scripts.reporting.history import Job, Run

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
FATES = (
    "refused: duplicate", "refused: rule", "refused: build", "refused: correctness",
    "refused: cost", "lost", "rejected", "shelved", "withdrawn", "accepted", "open",
)  # fmt: skip


@dataclass(frozen=True)
class DeviceUse:
    """Device seconds by kernel and purpose."""

    table: tuple[tuple[str, tuple[float, ...], int], ...]
    """Kernel, seconds per purpose in the order of `PURPOSES`, number of jobs."""
    totals: tuple[float, ...]
    device_s: float
    wall_s: float
    n_jobs: int
    n_pairs: int


@dataclass(frozen=True)
class BudgetLine:
    """One limit and how much of it is gone, worded."""

    name: str
    spent: str
    reserved: str
    limit: str
    share: str


@dataclass(frozen=True)
class Control:
    """A recorded verdict on the harness."""

    record: Record
    event: HarnessChecked


@dataclass(frozen=True)
class Sentinel:
    """A/A pairs of one incumbent, tested both ways."""

    kernel: str
    incumbent: int
    n_pairs: int
    noise: Scale
    capital: float
    """The larger of the two ways."""
    limit: float = SENTINEL_LIMIT


@dataclass(frozen=True)
class Mishap:
    """Something that did not go as asked, or interrupted the run."""

    seq: int
    hours: float
    what: str
    detail: str


def device_use(run: Run, done: tuple[Job, ...]) -> DeviceUse:
    """Add up the device's time."""
    spent: defaultdict[tuple[str, Purpose], float] = defaultdict(float)
    n_jobs: Counter[str] = Counter()
    for job in done:
        spent[job.request.kernel, job.request.purpose] += job.reply.device_s
        n_jobs[job.request.kernel] += 1
    table = tuple((k, tuple(spent[k, p] for p in PURPOSES), n_jobs[k]) for k in run.kernels)
    totals = tuple(sum(values[i] for _, values, _ in table) for i in range(len(PURPOSES)))
    return DeviceUse(
        table,
        totals,
        run.state.spending.settled.device_s,
        run.state.spending.wall_s,
        len(done),
        run.state.ledger.candidate_pairs,
    )


def budgets(run: Run) -> tuple[BudgetLine, ...]:
    """Word what was spent and reserved of each limit."""
    spending, limits = run.state.spending, run.state.spending.limits
    spent, committed = spending.settled, spending.committed
    show = wording.duration
    return (
        _line("wall time", spending.wall_s, 0.0, limits.wall_s, show),
        _line(
            "device time", spent.device_s, committed.device_s - spent.device_s,
            limits.device_s, show,
        ),
        _line(
            "model calls", spent.model_calls, committed.model_calls - spent.model_calls,
            limits.model_calls, _whole,
        ),
        _line("tokens", spent.tokens, committed.tokens - spent.tokens, limits.tokens, _whole),
        _line("cost", spent.cost_usd, committed.cost_usd - spent.cost_usd, limits.cost_usd, _usd),
    )  # fmt: skip


def fates(found: dict[str, tuple[Row, ...]]) -> dict[str, Counter[str]]:
    """Count the search's candidates of each kernel by what has become of them."""
    return {k: Counter(r.fate for r in rows if r.node.is_search) for k, rows in found.items()}


def controls(run: Run) -> tuple[Control, ...]:
    """Return the recorded verdicts on the harness."""
    return tuple(Control(r, r.event) for r in run.records if isinstance(r.event, HarnessChecked))


def sentinels(run: Run, done: tuple[Job, ...]) -> tuple[Sentinel, ...]:
    """Test the A/A pairs of each incumbent again, as the run did after each job."""
    kept: dict[tuple[str, CandidateId], list[Pair]] = {}
    for job in done:
        if isinstance(job.reply, PairsMeasured) and job.request.purpose in ("noise", "sentinel"):
            key = job.request.kernel, job.request.incumbent
            kept.setdefault(key, []).extend(job.reply.pairs)
    found = []
    for kernel, incumbent in sorted(kept, key=lambda key: run.kernels.index(key[0])):
        pairs = tuple(kept[kernel, incumbent][-MAX_AA_PAIRS:])
        noise = scale(pairs)
        capital = max(sentinel(pairs, noise))
        found.append(Sentinel(kernel, incumbent, len(pairs), noise, capital))
    return tuple(found)


def mishaps(run: Run) -> tuple[Mishap, ...]:
    """Return failures, lost work and interruptions in the order of the log."""
    worded = ((record, _mishap(run, record)) for record in run.records)
    return tuple(Mishap(r.seq, run.hours(r), *words) for r, words in worded if words)


def _mishap(run: Run, record: Record) -> tuple[str, str] | None:
    """Word one record, if it is a mishap."""
    match record.event:
        case JobFailed(job=job, arm=arm, reason=reason):
            return f"device job {job} failed ({arm})", reason
        case TurnFailed(turn=turn, reason=reason):
            return f"turn {turn} gave no reply", reason
        case RequestLost(by=by, reason=reason):
            return f"work lost ({by})", f"request #{record.because[0]}: {reason}"
        case WorkAbandoned(work=work, reason=reason):
            return "work given up", f"{work}: {reason}"
        case LogRepaired(offset=offset, n_bytes=n):
            return "log repaired", f"{n} bytes cut off at {offset}, kept as a blob"
        case RunInterrupted(reason=reason):
            return "run interrupted", reason
        case RunResumed(toolchain=toolchain):
            same = toolchain == run.state.begun.toolchain
            return "run resumed", "same toolchain" if same else "the toolchain had changed"
        case TurnDropped(turn=turn, reason=reason) if not _is_nothing(run, record):
            return f"turn {turn} dropped", reason
        case _:
            return None


def _is_nothing(run: Run, record: Record) -> bool:
    """Whether a turn was dropped because its role had nothing to propose, which is no mishap."""
    replies = (run.records[seq].event for seq in record.because)
    return any(isinstance(r, RoleReplied) and r.outcome.type == "nothing" for r in replies)


def _line(
    name: str, spent: float, reserved: float, limit: float | None, show: Callable[[float], str]
) -> BudgetLine:
    worded = "no limit" if limit is None else show(limit)
    return BudgetLine(name, show(spent), show(reserved), worded, wording.percent(spent, limit or 0))


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _usd(value: float) -> str:
    return f"${value:,.2f}"
