"""Where a file of expectations is found: like a matrix, ``./experiments`` first, then what ships with the package."""

from __future__ import annotations

from pathlib import Path

from harness.expectations.document import Expectations, ExpectationsFileError, parse_expectations
from harness.matrix.shelf import LARGEST_FILE, shelves

DEFAULT = "expected"


def locate(name_or_file: str = DEFAULT) -> Path:
    """The file of expectations that a name or a path means.

    Raises:
        ExpectationsFileError: there is no such file.
    """
    path = Path(name_or_file)
    looks_like_a_path = path.suffix in {".yaml", ".yml"} or "/" in name_or_file
    candidates = [path] if looks_like_a_path else [shelf / f"{name_or_file}.yaml" for shelf in shelves()]
    try:
        found = next((file for file in candidates if file.is_file()), None)
    except (OSError, ValueError):  # a name too long for the file system, or with a null byte
        found = None
    if found is None:
        raise ExpectationsFileError(
            f"there is no file of expectations {name_or_file!r}",
            "Check the path; leave --expected out for those that ship with harness.",
        )
    return found


def read_expectations(name_or_file: str = DEFAULT) -> Expectations:
    """The rules of a file of expectations.

    Raises:
        ExpectationsFileError: it cannot be found, read or understood.
    """
    file = locate(name_or_file)
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise ExpectationsFileError(f"{file}: larger than a mebibyte, so hardly expectations", "Check the path.")
        # Not read_text: it would make every line end in \n, and `accept` leaves alone what it does not change.
        text = file.read_bytes().decode("utf-8")
    except OSError as error:
        raise ExpectationsFileError(f"{file}: cannot be read: {error.strerror}", "Check its permissions.") from error
    except UnicodeDecodeError as error:
        raise ExpectationsFileError(f"{file}: not UTF-8 text", "Save it as UTF-8.") from error
    return parse_expectations(text, str(file))
