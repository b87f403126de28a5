"""Experiments of the keeper: a variant of a failed source is built, and fails alike or does not."""

from collections.abc import Callable
from typing import Protocol


class Refusal(Protocol):
    """What a target says of a source that does not build; see `targets.protocol.BuildFailed`."""

    @property
    def diagnostics(self) -> str:
        """As printed."""
        ...

    @property
    def signature(self) -> str:
        """Stable class of the first error."""
        ...

    @property
    def snippet(self) -> str:
        """Offending text."""
        ...

    @property
    def certain(self) -> bool:
        """Whether the snippet alone makes any source illegal."""
        ...


Build = Callable[[str], Refusal | None]
"""Builds a source of the kernel in question; None if it builds."""


class Bench:
    """Builds sources, so many different ones at most, each of them once.

    Args:
        build: one source of the kernel in question.
        signature: of the failure that is looked into.
        n_builds: how many may be built.
    """

    def __init__(self, build: Build, signature: str, n_builds: int) -> None:
        self._build, self.signature, self._left = build, signature, n_builds
        self._known: dict[str, Refusal | None] = {}

    @property
    def n_built(self) -> int:
        """Sources that were built."""
        return len(self._known)

    def allow(self, n_builds: int) -> None:
        """So many builds are left from here on."""
        self._left = n_builds

    def failure(self, source: str) -> Refusal | None:
        """How a source fails; None if it builds, or nothing more may be built."""
        if source not in self._known and self._left > 0:
            self._left -= 1
            self._known[source] = self._build(source)
        return self._known.get(source)

    def alike(self, source: str) -> bool | None:
        """Whether a source fails with the signature; None if nothing more may be built."""
        failed = self.failure(source)
        if source not in self._known:
            return None
        return failed is not None and failed.signature == self.signature

    def fails(self, source: str) -> bool:
        """The same, for who takes no answer for a no."""
        return self.alike(source) is True
