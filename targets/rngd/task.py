"""What a kernel of this target must look like from outside."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """A tensor that a kernel takes or returns."""

    name: str
    dtype: str
    """As the compiler's text spells it: bf16, f8_e4, f4_e2, u8, i32, f32."""
    axes: tuple[str, ...]
    mutable: bool = False
    """Whether the kernel may write it in place."""


@dataclass(frozen=True)
class Task:
    """A kernel's fixed outside: everything else is the author's choice."""

    name: str
    """Of the kernel, and of the function that defines it."""
    bindings: Mapping[str, int]
    """Elements of every axis of the parameters and results."""
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    """What it returns, in order; their names say what they are and bind nobody."""
    weight_bytes: int
    """Bytes of weights and scales that every launch must move."""
