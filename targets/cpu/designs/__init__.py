"""Whole-kernel designs in C: a frame per kernel around a core that multiplies rows by a vector."""

from targets.cpu.designs.design import Design
from targets.cpu.designs.f4 import F4_DESIGNS
from targets.cpu.designs.f8 import F8_DESIGNS

__all__ = ["DESIGNS", "Design"]

DESIGNS: dict[str, tuple[Design, ...]] = {
    "sliding_project_qkv": F8_DESIGNS,
    "sliding_attention_output": F8_DESIGNS,
    "decoder_feedforward": F4_DESIGNS,
}
"""Per kernel, in the order in which they are proposed."""
