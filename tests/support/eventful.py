"""A run of the fake target in which everything happens that can happen.

As a program it records such a run anew for `tests.support.pinned`.
"""

import gzip
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from actors.director import Director
from actors.local_mailbox import LocalMailbox
from actors.messages import Actor, Answer, Command
from actors.opening import first_event
from actors.roles import RoleActor
from decisions import plan
from decisions.address import DIRECTOR
from decisions.policy import IN_FORCE
from decisions.settling import NOTHING
from events.blobs import Blobs
from events.log import Entry, EventLog, read
from events.projections.state import work_id
from events.vocabulary import (
    LogRepaired,
    MeasurementRequested,
    RequestLost,
    RunResumed,
    Spend,
    TurnAssigned,
    TurnFailed,
)
from knowledge.carried import Carried, CarriedFact, CarriedProbe
from scripts.records.prune import prune
from tests.support.author import authored, authors, known
from tests.support.crash_disk import QUICK
from tests.support.documented import DocumentedTarget, Reader
from tests.support.fake_target import FakeTarget
from tests.support.operated import EVERYTHING, Operator
from tests.support.pinned import RECORDS
from tests.support.runs import SECRET, ticking

N_LOST = {"screening c9": 1, "screening c11": 2, "turn 4": 2, "job 8": 1}
"""How often work is lost with its actor; twice is once too often."""


UPDATED_AT_JOB = 60
"""By when the toolchain is replaced under the run."""
_READ = authored("implementer", "analyst", max_candidates=30)


ELSEWHERE = Carried(
    run="elsewhere",
    head="e" * 64,
    target="fake",
    toolchain={"compiler": "fake 0.9"},
    facts=(
        CarriedFact(
            fact=3,
            record=30,
            topic="document",
            kernel="alpha",
            claim="a source may have a time of its own",
            passage="Give each source its time.",
            probe=CarriedProbe(kernel="alpha", source="time 0.7\n", predicts="builds"),
        ),
    ),
)
"""What another run has found."""


class Frail:
    """An actor that is lost now and then; its third turn gives no reply."""

    def __init__(self, actor: Actor, lost: dict[str, int]) -> None:
        self._actor, self._lost = actor, lost

    def handle(self, command: Command) -> Answer:
        """Answer, fail or be lost."""
        work = work_id(command.request)
        if self._lost.get(work, 0):
            self._lost[work] -= 1
            return Answer(RequestLost(by="mailbox", reason="its node is gone"))
        if isinstance(command.request, TurnAssigned) and command.request.turn == 3:
            return Answer(TurnFailed(turn=3, reason="time limit", usage=NOTHING, spent=Spend()))
        return self._actor.handle(command)


def _frail(actors: Mapping[str, Actor], lost: dict[str, int]) -> "dict[str, Frail]":
    return {name: Frail(actor, lost) for name, actor in actors.items()}


def eventful(run: Path) -> None:
    """Run a campaign to its end: with losses, orders, a stop, a resumption, a repair, a prune."""
    target, blobs = DocumentedTarget(), Blobs(run, QUICK)
    lost = dict(N_LOST)
    actors = _frail(_actors(run, target), lost)
    with EventLog.open(run, ticking(), QUICK) as log:
        operator = Operator(*EVERYTHING)
        boss = Director(log, blobs, LocalMailbox(actors), orders=operator)
        operator.state = lambda: boss.state
        first = first_event(
            _READ,
            target,
            blobs,
            secret_seed=SECRET,
            versions={"python": "3"},
            prices=known(_READ),
            facts=(ELSEWHERE,),
        )
        boss.start(first)

        def is_measuring() -> bool:
            requests = boss.state.pending.values()
            return boss.state.seq > 250 and any(
                isinstance(request, MeasurementRequested) for request in requests
            )

        boss.run(stop=is_measuring)
        torn = LogRepaired(offset=7, n_bytes=4, sha=blobs.put(b"torn"))
        log.append([Entry(torn, DIRECTOR)])
        newer = DocumentedTarget(version="1.1")
        actors |= _frail(_actors(run, newer), lost)
        mark = RunResumed(
            versions={"python": "3"}, rules=dict(IN_FORCE), toolchain=newer.fingerprint()
        )
        boss = Director(log, blobs, LocalMailbox(actors), orders=operator)
        boss.resume(list(read(run)), mark)

        def never() -> bool:
            newer.version = "1.1" if boss.state.ledger.jobs < UPDATED_AT_JOB else "1.2"
            return False

        boss.run(stop=never)
        prune(run, log, ["diagnostics"])


def _actors(run: Path, target: FakeTarget) -> dict[str, Actor]:
    actors = authors(run, target, "implementer")
    actors["analyst"] = RoleActor("analyst", target, lambda _: Reader(), lambda: 0.0)
    return actors


if __name__ == "__main__":
    plan.DIGEST_EVERY = 100
    with tempfile.TemporaryDirectory() as folder:
        eventful(Path(folder))
        lines = (json.dumps(record.as_json()) + "\n" for record in read(Path(folder)))
        RECORDS.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
