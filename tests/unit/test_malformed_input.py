"""Hundreds of inputs that make no sense: exit code 2 or 3, one sentence, an advice, and nothing is changed."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import malformed
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from harness import cli
from harness.model import Outcome
from harness.store.journal import Journal, read_records
from harness.store.layout import LATEST, RunFolder, Store

LONGEST = 1200
"""Characters of a line that a terminal is asked to show."""

Ended = tuple[int, str, str]


def harness(*words: str) -> Ended:
    """The real entry point in this process: its exit code, stdout and stderr."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["harness", *words])
        for name in ("HARNESS_STORE", "MLFLOW_TRACKING_URI"):
            patch.delenv(name, raising=False)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    assert isinstance(ended.value.code, int)
    return ended.value.code, texts[0], texts[1]


def assert_told(ended: Ended, *codes: int) -> None:
    """One sentence and one advice, or Click's usage and its error; nothing that steers a terminal, no traceback."""
    code, out, err = ended
    assert code in (codes or (2, 3)), err
    assert out == ""
    assert "Traceback" not in err
    assert "fault in harness" not in err
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]", err)
    lines = [line for line in err.splitlines() if line]
    assert max(map(len, lines)) <= LONGEST
    if lines[0].startswith("Usage:"):
        assert [line for line in lines if line.startswith("Error: ")]
        assert [line for line in lines if "--help" in line]
    else:
        assert [line.startswith("harness: ") for line in lines] == [True, False], err
        assert len(lines[0]) > len("harness: ") + 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A store with one run of one variant."""
    plan, record = malformed.kept()
    folder = Store(tmp_path_factory.mktemp("store")).folder(plan.run)
    with Journal.create(folder, plan) as journal:
        journal.append(record)
    return folder


@pytest.fixture(scope="module")
def store(folder: RunFolder) -> Iterator[tuple[str, str]]:
    """The words that name that store. At the end its run is what it was."""
    root = folder.path.parents[2]
    before = (folder.plan.read_bytes(), folder.records.read_bytes())
    yield "--store", str(root)
    assert (folder.plan.read_bytes(), folder.records.read_bytes()) == before
    assert [record.outcome for record in read_records(folder)] == [Outcome.OK]
    assert [path.name for path in folder.path.parent.iterdir()] in ([folder.run], [folder.run, ".mlflow.lock"])
    assert not (root / "mlflow.db").exists()


def test_there_are_enough_of_them() -> None:
    by_hand = (
        malformed.YAML, malformed.OVERRIDES, malformed.GLOBS, malformed.RUNS, malformed.KEYS, malformed.URIS,
        malformed.EXPECTED, malformed.PLACES,
    )  # fmt: skip
    assert sum(map(len, by_hand)) > 200


def written(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


# --- by hand


@pytest.mark.parametrize("name", malformed.YAML)
def test_a_matrix_file(tmp_path: Path, name: str) -> None:
    file = written(tmp_path / "m.yaml", malformed.YAML[name])
    ended = harness("plan", file)
    assert_told(ended)
    assert harness("run", "matrix", file, "--dry-run") == ended
    if ended[0] == 2:
        assert "m.yaml" in ended[2] or "more than 100,000" in ended[2]


@pytest.mark.parametrize("text", malformed.OVERRIDES)
def test_an_axis(text: str) -> None:
    assert_told(harness("plan", "quick", "-a", text), 2)


@pytest.mark.parametrize("text", malformed.GLOBS)
def test_a_glob(text: str) -> None:
    assert_told(harness("plan", "quick", "-k", text), 2 if text == "" else 3)


BY_RUN = (
    ("report",), ("status",), ("sync",), ("ui",), ("check",), ("accept", "--reason", "x"), ("compare", LATEST),
    ("run", "matrix", "--resume"), ("show", "x", "--run"), ("repro", "cell=lstm", "--run"),
)  # fmt: skip


@pytest.mark.parametrize("text", malformed.RUNS)
def test_a_run(store: tuple[str, str], text: str) -> None:
    for words in BY_RUN:
        assert_told(harness(*store, *words, text), 2)


@pytest.mark.parametrize("text", malformed.KEYS)
@pytest.mark.parametrize("command", ["show", "repro"])
def test_a_key(store: tuple[str, str], command: str, text: str) -> None:
    ended = harness(*store, command, text)
    assert_told(ended)
    if "axis" not in ended[2] and text and command == "show":
        assert malformed.RUN in ended[2], "it says which run was searched"
        assert "--run" in ended[2]


def test_a_key_that_nobody_has_names_all_places_where_it_was_looked_for(store: tuple[str, str]) -> None:
    code, _, err = harness(*store, "repro", "f" * 12)
    assert code == 2
    assert f"in run {malformed.RUN}, the latest, or in the matrices" in err
    assert "--run" in err
    code, _, err = harness(*store, "repro", "f" * 12, "--run", malformed.RUN)
    assert code == 2
    assert "the matrices" not in err


@pytest.mark.parametrize("uri", malformed.URIS)
def test_a_tracking_uri(store: tuple[str, str], uri: str) -> None:
    ended = harness(*store, "sync", "--tracking-uri", uri)
    assert_told(ended, 2)
    assert "secret" not in ended[2]
    assert_told(harness(*store, "run", "matrix", "quick", "--device", "cpu", "--tracking-uri", uri), 2)


@pytest.mark.parametrize("name", malformed.EXPECTED)
def test_a_file_of_expectations(store: tuple[str, str], tmp_path: Path, name: str) -> None:
    file = written(tmp_path / "e.yaml", malformed.EXPECTED[name])
    for words in (("check",), ("accept", "--reason", "x")):
        assert_told(harness(*store, *words, "--expected", file), 2)


@pytest.mark.parametrize("place", malformed.PLACES)
def test_a_place_without_expectations(store: tuple[str, str], place: str) -> None:
    assert_told(harness(*store, "check", "--expected", place), 2)


STORES = {
    "": 2, "file": 2, "file/below": 2, "a\x00b": 2, malformed.LONG: 2, "nothing": 2, "/proc/nothing": 2, "\x1b[2J": 2,
    malformed.BYTES: 2, "😀": 2,
}  # fmt: skip
"""Places where no store is, for a command that looks into one."""


@pytest.mark.parametrize("place", STORES)
def test_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    for words in (("report",), ("status",), ("show", "x"), ("sync",), ("check",)):
        assert_told(harness("--store", place, *words), STORES[place])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


WORDS: tuple[tuple[str, ...], ...] = (
    ("rum",), ("run", "matrx"), ("run", "matrix", "--device"), ("run", "matrix", "--device", "gpu"),
    ("run", "matrix", "--replicates", "0"), ("run", "matrix", "--replicates", "-1"), ("run", "matrix", "a", "b"),
    ("run", "matrix", "--replicates", "x"), ("run", "matrix", "--resume", "latest", "-a", "cell=lstm"),
    ("run", "seed"), ("run", "seed", "x"), ("run", "seed", "simple-rnn", "--epochs", "0"),
    ("run", "seed", "simple-rnn", "--limit", "many"), ("report", "--format", "html"), ("report", "a", "b"), ("show",),
    ("repro",), ("compare",), ("compare", "x"), ("compare", "x", "y", "--threshold", "much"), ("accept",),
    ("accept", "--reason"), ("ui", "--port", "http"), ("sync", "--tracking"), ("stub", "run"), ("--stor", "x"),
    ("\x1b[2J",), (malformed.BYTES,), ("--\x1b[2J",), ("plan", "qick"), ("plan", "../matrix"), ("plan", "expected"),
    ("plan", "/dev/zero"), ("plan", "/proc/self/mem"), ("plan", ""), ("plan", malformed.LONG), ("plan", "a\x00b"),
    ("plan", "\x1b[2J.yaml"), ("status", "--format", "x"), ("doctor", "x"),
)  # fmt: skip


@pytest.mark.parametrize("words", WORDS)
def test_a_command_line(store: tuple[str, str], words: tuple[str, ...]) -> None:
    assert_told(harness(*store, *words))


@pytest.mark.parametrize("port", ["0", "-1", "65536", "99999999999999999999"])
def test_a_port(store: tuple[str, str], port: str) -> None:
    assert_told(harness(*store, "ui", "--port", port), 2)


# --- by chance

anything = st.text(st.characters(), max_size=30) | st.text(
    st.sampled_from("=,*?[]-./\\ \n\t:{}&!|>'\"%@`#~a0é\udcff"), max_size=12
)
likely = st.sampled_from(
    ["cell", "lstm", "layers", "placement", "eval-always", "true", "1", "0.5", "all", "latest", "quick"]
)
spoilt = st.lists(anything | likely | st.sampled_from(["=", ",", "-", "*"]), max_size=5).map("".join)


def argument(text: str) -> str:
    """``text`` as a program can be given it: without what no system passes on."""
    assume("\x00" not in text and not re.search("[\ud800-\udc7f\udd00-\udfff]", text))
    return text


@given(spoilt)
def test_any_axis(text: str) -> None:
    ended = harness("plan", "quick", "-a", argument(text))
    if ended[0]:
        assert_told(ended)


@given(spoilt)
def test_any_glob(text: str) -> None:
    ended = harness("plan", "quick", "-k", argument(text))
    if ended[0]:
        assert_told(ended)


@given(spoilt)
def test_any_matrix(text: str) -> None:
    ended = harness("plan", "--", argument(text))
    if ended[0]:
        assert_told(ended)


@given(text=spoilt)
def test_any_run(store: tuple[str, str], text: str) -> None:
    assume(text != LATEST and not (text and malformed.RUN.startswith(text)))
    for command in ("report", "status", "sync", "check"):
        assert_told(harness(*store, command, "--", argument(text)), 2)


@given(text=spoilt)
def test_any_key(store: tuple[str, str], text: str) -> None:
    for command in ("show", "repro"):
        ended = harness(*store, command, "--", argument(text))
        if ended[0]:
            assert_told(ended)


@given(text=spoilt)
def test_any_tracking_uri(store: tuple[str, str], text: str) -> None:
    assert_told(harness(*store, "sync", "--tracking-uri", argument(text)), 2)


@given(text=spoilt)
def test_any_place_of_expectations(store: tuple[str, str], text: str) -> None:
    assume(text not in {"expected", "matrix", "quick", "full", "fixes"})
    assert_told(harness(*store, "check", "--expected", argument(text)), 2)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | spoilt,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(spoilt, inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["description", "axes", "include", "exclude", "settings", "epochs", "match", "reason", "cell"])


@given(content=st.dictionaries(KEYS, values | st.dictionaries(KEYS, values, max_size=3), max_size=4))
def test_any_document(folder: RunFolder, content: dict[str, object]) -> None:
    try:
        text = yaml.safe_dump(content)
        text.encode()
    except (yaml.YAMLError, UnicodeEncodeError):
        assume(False)
    ended = harness("plan", written(folder.path.parents[2] / "any.yaml", text))
    if ended[0]:
        assert_told(ended)


@given(content=st.binary(max_size=60) | spoilt.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_file(folder: RunFolder, content: bytes) -> None:
    file = folder.path.parents[2] / "any.yaml"
    assert_told(harness("plan", written(file, content)))
    assert_told(harness("plan", written(file, b"axes: {cell: [lstm]}\nsettings: " + content + b"\nx: 1\n")))
