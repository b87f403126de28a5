"""From a hostile device file to an artifact: judge, compile with the schedule, build the test."""

import re
import tempfile
from pathlib import Path
from typing import Final

from targets.gemma4.kernels import kernel as gemma_kernel
from targets.profiler.schedule import ScheduleError, read
from targets.protocol import BuildFailed, Built, TargetError
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.opt.artifact import Artifact, pack
from targets.rngd.opt.text import judge
from targets.rngd.opt.toolchain import VERSION, Toolchain, digest
from targets.sandbox.confined import Limits, Printed, left_in, run

LIMITS: Final = Limits(
    wall_s=1200.0, cpu_s=3600, space_bytes=32 << 30, file_bytes=1 << 30, processes=4096
)
"""A clean build takes 135 s and a kernel's compilation 2 minutes where the makers measured it."""
TEST: Final = "test_kernels"
HBM_BYTES_PER_CYCLE: Final = 1500
"""The datasheet's 1.5 TB/s at the static schedule's 1 GHz."""
_SCHEDULE: Final = "kernelwright-schedule.json"
_MAX_SCHEDULE: Final = 64 << 20
_MAX_BINARY: Final = 128 << 20
_EXECUTABLE: Final = re.compile(rf"\((?P<path>\S*/(?P<profile>\w+)/deps/{TEST}-[0-9a-f]+)\)")
_ERROR: Final = re.compile(r"^error(?:\[(?P<code>E\d+)\])?: (?P<message>.+)$", re.MULTILINE)
_PANIC: Final = re.compile(r"panicked at [^\n]*\n?(?P<message>[^\n]*)")


def device_file(kernel: str) -> str:
    """Return the file of the project that a candidate of a kernel replaces."""
    return f"src/device/{kernel}.rs"


def build(toolchain: Toolchain, kernel: str, source: str) -> Built | BuildFailed:
    """Build hostile source in a copy of the project, confined; every refusal is a value.

    Raises:
        TargetError: the project's test is not built as a release, or this machine cannot confine.
    """
    if fault := judge(source):
        return fault.refusal(source)
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as name:
        folder = Path(name)
        toolchain.copy(folder)
        (folder / device_file(kernel)).write_text(source, encoding="utf-8")
        content = digest(folder)
        scheduled = _schedule(toolchain, folder, kernel)
        if isinstance(scheduled, Diagnostic):
            return scheduled.refusal(source)
        cycles, schedule = scheduled
        binary = _binary(toolchain, folder, kernel)
        if isinstance(binary, Diagnostic):
            return binary.refusal(source)
    artifact = Artifact(kernel, VERSION, content, cycles, schedule, binary)
    return Built(pack(artifact), f"{cycles} cycles by the vendor's static schedule")


def _schedule(toolchain: Toolchain, folder: Path, kernel: str) -> tuple[int, bytes] | Diagnostic:
    """Return the makespan and the schedule that this very compilation dumps."""
    dump = folder / _SCHEDULE
    dump.unlink(missing_ok=True)
    # Without --exact a kernel whose name begins like this one's is compiled too.
    compiled = ("compile", f"ops::{kernel}", "--exact", "--dump-schedule", _SCHEDULE)
    printed = _cargo(toolchain, folder, *compiled)
    if printed.status != 0:
        return failure(printed, device_file(kernel))
    data = left_in(dump, _MAX_SCHEDULE)
    if data is None:
        return Diagnostic("compile", "no schedule", "the compiler succeeded and left no schedule")
    try:
        cycles = read(data).makespan
    except ScheduleError as e:
        return Diagnostic("compile", "no schedule", str(e))
    least = gemma_kernel(kernel, "full").weight_bytes // HBM_BYTES_PER_CYCLE
    if cycles < least:
        said = f"{cycles} cycles are fewer than the {least} that its weights take to move"
        return Diagnostic("rules", "too good", said)
    return cycles, data


def _binary(toolchain: Toolchain, folder: Path, kernel: str) -> bytes | Diagnostic:
    """Return the project's test with the candidate in it."""
    printed = _cargo(toolchain, folder, "test", "--release", "--test", TEST, "--no-run")
    if printed.status != 0:
        return failure(printed, device_file(kernel))
    found = _EXECUTABLE.search(printed.err + printed.out)
    if found is None:
        raise TargetError(f"the toolchain names no program of the test {TEST}")
    if found["profile"] != "release":
        raise TargetError(f"the test {TEST} is built as {found['profile']}: its times mean nothing")
    path = folder / found["path"]
    within = path.resolve().is_relative_to(folder.resolve())
    binary = left_in(path, _MAX_BINARY) if within else None
    if binary is None:
        raise TargetError(f"the toolchain left no program at {found['path']}")
    return binary


def failure(printed: Printed, file: str) -> Diagnostic:
    """Return what a compilation that did not succeed says, in the target's one form."""
    if printed.status is None:
        return Diagnostic("compile", "hang", f"not over after {LIMITS.wall_s:.0f} s")
    said = printed.err + printed.out
    place = re.search(rf"--> {re.escape(file)}:(\d+)", said)
    line = int(place[1]) if place else None
    if panic := _PANIC.search(said):
        return Diagnostic("compile", "panic", panic["message"] or panic[0], line)
    if error := _ERROR.search(said):
        return Diagnostic("compile", error["code"] or "error", error["message"], line)
    if printed.status < 0:
        return Diagnostic("compile", "crash", f"ended by signal {-printed.status}", line)
    last = said.strip().splitlines()[-1:] or [f"exit status {printed.status}, and not a word"]
    return Diagnostic("compile", "error", last[0], line)


def _cargo(toolchain: Toolchain, folder: Path, *arguments: str) -> Printed:
    command = (str(toolchain.cargo), "furiosa-opt", *arguments)
    return run(command, folder, LIMITS, toolchain.reads, variables=toolchain.variables)
