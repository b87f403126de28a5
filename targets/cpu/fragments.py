"""Pieces of C from which the target puts its own programs together."""

from collections.abc import Iterable, Mapping
from importlib.resources import files


def fragment(name: str) -> str:
    """Return the text of a file of the target's folder, by its path in it."""
    return (files("targets.cpu") / name).read_text(encoding="utf-8")


def program(defines: Mapping[str, int | str], names: Iterable[str]) -> str:
    """Return macros, headers and fragments as the text of one program."""
    lines = [f"#define {name} {value}" for name, value in defines.items()]
    lines += ["", '#include "kernel.h"']
    lines += [f"#include <{header}.h>" for header in ("math", "stdint", "string")]
    return "\n".join(lines) + "\n\n" + "\n".join(map(fragment, names))


def reading(calls: Iterable[str]) -> str:
    """Return the function ``kernel`` that makes ``calls``, and writes to scratch what they fold.

    Args:
        calls: expressions that return ``total`` with more weights folded into it.
    """
    body = "".join(f"    total = {call};\n" for call in calls)
    return (
        "\nvoid kernel(const struct args *a)\n{\n    line total = {0};\n"
        f"{body}    memcpy(a->scratch, &total, sizeof total);\n}}\n"
    )
