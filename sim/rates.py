"""The kinds of faults of a simulated world, and how often each happens."""

from typing import Literal, get_args

from pydantic import Field

from events.campaign import Settings

MishapKind = Literal["crash", "lost", "late"]
"""The actor dies at one of its waits; its reply is lost; it is told lost, and yet comes."""
OrderKind = Literal["pause", "hint", "veto"]
"""The operator pauses the run, says something about a kernel, or vetoes a candidate."""
OutageKind = Literal["node", "full", "kill", "torn", "power", "update", "stop"] | OrderKind
"""A node of the screening pool goes away; the disk is full; the process is killed anywhere, or in
a write of which a part is done, or by a power cut, which forgets what was not synced; the toolchain
is updated under the run; the operator stops it for a while, or gives an order."""
ORDERS: tuple[OrderKind, ...] = get_args(OrderKind)
FaultKind = MishapKind | Literal["hang"] | OutageKind
"""And a device job that hangs until its time limit."""
MISHAPS: tuple[MishapKind, ...] = get_args(MishapKind)
OUTAGES: tuple[OutageKind, ...] = (*get_args(get_args(OutageKind)[0]), *ORDERS)
KINDS: tuple[FaultKind, ...] = (*MISHAPS, "hang", *OUTAGES)


class Rates(Settings):
    """How often each kind of fault happens."""

    crash: float = Field(default=0.01, ge=0, le=1)
    lost: float = Field(default=0.005, ge=0, le=1)
    late: float = Field(default=0.005, ge=0, le=1)
    """Share of the commands; the three are drawn in this order."""
    hang: float = Field(default=0.01, ge=0, le=1)
    """Share of the device jobs."""
    node: float = Field(default=2.0, ge=0)
    full: float = Field(default=1.0, ge=0)
    kill: float = Field(default=2.0, ge=0)
    torn: float = Field(default=1.0, ge=0)
    power: float = Field(default=1.0, ge=0)
    update: float = Field(default=0.25, ge=0)
    stop: float = Field(default=1.0, ge=0)
    pause: float = Field(default=1.0, ge=0)
    hint: float = Field(default=1.0, ge=0)
    veto: float = Field(default=1.0, ge=0)
    """Times per day, on average."""
    outage_s: float = Field(default=900.0, gt=0)
    """Mean length of an outage, and by how much a late reply is late, in seconds."""


CALM = Rates.model_validate(dict.fromkeys(KINDS, 0))
"""Nothing goes wrong."""
