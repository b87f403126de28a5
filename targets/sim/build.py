"""From hostile source to an artifact, or to the compiler's first error in the protocol's form."""

import re
from typing import Final

from sim.npu.compiler import compile_source
from sim.npu.diagnostics import Diagnostic
from sim.npu.parse import MAX_CHARACTERS
from sim.npu.printing import normalize
from sim.npu.signature import Signature
from sim.npu.toolchain import Toolchain
from targets.protocol import BuildFailed, Built
from targets.sim.artifact import pack

MAX_SHOWN: Final = 300
"""Characters of a signature, and of a snippet: half a statement is no rule."""
_DECLARED: Final = re.compile(r"\b(?:axis|hbm|place|for)\s+(\w+)")


def build(source: str, signature: Signature, toolchain: Toolchain) -> Built | BuildFailed:
    """Compile ``source``; the artifact does not depend on its comments and spacing."""
    text = normalize(source)
    if len(text) <= MAX_CHARACTERS:
        text = source  # with the author's lines; its tokens alone can be longer than it
    compiled = compile_source(f"{signature.kernel}.npu", text, signature, toolchain)
    if isinstance(compiled, Diagnostic):
        return _failed(compiled, source)
    return Built(pack(source, toolchain), "")


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
    message = re.sub(r"\b\d[\d,.]*", "N", re.sub("`[^`]*`", "_", message))
    names = set(_DECLARED.findall(source))
    return re.sub(r"\w+", lambda word: "_" if word[0] in names else word[0], message)
