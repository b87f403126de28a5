"""The device actor: the only one to touch the device."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from actors.lease import lease
from actors.messages import Answer, Command
from actors.screening import sha256
from decisions.samples import TimedRun, encode, pairs, rounds, schedule, spreads
from events.toolchain import toolchain_digest
from events.vocabulary import JobFailed, MeasurementRequested, PairsMeasured, ProgramsMeasured
from targets.protocol import Built, Measured, MeasureFailed, Target

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
        programs = self._built(job, command)
        if job.programs and not programs:
            reason = "none of its programs builds"
            return Answer(JobFailed(job=job.job, arm="device", reason=reason, device_s=0.0))
        with lease(self._lease_file) as token:
            if programs:
                return self._programs(job, command, programs, token)
            return self._pairs(job, command, token)

    def _built(self, job: MeasurementRequested, command: Command) -> dict[str, bytes]:
        """Build the job's programs before it takes the device: a compiler needs none."""
        built = {
            name: self._target.build(job.kernel, command.blobs[sha].decode())
            for name, sha in job.programs.items()
        }
        return {name: b.artifact for name, b in built.items() if isinstance(b, Built)}

    def _pairs(self, job: MeasurementRequested, command: Command, token: int) -> Answer:
        arms = (command.blobs[job.incumbent_artifact], command.blobs[job.candidate_artifact])
        began = self._clock()
        got = self._measure(job, arms, schedule(job.coins), group=2, checked=(True, True))
        took = self._clock() - began
        if isinstance(got, MeasureFailed):
            arm = "device" if got.arm is None else ARMS[got.arm]
            return Answer(JobFailed(job=job.job, arm=arm, reason=got.reason, device_s=took))
        runs = _timed(got)
        samples = encode(runs)
        event = PairsMeasured(
            job=job.job,
            pairs=pairs(runs),
            samples=sha256(samples),
            incumbent_margin=_margin(got, 0),
            candidate_margin=_margin(got, 1),
            device_s=took,
            token=token,
            toolchain=toolchain_digest(self._target.fingerprint()),
        )
        return Answer(event, (samples,))

    def _programs(
        self,
        job: MeasurementRequested,
        command: Command,
        programs: Mapping[str, bytes],
        token: int,
    ) -> Answer:
        arms = (command.blobs[job.incumbent_artifact], *programs.values())
        checked = (True, *(False for _ in programs))
        began = self._clock()
        got = self._measure(job, arms, rounds(len(arms)), group=len(arms), checked=checked)
        took = self._clock() - began
        if isinstance(got, MeasureFailed):
            return Answer(JobFailed(job=job.job, arm="device", reason=got.reason, device_s=took))
        runs = _timed(got)
        incumbent, *times = spreads(runs, len(arms))
        samples = encode(runs)
        event = ProgramsMeasured(
            job=job.job,
            incumbent_s=incumbent.median,
            times_s=dict(zip(programs, times, strict=True)),
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


def _timed(got: Measured) -> tuple[TimedRun, ...]:
    return tuple(TimedRun(run.arm, run.launches_s, run.probe_s) for run in got.runs)


def _margin(got: Measured, arm: int) -> float:
    margin = got.margins[arm]
    if margin is None:
        raise ValueError(f"arm {arm} was measured without a check of its outputs")
    return margin
