"""A profile as some thirty lines of text, for prompts and terminals."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby

from targets.profiler.breakdown import Gap, Group, Profile
from targets.profiler.schedule import Operation
from targets.profiler.waits import Wait

N_GROUPS = 7
N_STRETCHES = 6
N_GAPS = 4
N_TRANSFERS = 3


def text(profile: Profile) -> str:
    """Return the profile in words, its makespan in the first line."""
    return "\n".join(_lines(profile)) + "\n"


def _lines(profile: Profile) -> Iterator[str]:
    span = profile.makespan
    yield f"makespan {span:,} cycles, {len(profile.operations):,} operations: {profile.title}"
    yield "busy: " + ", ".join(
        f"{e.name} {_share(e.busy, span)} ({e.busy:,})" for e in profile.engines
    )
    yield (
        f"DMA and compute overlap {_share(profile.both, span)} ({profile.both:,}); "
        f"neither is busy {_share(profile.neither, span)} ({profile.neither:,})"
    )
    yield f"critical path: {len(profile.path):,} operations, {profile.waiting:,} cycles of waiting"
    yield "most cycles on it (times, all cycles):"
    critical = [g for g in profile.groups if g.critical]
    for group in critical[:N_GROUPS]:
        yield f"  {group.critical:>11,} {_share(group.critical, span):>6}  {_group(group)}"
    yield "longest stretches of it:"
    yield from _stretches(profile)
    hidden = sorted((g for g in profile.groups if not g.critical), key=lambda g: -g.cycles)
    if hidden:
        names = ", ".join(f"{g.name} {g.cycles:,}" for g in hidden[:N_GROUPS])
        yield f"never on it: {names}"
    yield from _transfers(profile)
    if profile.gaps:
        yield "longest idle stretches:"
        for gap in profile.gaps[:N_GAPS]:
            yield f"  {gap.engine} {gap.cycles:,} from {gap.begin:,}: {_why(gap)}"
    for memory in profile.memories:
        yield f"{memory.name}: at most {memory.peak:,} bytes alive, first at cycle {memory.at:,}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.1f} %"


def _group(group: Group) -> str:
    return f"{group.name} {group.kind} ({group.n:,} x, {group.cycles:,})"


def _stretches(profile: Profile) -> Iterator[str]:
    """Runs of the critical path on one engine, the longest ones in the order of time."""

    def engine(wait: Wait) -> str:
        return "+".join(profile.operations[wait.operation].contexts)

    runs = [list(run) for _, run in groupby(profile.path, key=engine)]
    working = [run for run in runs if _cycles(profile, run)]
    longest = sorted(working, key=lambda run: -_cycles(profile, run))[:N_STRETCHES]
    for run in sorted(longest, key=lambda run: profile.operations[run[0].operation].begin):
        first, last = (profile.operations[run[i].operation] for i in (0, -1))
        names = dict.fromkeys(profile.operations[wait.operation].name for wait in run)
        some = " ".join(list(names)[:3]) + (" ..." if len(names) > 3 else "")
        yield (
            f"  {first.begin:,} to {last.end:,} {engine(run[0])}: {len(run):,} operations, {some}"
            + (f", after {run[0].gap:,} idle" if run[0].gap else "")
        )


def _cycles(profile: Profile, run: list[Wait]) -> int:
    return sum(profile.operations[wait.operation].cycles for wait in run)


def _transfers(profile: Profile) -> Iterator[str]:
    found = profile.transfers
    if not found:
        return
    n_bytes, cycles = _total(found)
    yield (
        f"transfers: {len(found):,} of {n_bytes:,} bytes, {n_bytes / cycles:,.1f} bytes a cycle "
        f"while they run, {n_bytes / profile.makespan:,.1f} over the makespan"
    )
    groups: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for transfer in found:
        groups[transfer.name, transfer.kind].append(transfer)
    for (name, kind), some in sorted(groups.items(), key=lambda g: -_total(g[1])[1])[:N_TRANSFERS]:
        n_bytes, cycles = _total(some)
        yield (
            f"  {name} {kind} ({len(some):,} x): {n_bytes:,} bytes in {cycles:,} cycles, "
            f"{n_bytes / cycles:,.1f} a cycle"
        )


def _total(transfers: Iterable[Operation]) -> tuple[int, int]:
    """Bytes and cycles of transfers."""
    found = list(transfers)
    return sum(t.n_bytes or 0 for t in found), sum(t.cycles for t in found)


def _why(gap: Gap) -> str:
    if gap.before is None:
        return "nothing more to do"
    return f"before {gap.before.name}, which waits for {_waited(gap.after, gap.reason)}"


def _waited(after: Operation | None, reason: str | None) -> str:
    if after is None:
        return "the launch"
    ends = f"until {after.end:,}"
    match reason:
        case "data":
            return f"its input {after.name} {ends}"
        case "buffer":
            return f"the buffer that {after.name} uses {ends}"
        case "engine":
            return f"the engine that runs {after.name} {ends}"
        case _:
            return f"the end of {after.name} at {after.end:,}"
