"""The little that has to be read from shared libraries: build ids, and which symbols they need and define."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from elftools.elf.segments import NoteSegment

_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_UNDEFINED = 0
_LOCAL = 0


@dataclass(frozen=True)
class Symbols:
    """The dynamic symbols of one library or object."""

    needed: frozenset[str]
    defined: frozenset[str]


def build_id(library: Path) -> str:
    """Return the GNU build id, which names one build of a library."""
    with library.open("rb") as stream:
        for segment in ELFFile(stream).iter_segments():
            for note in segment.iter_notes() if isinstance(segment, NoteSegment) else ():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return "none"


def symbols(path: Path, table: str = ".dynsym") -> Symbols:
    """Read one symbol table; ``.dynsym`` for a library, ``.symtab`` for an object file."""
    with path.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(table)
        if not isinstance(section, SymbolTableSection):
            return Symbols(frozenset(), frozenset())
        return _split(section.data(), section.stringtable.data())


def _split(entries: bytes, names: bytes) -> Symbols:
    needed: set[str] = set()
    defined: set[str] = set()
    for name, section in _globals(entries, names):
        (needed if section == _UNDEFINED else defined).add(name)
    return Symbols(frozenset(needed), frozenset(defined))


def _globals(entries: bytes, names: bytes) -> Iterator[tuple[str, int]]:
    # By hand, because PyTorch's tables hold over 100,000 symbols and an object for each costs seconds.
    for name, info, _, section, _, _ in _SYMBOL.iter_unpack(entries):
        if name and info >> 4 != _LOCAL:
            yield names[name : names.index(0, name)].decode(), section


def needed_libraries(library: Path) -> frozenset[str]:
    """Return the names of the libraries that this one asks the loader for."""
    with library.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".dynamic")
        if not isinstance(section, DynamicSection):
            return frozenset()
        # pyelftools sets this attribute while it runs, where mypy cannot see it.
        return frozenset(str(tag.needed) for tag in section.iter_tags("DT_NEEDED"))  # type: ignore[attr-defined]
