"""Programs that are confined alone: no other process, no socket, names without files."""

import os
import sys
from pathlib import Path

import pytest

from targets.sandbox.confined import ALONE, Limits, Reads, left_in, run
from targets.sandbox.runner import isolation

pytestmark = pytest.mark.device

LIMITS = Limits(wall_s=30.0, cpu_s=5, space_bytes=1 << 30, file_bytes=1 << 20, processes=ALONE)
PYTHON = str(Path(sys.executable).resolve())


def _says(folder: Path, code: str, limits: Limits = LIMITS, listed: tuple[str, ...] = ()) -> str:
    """Run Python in ``folder``: what it printed, or the last word of its error."""
    roots = ("/usr", "/lib", "/lib64", "/bin", sys.base_prefix)
    command = (PYTHON, "-I", "-S", "-c", code)
    printed = run(command, folder, limits, Reads(roots, listed))
    if printed.status == 0:
        return printed.out.strip()
    return (printed.err.strip().splitlines() or [f"status {printed.status}"])[-1].split(":")[0]


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.fork()",
        "import os; os.posix_spawn('/bin/true', ['true'], {})",
        "import subprocess; subprocess.run(['/bin/true'])",
        "import socket; socket.socket()",
        "import socket; socket.socketpair()",
        "import os, signal; os.kill(os.getppid(), signal.SIGKILL)",
        "import os; os.unshare(1) if hasattr(os, 'unshare') else (_ for _ in ()).throw("
        "PermissionError())",
        "open('/etc/passwd')",
        "open('/tmp/kernelwright-was-here', 'w')",
    ],
)
def test_a_program_alone_reaches_nothing_else(tmp_path: Path, code: str) -> None:
    """Each is refused with an error that the program can catch; none ends the machine's peace."""
    assert _says(tmp_path, code) == "PermissionError"


def test_threads_and_its_own_folder_are_a_programs_own(tmp_path: Path) -> None:
    """Runtimes start threads."""
    code = (
        "import threading; t = threading.Thread(target=lambda: open('made', 'w').write('x'));"
        "t.start(); t.join(); print(open('made').read())"
    )

    assert _says(tmp_path, code) == "x"


def test_a_listed_folder_shows_names_and_no_contents(tmp_path: Path) -> None:
    """So that an interpreter finds its modules, and reads those it may."""
    if "no Landlock" in isolation():
        pytest.skip("this kernel has no Landlock")
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("secret")
    names = f"import os; print(os.listdir({str(outside)!r}))"

    assert _says(inside, names, listed=(str(outside),)) == "['secret']"
    assert _says(inside, f"open({str(outside / 'secret')!r})", listed=(str(outside),)) == (
        "PermissionError"
    )
    assert _says(inside, names) == "PermissionError"


def test_limits_end_a_program(tmp_path: Path) -> None:
    """Of processor time, of memory, of the size of a file."""
    assert _says(tmp_path, "while True: pass", LIMITS._replace(cpu_s=1)) == "status -9"
    assert _says(tmp_path, "bytearray(2 << 30)") == "MemoryError"
    assert _says(tmp_path, "open('f', 'wb').write(bytes(2 << 20)); print(1)") == "OSError"
    assert _says(tmp_path, "import time; time.sleep(60)", LIMITS._replace(wall_s=0.5)) == (
        "status None"
    )


def test_only_a_plain_file_of_bounded_size_is_taken(tmp_path: Path) -> None:
    """A link could lead to what the program may not read, a pipe has no end."""
    (tmp_path / "plain").write_bytes(b"1234")
    os.symlink("/etc/passwd", tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()

    assert left_in(tmp_path / "plain", 4) == b"1234"
    assert left_in(tmp_path / "plain", 3) is None
    for name in ("link", "pipe", "folder", "missing"):
        assert left_in(tmp_path / name, 100) is None


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    """The program itself is missing."""
    printed = run(("/no/such/program",), tmp_path, LIMITS, Reads(("/usr",)))

    assert printed.status == 127
    assert "/no/such/program" in printed.err
