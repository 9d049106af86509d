"""The programs that the project started from, run as attempts: faulty and cured, on the stub and on the CPU."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from command import Ended, MlflowView, harness, kept

from harness.model import Device, Outcome, Phase, Record

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning")

MESSAGE = "cudnn RNN backward can only be called in training mode"
MEASURED = {"epochs", "step_losses", "plot", "checkpoint"}
REMEDIES = ("train-once", "train-in-loop", "train-function")


FIXED = ("simple-rnn", "--fixed", "--limit", "200", "--epochs", "2", "--remedy")
ON_THE_STUB = {
    "brnn as written": ("brnn-mnist", "--as-written", "--limit", "300"),
    "brnn fixed": ("brnn-mnist", "--fixed", "--limit", "300"),
    "simple as written": ("simple-rnn", "--limit", "200"),
    **{remedy: (*FIXED, remedy) for remedy in REMEDIES},
}


@dataclass(frozen=True)
class Run:
    """A seed run on the stub, without MLflow."""

    end: Ended
    folder: Path

    @property
    def record(self) -> Record:
        """Its one record."""
        (record,) = kept(self.folder)[1]
        return record


@pytest.fixture(scope="module")
def on_stub(stub_device: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """All programs on the stub, two at a time: most of each is PyTorch's import."""

    def run(name: str) -> Run:
        folder = tmp_path_factory.mktemp("seed")
        words = ("run", "seed", *ON_THE_STUB[name], "--device", "stub", "--no-tracking")
        return Run(harness(*words, cwd=folder), folder)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(ON_THE_STUB, pool.map(run, ON_THE_STUB), strict=True))


@pytest.mark.parametrize("name", ON_THE_STUB)
def test_on_the_stub_nothing_is_claimed_that_was_not_computed(on_stub: dict[str, Run], name: str) -> None:
    run = on_stub[name]
    assert run.end.code == 0, run.end.err
    assert run.record.device is Device.STUB
    assert not MEASURED & set(run.record.results)
    assert (run.record.first_loss, run.record.last_loss, run.record.samples) == (None, None, ())
    assert "no GPU" in run.end.out
    for word in ("training loss", "test loss", "test accuracy", "plot:", "checkpoint:"):
        assert word not in run.end.out
    assert [path.name for path in run.folder.rglob("*") if path.suffix in {".png", ".pt"}] == []


@pytest.mark.parametrize(("name", "epoch"), [("brnn as written", 2), ("simple as written", 1)])
def test_as_written_the_error_comes_where_the_articles_say(on_stub: dict[str, Run], name: str, epoch: int) -> None:
    record = on_stub[name].record
    assert (record.outcome, record.phase) == (Outcome.BACKWARD_ERROR, Phase.BACKWARD)
    assert (record.epoch, record.step, record.error_message) == (epoch, 1, MESSAGE)
    assert f"backward-error in epoch {epoch}, step 1: {MESSAGE}" in on_stub[name].end.out


@pytest.mark.parametrize("name", ["brnn fixed", *REMEDIES])
def test_every_remedy_works(on_stub: dict[str, Run], name: str) -> None:
    record = on_stub[name].record
    assert (record.outcome, record.epoch) == (Outcome.OK, 2)
    assert "finished without an error\n" in on_stub[name].end.out
    assert ("remedy=" in record.label) is (name in REMEDIES)
    assert record.results["remedy"] == (name if name in REMEDIES else "train-each-epoch")


def test_the_stand_in_for_mnist_is_named(on_stub: dict[str, Run]) -> None:
    run = on_stub["brnn fixed"]
    assert "not MNIST" in run.record.results["dataset"]
    assert "MNIST cannot be had" in run.end.out


def test_on_a_cpu_losses_accuracy_plot_and_checkpoint_are_kept_and_shown(tmp_path: Path) -> None:
    words = ("run", "seed", "brnn-mnist", "--as-written", "--limit", "300", "--device", "cpu")
    # With several threads on a busy machine this takes many times as long: they spin-wait for each other.
    ended = harness(*words, cwd=tmp_path, env={"OMP_NUM_THREADS": "1"})
    assert ended.code == 0, ended.err
    (record,) = kept(tmp_path)[1]
    assert record.outcome is Outcome.OK
    assert "a CPU cannot show it" in ended.out

    epochs = record.results["epochs"]
    assert [epoch["epoch"] for epoch in epochs] == [1, 2]
    assert epochs[1]["train_loss"] < epochs[0]["train_loss"]
    for epoch in epochs:
        assert f"training loss {epoch['train_loss']:.4f}" in ended.out
        assert f"test accuracy {epoch['test_accuracy']:.1%}" in ended.out

    assert "not MNIST" in record.results["dataset"]
    assert "MNIST cannot be had" in record.results["dataset_reason"]
    assert "digits" in ended.out
    assert "MNIST cannot be had" in ended.out
    assert not (tmp_path / "data").exists()

    view = MlflowView(tmp_path)
    (child,) = view.children
    assert view.statuses == {"FINISHED"}
    assert view.artifacts(child) == {"brnn-mnist-as-written.png", "brnn-mnist-as-written.pt"}
    for name in ("train_loss", "test_loss", "test_accuracy"):
        told = {point.step: point.value for point in view.client.get_metric_history(child.info.run_id, f"{name}.cpu")}
        assert told == {epoch["epoch"]: pytest.approx(epoch[name]) for epoch in epochs}
    steps = [point.value for point in view.client.get_metric_history(child.info.run_id, "step_loss.cpu")]
    assert steps == pytest.approx(record.results["step_losses"])
    assert "timed-on" not in child.data.params, "a program times no steps"
    (parent,) = view.parents
    told = {name for name in parent.data.params if name.startswith("settings.")}
    assert told == {"settings.deadline", "settings.replicates", "settings.threads"}
    assert child.data.params["dataset"] == record.results["dataset"]
    assert "MNIST cannot be had" in child.data.tags["harness.dataset_reason"]
