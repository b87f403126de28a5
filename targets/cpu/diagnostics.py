"""What a compiler printed, as a stable class of its first error and the text that it is about."""

import re
from typing import Final

from targets.cpu.gate import SOURCE_NAME
from targets.protocol import BuildFailed

_ERROR: Final = re.compile(
    r"^(?:([^\s:]+):(?:(\d+):(?:\d+:)?)? )?(?:fatal )?error: "
    r"(?!ld returned|linker command)(.{,1000})",
    re.MULTILINE,
)
"""Only from the begin of a line, and so far: sources with endless words are printed as well."""
_QUOTED: Final = re.compile(r"['`\"]([^'\"]*)['\"]")
_LINKER: Final = re.compile(r"(?:undefined reference|undefined symbol|multiple definition)[^\n]*")


def failure(printed: str, source: str) -> BuildFailed:
    """Describe a failed compilation.

    Args:
        printed: what the compiler printed, paths of this machine removed.
        source: what it read.
    """
    if not (found := _ERROR.search(printed)):
        linker = _LINKER.search(printed)
        first = linker[0] if linker else (printed.strip().splitlines() or ["no diagnostics"])[-1]
        return BuildFailed(printed, f"link: {_stable(first)}", _quoted(first))
    file, number, message = found[1], found[2], found[3]
    snippet = ""
    if file == SOURCE_NAME and number:
        lines = source.splitlines()
        snippet = lines[int(number) - 1].strip() if int(number) <= len(lines) else ""
    return BuildFailed(printed, f"error: {_stable(message)}", snippet or _quoted(message))


def _stable(message: str) -> str:
    """Take names and numbers out of a message."""
    return re.sub(r"\d+", "N", _QUOTED.sub("'_'", message)).strip()


def _quoted(message: str) -> str:
    found = _QUOTED.search(message)
    return found[1] if found else ""
