"""Start a campaign from its file, or go on with a run folder."""

import argparse
import io
import os
import platform
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import structlog

from actors.crew import crew
from actors.director import POLL_S, Director
from actors.inbox import Inbox
from actors.local_mailbox import LocalMailbox
from actors.mailboxes import Mailbox
from actors.opening import first_event
from actors.virtual_mailbox import POLL_S as VIRTUAL_POLL_S
from actors.virtual_mailbox import VirtualMailbox
from decisions.address import DIRECTOR
from decisions.policy import IN_FORCE
from events.blobs import Blobs
from events.campaign import Campaign
from events.log import Entry, EventLog, holds_log, read, read_head
from events.projections.state import State, replay
from events.pruned import KnownBlobs
from events.vocabulary import Record, RunResumed, RunStarted
from scripts import models, report
from scripts.campaign_file import load
from scripts.carrying import read_facts
from scripts.documents import read_documents
from scripts.files import open_appending
from scripts.main import INTERRUPTED
from scripts.progress import view
from scripts.runs import (
    UNTRUSTED,
    UsageError,
    lease_file,
    new_folder,
    recorded,
    result_lines,
    without_traceback,
)
from sim.clock import VirtualClock
from targets.protocol import Target, VirtualTarget
from targets.registry import load_target

PACKAGES = (
    "kernelwright", "jinja2", "litellm", "msgpack", "numpy", "pydantic", "ray", "scipy",
)  # fmt: skip
QUIET_RAY: Mapping[str, str] = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""For Ray, before it is imported: no telemetry, no warning about devices that it does not know."""
CONNECT_S = 10.0
REPORT = "report.html"


@dataclass(frozen=True)
class Options:
    """How to run, as opposed to what."""

    local: bool
    ray_address: str | None
    quiet: bool
    as_json: bool

    @property
    def people(self) -> TextIO:
        """Where text for people goes."""
        return sys.stderr if self.as_json else sys.stdout

    def say(self, text: str) -> None:
        """Tell a person something that a quiet run leaves out."""
        if not self.quiet:
            print(text, file=self.people, flush=True)


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Run or resume; return 0 when finished, 3 when a control failed, 130 when stopped."""
    args = _parser().parse_args(argv)
    options = Options(args.local, args.ray_address, args.quiet, args.as_json)
    run, campaign, records = _wanted(args.what, args.out)
    before = replay(records)
    if run is not None and before.finished:
        is_reported = (run / REPORT).exists()
        return _conclude(before, run, read_head(run), options, is_reported=is_reported)
    models.check(campaign, os.environ)
    prices = {} if before.start else models.priced(campaign)
    facts = () if before.start else read_facts(args.what, campaign)
    target = load_target(campaign.target, campaign.preset)
    toolchain = target.fingerprint()
    if before.start and before.toolchain != toolchain:
        keys = before.toolchain | toolchain
        changed = [k for k in keys if before.toolchain.get(k) != toolchain.get(k)]
        options.say(f"the toolchain has changed since the run last stopped: {', '.join(changed)}")
    documents = () if before.start else read_documents(args.what, campaign.knowledge.documents)
    run = run or new_folder(campaign.name, Path("runs"))
    options.say(f"run folder: {run}")
    if before.paused:
        options.say(f"the run is paused until `kernelwright resume {run}`")
    clock = None
    if isinstance(target, VirtualTarget):
        began_ns = records[0].time_ns if records else time.time_ns()
        clock = VirtualClock(began_ns, ((before.spending.last_ns or began_ns) - began_ns) / 1e9)
        target.clock = clock
    first = partial(
        first_event,
        campaign,
        target,
        secret_seed=secrets.token_hex(32),
        versions=_versions(),
        prices=prices,
        documents=documents,
        facts=facts,
    )
    state, head = _drive(run, campaign, first, target, options, clock)
    return _conclude(state, run, head, options, is_reported=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelwright run", description=__doc__)
    parser.add_argument(
        "what", type=Path, metavar="CAMPAIGN.toml|RUN", help="campaign file, or run folder"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder (default: runs/NAME-N)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--local", action="store_true", help="everything in this process, without Ray"
    )
    where.add_argument("--ray-address", metavar="A", help="join this Ray cluster, e.g. auto")
    parser.add_argument("--quiet", action="store_true", help="print the result only")
    parser.add_argument(
        "--json", action="store_true", dest="as_json", help="events as JSON lines on stdout"
    )
    return parser


# ---- what to run ---------------------------------------------------------------------------


def _wanted(what: Path, out: Path | None) -> tuple[Path | None, Campaign, list[Record]]:
    """Return the run folder if it is known, the campaign, and the records that there are."""
    if what.is_dir():
        if out is not None:
            raise UsageError("--out goes with a campaign file; a run folder is its own")
        records, _ = recorded(what)
        return what, replay(records).begun.campaign, records
    campaign = load(what)
    if out is None or not holds_log(out):
        if out is not None and out.exists() and not out.is_dir():
            raise UsageError(f"--out {out} is not a folder")
        return out, campaign, []
    records = list(read(out))
    started = _campaign(records)
    if started is not None:
        _check_same(started, campaign, what, out)
    return out, campaign, records


def _campaign(records: Sequence[Record]) -> Campaign | None:
    return next((r.event.campaign for r in records if isinstance(r.event, RunStarted)), None)


def _check_same(started: Campaign, asked: Campaign, file: Path, run: Path) -> None:
    difference = _difference(started.model_dump(), asked.model_dump())
    if difference is not None:
        key, was, now = difference
        raise UsageError(
            f"{run} was started with another campaign: {key!r} is {was!r} there and {now!r} in "
            f"{file}; choose another --out, or go on with `kernelwright run {run}`"
        )


def _difference(was: Any, now: Any, key: str = "") -> tuple[str, Any, Any] | None:
    """The first key, in the order of the campaign, whose values differ."""
    if not (isinstance(was, dict) and isinstance(now, dict)):
        return None if was == now else (key, was, now)
    for name in was:
        inner = f"{key}.{name}" if key else name
        if found := _difference(was[name], now[name], inner):
            return found
    return None


# ---- running -------------------------------------------------------------------------------


STOPPING = "stopping at the next safe point; once more kills at once"


class Stop:
    """Ctrl-C and SIGTERM: the first one asks to stop at a safe point, the second one kills."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Stop":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.asked = True
        if not sys.stderr.isatty():
            # Not print: the signal may have come in the middle of one. A terminal is told by
            # the view, which would draw over this.
            os.write(2, f"\n{STOPPING}\n".encode())


def _drive(
    run: Path,
    campaign: Campaign,
    first: Callable[[Blobs], RunStarted],
    target: Target,
    options: Options,
    clock: VirtualClock | None,
) -> tuple[State, str]:
    """Take a run from where it is to its end, or to a stop; return the state and the log's head.

    On a virtual clock it runs in this process, and no time is waited.
    """
    with ExitStack() as stack:
        log = stack.enter_context(EventLog.open(run, clock.time_ns if clock else time.time_ns))
        if log.repaired:
            log.append([Entry(log.repaired, DIRECTOR)])
        records = list(read(run))
        _log_failures(stack, run)
        mailbox = _mailbox(stack, campaign, target, options, clock)
        screen = view(quiet=options.quiet, as_json=options.as_json)
        stack.callback(screen.close)
        stop = stack.enter_context(Stop())
        blobs = KnownBlobs.of(run, records)
        blobs.fence(log.check)
        director = Director(log, blobs, mailbox, watch=screen.watch, orders=Inbox(run))
        if _campaign(records) is None:
            director.start(first(blobs))
        else:
            mark = RunResumed(
                versions=_versions(), rules=dict(IN_FORCE), toolchain=target.fingerprint()
            )
            director.resume(records, mark)

        def stopping() -> bool:
            screen.tick()
            if stop.asked and sys.stderr.isatty():
                screen.say(STOPPING)
            if clock and director.state.paused:
                time.sleep(POLL_S)  # for orders come in real time
            return stop.asked

        poll_s = VIRTUAL_POLL_S if clock else POLL_S
        return director.run(stop=stopping, poll_s=poll_s), log.head


def _log_failures(stack: ExitStack, run: Path) -> None:
    """Let tracebacks of actors go to the run folder, as JSON lines; they are not the record."""
    file = stack.enter_context(open_appending(run / "actors.log"))
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(file),
    )
    stack.callback(structlog.reset_defaults)  # before the file is closed


def _keys(campaign: Campaign) -> dict[str, str]:
    """The API keys that the campaign's models need, by the names of their variables."""
    names = {model.api_key_env for model in campaign.answering().values()}
    return {name: os.environ[name] for name in names if name is not None and name in os.environ}


def _mailbox(
    stack: ExitStack,
    campaign: Campaign,
    target: Target,
    options: Options,
    clock: VirtualClock | None,
) -> Mailbox:
    lease, environ = lease_file(campaign.target), _keys(campaign)
    lease.parent.mkdir(mode=0o700, exist_ok=True)  # targets keep what they build there as well
    if clock:
        if options.ray_address:
            reason = f"target {campaign.target!r} has a virtual clock, so its run takes one process"
            raise UsageError(f"{reason}; leave --ray-address out")
        actors = crew(target, lease, environ, clock)
        return VirtualMailbox(actors, clock, workers=campaign.screening.workers)
    if options.local:
        return LocalMailbox(crew(target, lease, environ, time.monotonic))
    if options.ray_address:
        _check_reachable(options.ray_address)
    options.say("starting Ray, which takes some seconds (--local does without) ...")
    for name, value in QUIET_RAY.items():
        os.environ.setdefault(name, value)
    from actors.ray_mailbox import RayMailbox

    try:
        mailbox = RayMailbox.start(
            campaign, lease_file=lease, environ=environ, address=options.ray_address
        )
    except ConnectionError as e:
        raise UsageError(f"no Ray cluster at {options.ray_address!r}: {e}") from e
    stack.callback(mailbox.close)
    return mailbox


def _check_reachable(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return  # a word such as auto
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except (OSError, OverflowError) as e:
        raise UsageError(f"no Ray cluster at {address!r} ({e}); start one, or leave it out") from e


def _versions() -> dict[str, str]:
    installed = {name: metadata.version(name) for name in PACKAGES}
    return {**installed, "python": platform.python_version()}


# ---- the end -------------------------------------------------------------------------------


def _conclude(state: State, run: Path, head: str, options: Options, *, is_reported: bool) -> int:
    """Print the result, write the report of a finished run, and return the exit status."""
    for line in result_lines(state, run, head):
        print(line, file=options.people)
    if state.finished is None:
        how = " --local" if options.local else ""
        print(f"stopped; go on with: kernelwright run {run}{how}", file=options.people)
        return INTERRUPTED
    if is_reported or _report(run):
        print(f"report written: {run / REPORT}", file=options.people)
    return 0 if state.finished.geomean is not None else UNTRUSTED


def _report(run: Path) -> bool:
    """Write the report; False if it could not be written, which it has said."""
    with redirect_stdout(io.StringIO()):
        return report.main([str(run)]) == 0
