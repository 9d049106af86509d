"""Where matrices are found, and what the shipped ones hold."""

import os
from pathlib import Path

import pytest

from harness.errors import MatrixFileError
from harness.matrix.expand import expand
from harness.matrix.shelf import LARGEST_FILE, locate, names, read_matrix, shelves
from harness.placements import PLACEMENTS

SHIPPED = Path(__file__).parents[2] / "experiments"
MATRICES = sorted(file for file in SHIPPED.glob("*.yaml") if file.stem != "expected")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_shipped_matrices_are_found_from_any_folder() -> None:
    assert {"matrix", "quick", "full"} <= set(names())
    assert all(SHIPPED in file.parents for file in names().values())
    assert "expected" not in names()


@pytest.mark.parametrize("file", MATRICES, ids=lambda file: file.stem)
def test_a_shipped_matrix_is_sound(file: Path) -> None:
    name, document = read_matrix(str(file))
    expansion = expand(document)
    assert name == file.stem
    assert document.description.strip()
    assert expansion.variants
    assert all(exclude.reason.strip() for exclude in document.exclude)
    assert all(exclusion.reason.strip() for exclusion in expansion.exclusions)


def test_the_default_matrix_is_every_cell_direction_flag_and_placement() -> None:
    expansion = expand(read_matrix("matrix")[1])
    assert len(expansion.variants) == 4 * 2 * 2 * 24
    assert not expansion.exclusions
    told = {(v["cell"], v["bidirectional"], v["cudnn"], v["placement"]) for v in expansion.variants}
    assert len(told) == len(expansion.variants)
    assert {v["placement"] for v in expansion.variants} == set(PLACEMENTS)


def test_the_full_matrix_is_over_a_thousand_and_moves_every_axis_it_promises() -> None:
    variants = expand(read_matrix("full")[1]).variants
    assert len(variants) > 1000
    for axis in ("dtype", "autocast", "packed", "proj-size", "layers", "dropout", "norm", "bias", "batch-first"):
        assert len({variant[axis] for variant in variants}) > 1, axis
    assert {v["placement"] for v in variants} == set(PLACEMENTS)


def test_the_quick_matrix_is_quick() -> None:
    assert 10 <= len(expand(read_matrix("quick")[1]).variants) <= 60


def test_the_folder_at_hand_comes_before_the_shipped_one(elsewhere: Path) -> None:
    mine = elsewhere / "experiments"
    mine.mkdir()
    (mine / "quick.yaml").write_text("description: mine\naxes: {cell: gru}\n")
    (mine / "own.yml").write_text("axes: {cell: lstm}\n")
    assert read_matrix("quick")[1].description == "mine"
    assert read_matrix("own")[1].axes == {"cell": ("lstm",)}
    assert read_matrix("matrix")[0] == "matrix"
    assert shelves()[0].resolve() == mine


@pytest.mark.parametrize("name", ["here.yaml", "here.yml", "./here.yaml", "sub/here", "sub/../here.yaml"])
def test_a_path_is_read_where_it_is(elsewhere: Path, name: str) -> None:
    (elsewhere / "sub").mkdir()
    file = elsewhere / name
    file.write_text("axes: {cell: gru}\n")
    assert read_matrix(name)[1].axes == {"cell": ("gru",)}
    assert read_matrix(str(file))[0] == "here"


def test_a_name_is_not_taken_for_a_file_at_hand(elsewhere: Path) -> None:
    (elsewhere / "quick").write_text("no matrix")
    assert SHIPPED in locate("quick").parents


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "/", "nowhere", "nowhere.yaml", "./nowhere", "experiments", "quick.yaml", "quick/", "QUICK"),
        *(
            "a" * 300,
            "a" * 300 + ".yaml",
            "a\0b",
            "a\0b.yaml",
            "a\nb",
            "a\nb.yaml",
            "/" + "a/" * 3000,
            "\ud800",
            "*",
            "[",
            "~",
        ),
        *("folder.yaml", "loop.yaml"),
    ],
)
def test_what_cannot_be_found_is_one_sentence(elsewhere: Path, name: str) -> None:
    (elsewhere / "folder.yaml").mkdir()
    (elsewhere / "loop.yaml").symlink_to("loop.yaml")
    with pytest.raises(MatrixFileError) as caught:
        read_matrix(name)
    assert "\n" not in str(caught.value)
    assert caught.value.advice
    assert caught.value.exit_code == 2


def test_a_slip_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(MatrixFileError) as caught:
        locate("matirx")
    assert caught.value.advice == "Did you mean 'matrix'?"


@pytest.mark.parametrize(
    ("content", "mention"),
    [
        ("axes: {cell: lstm}".encode("utf-16"), "UTF-8"),
        (b"axes: {cell: \xff}", "UTF-8"),
        (b"#" * (LARGEST_FILE + 1), "mebibyte"),
        (b"", "mapping"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(elsewhere: Path, content: bytes, mention: str) -> None:
    (elsewhere / "bad.yaml").write_bytes(content)
    with pytest.raises(MatrixFileError, match=mention) as caught:
        read_matrix("bad.yaml")
    assert "bad.yaml" in str(caught.value)


def test_a_folder_on_the_shelf_that_is_called_like_a_matrix_is_one_sentence(elsewhere: Path) -> None:
    (elsewhere / "experiments" / "odd.yaml").mkdir(parents=True)
    with pytest.raises(MatrixFileError):
        read_matrix("odd")


def test_a_pipe_is_not_waited_for(elsewhere: Path) -> None:
    os.mkfifo(elsewhere / "pipe.yaml")
    (elsewhere / "experiments").mkdir()
    os.mkfifo(elsewhere / "experiments" / "named.yaml")
    for name in ("pipe.yaml", "named"):
        with pytest.raises(MatrixFileError):
            read_matrix(name)
