"""``kernelwright audit --rebuild``: what was accepted is built and checked again, here and now."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple

from actors.lease import lease
from actors.screening import reports
from decisions.audit import Finding, Sort
from decisions.examination import incorrect
from decisions.screening import fixture_seeds
from events.blobs import Blobs
from events.errors import LogError
from events.projections.state import State
from events.projections.tree import Node
from events.toolchain import toolchain_digest
from events.vocabulary import CandidateExamined, FixtureReport, Record
from scripts.runs import lease_file
from targets.protocol import BuildFailed, Built, CostModel, Target


@dataclass(frozen=True)
class Rebuilt:
    """What became of one accepted version, or baseline, under the toolchain at hand."""

    candidate: int
    kernel: str
    seq: int
    """Record of its proposal."""
    is_same_toolchain: bool
    """Whether the toolchain at hand is the one that built it then."""
    is_same_artifact: bool = False
    recorded_fixtures: tuple[FixtureReport, ...] = ()
    """As found now."""
    fresh_fixtures: tuple[FixtureReport, ...] = ()
    cycles: int | None = None
    """Static cost, where the target has a cost model."""
    problem: str = ""
    """Why it is not what was accepted; "" if it is."""
    sort: Sort | None = None
    """Of the problem: another toolchain contradicts nothing that is recorded."""

    def __str__(self) -> str:
        by = "the recorded toolchain" if self.is_same_toolchain else "ANOTHER TOOLCHAIN"
        artifact = "the same artifact" if self.is_same_artifact else "another artifact"
        fixtures = (*self.recorded_fixtures, *self.fresh_fixtures)
        worst = max((fixture.margin or 0.0 for fixture in fixtures), default=0.0)
        correct = f"{artifact}, correct on {len(fixtures)} fixtures, worst error {worst:.3g}"
        outcome = self.problem or f"{correct} of the tolerance"
        return f"c{self.candidate} of {self.kernel}, built again by {by}: {outcome}"

    def findings(self) -> Iterator[Finding]:
        """What audit makes of it."""
        if self.sort is not None:
            problem = f"built again: {self.problem}"
            yield Finding(self.seq, "candidate_proposed", problem, self.sort)


class Bench(NamedTuple):
    """Where the versions of a run are built and checked."""

    state: State
    """Of the whole run."""
    examined: Mapping[int, CandidateExamined]
    """How each candidate was screened."""
    blobs: Blobs
    target: Target
    toolchain: str
    """Digest of the target's fingerprint."""
    fresh: tuple[int, ...]
    """Seeds of fixtures besides the recorded ones."""

    @classmethod
    def of(cls, records: Sequence[Record], state: State, blobs: Blobs, target: Target) -> "Bench":
        """A bench for a run in this state, with as many fresh fixtures as a screening has.

        Raises:
            TargetError: the target cannot be used here.
        """
        toolchain = toolchain_digest(target.fingerprint())
        fresh = tuple(secrets.randbits(62) for _ in fixture_seeds(state))
        events = (record.event for record in records)
        examined = {e.candidate: e for e in events if isinstance(e, CandidateExamined)}
        return cls(state, examined, blobs, target, toolchain, fresh)

    def rebuild(self) -> Iterator[Rebuilt]:
        """Build and check the baseline and every accepted version of each kernel.

        Where the machine is the device it is leased meanwhile, so that no reading is disturbed.
        """
        for branch in self.state.tree.branches.values():
            for candidate in (branch.baseline or 0, *branch.accepts):
                examined = self.examined.get(candidate)
                if examined is not None and examined.artifact is not None:
                    host = self.target.shares_host
                    with lease(lease_file(self.target.name)) if host else nullcontext():
                        yield self._rebuilt(self.state.tree.nodes[candidate], examined)

    def _rebuilt(self, node: Node, recorded: CandidateExamined) -> Rebuilt:
        is_same = recorded.toolchain == self.toolchain
        sort: Sort = "unsupported" if is_same else "not_derivable"
        about = Rebuilt(node.candidate, node.kernel, node.proposed, is_same)
        try:
            built = self.target.build(node.kernel, self.blobs.text(node.source))
        except LogError as error:
            problem = f"its source cannot be read: {error}"
            return replace(about, problem=problem, sort="not_derivable")
        if isinstance(built, BuildFailed):
            return replace(about, problem=f"it does not build: {built.signature}", sort=sort)
        about = replace(
            about,
            is_same_artifact=sha256(built.artifact).hexdigest() == recorded.artifact,
            recorded_fixtures=self._checked(node, built, fixture_seeds(self.state)),
            fresh_fixtures=self._checked(node, built, self.fresh),
            cycles=self._cycles(node, built),
        )
        problem = _problem(about, recorded)
        return replace(about, problem=problem, sort=sort if problem else None)

    def _cycles(self, node: Node, built: Built) -> int | None:
        if not isinstance(self.target, CostModel):
            return None
        return self.target.cost(node.kernel, built.artifact).cycles

    def _checked(self, node: Node, built: Built, seeds: Sequence[int]) -> tuple[FixtureReport, ...]:
        return reports(self.target.check(node.kernel, built.artifact, seeds))


def _problem(about: Rebuilt, recorded: CandidateExamined) -> str:
    if wrong := incorrect((*about.recorded_fixtures, *about.fresh_fixtures)):
        return wrong
    if about.is_same_toolchain and not about.is_same_artifact:
        return "its artifact is not the recorded one"
    if about.is_same_toolchain and about.recorded_fixtures != recorded.fixtures:
        return "its errors on the recorded fixtures are not the recorded ones"
    recorded_cycles = recorded.cost.cycles if recorded.cost else None
    if about.is_same_toolchain and about.cycles != recorded_cycles:
        return f"its static cost is {about.cycles}, not the recorded {recorded_cycles}"
    return ""
