"""``kernelwright export``: the best source of each kernel, with the evidence for it."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from events.blobs import Blobs
from scripts.files import read_file, write
from scripts.reporting.handover import SUMS, SUMS_TITLE, Compiled, exported
from scripts.reporting.history import Run, load
from scripts.runs import UsageError, without_traceback
from targets.protocol import BuildFailed, Built, WholeCompiler
from targets.registry import load_target

MAX_SUMS_BYTES = 1 << 20
"""Of an export's list of its files, which is some kB long."""


@without_traceback
def main(argv: Sequence[str] | None = None) -> int:
    """Export a run; return the exit status."""
    parser = argparse.ArgumentParser(prog="kernelwright export", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where to put it (default: RUN/export)"
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="add the program of each that the device runs, where the target's builds stop before "
        "it (minutes a kernel)",
    )
    args = parser.parse_args(argv)
    out: Path = args.out or args.run / "export"
    run = load(args.run)
    replace(out, exported(run, Blobs(args.run), compiler(run) if args.compile else None))
    n_accepted = sum(bool(branch.accepts) for branch in run.state.tree.branches.values())
    print(f"wrote {out}: {len(run.kernels)} kernels, {n_accepted} of them improved")
    return 0


def compiler(run: Run) -> Compiled:
    """Return what makes the device's program of a kernel's source, by the run's target.

    Raises:
        UsageError: the target's builds are what the device runs already.
        TargetError: the target cannot be used here.
    """
    campaign = run.state.begun.campaign
    target = load_target(campaign.target, campaign.preset)
    if not isinstance(target, WholeCompiler):
        raise UsageError(f"target {campaign.target!r} compiles wholly in every build: no --compile")
    whole: WholeCompiler = target

    def compiled(kernel: str, source: bytes) -> bytes:
        built = target.build(kernel, source.decode("utf-8", "surrogateescape"))
        if isinstance(built, Built):
            built = whole.compile_fully(kernel, built.artifact)
        if isinstance(built, BuildFailed):
            raise UsageError(f"{kernel}: the best version does not compile here: {built.signature}")
        return built.artifact

    return compiled


def replace(folder: Path, made: Mapping[str, bytes]) -> None:
    """Put files into a folder that is new, empty, or holds an earlier export alone.

    Raises:
        UsageError: it holds something else; nothing was changed.
        FileError: what lies in the place of an export's list is none; nothing was changed.
    """
    old = previous(folder)
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name not in old:
            raise UsageError(
                f"{folder} holds {path.name!r}, which no export wrote; "
                "move it away, or name another folder with --out"
            )
    folder.mkdir(parents=True, exist_ok=True)
    for name in old - made.keys():
        (folder / name).unlink(missing_ok=True)
    # The list comes first: by it the next export knows the files of one that a full disk cut off.
    for name, data in sorted(made.items(), key=lambda file: file[0] != SUMS):
        write(folder / name, data)


def previous(folder: Path) -> frozenset[str]:
    """Names of the files that an earlier export wrote into ``folder``.

    Raises:
        FileError: its list is no file, or far too long.
    """
    sums = folder / SUMS
    text = read_file(sums, MAX_SUMS_BYTES).decode("utf-8", "replace") if sums.exists() else ""
    if not text.startswith(SUMS_TITLE):
        return frozenset()
    names = (line[66:] for line in text.removeprefix(SUMS_TITLE).splitlines())
    return frozenset({SUMS, *(name for name in names if name and Path(name).name == name)})
