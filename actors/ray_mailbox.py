"""Mailboxes on Ray: each actor in a process of its own, the screening pool on any node."""

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import ray
import structlog
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.crew import crew
from actors.mailboxes import MAX_REASON, Delivery, lost
from actors.messages import Actor, Answer, Command
from decisions.address import address
from events.campaign import ROLES, Campaign
from targets.registry import load_target

_log = structlog.get_logger()

LOCAL = (*ROLES, "keeper", "device")
"""Addresses with one actor, on the driver's node; the device is that node's."""
START_S = 120.0
"""Time that all actors have to start."""
PREFIX = "kernelwright-ray-"


class Shell:
    """What Ray runs: a plain actor, made where it lives; several threads may handle commands."""

    def __init__(self, make: Callable[[], Actor]) -> None:
        self._actor = make()

    def handle(self, command: Command) -> Answer:
        """Pass one message on."""
        return self._actor.handle(command)


class Maker(Protocol):
    """Makes a plain actor in whatever process it is called."""

    @property
    def address(self) -> str:
        """Where its actor takes commands."""
        ...

    @property
    def at_once(self) -> int:
        """Commands that its actor handles at a time."""
        ...

    def __call__(self) -> Actor:
        """Make the actor."""
        ...


@dataclass(frozen=True)
class CrewMaker:
    """Makes one of a run's actors."""

    address: str
    target: str
    preset: str
    lease_file: Path
    environ: Mapping[str, str] = field(repr=False)
    at_once: int

    def __call__(self) -> Actor:
        """Load the target and make the actor."""
        if self.address == "device":
            return self._make()
        _stand_back()
        return _Standby(self._make())

    def _make(self) -> Actor:
        target = load_target(self.target, self.preset)
        return crew(target, self.lease_file, self.environ, time.monotonic)[self.address]


class _Standby:
    """An actor whose work, in whatever thread, never takes a core from a measurement."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def handle(self, command: Command) -> Answer:
        """Pass one message on."""
        _stand_back()
        return self._actor.handle(command)


def _stand_back() -> None:
    """Let this thread, and what it starts, run when nothing else wants the core."""
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def crew_makers(
    campaign: Campaign, lease_file: Path, environ: Mapping[str, str]
) -> tuple[CrewMaker, ...]:
    """One maker per actor of a run; only roles get ``environ``, which holds their keys."""
    names = (*LOCAL, *("screening" for _ in range(campaign.screening.workers)))
    return tuple(
        CrewMaker(
            name,
            campaign.target,
            campaign.preset,
            lease_file,
            environ if name in ROLES else {},
            _at_once(campaign, name),
        )
        for name in names
    )


def _at_once(campaign: Campaign, name: str) -> int:
    """As many as a role's models may have, and one that asks none of them."""
    names = campaign.roles.of(name) if name in ROLES else ()
    called = (model for n in names if not (model := campaign.models[n]).is_free)
    return 1 + sum(model.at_once for model in called)


class RayMailbox:
    """Sends to Ray actors. Ray retries nothing: a lost command is the director's to send again."""

    def __init__(self, makers: Sequence[Maker]) -> None:
        """Start one actor per maker; makers with the same address form a pool."""
        self._makers = tuple(makers)
        self._actors: list[Any] = [_start(maker) for maker in self._makers]
        self._sent: dict[Any, tuple[int, Any, int]] = {}
        """Actor's index, its handle and the command's number, by the reference of the answer."""

    @classmethod
    def start(
        cls,
        campaign: Campaign,
        *,
        lease_file: Path,
        environ: Mapping[str, str],
        address: str | None,
    ) -> "RayMailbox":
        """Start Ray, or join the cluster at ``address``, and the actors of a run.

        Raises:
            ConnectionError: the actors do not start there: too few free processors, most likely.
        """
        try:
            connect(campaign.screening.workers, address)
            mailbox = cls(crew_makers(campaign, lease_file, environ))
            mailbox.wait_for_actors(START_S)
        except BaseException:  # Ctrl-C too, in the seconds that Ray takes
            _stop()
            raise
        return mailbox

    def wait_for_actors(self, timeout_s: float) -> None:
        """Wait until every actor is there; without one, its commands would wait in silence."""
        ready = [actor.__ray_ready__.remote() for actor in self._actors]
        _, missing = ray.wait(ready, num_returns=len(ready), timeout=timeout_s)
        if missing:
            raise ConnectionError(
                f"{len(missing)} of {len(ready)} actors did not start in {timeout_s:.0f} s; "
                "each needs a free processor of the cluster"
            )

    def send(self, command: Command) -> None:
        """Hand a command to the least busy actor of its address."""
        name = address(command.request)
        busy = [index for index, _, _ in self._sent.values()]
        pool = [i for i, maker in enumerate(self._makers) if maker.address == name]
        index = min(pool, key=lambda i: (busy.count(i), i))
        handle = self._actors[index]
        self._sent[handle.handle.remote(command)] = (index, handle, command.seq)

    def receive(self, timeout_s: float) -> Delivery | None:
        """Wait for the next answer; a dead actor's is `RequestLost`, and it gets a successor."""
        if not self._sent:
            time.sleep(timeout_s)
            return None
        done, _ = ray.wait(list(self._sent), num_returns=1, timeout=timeout_s)
        if not done:
            return None
        index, handle, seq = self._sent.pop(done[0])
        name = self._makers[index].address
        try:
            answer: Answer = ray.get(done[0])
        except RayError as error:
            if isinstance(error, RayActorError) and self._actors[index] is handle:
                self._actors[index] = _start(self._makers[index])
            _log.error("request lost", actor=name, request=seq, traceback=str(error))
            answer = lost(name, _brief(error))
        return Delivery(seq, name, answer)

    def close(self) -> None:
        """Stop the actors, and Ray if this mailbox started it."""
        _stop()


def _stop() -> None:
    ray.shutdown()
    shutil.rmtree(_folder(), ignore_errors=True)


def connect(workers: int, address: str | None) -> None:
    """Start Ray for this process, or join the cluster at ``address``."""
    if address is not None:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        return
    _sweep()
    # Actors wait far more than they compute, so each gets a logical processor.
    ray.init(
        num_cpus=workers + len(LOCAL),
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _temp_dir=str(_folder()),
    )


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"{PREFIX}{os.getpid()}"


def _sweep() -> None:
    """Remove what killed runs of this user left behind."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        pid = folder.name.removeprefix(PREFIX)
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _start(maker: Maker) -> Any:
    options: dict[str, Any] = {"max_restarts": 0, "max_task_retries": 0, "num_cpus": 1}
    if maker.at_once > 1:
        options["max_concurrency"] = maker.at_once
    if maker.address in LOCAL:
        here = ray.get_runtime_context().get_node_id()
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(here, soft=False)
    return ray.remote(**options)(Shell).remote(maker)


def _brief(error: RayError) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[-1][:MAX_REASON] if lines else ''}"
