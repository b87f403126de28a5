"""From hostile source to an artifact, or to the compiler's first error in the protocol's form."""

import re
from typing import Final

from sim.npu.compiler import compile_source
from sim.npu.diagnostics import Diagnostic
from sim.npu.printing import normalize
from sim.npu.signature import Signature
from sim.npu.toolchain import Toolchain
from targets.protocol import BuildFailed, Built
from targets.sim.artifact import compiled, pack

MAX_SHOWN: Final = 300
"""Characters of a signature, and of a snippet: half a statement is no rule."""
_DECLARED: Final = re.compile(r"\b(?:axis|hbm|place|for)\s+(\w+)")


def build(source: str, signature: Signature, toolchain: Toolchain) -> Built | BuildFailed:
    """Compile ``source``; the artifact does not depend on its comments and spacing."""
    text = normalize(source)
    answer = compiled(text, signature, toolchain)
    if not isinstance(answer, Diagnostic):
        return Built(pack(text, toolchain), "")
    at_its_lines = compile_source(answer.file, source, signature, toolchain)
    # The tokens alone can be too long, with blanks between them.
    return _failed(at_its_lines if isinstance(at_its_lines, Diagnostic) else answer, source)


def _failed(diagnostic: Diagnostic, source: str) -> BuildFailed:
    fits = len(diagnostic.snippet) <= MAX_SHOWN
    return BuildFailed(
        str(diagnostic),
        f"{diagnostic.code}: {_stable(diagnostic.message, source)}"[:MAX_SHOWN],
        diagnostic.snippet if fits else "",
        certain=diagnostic.certain and fits,
    )


def _stable(message: str, source: str) -> str:
    """Take numbers and the author's names out of a message."""
    message, names = re.sub("`[^`]*`", "_", message), set(_DECLARED.findall(source))
    nameless = re.sub(r"\w+", lambda word: "_" if word[0] in names else word[0], message)
    return re.sub(r"\b\d[\d,.]*", "N", nameless)
