"""The process that launches kernels of RNGD misbehaves in every way; a stand-in plays its part."""

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from targets.protocol import TargetError
from targets.rngd import serving
from targets.rngd.environment import Environment
from targets.rngd.launching import STORAGE, Launcher
from targets.rngd.serving import StoppedError
from targets.rngd.task import Parameter, Task

pytestmark = pytest.mark.device

TASK = Task(
    "kernel",
    {"A": 4, "B": 70_000},
    (Parameter("x", "bf16", ("A", "B")), Parameter("kept", "i32", ("A",), mutable=True)),
    (Parameter("y", "bf16", ("B",)),),
    weight_bytes=0,
)
ARRAYS: dict[str, NDArray[Any]] = {
    "x": np.arange(4 * 70_000, dtype=np.uint32).astype(np.uint16).reshape(4, 70_000),
    "kept": np.arange(4, dtype=np.int32),
}
_STAND_IN = """
import json, os, signal, sys, time
read, write = sys.stdin.buffer.read, sys.stdout.buffer.write

def send(about, *arrays):
    head = json.dumps(about).encode()
    write(len(head).to_bytes(8, "little") + head + b"".join(arrays))
    sys.stdout.buffer.flush()

START
while head := read(8):
    ask = json.loads(read(int.from_bytes(head, "little")))
    x, kept = read(4 * 70000 * 2), read(16)
    good = x[:140000], bytes(reversed(kept))
    text = ask["text"]
    told = {"ticket": ask["ticket"], "arrays": [["bf16", [70000]], ["i32", [4]]]}
    ANSWER
"""


def here() -> Environment:
    """Return an environment of this very interpreter, without any package of the vendor."""
    itself = Path(sys.executable).resolve()
    library = str(itself.parent.parent / "lib")
    files = (str(itself), sysconfig.get_path("stdlib"), library)
    return Environment(itself, itself, {}, Path(sysconfig.get_path("purelib")), files)


StandIn = Callable[..., Launcher]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Return what makes a launcher with a stand-in that answers as told."""

    def made(answer: str, start: str = 'send({"ready": True})', limit_s: float = 30.0) -> Launcher:
        program = tmp_path / "launcher.py"
        program.write_text(_STAND_IN.replace("START", start).replace("ANSWER", answer))
        monkeypatch.setattr(serving, "PROGRAM", program)
        return Launcher(here(), limit_s)

    return made


GOOD = "send(told, *good)"


def test_arrays_go_there_and_back(stand_in: StandIn) -> None:
    """More than a pipe holds, in both directions, and again with the same process."""
    launcher = stand_in(GOOD)

    for shift in (0, 1):
        outputs = launcher.launch(TASK, "", {**ARRAYS, "x": ARRAYS["x"] + np.uint16(shift)})
        np.testing.assert_array_equal(outputs["y"], ARRAYS["x"][0] + np.uint16(shift))
        assert outputs["kept"].tobytes() == ARRAYS["kept"].tobytes()[::-1]
        assert outputs["y"].dtype == STORAGE["bf16"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("time.sleep(60)", "time limit of 2 s"),
        ("send(told, good[0]); time.sleep(60)", "time limit of 2 s"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "the process ended early"),
        ("send(told, good[0]); sys.exit()", "the process ended early"),
        ("write(b'x' * 100); sys.stdout.buffer.flush()", "it answered nonsense"),
        ("write(b'\\x04' + bytes(7) + b'[[[['); sys.stdout.buffer.flush()", "it answered nonsense"),
        ('told["arrays"][0][0] = "i16"; send(told, *good)', "something else"),
        ('told["arrays"][0][1] = [70001]; send(told, *good)', "something else"),
        ("send(7)", "something else"),
        ('told["ticket"] = "0"; send(told, *good)', "something else"),
        ('send({"error": "panic: here\\nthere"})', "the runtime refuses it: panic: here$"),
        ("bytearray(1 << 40)", "the process ended early"),
    ],
)
def test_a_launch_that_goes_wrong_is_a_verdict_and_the_next_one_is_served(
    stand_in: StandIn, answer: str, reason: str
) -> None:
    """Whatever one kernel does to the process, another must not answer for it."""
    launcher = stand_in(f"if text == 'bad': {answer}\n    {GOOD}", limit_s=2)

    launcher.launch(TASK, "good", ARRAYS)
    with pytest.raises(StoppedError, match=reason):
        launcher.launch(TASK, "bad", ARRAYS)
    launcher.launch(TASK, "good", ARRAYS)


def test_what_is_left_in_the_pipe_is_not_the_next_answer(stand_in: StandIn) -> None:
    """A kernel could write its successor's outputs."""
    launcher = stand_in("send(told, *good); text == 'more' and send(told, bytes(1000))")

    launcher.launch(TASK, "more", ARRAYS)
    outputs = launcher.launch(TASK, "", ARRAYS)

    np.testing.assert_array_equal(outputs["y"], ARRAYS["x"][0])


def test_a_process_that_died_between_launches_is_started_again(stand_in: StandIn) -> None:
    """Nobody is to blame."""
    launcher = stand_in(f"{GOOD}; sys.exit()")

    for _ in range(2):
        launcher.launch(TASK, "", ARRAYS)


def test_the_process_sees_no_files_of_others_and_starts_nothing(
    stand_in: StandIn, tmp_path: Path
) -> None:
    """The text is hostile to the runtime: whoever takes it over holds an empty room."""
    (tmp_path / "secret").write_text("x")
    tries = f"""
    tried = []
    for attempt in (lambda: open({str(tmp_path / "secret")!r}), os.fork, lambda: os.kill(1, 0)):
        try:
            attempt(); tried.append("done")
        except OSError:
            tried.append("refused")
    send({{"error": " ".join(tried)}})
    break"""

    with pytest.raises(StoppedError, match="refused refused refused"):
        stand_in(tries).launch(TASK, "", ARRAYS)


def test_a_runtime_that_does_not_start_is_the_machines_fault(stand_in: StandIn) -> None:
    """No candidate can be judged; the user is told."""
    with pytest.raises(TargetError, match="does not start here"):
        stand_in(GOOD, start="sys.exit(1)").launch(TASK, "", ARRAYS)
