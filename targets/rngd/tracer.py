"""Run by the toolchain's own interpreter, confined: traces one source to the compiler's text.

Usage: tracer.py SOURCE KERNEL ANSWER. Whatever the source does, its trace is judged by its text
alone, so nothing here guards against it. The answer is JSON: `ir`, or `error` and its `line`; and
the `names` that the source chose.
"""

import ast
import builtins
import importlib.util
import json
import sys
import traceback
from pathlib import Path
from typing import Any

MAX_SHOWN = 4000


def main(source: Path, kernel: str, answer: Path) -> None:
    """Write the answer."""
    said: dict[str, Any]
    try:
        said = {"ir": traced(source, kernel)}
    except BaseException as e:  # noqa: BLE001 a source may raise anything
        said = {
            "error": [type(e).__name__, str(e)[:MAX_SHOWN]],
            "line": line_of(e, str(source)),
        }
    try:
        said["names"] = names(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        said["names"] = []
    answer.write_text(json.dumps(said), encoding="utf-8")


def traced(source: Path, kernel: str) -> str:
    """Return the compiler's text of ``kernel``, a function that the source defines."""
    from furiosa import tcl

    spec = importlib.util.spec_from_file_location("kernel", source)
    if spec is None or spec.loader is None:
        raise ImportError(source)
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    spec.loader.exec_module(module)
    found = getattr(module, kernel, None)
    if found is None:
        raise LookupError(f"the source defines no function {kernel!r}")
    return str(tcl.Kernel.from_edsl(found).dsl)


def line_of(error: BaseException, source: str) -> int | None:
    """Return the innermost line of the source that an error passed through."""
    if isinstance(error, SyntaxError) and error.filename == source:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == source]
    return lines[-1] if lines else None


def names(source: Path) -> list[str]:
    """Return the names that the author chose: those that a message's class must not hold."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    found, imported = set(), set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imported |= {alias.asname or alias.name for alias in node.names}
    return sorted(found - imported)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
