"""The device actor: the only one to touch the device."""

import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from actors.lease import lease
from actors.messages import Answer, Command
from actors.screening import sha256
from events.vocabulary import BoundMeasured, JobFailed, MeasurementRequested, Pair, PairsMeasured
from knowledge.claims import toolchain_digest
from targets.protocol import BuildFailed, Measured, MeasureFailed, Run, Target

BOUND_ROUNDS = 7
"""Times that a bound job goes round its arms; the first round is a warm-up."""
MIN_LIMIT_S = 60.0
LIMIT_FACTOR = 10.0
"""A job is killed after so many times what it reserved, and never before `MIN_LIMIT_S`."""
ARMS: tuple[Literal["incumbent", "candidate"], ...] = ("incumbent", "candidate")


class DeviceActor:
    """Runs device jobs one at a time, each under the lease of the device."""

    def __init__(self, target: Target, lease_file: Path, clock: Callable[[], float]) -> None:
        self._target, self._lease_file, self._clock = target, lease_file, clock

    def handle(self, command: Command) -> Answer:
        """Run one job; a job that gives no reading is an answer too."""
        job = command.request
        if not isinstance(job, MeasurementRequested):
            raise TypeError(f"the device takes no {job.kind}")
        with lease(self._lease_file) as token:
            if job.purpose == "bound":
                return self._bound(job, command, token)
            return self._pairs(job, command, token)

    def _pairs(self, job: MeasurementRequested, command: Command, token: int) -> Answer:
        arms = (command.blobs[job.incumbent_artifact], command.blobs[job.candidate_artifact])
        schedule = [arm for first in (False, *job.coins) for arm in ((1, 0) if first else (0, 1))]
        began = self._clock()
        got = self._measure(job, arms, schedule, group=2, checked=(True, True))
        took = self._clock() - began
        if isinstance(got, MeasureFailed):
            arm = "device" if got.arm is None else ARMS[got.arm]
            return Answer(JobFailed(job=job.job, arm=arm, reason=got.reason, device_s=took))
        samples = _samples(got)
        event = PairsMeasured(
            job=job.job,
            pairs=tuple(_pair(*two) for two in _in_twos(got.runs[2:])),
            samples=sha256(samples),
            incumbent_margin=got.margins[0] or 0.0,
            candidate_margin=got.margins[1] or 0.0,
            device_s=took,
            token=token,
            toolchain=toolchain_digest(self._target.fingerprint()),
        )
        return Answer(event, (samples,))

    def _bound(self, job: MeasurementRequested, command: Command, token: int) -> Answer:
        began = self._clock()
        built = {
            name: self._target.build(job.kernel, command.blobs[sha].decode())
            for name, sha in job.bounds.items()
        }
        names = [name for name, b in built.items() if not isinstance(b, BuildFailed)]
        arms = [command.blobs[job.incumbent_artifact]]
        arms += [b.artifact for b in built.values() if not isinstance(b, BuildFailed)]
        checked = (True, *(False for _ in names))
        schedule = list(range(len(arms))) * BOUND_ROUNDS
        got = self._measure(job, arms, schedule, group=len(arms), checked=checked)
        took = self._clock() - began
        if isinstance(got, MeasureFailed) or not names:
            reason = got.reason if isinstance(got, MeasureFailed) else "no load-only variant builds"
            return Answer(JobFailed(job=job.job, arm="device", reason=reason, device_s=took))
        times: dict[int, list[float]] = {}
        for run in got.runs[len(arms) :]:
            times.setdefault(run.arm, []).append(run_s(run))
        samples = _samples(got)
        event = BoundMeasured(
            job=job.job,
            incumbent_s=statistics.median(times[0]),
            bounds_s={name: statistics.median(times[i + 1]) for i, name in enumerate(names)},
            samples=sha256(samples),
            device_s=took,
            token=token,
            toolchain=toolchain_digest(self._target.fingerprint()),
        )
        return Answer(event, (samples,))

    def _measure(
        self,
        job: MeasurementRequested,
        arms: Sequence[bytes],
        schedule: Sequence[int],
        *,
        group: int,
        checked: Sequence[bool],
    ) -> Measured | MeasureFailed:
        return self._target.measure(
            job.kernel,
            arms,
            schedule,
            group=group,
            launches=job.launches,
            checked=checked,
            seed=job.inputs_seed,
            limit_s=max(MIN_LIMIT_S, LIMIT_FACTOR * job.reserved.device_s),
        )


def run_s(run: Run) -> float:
    """Time of one run: the median of its launches, seconds per launch."""
    return statistics.median(run.launches_s)


def _in_twos(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    return list(zip(runs[::2], runs[1::2], strict=True))


def _pair(first: Run, second: Run) -> Pair:
    incumbent, candidate = (first, second) if first.arm == 0 else (second, first)
    return Pair(
        candidate_first=first.arm == 1,
        incumbent_s=run_s(incumbent),
        candidate_s=run_s(candidate),
        probe_s=first.probe_s,
    )


def _samples(got: Measured) -> bytes:
    """Every launch of every run, in order, as JSON."""
    runs = [
        {"arm": run.arm, "launches_s": run.launches_s, "probe_s": run.probe_s} for run in got.runs
    ]
    return json.dumps(runs).encode()
