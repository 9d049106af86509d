"""What a person sees: few plain lines where there is no terminal, and nothing twice."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.campaign import Chosen, Finished
from harness.console import RunConsole, serve_ui, show_finished, show_plan, show_seed, show_stub, show_synced, shown
from harness.errors import RunNotFoundError
from harness.matrix.expand import Expansion
from harness.model import Device, Exclusion, Outcome, Phase, Plan, Record, Settings, Variant
from harness.store.layout import Store

LSTM, GRU = Variant({"cell": "lstm"}, "cell=lstm"), Variant({"cell": "gru"}, "cell=gru")
PLAN = Plan(
    run="20260301-101500-aaaaa",
    matrix="quick",
    description="",
    created="2026-03-01T10:15:00+00:00",
    devices=(Device.STUB, Device.CPU),
    settings=Settings(),
    variants=(LSTM, GRU),
    notes=("No stub [device]",),
)
MESSAGE = "cudnn RNN backward can only be called in training mode"


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The colours of the shell that runs the tests are not part of them."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def record(outcome: Outcome = Outcome.OK, **more: Any) -> Record:
    values: dict[str, Any] = {"phase": Phase.BACKWARD, "device": Device.STUB} | more
    return Record(PLAN.run, LSTM.key, LSTM.label, values.pop("device"), outcome, **values)


def error(fingerprint: str | None, message: str = "boom", **more: Any) -> Record:
    return record(Outcome.ERROR, error_type="ValueError", error_message=message, fingerprint=fingerprint, **more)


def told(capsys: pytest.CaptureFixture[str], *records: Record, quiet: bool = False) -> list[str]:
    """The lines of a whole run with ``records``."""
    with RunConsole(quiet=quiet) as listener:
        listener.preparing("starting PyTorch")
        listener.started(PLAN)
        for one in records:
            listener.recorded(one)
        listener.finishing("writing the report")
    captured = capsys.readouterr()
    assert captured.out == "", "progress is no result"
    return captured.err.splitlines()


def test_without_a_terminal_there_are_two_lines_and_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    raised = record(Outcome.BACKWARD_ERROR, error_type="RuntimeError", error_message=MESSAGE, fingerprint="f00")
    lines = told(capsys, *50 * [record()], *50 * [raised])
    assert lines == [
        "run 20260301-101500-aaaaa: 2 variants of quick on stub and cpu, 4 attempts",
        "note: No stub [device]",
    ]


def test_one_is_not_many(capsys: pytest.CaptureFixture[str]) -> None:
    with RunConsole() as listener:
        listener.started(replace(PLAN, variants=(LSTM,), devices=(Device.CPU,), notes=()))
    assert capsys.readouterr().err == "run 20260301-101500-aaaaa: 1 variant of quick on cpu, 1 attempt\n"


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, record(Outcome.CRASH, reason="ended by SIGSEGV"), quiet=True) == []


@pytest.mark.parametrize("outcome", [Outcome.OOM, Outcome.TIMEOUT, Outcome.CRASH])
def test_each_attempt_that_died_has_its_line(capsys: pytest.CaptureFixture[str], outcome: Outcome) -> None:
    died = record(outcome, reason="ended by SIGSEGV [11]", fingerprint="f00")
    assert told(capsys, died, died)[2:] == 2 * [f"{outcome} on stub in backward: cell=lstm: ended by SIGSEGV [11]"]


def test_every_new_error_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(
        capsys, error("a", "first"), error("a", "first again"), error("b", "second", phase=None), error("a"), error("b")
    )
    assert lines[2:] == [
        "error on stub in backward: cell=lstm: ValueError: first",
        "error on stub: cell=lstm: ValueError: second",
    ]


def test_an_error_with_a_reason_says_both(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = told(capsys, error("a", "an illegal access", reason="the process was poisoned"))[2:]
    assert line == "error on stub in backward: cell=lstm: ValueError: an illegal access; the process was poisoned"


def test_errors_without_a_fingerprint_are_of_one_kind_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(told(capsys, error(None), error(None), error("None"))[2:]) == 2


def test_a_message_is_one_line_that_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    nasty = "\n\x1b[2J\x1b]0;owned\x07[red]red[/red] [/] \x9b31m \u202egnirts\nsecond line"
    (line,) = told(capsys, error("a", nasty))[2:]
    assert "[red]red[/red] [/]" in line
    assert "\\x1b]0;owned" in line
    assert line.isprintable()


def test_a_long_line_stays_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert len(told(capsys, error("a", "word " * 30))) == 3


def test_on_a_terminal_a_bar_counts_outcomes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    text = "\n".join(told(capsys, record(), record(Outcome.BACKWARD_ERROR), record(Outcome.BACKWARD_ERROR)))
    assert "\x1b[" in text
    assert "starting PyTorch" in text
    assert "3/4" in text
    assert "backward-error 2" in text


class Gone(io.StringIO):
    """A stream whose reader has left."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error, self.writes = error, 0

    def write(self, _: str) -> int:
        self.writes += 1
        raise self.error


