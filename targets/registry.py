"""Targets by name: an entry point of the group ``kernelwright.targets`` makes one available."""

from difflib import get_close_matches
from importlib.metadata import entry_points

from targets.protocol import Target, TargetError

GROUP = "kernelwright.targets"


def target_names() -> tuple[str, ...]:
    """Names of the installed targets."""
    return tuple(sorted(point.name for point in entry_points(group=GROUP)))


def load_target(name: str, preset: str) -> Target:
    """Make a target.

    Raises:
        TargetError: there is no such target or preset; the text names those there are.
    """
    for point in entry_points(group=GROUP, name=name):
        target: Target = point.load()(preset)
        return target
    near = get_close_matches(name, target_names(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise TargetError(f"no target {name!r}; there are: {', '.join(target_names())}{hint}")
