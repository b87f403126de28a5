"""The command `kernelwright`: names the subcommands, and imports only the one that is asked for."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

COMMANDS: Mapping[str, str] = {
    "run": "start a campaign from its file, or go on with a run folder",
    "replay": "fold a run's log offline, check its digests, show the state",
    "tree": "show every candidate of a run, with its verdict and effect",
    "prompts": "list the roles' prompts, and show what a role of a run would be told now",
    "audit": "re-derive every decision of a run from the recorded evidence",
    "report": "write a run's report",
    "knowledge": "list what a run believes of its target, export it, import it into a campaign",
    "truth": "compare a run's claims with the truth, where a simulated device knows it",
    "profile": "say where the time of a static schedule goes, and draw it",
    "targets": "list targets, kernels and presets, and whether they work here",
    "doctor": "check this machine, and say what to do about what is missing",
    "log": "verify, read, follow, prune and convert the record of a run",
    "export": "write the best kernels of a run to files",
    "pause": "let a run finish what is under way and wait",
    "resume": "let a paused run go on",
    "stop": "stop a run at its next safe point",
    "hint": "say something about a kernel to the next prompts of a run",
    "veto": "take a candidate out of a run",
    "budget": "change what a run may spend from here on",
    "simulate": "run campaigns in virtual time, with faults, and check what must hold",
}
"""Each is a module of this package with ``main(argv) -> int``."""
MODULES: Mapping[str, str] = {"profile": "profiling"}
"""Those that cannot have the name of their command: the standard library has it."""

INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; return the exit status."""
    _open_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        print(f"kernelwright {_version()}")
        return 0
    if words[0] not in COMMANDS:
        print(_unknown(words[0]), file=sys.stderr)
        return 2
    return _call(words[0], words[1:])


def _open_streams() -> None:
    """Open what the caller has closed: else the log might be descriptor 1, and be printed to."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def _call(name: str, argv: list[str]) -> int:
    try:
        status: int = import_module(f"scripts.{MODULES.get(name, name)}").main(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has what it wanted; the exit's own flush must not complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return status


def _help() -> str:
    lines = [f"  {name:<9} {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "usage: kernelwright [--help] [--version] COMMAND ...",
            "",
            "LLM agents optimize accelerator kernels; every decision is open to audit.",
            "",
            *lines,
            "",
            "`kernelwright COMMAND --help` says more.",
        ]
    )


def _version() -> str:
    from importlib.metadata import version

    return version("kernelwright")


def _unknown(word: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, COMMANDS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(COMMANDS)}"
    return f"kernelwright: unknown command {word!r}; {hint}"


if __name__ == "__main__":
    sys.exit(main())