@pytest.mark.parametrize("error_", [BrokenPipeError(32, "Broken pipe"), OSError(28, "No space left on device")])
def test_where_nobody_listens_any_more_the_run_goes_on(monkeypatch: pytest.MonkeyPatch, error_: OSError) -> None:
    gone = Gone(error_)
    monkeypatch.setattr(sys, "stderr", gone)
    with RunConsole() as listener:
        listener.started(PLAN)
        listener.recorded(record(Outcome.CRASH, reason="ended by SIGSEGV"))
        listener.finishing("writing the report")
    assert gone.writes == 1, "once is enough to learn that nobody listens"


def finished(*records: Record, **more: Any) -> Finished:
    folder = Path("mlruns/runs", PLAN.run).absolute()
    files = (folder / "report.md", folder / "results.csv")
    return Finished(PLAN, records, folder, files, **({"tracked": True} | more))


RECORDS = tuple(
    Record(PLAN.run, variant.key, variant.label, device, outcome)
    for variant in (LSTM, GRU)
    for device, outcome in ((Device.STUB, Outcome.BACKWARD_ERROR), (Device.CPU, Outcome.OK))
)


def test_the_end_of_a_run_says_what_came_out_and_where_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    show_finished(finished(*RECORDS), Store(Path()))
    headline, *_, report, results, mlflow = capsys.readouterr().out.splitlines()
    assert headline.startswith(f'2 of 2 planned variants raise "{MESSAGE}" on stub')
    assert report == f"report: mlruns/runs/{PLAN.run}/report.md", "as a person would type it"
    assert results == f"results: mlruns/runs/{PLAN.run}/results.csv"
    assert mlflow == f"MLflow: {Store(Path()).default_uri} (`harness ui` opens it)"


def test_quietly_only_the_places(capsys: pytest.CaptureFixture[str]) -> None:
    show_finished(finished(*RECORDS, tracked=False), Store(Path()), quiet=True)
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["report", "results"]


def test_what_mlflow_lost_is_told_apart_from_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    caveat = f"2 of 2 variants were not written ({'reason ' * 50}). `harness sync` writes them later."
    show_finished(finished(*RECORDS, caveats=(caveat,)), Store(Path()))
    captured = capsys.readouterr()
    assert captured.err == f"note: {caveat}\n"
    assert "not written" not in captured.out


def test_no_password_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(Path(), "http://me:secret@example.org:5000")
    show_finished(finished(*RECORDS), store)
    show_synced(PLAN.run, store.uri)
    text = capsys.readouterr().out
    assert text.count("http://example.org:5000") == 2
    assert "secret" not in text


RESULTS: dict[str, Any] = {
    "program": "brnn-mnist",
    "variant": "as-written",
    "dataset": "digits",
    "dataset_reason": "Why.",
}


def test_a_seed_on_the_stub_claims_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    raised = record(Outcome.BACKWARD_ERROR, epoch=2, step=1, error_message=f"{MESSAGE}\n", results=RESULTS)
    show_seed(finished(raised), Store(Path()))
    assert capsys.readouterr().out.splitlines()[:3] == [
        "brnn-mnist, as-written, on stub (PyTorch's CUDA path, no GPU):",
        "  data: digits. Why.",
        f"  backward-error in epoch 2, step 1: {MESSAGE}",
    ]


def test_a_seed_on_a_cpu_says_that_it_cannot_show_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    epoch = {"epoch": 1, "train_loss": 2.5, "test_loss": None, "test_accuracy": 0.153}
    results = RESULTS | {
        "epochs": [epoch],
        "plot": "/elsewhere/plot.png",
        "checkpoint": str(Path("model.pt").absolute()),
    }
    show_seed(finished(record(device=Device.CPU, results=results)), Store(Path()))
    assert capsys.readouterr().out.splitlines()[2:6] == [
        "  epoch 1: training loss 2.5000, test loss not a number, test accuracy 15.3%",
        "  finished without an error; a CPU cannot show it, since no forward takes the cuDNN path",
        "  plot: /elsewhere/plot.png",
        "  checkpoint: model.pt",
    ]


@pytest.mark.parametrize(
    ("device", "form"), [(Device.CUDA, "as-written"), (Device.CPU, "fixed"), (Device.STUB, "fixed")]
)
def test_no_excuse_where_none_is_due(capsys: pytest.CaptureFixture[str], device: Device, form: str) -> None:
    show_seed(finished(record(device=device, results=RESULTS | {"variant": form})), Store(Path()))
    assert "  finished without an error\n" in capsys.readouterr().out


def test_a_seed_that_died_before_it_reported_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    show_seed(finished(record(Outcome.CRASH, reason="ended by SIGKILL")), Store(Path()))
    assert "  crash: ended by SIGKILL\n" in capsys.readouterr().out


