"""Where matrix files and seed programs are found: ``./experiments`` first, then those that ship with the package."""

from __future__ import annotations

from pathlib import Path

from harness.errors import MatrixFileError
from harness.matrix.axes import nearest
from harness.matrix.document import MatrixDocument, parse_document

LARGEST_FILE = 1 << 20

NO_MATRIX = frozenset({"expected"})
"""Files on the same shelves that are no matrices: what is expected of them."""


def shelves() -> tuple[Path, ...]:
    """The folders that names are looked up in, nearest first."""
    package = Path(__file__).resolve().parent.parent
    # A wheel carries the experiments inside the package; a checkout has them beside it.
    shipped = (package / "_experiments", package.parent / "experiments")
    return tuple(folder for folder in (Path("experiments"), *shipped) if folder.is_dir())


def names() -> dict[str, Path]:
    """Every matrix that can be named, with its file."""
    found: dict[str, Path] = {}
    for shelf in shelves():
        for file in sorted([*shelf.glob("*.yaml"), *shelf.glob("*.yml")]):
            # A pipe or a folder can be called like a matrix.
            if file.is_file() and file.stem not in NO_MATRIX:
                found.setdefault(file.stem, file)
    return found


def locate(name_or_file: str) -> Path:
    """The file of a matrix.

    Raises:
        MatrixFileError: no matrix of that name, no file at that path.
    """
    path = Path(name_or_file)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # a name too long for the file system, or with a null byte
        is_file = False
    if is_file and (path.suffix in {".yaml", ".yml"} or "/" in name_or_file):
        return path
    known = names()
    if name_or_file in known:
        return known[name_or_file]
    if path.suffix in {".yaml", ".yml"} or "/" in name_or_file:
        raise MatrixFileError(f"there is no matrix file {name_or_file!r}", "Check the path.")
    raise MatrixFileError(f"there is no matrix {name_or_file!r}", nearest(name_or_file, known))


def read_matrix(name_or_file: str) -> tuple[str, MatrixDocument]:
    """A matrix by name or path: its short name and what it says.

    Raises:
        MatrixFileError: it cannot be found, read or understood.
    """
    file = locate(name_or_file)
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise MatrixFileError(f"{file}: larger than a mebibyte, so hardly a matrix", "Check the path.")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise MatrixFileError(f"{file}: cannot be read: {error.strerror}", "Check its permissions.") from error
    except UnicodeDecodeError as error:
        raise MatrixFileError(f"{file}: not UTF-8 text", "Save it as UTF-8.") from error
    return file.stem, parse_document(text, str(file))
