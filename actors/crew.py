"""The plain actors of a run in one process: what the local mailbox delivers to."""

from collections.abc import Callable, Mapping
from pathlib import Path

from actors.device import DeviceActor
from actors.guard import Guarded
from actors.keeper import KeeperActor
from actors.messages import Actor
from actors.roles import RoleActor, providers_for
from actors.screening import ScreeningWorker
from events.campaign import ROLES
from targets.protocol import Target


def crew(
    target: Target, lease_file: Path, environ: Mapping[str, str], clock: Callable[[], float]
) -> dict[str, Actor]:
    """Make one actor per address; ``clock`` is monotonic, in seconds."""
    providers = providers_for(target, environ)
    actors: dict[str, Actor] = {role: RoleActor(role, target, providers, clock) for role in ROLES}
    actors["screening"] = Guarded(ScreeningWorker(target, clock), target)
    actors["device"] = Guarded(DeviceActor(target, lease_file, clock), target)
    actors["keeper"] = Guarded(KeeperActor(target, clock), target)
    return actors
