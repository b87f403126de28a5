"""A candidate's file as text: its tokens, and the words that a device file has no use for."""

import re
from collections.abc import Iterator
from typing import Final

from targets.rngd.diagnostics import Diagnostic

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*)|(?P<block>/\*)
    |(?P<text>[bc]?r(?P<fence>\#*)".*?"(?P=fence)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^\\'\n])')
    |(?P<word>(?:r\#)?\w+|'\w+)|(?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_BLOCK: Final = re.compile(r"/\*|\*/")
_HOST: Final = frozenset((
    "unsafe", "extern", "std", "core", "alloc", "mod", "include", "include_str",
    "include_bytes", "env", "option_env", "macro_rules", "print", "println", "eprint",
    "eprintln", "dbg", "panic", "asm", "global_asm", "naked_asm", "link", "link_section",
    "link_name", "no_mangle", "export_name", "path", "ctor", "global_allocator",
    "panic_handler", "proc_macro", "libc",
))  # fmt: skip
"""They reach the host program, the files of the build, or what the harness prints."""


def tokens(source: str) -> Iterator[tuple[int, str]]:
    """Yield each token with its line, without comments and spacing."""
    at, line = 0, 1
    while at < len(source):
        found = _TOKEN.match(source, at)
        assert found is not None, "the last choice takes any character"
        end = _block_end(source, at) if found["block"] else found.end()
        if not found["space"] and not found["block"]:
            yield line, found[0]
        line += source.count("\n", at, end)
        at = end


def normalize(source: str) -> str:
    """Return a source without comments and spacing."""
    return " ".join(token for _, token in tokens(source))


def judge(source: str) -> Diagnostic | None:
    """Return why a file is no device file, None if it may be one.

    The file becomes part of the program that also measures it, so it may hold nothing but kernels.
    """
    before = ""
    for line, token in tokens(source):
        if token.removeprefix("r#") in _HOST:
            said = f"{token!r} has no use in a device file: it holds kernels and nothing else"
            return Diagnostic("rules", "host", said, line)
        if (before, token) == ("#", "!"):
            return Diagnostic("rules", "host", "a device file sets nothing for its crate", line)
        before = token
    return None


def _block_end(source: str, at: int) -> int:
    """Return where the comment that begins at ``at`` ends; comments nest."""
    depth = 0
    for edge in _BLOCK.finditer(source, at):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(source)
