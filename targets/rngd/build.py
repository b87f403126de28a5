"""From hostile source to an artifact: trace, judge, evaluate, judge again."""

from typing import Final

from targets.profiler.schedule import ScheduleError, read
from targets.protocol import BuildFailed, Built
from targets.rngd.artifact import Artifact, pack
from targets.rngd.chains import longest_chain
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.environment import COMPILER, LANGUAGE, Environment
from targets.rngd.evaluating import Evaluation, evaluate, least_cycles
from targets.rngd.guard import MAX_VECTOR_OPERATIONS, judge
from targets.rngd.ir.syntax import Function
from targets.rngd.memory import SRAM_BYTES, Peak, peak
from targets.rngd.shapes import axis_sizes, types
from targets.rngd.task import Task
from targets.rngd.tracing import Traced, trace

_MB: Final = 1e6


def build(
    environment: Environment, task: Task, source: str, *, vendor_kernels: bool = False
) -> Built | BuildFailed:
    """Build hostile source under limits; every refusal is a value.

    With a toolchain that cannot evaluate, what is traced and breaks no rule is built.

    Raises:
        TargetError: this machine cannot confine.
    """
    traced = trace(environment, task.name, source, vendor_kernels=vendor_kernels)
    if not isinstance(traced, Traced):
        return traced.diagnostic.refusal(source, traced.names)
    function = judge(task, traced.ir)
    if isinstance(function, Diagnostic):
        return function.refusal(source, traced.names)
    cycles, warnings = None, ""
    if environment.evaluates:
        evaluation = evaluate(environment, str(function))
        if isinstance(evaluation, Diagnostic):
            return evaluation.refusal(source, (*traced.names, *_names(function)))
        held = believed(task, function, evaluation)
        if isinstance(held, Diagnostic):
            return held.refusal(source, traced.names)
        cycles, warnings = evaluation.cycles, _report(function, evaluation.cycles, held)
    versions = {name: environment.versions[name] for name in (LANGUAGE, COMPILER)}
    return Built(pack(Artifact(task.name, versions, cycles, str(function))), warnings)


def believed(task: Task, function: Function, evaluation: Evaluation) -> Peak | Diagnostic:
    """Return how full SRAM gets, or why an evaluation cannot be true of the chip."""
    least = least_cycles(task.weight_bytes)
    if evaluation.cycles < least:
        said = f"{evaluation.cycles} cycles are fewer than the {least} that its weights take"
        return Diagnostic("rules", "too good", f"{said} to move: it does not read them all")
    try:
        held = peak(function, read(evaluation.schedule))
    except ScheduleError as e:
        return Diagnostic("rules", "schedule", str(e))
    if held.n_bytes > SRAM_BYTES:
        said = f"{held.n_bytes / _MB:.1f} MB are in SRAM at cycle {held.at}"
        return Diagnostic("rules", "memory", f"{said}; the chip has {SRAM_BYTES / _MB:.1f} MB")
    return held


def _names(function: Function) -> tuple[str, ...]:
    return (*types(function), *axis_sizes(function))


def _report(function: Function, cycles: int, held: Peak) -> str:
    chain = f"longest chain of vector operations {longest_chain(function).length}"
    return (
        f"{cycles} cycles by the vendor's static cost model; "
        f"{chain} of {MAX_VECTOR_OPERATIONS} (none is charged); "
        f"peak of SRAM {held.n_bytes / _MB:.1f} of {SRAM_BYTES / _MB:.1f} MB at cycle {held.at}"
    )
