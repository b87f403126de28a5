from pathlib import Path

from targets.protocol import Document
from targets.rngd.documents import documents
from targets.rngd.environment import Environment

_LANGUAGE = '''"""A language."""


def gather(table, rows):
    """Take rows of a table."""


def _internal():
    """Nobody's business."""


class _FetchModule:
    """How values come in."""

    def typecast(self, value, to):
        """Widen a value."""

    def undocumented(self):
        raise SystemExit("a document is read, not run")


raise SystemExit("a document is read, not run")
'''


def _environment(site: Path) -> Environment:
    return Environment(Path("/nonexistent"), Path("/nonexistent"), {}, site, ())


def _written(site: Path) -> None:
    for name, text in {
        "tcl/__init__.py": _LANGUAGE,
        "tcl/examples/softmax.py": "print('an example')\n",
        "tcl/examples/__init__.py": "",
        "tcl/secret.py": '"""Not of the documented modules."""\n',
        "kernels/model.py": '"""The vendor\'s own solution."""\n',
    }.items():
        path = site / "furiosa" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_examples_come_first_and_then_every_public_name(tmp_path: Path) -> None:
    """Nothing of it runs, and the vendor's model kernels are no documentation."""
    _written(tmp_path)

    found = documents(_environment(tmp_path))

    assert found == (
        Document("example softmax.py", "print('an example')\n"),
        Document("module __init__", "A language."),
        Document("gather", "gather(table, rows)\n\nTake rows of a table."),
        Document("fetch", "How values come in."),
        Document("fetch.typecast", "fetch.typecast(self, value, to)\n\nWiden a value."),
    )


def test_a_toolchain_without_documentation_has_none(tmp_path: Path) -> None:
    """An older version lacks files; that is no error."""
    assert documents(_environment(tmp_path)) == ()
