"""The vendor's own documentation: docstrings and examples of the installed language."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from targets.protocol import Document
from targets.rngd.environment import Environment

_MODULES: Final = (
    "__init__.py",
    "_kernel_function/_kernel_ops.py",
    "_tensor_operation.py",
    "_tcl.py",
    "_lang/_context.py",
    "_lang/_tensor.py",
    "_primitive/_axis.py",
    "_primitive/_element_type.py",
    "_region.py",
    "kernel.py",
)
"""Files of the language that document what a kernel may say; a version may lack some."""
_EXAMPLES: Final = "examples"


def documents(environment: Environment) -> tuple[Document, ...]:
    """Return the language's examples, then what each of its public names says of itself.

    The files are read, never run; the model kernels that the vendor ships are not among them.

    Args:
        environment: whose language.
    """
    language = environment.site / "furiosa" / "tcl"
    examples = sorted((language / _EXAMPLES).glob("*"))
    shown = [path for path in examples if path.suffix in (".md", ".py")]
    found = [Document(f"example {path.name}", _text(path)) for path in shown]
    for module in _MODULES:
        path = language / module
        if path.is_file():
            found += _described(module, ast.parse(_text(path)))
    unique = {document.title: document for document in found if document.text.strip()}
    return tuple(unique.values())


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _described(module: str, tree: ast.Module) -> Iterator[Document]:
    """Yield the docstrings of a module, its public functions, classes and methods."""
    if said := ast.get_docstring(tree):
        yield Document(f"module {module.removesuffix('.py')}", said)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield from _function("", node)
        elif isinstance(node, ast.ClassDef):
            yield from _class(node)


def _class(node: ast.ClassDef) -> Iterator[Document]:
    """Yield a class and its methods, by the name that a kernel knows it by."""
    name = node.name.removeprefix("_")
    if name.endswith("Module"):  # `operation`, `fetch` and `commit` are instances
        name = name.removesuffix("Module").lower()
    if said := ast.get_docstring(node):
        yield Document(name, said)
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            yield from _function(f"{name}.", part)


def _function(owner: str, node: ast.FunctionDef) -> Iterator[Document]:
    said = ast.get_docstring(node)
    if said and not node.name.startswith("_"):
        name = f"{owner}{node.name}"
        yield Document(name, f"{name}({ast.unparse(node.args)})\n\n{said}")
