"""Where things are, and that no name leads out of there."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RunNotFoundError, TrackingError, UsageError
from harness.store import connection
from harness.store.connection import check_tracking
from harness.store.layout import Store, checked_run_id, new_run_id


def store_with(root: Path, *runs: str) -> Store:
    store = Store(root)
    for run in runs:
        folder = store.folder(run)
        folder.path.mkdir(parents=True)
        folder.plan.write_text("{}")
    return store


def test_run_ids_sort_by_time_even_within_one_second() -> None:
    moments = [datetime(2025, 1, 31, 9, 30, tzinfo=UTC) + timedelta(milliseconds=3 * i) for i in range(900)]
    ids = [new_run_id(moment) for moment in moments]
    assert ids == sorted(ids)
    assert ids[0].startswith("20250131-093000-")
    assert all(checked_run_id(run) == run for run in ids)


def test_run_ids_of_one_instant_differ() -> None:
    now = datetime(2025, 1, 31, tzinfo=UTC)
    assert len({new_run_id(now) for _ in range(20)}) > 15


@pytest.mark.parametrize("text", ["", ".", "..", "../x", "a/b", "/etc", "a\x00", "a b", "-x", "a\n", "x" * 81, "ä"])
def test_what_could_leave_the_store_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a run id") as caught:
        Store(Path("/s")).folder(text)
    assert len(str(caught.value)) < 120
    assert "letters" in caught.value.advice


@given(st.text())
def test_every_run_folder_is_a_child_of_the_runs_folder(text: str) -> None:
    store = Store(Path("/s"))
    try:
        folder = store.folder(text)
    except UsageError:
        return
    assert folder.path.resolve().parent == store.runs_folder.resolve()


def test_the_layout_is_mlflows_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    store = Store(tmp_path)
    assert store.uri == f"sqlite:///{tmp_path}/mlflow.db"
    assert store.folder("r1").records == tmp_path / "mlruns" / "runs" / "r1" / "records.jsonl"


def test_the_tracking_uri_asked_for_wins_over_the_environment_and_that_over_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://from-environment")
    assert Store(tmp_path).uri == "http://from-environment"
    assert Store(tmp_path, "http://asked").uri == "http://asked"


def test_runs_are_those_with_a_plan_and_latest_is_the_newest(tmp_path: Path) -> None:
    store = store_with(tmp_path, "20250102-000000-aaaaa", "20250101-000000-bbbbb")
    (store.runs_folder / "20260101-000000-nopla").mkdir()
    (store.runs_folder / "copy of a run").mkdir()
    (store.runs_folder / "copy of a run" / "plan.json").write_text("{}")
    assert store.runs() == ("20250101-000000-bbbbb", "20250102-000000-aaaaa")
    assert store.latest().run == "20250102-000000-aaaaa"
    assert store.find().run == store.find("latest").run == "20250102-000000-aaaaa"


def test_a_run_is_found_by_its_id_or_an_unambiguous_beginning(tmp_path: Path) -> None:
    store = store_with(tmp_path, "20250101-000000-aaaaa", "20250102-000000-bbbbb", "20250102")
    assert store.find("20250101").run == "20250101-000000-aaaaa"
    assert store.find("20250102").run == "20250102"
    with pytest.raises(RunNotFoundError, match="3 runs begin with '2025'") as caught:
        store.find("2025")
    assert "20250101-000000-aaaaa" in caught.value.advice


def test_a_run_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    store = store_with(tmp_path, "20250101-000000-aaaaa", "20250702-101010-zzzzz")
    with pytest.raises(RunNotFoundError, match="there is no run '20250101-000000-aaaab'") as caught:
        store.find("20250101-000000-aaaab")
    assert "Did you mean 20250101-000000-aaaaa?" in caught.value.advice
    with pytest.raises(RunNotFoundError) as caught:
        store.find("../../etc/passwd")
    assert "Known runs: 20250101-000000-aaaaa" in caught.value.advice


def test_an_empty_store_says_how_to_make_a_run(tmp_path: Path) -> None:
    for name in (None, "latest", "20250101"):
        with pytest.raises(RunNotFoundError, match="there are no runs") as caught:
            Store(tmp_path).find(name)
        assert "harness run matrix" in caught.value.advice


def test_a_folder_in_the_databases_place_is_refused_before_mlflow_tries_for_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    store = Store(tmp_path)
    check_tracking(store)
    store.database.mkdir()
    with pytest.raises(TrackingError, match="is a folder"):
        check_tracking(store)


@pytest.mark.parametrize(
    ("name", "character"),
    [
        ("a?b", "'?'"),
        ("a%41b", "'%41'"),
        ("a%2fb", "'%2f'"),
        ("a\nb", r"'\n'"),
        ("a\x1bb", r"'\x1b'"),
        ("a\udcff", r"'\udcff'"),
    ],
)
def test_a_folder_in_which_no_database_can_be_is_named_and_no_uri_that_nobody_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, character: str
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(UsageError) as caught:
        check_tracking(Store(tmp_path / name))
    said = str(caught.value)
    assert f"the store's folder {str(tmp_path / name)!r}: its path has {character} in it" in said
    assert "sqlite:" not in said + caught.value.advice
    assert "--store DIR" in caught.value.advice and "--no-tracking" in caught.value.advice
    check_tracking(Store(tmp_path / name, "sqlite:////elsewhere/mlflow.db"))


@pytest.mark.parametrize("name", ["a?b", "a%41b"])
def test_a_uri_that_was_typed_is_what_is_refused(tmp_path: Path, name: str) -> None:
    uri = f"sqlite:///{tmp_path}/{name}/mlflow.db"
    with pytest.raises(UsageError) as caught:
        check_tracking(Store(tmp_path, uri))
    assert repr(uri) in str(caught.value)
    assert "--store" not in caught.value.advice


@pytest.mark.parametrize("named", [False, True])
def test_a_path_with_both_quotes_is_refused_while_it_has_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for name in ("it's", 'a"b', "a\\b", "a b#c"):
        check_tracking(Store(tmp_path / name))
    folder = tmp_path / "it's a\"b"
    store = Store(tmp_path, f"sqlite:///{folder}/other.db") if named else Store(folder)
    with pytest.raises(UsageError, match="has both ' and \" in it") as caught:
        check_tracking(store)
    assert str(folder) in str(caught.value)
    assert ("--store DIR" in caught.value.advice) is not named
    folder.mkdir()
    (folder / ("other.db" if named else "mlflow.db")).touch()
    check_tracking(store)  # one that was moved there whole


def test_a_database_that_cannot_be_made_leaves_no_draft(tmp_path: Path) -> None:
    database = tmp_path / "runs [1].db"
    beside = tmp_path / ".runs [2].db.1.part"
    beside.touch()

    def fail(uri: str, _: str) -> None:
        draft = Path(uri.removeprefix("sqlite:///"))
        for name in (draft.name, f"{draft.name}-journal", f"{draft.name}-wal"):
            draft.with_name(name).touch()
        raise RuntimeError("a migration")

    with pytest.raises(RuntimeError, match="a migration"):
        connection._make_whole(fail, f"sqlite:///{database}", database)
    assert list(tmp_path.iterdir()) == [beside]


def test_an_old_file_store_is_refused_before_mlflow_fails_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    store = store_with(tmp_path, "20250101-000000-aaaaa")
    (store.runs_folder / "meta.yaml").write_text("not an experiment: the folder is not a number")
    store.refuse_old_file_store()
    (store.artifacts / "0").mkdir()
    (store.artifacts / "0" / "meta.yaml").write_text("")
    with pytest.raises(TrackingError, match="old file format") as caught:
        store.refuse_old_file_store()
    assert "mlflow migrate-filestore" in caught.value.advice
    Store(tmp_path, "http://elsewhere").refuse_old_file_store()


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (Store(Path()), "harness sync R"),
        (Store(Path("/my runs")), "harness --store '/my runs' sync R"),
        (Store(Path(), "http://host:5000"), "harness sync R --tracking-uri http://host:5000"),
        (Store(Path(), "http://me:secret@host:5000"), "harness sync R --tracking-uri http://host:5000"),
        (Store(Path("s"), "sqlite:////a b/m.db"), "harness --store s sync R --tracking-uri 'sqlite:////a b/m.db'"),
    ],
)
def test_a_command_that_a_person_is_told_is_about_the_store_at_hand(store: Store, words: str) -> None:
    assert store.command("sync", "R", tracking=True) == words
    assert "--tracking-uri" not in store.command("report", "R")
