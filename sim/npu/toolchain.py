"""The versions of the NPU's toolchain: what each allows, how it words it, what each step costs.

Static cycles run at 1 GHz, device cycles at 2 GHz. Work rates are per static cycle of one slice.
"""

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True)
class Limits:
    """What the compiler refuses beyond the rules that never change."""

    max_buffers: int = 8
    """Of a loop."""
    max_load_tensors: int = 4
    """Of one load."""
    sub_rolls: bool = True
    """Whether a roll on sub compiles; the device ignores it."""
    dm_bytes: int = 524_288
    vrf_bytes: int = 8_192
    trf_bytes: int = 65_536
    """Live at once in one slice."""
    scratch_bytes: int = 4_194_304
    """Of all scratch in HBM."""
    max_commands: int = 8_192
    """After unrolling."""


@dataclass(frozen=True)
class Rates:
    """How fast the units of a slice work, as the compiler assumes it."""

    main_bytes: float = 32
    sub_bytes: float = 8
    """Fetched, and committed, per cycle."""
    f4_lookups: float = 12.3
    f8_lookups: float = 6.2
    """Decoded codes per cycle, by the dtype before the lookup."""
    f8_macs: float = 64
    bf16_macs: float = 32
    """Multiply-adds per cycle with all 8 lanes."""
    vector_elements: float = 3.8
    """Elements entering the vector engine per cycle."""


@dataclass(frozen=True)
class StaticCosts:
    """The compiler's own model, in static cycles."""

    start: float = 1_003
    end: float = 300
    pass_fixed: float = 140
    f4_table: float = 2_131
    f8_table: float = 2_131
    """Loading a lookup's table, by the dtype before the lookup."""
    switch_config: float = 779
    load_fixed: float = 548
    load_rate: float = 605
    """Bytes per cycle into one cluster."""
    max_copy_factor: float = 5.65
    """A load's bytes count at most so often for being copied."""
    segment: float = 0.27 / 8
    """Per run of contiguous bytes."""
    sync: float = 1_600
    """Before a load of a stored tensor."""
    store_fixed: float = 340
    store_part: float = 16.4
    """Per slice of a cluster that stores a part of its own."""


@dataclass(frozen=True)
class DeviceCosts:
    """What the device takes, in device cycles."""

    start: float = 1_003
    end: float = 400
    command: float = 100
    """The PE core puts one command into a queue."""
    dma_queue: int = 2
    tensor_queue: int = 8
    """Commands that wait in front of an engine before the PE core stalls."""
    pass_fixed: float = 320
    lookup_factor: float = 1.5
    ring_factor: float = 1.65
    """For switch and reduce."""
    work_factor: float = 1.7
    """Device cycles per static cycle of a stage; the three factors above and here."""
    f4_table: float = 3_900
    f8_table: float = 3_900
    switch_config: float = 600
    load_fixed: float = 300
    latency: float = 200
    """After the last byte of a load or store; the engine is free meanwhile."""
    cluster_rates: tuple[float, float] = (354, 322)
    """Bytes per cycle into each cluster while both stream."""
    second_alone: float = 346
    """Bytes per cycle into cluster 1 while cluster 0 does not stream."""
    max_copy_factor: float = 6.4
    width_factors: tuple[tuple[int, float], ...] = ((64, 0.35), (128, 0.60), (256, 1.0))
    """(slices of the placement, share of the rate)."""
    run_factors: tuple[tuple[int, float], ...] = (
        (32, 0.15),
        (64, 0.28),
        (128, 0.50),
        (256, 1.0),
        (512, 0.96),
        (1_024, 0.90),
        (2_048, 0.87),
        (4_096, 0.82),
        (16_384, 0.77),
        (32_768, 0.77),
        (49_152, 1.0),
    )
    """(bytes of a run, share of the rate); between them linear in log2, constant outside."""
    run_alignment: int = 256
    unaligned_factor: float = 0.75
    """For runs that are no multiple of `run_alignment` bytes."""
    store_fixed: float = 220
    store_part: float = 14
    sync: float = 600
    """Before a load of a stored tensor, after the stores of both clusters."""
    sync_alone: float = 700
    """The same where one cluster is in use."""


@dataclass(frozen=True)
class Toolchain:
    """One version of compiler and firmware."""

    version: str
    limits: Limits
    reduce_inner: str
    """Message of E-REDUCE-INNER; ``{axis}`` is replaced."""
    static: StaticCosts
    device: DeviceCosts
    rates: Rates


V1_0: Final = Toolchain(
    "1.0", Limits(), "{axis} must be the innermost factor", StaticCosts(), DeviceCosts(), Rates()
)
V1_1: Final = replace(
    V1_0,
    version="1.1",
    limits=replace(V1_0.limits, max_buffers=4, max_load_tensors=6),
    reduce_inner="reduce needs {axis} next to the slice index",
    device=replace(V1_0.device, sync=900, sync_alone=1_000),
)
V1_2: Final = replace(
    V1_1,
    version="1.2",
    limits=replace(V1_1.limits, sub_rolls=False),
    static=replace(V1_1.static, f4_table=400),
    device=replace(V1_1.device, f4_table=900),
)
TOOLCHAINS: Final = {t.version: t for t in (V1_0, V1_1, V1_2)}
"""By version, oldest first."""
