"""Check what campaigns need on this machine, and say what to do about the rest."""

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from events.campaign import ROLES, Campaign
from scripts.campaign_file import CampaignError, load
from scripts.carrying import read_facts
from scripts.documents import read_documents
from scripts.models import lacking, priced
from scripts.runs import FAILED, UsageError, lease_file, without_traceback
from targets.protocol import TargetError
from targets.registry import load_target

NEEDED = (
    "httpx",
    "jinja2",
    "lark",
    "litellm",
    "msgpack",
    "numpy",
    "pydantic",
    "rapidfuzz",
    "ray",
    "rich",
    "scipy",
    "simpy",
    "structlog",
    "zstandard",
)
MIN_PYTHON = (3, 11)
MIN_CORES = 2
MIN_MEMORY_GIB = 4.0
MIN_DISK_GIB = 1.0


class Line(NamedTuple):
    """One thing that was looked at."""

    name: str
    ok: bool
    text: str
    """What was found, or what to do."""
    needed: bool = True
    """Whether no campaign runs without it."""


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Print what was found; return 0 if a campaign can run here, else 1."""
    parser = argparse.ArgumentParser(prog="kernelwright doctor", description=__doc__)
    parser.add_argument(
        "campaign",
        type=Path,
        nargs="?",
        metavar="CAMPAIGN.toml",
        help="look at all that it needs as well",
    )
    args = parser.parse_args(argv)
    lines = [check() for check in CHECKS]
    if args.campaign is not None:
        lines += _campaign(args.campaign)
    for line in lines:
        word = "ok" if line.ok else "missing" if line.needed else "note"
        print(f"{word:<8} {line.name:<10} {line.text}")
    can_run = all(line.ok for line in lines if line.needed)
    print("a campaign can run here" if can_run else "no campaign can run here yet")
    return 0 if can_run else FAILED


def _python() -> Line:
    ok = sys.version_info >= MIN_PYTHON
    advice = "" if ok else f"; install {'.'.join(map(str, MIN_PYTHON))} or newer"
    return Line("python", ok, platform.python_version() + advice)


def _packages() -> Line:
    absent = [name for name in NEEDED if find_spec(name) is None]
    text = f"install {', '.join(absent)}" if absent else f"all {len(NEEDED)} are installed"
    return Line("packages", not absent, text)


def _system() -> Line:
    ok = platform.system() == "Linux"
    text = f"{platform.system()} {platform.release()} on {platform.machine()}"
    advice = "" if ok else "; campaigns need Linux, replay and report work here"
    return Line("system", ok, text + advice)


def _asked(name: str, ask: Callable[[], str]) -> Line:
    try:
        return Line(name, True, ask())
    except (TargetError, CampaignError, UsageError) as e:
        return Line(name, False, str(e))


def _compiler() -> Line:
    from targets.sandbox.compiler import compiler

    return _asked("compiler", lambda: f"{' '.join(compiler().command)} ({compiler().version})")


def _sandbox() -> Line:
    from targets.sandbox.runner import isolation

    return _asked("sandbox", isolation)


def _cores() -> Line:
    cores = os.cpu_count() or 1
    ok = cores >= MIN_CORES
    advice = "" if ok else "; timings share the one core with the search, so expect noise"
    return Line("cores", ok, f"{cores}{advice}", needed=False)


def _memory() -> Line:
    try:
        gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (AttributeError, ValueError, OSError):
        return Line("memory", False, "cannot be told here", needed=False)
    ok = gib >= MIN_MEMORY_GIB
    advice = "" if ok else f"; with less than {MIN_MEMORY_GIB:g} GiB use preset 'small' and --local"
    return Line("memory", ok, f"{gib:.1f} GiB{advice}", needed=False)


def _rngd_compiler() -> Line:
    from targets.rngd.environment import COMPILER, LANGUAGE, environment, environments

    def versions() -> str:
        environment()
        return "; ".join(
            f"{LANGUAGE} {each.version}, {COMPILER} {each.versions[COMPILER]}"
            + ("" if each.evaluates else " (tells no costs)")
            for each in environments()
        )

    return _asked("rngd", versions)._replace(needed=False)


def _rngd_runtime() -> Line:
    from targets.rngd.environment import INSTALL_RUNTIME, RUNTIME, VARIABLE, runtime

    found = _asked(
        "rngd check", lambda: f"{RUNTIME} {run.versions[RUNTIME]}" if (run := runtime()) else ""
    )
    if found.text:
        return found._replace(needed=False)
    missing = f"{RUNTIME} is missing, so no kernel of RNGD can be accepted: `{INSTALL_RUNTIME}`"
    return Line(
        "rngd check", False, f"{missing}, or name its environment in {VARIABLE}", needed=False
    )


def _rngd_chip() -> Line:
    from targets.rngd.device import chip, description
    from targets.rngd.environment import evaluator

    def none() -> str:
        return f"none; {description(evaluator()).removeprefix('none: ')}"

    found = chip()
    if found:
        return Line(
            "rngd chip", True, f"{found} (not used: jobs run on the simulated device)", needed=False
        )
    return _asked("rngd chip", none)._replace(ok=False, needed=False)


def _rngd_opt() -> Line:
    from targets.rngd.opt.arena import PROGRAM
    from targets.rngd.opt.toolchain import LIBRARY, PLUGIN, VERSION, toolchain

    def versions() -> str:
        project = toolchain().project
        service = "" if shutil.which(PROGRAM) else f"; {PROGRAM} is missing, so nothing is timed"
        return f"{PLUGIN} {VERSION}, project with {LIBRARY} {VERSION} in {project}{service}"

    return _asked("rngd opt", versions)._replace(needed=False)


def _disk() -> Line:
    gib = shutil.disk_usage(Path.cwd()).free / 2**30
    ok = gib >= MIN_DISK_GIB
    advice = "" if ok else f"; free at least {MIN_DISK_GIB:g} GiB, or give `run --out` another disk"
    return Line("disk", ok, f"{gib:.1f} GiB free in the working folder{advice}")


def _lease() -> Line:
    """Whether another campaign holds the processor now; asking does not take it."""
    if platform.system() != "Linux":
        return Line("lease", True, "free", needed=False)
    import fcntl

    path = lease_file("cpu")
    if not path.exists():
        return Line("lease", True, "free; never held", needed=False)
    with path.open(encoding="ascii", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            words = file.read().split()
            owner = f"process {words[1]}" if len(words) > 1 else "a process"
            text = f"held by {owner}: campaigns on one machine take turns at its processor"
            return Line("lease", False, text, needed=False)
    return Line("lease", True, "free", needed=False)


def _campaign(path: Path) -> Iterator[Line]:
    """What `run` looks at before it starts, by the same checks."""
    campaign = load(path)

    def target() -> str:
        load_target(campaign.target, campaign.preset).fingerprint()
        return f"{campaign.target}, preset {campaign.preset}"

    def prices() -> str:
        return f"{len(priced(campaign))} models have one"

    def facts() -> str:
        return f"{len(read_facts(path, campaign))} files can be read"

    def documents() -> str:
        return f"{len(read_documents(path, campaign.knowledge.documents))} can be read"

    yield from _models(campaign)
    for ask in (target, prices, facts, documents):
        yield _asked(ask.__name__, ask)


def _models(campaign: Campaign) -> Iterator[Line]:
    """Whether each model can be asked; of a key only the name is told."""
    for name, model in campaign.answering().items():
        missing = lacking(model, os.environ)
        key = f", key in {model.api_key_env}" if model.api_key_env else ""
        roles = [role for role in ROLES if name in campaign.roles.of(role)]
        about = missing or f"{model.provider}{key}"
        yield Line("model", missing is None, f"{name}: {about}; answers for {', '.join(roles)}")


CHECKS: Sequence[Callable[[], Line]] = (
    _python, _packages, _system, _compiler, _sandbox, _cores, _memory, _disk, _lease,
    _rngd_compiler, _rngd_runtime, _rngd_chip, _rngd_opt,
)  # fmt: skip
