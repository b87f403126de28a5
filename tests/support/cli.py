"""The command line as a user calls it, and campaigns for it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

SMALL = """\
name = "small"
target = "cpu"
preset = "small"
kernels = [{kernels}]

[search]
max_candidates = {max_candidates}
max_designs = {max_designs}

[acceptance]
noise_pairs = 6
final_pairs = 6
"""


def kernelwright(
    *words: str | Path, cwd: Path, timeout_s: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run a subcommand to its end."""
    return subprocess.run(
        command(*words), cwd=cwd, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def command(*words: str | Path) -> list[str]:
    """The command line of a subcommand."""
    code = "import sys; from scripts.main import main; sys.exit(main())"
    return [sys.executable, "-c", code, *map(str, words)]


def campaign_file(
    folder: Path, *kernels: str, max_candidates: int, max_designs: int = 16, more: str = ""
) -> Path:
    """Write a campaign of the cpu target at small sizes."""
    names = ", ".join(f'"{kernel}"' for kernel in kernels)
    path = folder / "small.toml"
    limits = {"max_candidates": max_candidates, "max_designs": max_designs}
    path.write_text(SMALL.format(kernels=names, **limits) + more)
    return path
