"""Logs of device jobs: what counts as a reading, and what a job without readings is called."""

import pytest

from targets.rngd.opt.outcomes import MARK, Failed, Part, Reading, read_all, reading

KERNEL, LABEL = "decoder_feedforward", "seed-1-run-0"
PASS = f"[ops::{KERNEL} {LABEL}] max|Δ|=0.004 within tol=45% -> PASS\n"


def read(text: str, launches: int = 2, status: int = 0) -> Reading | Failed:
    """Read one run."""
    return reading(Part(text, status), KERNEL, LABEL, launches)


def test_a_run_with_all_its_lines_is_a_reading() -> None:
    """Both spellings of the difference are known."""
    expected = Reading((7, 8), 0.004)

    assert read(f"{PASS}cycles=7\ncycles=8\n") == expected
    assert read(f"{PASS.replace('Δ', 'D')}cycles=7\nnoise\ncycles=8\n") == expected


@pytest.mark.parametrize(
    ("text", "status", "ending"),
    [
        (f"{PASS}cycles=7\n", 0, "no-cycles"),
        (f"{PASS}cycles=7\ncycles=none observed\n", 0, "no-cycles"),
        (f"{PASS}cycles=7\ncycles=8\ncycles=none observed\n", 0, "no-cycles"),
        (f"{PASS}cycles=7\ncycles=0\n", 0, "no-cycles"),
        (f"{PASS}cycles=7\ncycles=-8\n", 0, "no-cycles"),
        (f"{PASS}cycles=7\ncycles=8\ncycles=9\n", 0, "no-cycles"),
        (PASS.replace("PASS", "FAIL") + "cycles=7\ncycles=8\n", 1, "fail"),
        (PASS.replace("0.004", "nan") + "cycles=7\ncycles=8\n", 0, "fail"),
        (PASS.replace("0.004", "inf") + "cycles=7\ncycles=8\n", 0, "fail"),
        (f"{PASS}cycles=7\ncycles=8\n", 101, "fail"),
        (f"{PASS}HAL error PXI-601 Execution: Timeout\n", 1, "hung"),
        (PASS.replace(LABEL, "seed-2") + "cycles=7\ncycles=8\n", 0, "lost"),
        (PASS.replace(KERNEL, "other") + "cycles=7\ncycles=8\n", 0, "lost"),
        ("cycles=7\ncycles=8\n", 0, "lost"),
    ],
)
def test_anything_less_has_a_name_and_no_numbers(text: str, status: int, ending: str) -> None:
    """A median of missing data has been taken for a result."""
    got = read(text, status=status)

    assert isinstance(got, Failed)
    assert got.ending == ending


def test_a_job_is_read_whole_or_not_at_all() -> None:
    """Marks of another job, or too few, leave no readings; a bad run is named."""
    run = f"{PASS}cycles=7\n"
    log = f"{MARK} t 0 0\n{run}{MARK} t 1 0\n{run}{MARK} t 2 0\n"

    def of(text: str) -> list[Reading] | Failed:
        return read_all(text, "t", KERNEL, [LABEL, LABEL], 1)

    assert of(log) == [Reading((7,), 0.004)] * 2
    assert of(" \n") == Failed("lost", "its log is empty")
    assert of(log.replace(" t ", " u ")) == Failed("lost", "its log shows 0 of 2 runs", 0)
    assert of(log.replace(f"{MARK} t 2 0", "")) == Failed("lost", "its log shows 1 of 2 runs", 1)
    bad = of(log.replace("cycles=7\n" + f"{MARK} t 2", f"cycles=none observed\n{MARK} t 2"))
    assert isinstance(bad, Failed)
    assert (bad.ending, bad.run) == ("no-cycles", 1)
