"""Files are whole or absent, and what the system refuses is one sentence with advice."""

import errno
import os
from pathlib import Path

import pytest

from harness.errors import StoreError
from harness.files import explained, new_folder, write_whole


def refuse(code: int) -> None:
    raise OSError(code, os.strerror(code))


def test_a_file_is_written_with_its_folder_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    for text in ("first\r\n", "second\n"):
        assert write_whole(path, text) == path
        assert path.read_bytes() == text.encode()
    assert [found.name for found in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_what_cannot_be_written_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = write_whole(tmp_path / "file", "old")
    target = os if failing == "fsync" else Path
    monkeypatch.setattr(target, failing, lambda *_: refuse(errno.ENOSPC))
    with pytest.raises(StoreError, match=r"cannot write .*/file: the disk is full"):
        write_whole(path, "new")
    assert [found.name for found in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"


def test_text_that_has_no_encoding_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "file", "\ud800")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "why", "advice"),
    [
        (errno.ENOSPC, "the disk is full", "Free some space"),
        (errno.EDQUOT, "the disk is full", "Free some space"),
        (errno.EACCES, "permission denied", "that you may write to"),
        (errno.EROFS, "read-only file system", "that you may write to"),
        (errno.EIO, "input/output error", "Check the folder"),
    ],
)
def test_an_error_of_the_system_says_what_to_do(code: int, why: str, advice: str) -> None:
    with pytest.raises(StoreError) as caught, explained("write here"):
        refuse(code)
    assert str(caught.value) == f"cannot write here: {why}"
    assert advice in caught.value.advice and "--store" in caught.value.advice


def test_a_folder_whose_filling_fails_is_gone_with_the_parents_made_for_it(tmp_path: Path) -> None:
    with pytest.raises(KeyError), new_folder(tmp_path / "a" / "b") as folder:
        write_whole(folder / "file", "text")
        raise KeyError
    assert list(tmp_path.iterdir()) == []
