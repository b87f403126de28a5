"""Legality rules of the cpu target: what a source and an artifact may not contain."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from targets.cpu.elf import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_FINI_ARRAY,
    SHT_INIT_ARRAY,
    SHT_PREINIT_ARRAY,
    STT_GNU_IFUNC,
    Elf,
    NotElfError,
    Section,
    read_elf,
)
from targets.protocol import BuildFailed

MAX_SOURCE_BYTES: Final = 256 * 1024
SOURCE_NAME: Final = "kernel.c"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


HEADERS: Final = _words(
    """"kernel.h" <stdint.h> <stddef.h> <stdbool.h> <string.h> <math.h> <float.h> <limits.h>
    <immintrin.h> <arm_neon.h> <arm_sve.h> <arm_bf16.h> <arm_fp16.h>"""
)
_DIRECTIVES: Final = _words(
    "define undef if ifdef ifndef elif else endif include pragma error warning"
)
_PRAGMAS: Final = re.compile(
    r"(GCC (unroll \d+|ivdep)|clang loop [\w() ]+|unroll( ?\(?\d+\)?)?|STDC FP_CONTRACT OFF)"
)
_FORBIDDEN: Final = re.compile(
    r"\b(?:"
    r"_*(?:asm|constructor|destructor|ifunc|alias|weakref|section|naked|cleanup|optimize)_*"
    r"|_Pragma|_Thread_local|__thread|__seg_[fg]s|_*address_space_*|__has_(?:include|embed)\w*"
    r"|__builtin_(?:thread_pointer|set_thread_pointer|return_address|frame_address|apply\w*"
    r"|extract_return_addr|eh_return\w*|longjmp|setjmp|dwarf\w*|(?:arm|aarch64)_[rw]sr\w*)"
    r"|\w*(?:[fg]sbase|mxcsr|[gs]etcsr|(?:rd|wr)pkru|rdtsc|eflags)\w*"
    r")\b"
)
"""Machine code by hand, code at load time, changed flags, and ways to the harness's own state."""
_UNREADABLE: Final[Mapping[str, re.Pattern[str]]] = {
    "NUL in source": re.compile("\0"),
    "byte order mark in source": re.compile("\ufeff"),
    "carriage return in source": re.compile(r"\r(?!\n)"),
}
"""Characters at which compilers and this module might see a line's begin in different places."""
_LITERAL: Final = r'"(?:\\.|[^"\\\n])*"?|' r"'(?:\\.|[^'\\\n])*'?"
"""A string or character constant. One without its end takes the rest of its line, as compilers
have it, which also keeps the search linear."""
_TOKENS: Final = re.compile(
    rf'//[^\n]*|/\*.*?(?:\*/|\Z)|(?P<raw>\b(?:u8|[uUL])?R(?="))|{_LITERAL}', re.DOTALL
)
"""Comments, beginnings of raw strings, and literals."""
_LITERALS: Final = re.compile(_LITERAL, re.DOTALL)
_LITERAL_OR_BLANK: Final = re.compile(rf"({_LITERAL})|[^\S\n]+", re.DOTALL)
_MARKER: Final = re.compile(r'#(?:line)? \d+ "([^"]*)".*')

_MATH: Final = _words(
    """exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan sincos asin acos atan atan2 sinh
    cosh tanh pow fma fabs fmod floor ceil trunc round rint nearbyint lrint lround fmax fmin fdim
    ldexp scalbn scalbln frexp modf copysign erf erfc hypot logb ilogb"""
)
IMPORTS: Final = _words("memcpy memset memmove memcmp") | _MATH | {f"{name}f" for name in _MATH}
_R_IRELATIVE: Final = frozenset({37, 1032})
"""x86-64 and aarch64."""
_HARMLESS: Final = frozenset({".dynamic", ".got", ".got.plt", ".data.rel.ro", ".relro_padding"})
"""Writable only while the loader works."""


def source_fault(source: str) -> BuildFailed | None:
    """Check a source before any tool reads it."""
    if len(source.encode("utf-8", "surrogatepass")) > MAX_SOURCE_BYTES:
        return _refuse("source too large", f"the source is over {MAX_SOURCE_BYTES} bytes", "")
    joined = _joined(source)
    for rule, pattern in _UNREADABLE.items():
        if found := pattern.search(joined):
            return _refuse(rule, f"{rule}: character {found.start() + 1}", "")
    if any(token["raw"] for token in _TOKENS.finditer(joined)):
        return _refuse("raw string", "C has no raw strings", "")
    for line in _without_comments(joined).split("\n"):
        text = line.strip().replace("%:", "#")
        fault = _directive_fault(line.strip(), text) if text.startswith("#") else None
        if fault or (fault := _word_fault(line)):
            return fault
    return None


def preprocessed_fault(text: str) -> BuildFailed | None:
    """Check what the candidate's own lines became after preprocessing (tokens may be pasted)."""
    lines = list(_own_lines(text))
    if not lines:
        return _refuse("nothing after preprocessing", "no line of the source is left", "")
    for line in lines:
        stripped = line.strip()
        if stripped.startswith("#pragma"):
            fault = _pragma_fault(stripped, stripped[len("#pragma") :])
        else:
            fault = _word_fault(line)
        if fault:
            return fault
    return None


