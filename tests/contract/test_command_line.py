"""The installed command as a person meets it: quick help, bad input, odd folders, readers who leave, and the UI."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from command import (
    HARNESS,
    Ended,
    assert_sentence_and_advice,
    ended,
    environment,
    free_port,
    harness,
    kept,
    listeners,
    only_run,
    started,
)

from harness import stub
from harness.errors import StubUnavailableError

HEAVY = ("torch", "mlflow", "pandas", "torchvision", "matplotlib", "sklearn", "numpy")
LIGHT_COMMANDS = [("--help",), ("run", "matrix", "--help"), ("plan", "full"), ("run", "matrix", "quick", "--dry-run")]

WATCHER = """
import atexit, sys
atexit.register(lambda: print("LOADED", *sorted(set(sys.modules) & set({heavy!r})), file=sys.stderr))
"""


@pytest.mark.parametrize("words", LIGHT_COMMANDS, ids=" ".join)
def test_looking_costs_no_heavy_import(tmp_path: Path, words: tuple[str, ...]) -> None:
    heavy = (*HEAVY, "rich") if "--help" in words else HEAVY
    (tmp_path / "sitecustomize.py").write_text(WATCHER.format(heavy=heavy))
    end = harness(*words, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert end.code == 0
    assert end.err.splitlines()[-1] == "LOADED"


REFUSED = {
    "no such place": (("--store", "/proc/nonexistent", "run", "matrix", "quick", "--device", "cpu"), 4, "--store DIR"),
    "a place under a file": (("--store", "file/below", "run", "matrix", "quick", "--device", "cpu"), 4, "--store DIR"),
    "a file for a store": (("--store", "file", "run", "matrix", "quick"), 2, "file"),
    "no such run": (("report", "20260101-000000-aaaaa"), 2, "harness run matrix"),
    "no such run, for the UI": (("ui", "20260101-000000-aaaaa"), 2, "harness run matrix"),
    "no such command for the stub": (("stub", "run", "--", "no-such-program"), 2, "spelling"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_a_sentence(tmp_path: Path, case: str) -> None:
    words, code, hint = REFUSED[case]
    if case.endswith("stub"):
        require_stub()
    (tmp_path / "file").write_text("")
    end = harness(*words, cwd=tmp_path)
    assert end.code == code, end.err
    assert end.out == ""
    assert_sentence_and_advice(end.err, hint)
    assert [path.name for path in tmp_path.iterdir()] == ["file"], "nothing half-written"


def require_stub() -> None:
    try:
        stub.ensure()
    except StubUnavailableError as error:
        pytest.skip(f"no stub device here: {error}")


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    end = harness("run", "matrix", "quick", "--device", "cuda", cwd=tmp_path)
    assert end.code == 2
    assert_sentence_and_advice(end.err, "sees no GPU", "--device auto")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("plan", "full"), ("--help",), ("plan", "quick")], ids=" ".join)
def test_a_reader_who_leaves_is_no_failure(tmp_path: Path, words: tuple[str, ...]) -> None:
    with started(*words, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if words != ("plan", "full"):
            process.stdout.close()  # before anything was read, as `| true` does
        else:
            assert process.stdout.readline()
            process.stdout.close()
        err = process.stderr.read()
        process.wait(120)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert "Broken" not in err


def test_a_mistake_stays_a_mistake_where_nobody_listens(tmp_path: Path) -> None:
    for words, code in ((("plan", "qick"), 2), (("rum",), 2), (("plan", "quick", "-k", "nothing"), 3)):
        with started(*words, cwd=tmp_path) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            process.stderr.close()
            process.wait(120)
        assert process.returncode == code


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        end = harness("plan", "quick", cwd=tmp_path, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert end.code == 4
    assert "harness: No space left on device" in end.err
    assert "Traceback" not in end.err


@pytest.mark.parametrize("closed", [0, 1, 2], ids=["stdin", "stdout", "stderr"])
def test_a_closed_stream_is_no_failure(tmp_path: Path, closed: int) -> None:
    command = f'"$0" plan quick {closed}<&-'
    end = subprocess.run(["sh", "-c", command, HARNESS], cwd=tmp_path, env=environment(), check=False, timeout=120)
    assert end.returncode == 0


def test_a_run_needs_no_stream_at_all(tmp_path: Path) -> None:
    command = '"$0" run matrix quick -k eval-always --device cpu --no-tracking 0<&- 1>&- 2>&-'
    end = subprocess.run(["sh", "-c", command, HARNESS], cwd=tmp_path, env=environment(), check=False, timeout=120)
    assert end.returncode == 0
    assert list(tmp_path.glob("mlruns/runs/*/report.md"))


def test_a_store_by_environment_and_by_an_odd_name(cpu_root: Path, cpu_run: Ended, tmp_path: Path) -> None:
    by_environment = harness("report", "--format", "csv", cwd=tmp_path, env={"HARNESS_STORE": str(cpu_root)})
    by_option = harness("--store", os.path.relpath(cpu_root, tmp_path), "report", "--format", "csv", cwd=tmp_path)
    assert by_environment.code == by_option.code == cpu_run.code == 0
    assert by_environment.out == by_option.out == only_run(cpu_root).results.read_text()
    assert list(tmp_path.iterdir()) == []


def shadow_everything(folder: Path) -> None:
    """Fill ``folder`` with files whose names are those of modules that we need."""
    for name in ("random", "torch", "json", "mlflow", "yaml", "click", "pandas", "numpy"):
        (folder / f"{name}.py").write_text(f"raise SystemExit('shadowed by {name}')\n")
    for name in ("harness", "rich"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise SystemExit('shadowed by {name}')\n")


@pytest.fixture(scope="module")
def shadowed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A run of two variants in a folder that shadows every module it can; its name has a space."""
    folder = tmp_path_factory.mktemp("shadow") / "meine Läufe"
    folder.mkdir()
    shadow_everything(folder)
    words = ("run", "matrix", "quick", "-a", "cell=gru", "-k", "placement=eval-always", "--device", "cpu")
    return folder, harness(*words, cwd=folder)