def test_a_plan_is_lines_for_a_pipe_and_its_sums_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    exclusions = (Exclusion("a", "no such thing"), Exclusion("b", "on purpose"), Exclusion("c", "on purpose"))
    show_plan(Chosen("quick", "", Settings(), Expansion((LSTM, GRU), exclusions)))
    captured = capsys.readouterr()
    assert captured.out == f"{LSTM.key}  cell=lstm\n{GRU.key}  cell=gru\n"
    assert captured.err.splitlines() == [
        "2 variants of quick, 3 excluded",
        "  2 excluded: on purpose",
        "  1 excluded: no such thing",
    ]


class Server:
    """A UI that is served until the person has had enough."""

    def wait(self) -> None:
        raise KeyboardInterrupt


NAMED = "sqlite:////elsewhere/mlflow.db"


@pytest.fixture
def ui(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """``serve_ui`` on a store in the current folder, with ``links`` as given and no server."""
    from harness.store import ui as module

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    served: list[int] = []

    @contextmanager
    def serving(_: Store, port: int, tell: object) -> Iterator[Server]:
        served.append(port)
        yield Server()

    def serve(links: module.Links, run: str | None = None, uri: str | None = NAMED) -> list[int]:
        monkeypatch.setattr(module, "serving", serving)
        monkeypatch.setattr(module, "links", lambda *_: links)
        serve_ui(Store(Path("here"), uri), 5001, run)
        return served

    serve.links = module.Links  # type: ignore[attr-defined]
    serve.served = served  # type: ignore[attr-defined]
    return serve


def test_a_folder_without_runs_has_no_ui_and_gets_no_database(ui: Any, tmp_path: Path) -> None:
    with pytest.raises(RunNotFoundError) as told:
        ui(ui.links("home"), uri=None)
    with pytest.raises(RunNotFoundError) as elsewhere:
        Store(Path("here")).latest()  # as `status` and `report` say it
    assert (str(told.value), told.value.advice) == (str(elsewhere.value), elsewhere.value.advice)
    assert str(told.value) == f"there are no runs in {tmp_path / 'here'}"
    assert (told.value.exit_code, ui.served, list(tmp_path.iterdir())) == (2, [], [])


def test_a_run_that_mlflow_lacks_is_served_all_the_same(
    ui: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = "20260301-101500-abcde"
    folder = tmp_path / "here" / "mlruns" / "runs" / run
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("{}")
    assert ui(ui.links("home", run), uri=None) == [5001]
    assert f"run {run} is not in MLflow" in capsys.readouterr().out


def test_a_database_that_is_named_is_served_without_runs_of_ours(
    ui: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ui(ui.links("http://127.0.0.1:5001")) == [5001]
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "MLflow's UI: http://127.0.0.1:5001 (on this machine only; Ctrl-C ends it)",
        f"there are no runs in {tmp_path / 'here'} yet; `harness run matrix` makes one",
    ]
    assert captured.err == "stopped\n"


def test_the_ui_shows_the_links_that_there_are(ui: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ui(ui.links("home", "r1", "home/table", "home/comparison"))
    assert capsys.readouterr().out.splitlines()[1:] == [
        "run r1, its variants as a table:", "  home/table",
        "a comparison of its variants, 12 at most (for others tick them in the table, and press Compare):",
        "  home/comparison",
    ]  # fmt: skip
    ui(ui.links("home", "r1"))
    sync = f"harness --store here sync r1 --tracking-uri {NAMED}"
    assert capsys.readouterr().out.splitlines()[1:] == [f"run r1 is not in MLflow; `{sync}` writes it there"]


def test_the_ui_of_a_run_that_is_none_is_not_served(ui: Any) -> None:
    with pytest.raises(RunNotFoundError):
        ui(ui.links("home"), "r1")


def test_the_stub_says_what_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from harness import stub

    info = stub.StubInfo(
        {"torch": "2.14.1 (CUDA 13.0)", "library": "/cache/a.so"}, ("Checks.", "Cells."), ("Numbers.",)
    )
    monkeypatch.setattr(stub, "info", lambda: info)
    show_stub()
    assert capsys.readouterr().out.splitlines() == [
        "torch: 2.14.1 (CUDA 13.0)", "library: /cache/a.so", "covers:", "  - Checks.", "  - Cells.", "does not:",
        "  - Numbers.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("uri", "hint"),
    [
        (None, " (`harness ui` opens it)"),
        ("sqlite:////a b/m.db", " (`harness ui --tracking-uri 'sqlite:////a b/m.db'` opens it)"),
        ("http://me:secret@host:5000", ""),
    ],
)
def test_the_hint_opens_the_mlflow_that_was_written_to(uri: str | None, hint: str) -> None:
    assert shown._opened_by(Store(Path(), uri)) == hint
