"""What the simulated NPU says of the three kernels, and how fast: `python -m benchmarks.simulator`.

The experts are tests' data; run it from the root of a checkout. Times are of processor, the least
of several, so that a busy machine hardly matters.
"""

import time
from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from typing import Final

import numpy as np

from sim.noise import REAL, Job, NoisyDevice
from sim.npu.compiler import compile_source
from sim.npu.device import device_time
from sim.npu.kernels import SIGNATURES
from sim.npu.program import BITS, Program
from sim.npu.schedule import schedule
from sim.npu.toolchain import TOOLCHAINS, Toolchain

VERSIONS: Final = {
    "baseline": Path("targets/sim/kernels"),
    "expert": Path("tests/data/npu"),
    "bound": Path("targets/sim/kernels"),
}
RATED: Final = 750
"""Bytes that HBM delivers in a device cycle, by its datasheet."""
MAX_DEVICE_MS: Final = 50
"""For the longest program, schedule included."""


def main() -> None:
    """Measure and print."""
    for toolchain in TOOLCHAINS.values():
        print(f"toolchain {toolchain.version}\n{HEADER}")
        gains = [_kernel(kernel, toolchain) for kernel in SIGNATURES]
        print(f"baseline over expert, geomean: {prod(gains) ** (1 / len(gains)):.3f}\n")
    print(f"jobs of 24 launches through the noise: {_noise_ms():.3f} ms each")


HEADER: Final = (
    f"{'kernel':26}{'version':10}{'commands':>9}{'static':>10}{'device':>10}{'/datasheet':>11}"
    f"{'/bound':>8}{'compile':>9}{'schedule':>9}{'device':>9}  ms, limit {MAX_DEVICE_MS}"
)


def _kernel(kernel: str, toolchain: Toolchain) -> float:
    """Print the versions of a kernel; return how much faster than the baseline the expert is."""
    programs = {version: _compiled(kernel, version, toolchain) for version in VERSIONS}
    truth = {v: device_time(p, toolchain).cycles for v, p in programs.items()}
    weights = [a for a in programs["bound"].arguments if a.part == "weight"]
    rated = sum(prod(a.shape) * BITS[a.dtype] / 8 for a in weights) / RATED
    for version, program in programs.items():
        plan = schedule(program, toolchain)
        print(
            f"{kernel:26}{version:10}{len(plan.commands):9}{plan.makespan:10.0f}"
            f"{truth[version]:10.0f}{truth[version] / rated:11.2f}"
            f"{truth[version] / truth['bound']:8.3f}"
            f"{_least_ms(partial(_compiled, kernel, version, toolchain)):9.1f}"
            f"{_least_ms(partial(schedule, program, toolchain)):9.1f}"
            f"{_least_ms(partial(device_time, program, toolchain)):9.1f}"
        )
    return truth["baseline"] / truth["expert"]


def _compiled(kernel: str, version: str, toolchain: Toolchain) -> Program:
    source = (VERSIONS[version] / f"{kernel}_{version}.npu").read_text()
    signature = SIGNATURES[kernel]
    if version == "bound":
        signature = signature.load_only()
    program = compile_source(kernel, source, signature, toolchain)
    if not isinstance(program, Program):
        raise SystemExit(str(program))
    return program


def _noise_ms() -> float:
    device, rng = NoisyDevice(REAL, np.random.default_rng(0)), np.random.default_rng(1)
    job = Job("decoder_feedforward", (2e5, 2e5), [0, 1] * 6, 2, [5.0 * i for i in range(12)], 0)
    return _least_ms(lambda: [device.run(job, rng) for _ in range(100)]) / 100


def _least_ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


if __name__ == "__main__":
    main()
