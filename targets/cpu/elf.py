"""The few facts about a linked shared object that the legality rules ask for (ELF64)."""

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")

SHT_SYMTAB, SHT_RELA, SHT_DYNSYM = 2, 4, 11
SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY = 14, 15, 16
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
PT_GNU_STACK, PF_EXECUTABLE = 0x6474E551, 1
STT_GNU_IFUNC, SHN_UNDEF = 10, 0


class NotElfError(Exception):
    """The bytes are not a little-endian ELF64 file, or are damaged."""


class Section(NamedTuple):
    """One section header."""

    name: str
    type: int
    flags: int
    size: int


class Symbol(NamedTuple):
    """One entry of a symbol table."""

    name: str
    type: int
    is_global: bool
    is_defined: bool
    is_dynamic: bool


@dataclass(frozen=True)
class Elf:
    """What was read."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocation_types: frozenset[int]
    executable_stack: bool
    """True as well when the file does not say."""


def read_elf(data: bytes) -> Elf:
    """Read the headers and tables of a shared object.

    Raises:
        NotElfError: it is no such file, or a table lies outside it.
    """
    try:
        return _read(data)
    except (struct.error, ValueError, IndexError, OverflowError) as e:
        raise NotElfError(f"damaged: {e}") from e


def _read(data: bytes) -> Elf:
    header = _HEADER.unpack_from(data)
    ident, segments_at, sections_at = header[0], header[5], header[6]
    n_segments, n_sections, names_index = header[10], header[12], header[13]
    if ident[:6] != b"\x7fELF\x02\x01":
        raise NotElfError("not a little-endian ELF64 file")
    raw = [_SECTION.unpack_from(data, sections_at + i * _SECTION.size) for i in range(n_sections)]
    names = raw[names_index][4]
    sections = tuple(Section(_text(data, names + s[0]), s[1], s[2], s[5]) for s in raw)
    symbols = [symbol for s in raw for symbol in _symbols(data, s, raw)]
    types = {kind for s in raw if s[1] == SHT_RELA for kind in _relocations(data, s)}
    stacks = [
        segment[1]
        for i in range(n_segments)
        if (segment := _SEGMENT.unpack_from(data, segments_at + i * _SEGMENT.size))[0]
        == PT_GNU_STACK
    ]
    executable = not stacks or bool(stacks[0] & PF_EXECUTABLE)
    return Elf(sections, tuple(symbols), frozenset(types), executable)


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")


def _symbols(
    data: bytes, section: tuple[int, ...], sections: list[tuple[int, ...]]
) -> list[Symbol]:
    if section[1] not in (SHT_SYMTAB, SHT_DYNSYM):
        return []
    names, found = sections[section[6]][4], []
    for at in range(section[4], section[4] + section[5], _SYMBOL.size):
        name, info, _, index, _, _ = _SYMBOL.unpack_from(data, at)
        is_defined, is_dynamic = index != SHN_UNDEF, section[1] == SHT_DYNSYM
        symbol = Symbol(
            _text(data, names + name), info & 15, info >> 4 != 0, is_defined, is_dynamic
        )
        found.append(symbol)
    return found


def _relocations(data: bytes, section: tuple[int, ...]) -> list[int]:
    ends = range(section[4], section[4] + section[5], 24)
    return [struct.unpack_from("<QQ", data, at)[1] & 0xFFFFFFFF for at in ends]