def test_files_of_the_person_shadow_nothing(shadowed: tuple[Path, Ended]) -> None:
    folder, end = shadowed
    assert end.code == 0, end.err
    assert [record.outcome for record in kept(folder)[1]] == ["ok", "ok"]
    assert "shadowed" not in end.out + end.err + only_run(folder).report.read_text()
    assert (folder / "mlflow.db").is_file()
    assert "not written to MLflow" not in only_run(folder).report.read_text()


def test_the_ui_answers_on_loopback_shows_links_and_ends_with_ctrl_c(shadowed: tuple[Path, Ended]) -> None:
    folder, port = shadowed[0], free_port()
    with started("ui", "--port", str(port), cwd=folder) as process:
        assert process.stdout is not None
        home, table_title, table, comparison_title, comparison = (process.stdout.readline().strip() for _ in range(5))
        assert home == f"MLflow's UI: http://127.0.0.1:{port} (on this machine only; Ctrl-C ends it)"
        assert table_title == f"run {only_run(folder).run}, its variants as a table:"
        assert comparison_title.startswith("a comparison of its variants, 12 at most ")
        assert table.startswith(f"http://127.0.0.1:{port}/#/experiments/")
        assert comparison.startswith(f"http://127.0.0.1:{port}/#/compare-runs")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=120) as page:
            assert b"<title>MLflow" in page.read()
        assert listeners(port) == {"0100007F"}

        taken = harness("ui", "--port", str(port), cwd=folder)
        assert taken.code == 2
        assert_sentence_and_advice(taken.err, f"port {port}", "--port")

        process.send_signal(signal.SIGINT)
        end = ended(process)
    assert end.code == 0
    assert end.err == "stopped\n"
    assert listeners(port) == set()


def test_the_stub_runs_any_command_and_passes_on_how_it_ended(tmp_path: Path) -> None:
    require_stub()
    end = harness("stub", "run", "--", "sh", "-c", 'echo "$HARNESS_STUB"; exit 7', cwd=tmp_path)
    assert (end.code, end.out) == (7, "1\n")
    info = harness("stub", "info", cwd=tmp_path)
    assert info.code == 0
    assert "no GPU" in info.out
    assert "HARNESS_STUB" not in os.environ


def test_the_package_is_a_program_of_its_own() -> None:
    assert Path(HARNESS).is_file(), f"installed beside {sys.executable}"
