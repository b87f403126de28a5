"""What an artifact costs by the vendor's static model, with what its schedule leaves out."""

from targets.profiler.schedule import linear
from targets.profiler.schedule import read as scheduled
from targets.protocol import Cost
from targets.rngd.diagnostics import Diagnostic
from targets.rngd.environment import Environment
from targets.rngd.evaluating import BYTES_PER_CYCLE, N_PES, SETUP_CYCLES, evaluate
from targets.rngd.ir.reading import read
from targets.rngd.memory import tensor_bytes


def cost(environment: Environment, text: str) -> Cost:
    """Return the cost of a kernel's text; the same bytes whenever it is asked.

    Its cycles are the last end of the schedule, so that a profile of it sums up to them. The
    evaluator's own answer is the same, but for kernels with loops: there it is up to 0.5 % less.

    Raises:
        ValueError: the toolchain does not schedule it.
        TargetError: this machine cannot confine.
    """
    evaluation = evaluate(environment, text)
    if isinstance(evaluation, Diagnostic):
        raise ValueError(f"no kernel of this toolchain: {evaluation.message}")
    return Cost(
        scheduled(evaluation.schedule).makespan,
        evaluation.schedule,
        bytes_of=linear(SETUP_CYCLES, BYTES_PER_CYCLE * N_PES),
        sizes=tensor_bytes(read(text)),
    )