def artifact_fault(artifact: bytes) -> BuildFailed | None:
    """Check a linked artifact."""
    try:
        elf = read_elf(artifact)
    except NotElfError as e:
        return _refuse("artifact unreadable", f"the linker's output is {e}", "")
    return _code_fault(elf) or _symbol_fault(elf) or _state_fault(elf)


def normalize(source: str) -> str:
    """Return the source without comments, each run of white space as one blank."""
    text = _LITERAL_OR_BLANK.sub(lambda m: m[1] or " ", _without_comments(_joined(source)))
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(_merged(line for line in lines if line))


def _merged(lines: Iterator[str]) -> Iterator[str]:
    """Join lines of code into one; a directive keeps its own line."""
    code: list[str] = []
    for line in lines:
        if not line.startswith(("#", "%:")):
            code.append(line)
            continue
        if code:
            yield " ".join(code)
        code = []
        yield line
    if code:
        yield " ".join(code)


def _joined(source: str) -> str:
    return re.sub(r"\\[ \t\v\f]*\r?\n", "", source)


def _without_comments(source: str) -> str:
    """Replace each comment by a blank; strings and character constants stay."""
    return _TOKENS.sub(lambda m: " " if m[0].startswith("/") else m[0], source)


def _refuse(rule: str, reason: str, snippet: str) -> BuildFailed:
    said = f"{SOURCE_NAME}: refused: {reason}"
    return BuildFailed(said, f"gate: {rule}", snippet, certain=bool(snippet))


def _directive_fault(line: str, text: str) -> BuildFailed | None:
    word = re.match(r"#\s*(\w*)\s*(.*)", text, re.DOTALL)
    name, rest = (word[1], word[2].strip()) if word else ("", "")
    if not name and not rest:
        return None
    if name == "include" and re.sub(r"\s+", "", rest) not in HEADERS:
        allowed = " ".join(sorted(HEADERS))
        return _refuse("include not allowed", f"`{line}`; allowed are {allowed}", line)
    if name == "pragma":
        return _pragma_fault(line, rest)
    if name not in _DIRECTIVES:
        return _refuse("directive not allowed", f"`{line}`", line)
    return None


def _pragma_fault(line: str, rest: str) -> BuildFailed | None:
    if _PRAGMAS.fullmatch(" ".join(rest.split())):
        return None
    known = "`GCC unroll N`, `GCC ivdep`, `clang loop ...`"
    return _refuse("pragma not allowed", f"`{line}`; allowed are {known}", line)


def _word_fault(line: str) -> BuildFailed | None:
    if found := _FORBIDDEN.search(_LITERALS.sub('""', line)):
        rule = "asm" if "asm" in found[0] else found[0].strip("_")
        return _refuse(f"{rule} not allowed", f"`{found[0]}` in `{line.strip()}`", found[0])
    return None


def _own_lines(text: str) -> Iterator[str]:
    own = False
    for line in text.split("\n"):
        if marker := _MARKER.fullmatch(line):
            own = marker[1] == SOURCE_NAME
        elif own:
            yield line


def _code_fault(elf: Elf) -> BuildFailed | None:
    if elf.executable_stack:
        return _refuse("executable stack", "the artifact asks for an executable stack", "")
    starters = (SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY)
    for section in elf.sections:
        if section.type in starters or section.name in (".init", ".fini"):
            return _refuse("code at load time", f"section {section.name} runs code at load", "")
        if section.flags & SHF_WRITE and section.flags & SHF_EXECINSTR:
            return _refuse("writable code", f"section {section.name} is writable code", "")
    if elf.relocation_types & _R_IRELATIVE:
        return _refuse("indirect function", "the artifact resolves functions at load time", "")
    return None


def _symbol_fault(elf: Elf) -> BuildFailed | None:
    for symbol in elf.symbols:
        if symbol.is_defined and symbol.name in ("_init", "_fini"):
            return _refuse("code at load time", f"`{symbol.name}` runs at load", symbol.name)
        if symbol.type == STT_GNU_IFUNC:
            return _refuse("indirect function", f"`{symbol.name}`", symbol.name)
        unknown = symbol.is_dynamic and symbol.is_global and not symbol.is_defined
        if unknown and symbol.name not in IMPORTS:
            reason = f"`{symbol.name}` is not defined; only memcpy and kin and libm may be called"
            return _refuse("symbol not allowed", reason, symbol.name)
    exports = {s.name for s in elf.symbols if s.is_dynamic and s.is_global and s.is_defined}
    if "kernel" not in exports:
        return _refuse("no kernel", "the source does not define the function `kernel`", "")
    return None


def _state_fault(elf: Elf) -> BuildFailed | None:
    for section in elf.sections:
        if _is_state(section):
            size = f"{section.size} bytes in {section.name}"
            return _refuse("writable static data", f"{size}; make it const, or use scratch", "")
    return None


def _is_state(section: Section) -> bool:
    wanted = SHF_WRITE | SHF_ALLOC
    return section.flags & wanted == wanted and section.size > 0 and section.name not in _HARMLESS
