"""Many RNNs and many findings: none is taken for another, none is looked at twice, what is left out is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.diagnose import collected as collected_room
from harness.diagnose import facts
from harness.diagnose import limits as limits_room
from harness.diagnose.collected import Collected, collect, prepare
from harness.diagnose.facts import Count
from harness.diagnose.limits import limits
from harness.diagnose.witness import notes as notes_room
from harness.diagnose.witness import passing, surroundings
from harness.diagnose.witness.histories import History
from harness.diagnose.witness.notes import Notes
from harness.model import Device
from tests.watched import PRELUDE, findings, seen

LEFT_OUT = "More was found than the {} things that are written down; the rest is not told."

ONE_AFTER_ANOTHER = {
    "gradient": "net = Net().eval()\n    net(x).sum().backward()",
    "rest-eval": "net = Net(num_layers=2, dropout=0.5).eval()\n    net.rnn.train()\n    net(x).sum().backward()",
    "frozen-dropout": "net = Net(num_layers=2, dropout=0.5).requires_grad_(False)\n    net(x)",
    "train-in-forward": "Forces().eval()(x)",
}
FORCES = "class Forces(Net):\n    def forward(self, x):\n        self.train()\n        return super().forward(x)\n\n"


@pytest.mark.parametrize("what", ONE_AFTER_ANOTHER)
def test_rnns_made_one_after_another_are_all_told(tmp_path: Path, what: str) -> None:
    loop = f"for _ in range(12):\n    {ONE_AFTER_ANOTHER[what]}\n    net = None\n"
    found = seen(tmp_path, f"{PRELUDE}{FORCES}{loop}")
    assert [fact.what for fact in found.facts.values()] == [what] * 12
    assert set(found.times.values()) == {1}
    assert all(fact.forward_count == 1 for fact in found.facts.values())


def test_no_history_has_the_number_of_another() -> None:
    assert len({History().number for _ in range(100)}) == 100


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """As many facts are written down as may be in these tests."""
    few = 6
    for room in (limits_room, collected_room, notes_room):
        monkeypatch.setattr(room, "MOST_FACTS", few)
    return few


@pytest.mark.parametrize(("more", "told"), [(-1, False), (0, False), (1, True), (3, True)])
def test_what_is_left_out_is_told_and_nothing_else(tmp_path: Path, few: int, more: int, told: bool) -> None:
    body = "".join("net(x).sum().backward()\n" for _ in range(few + more))
    found = seen(tmp_path, f"{PRELUDE}\nnet = Net().eval()\n{body}")
    assert (LEFT_OUT.format(few) in limits(found, Device.CPU)) is told
    assert found.count(Count.DROPPED) == max(more, 0)


def test_what_is_left_out_is_counted_once_and_not_if_it_was_withdrawn(tmp_path: Path, few: int) -> None:
    program = "net = Net().eval()\n" + "net(x).sum().backward()\n" * few
    frozen = "late = Net(num_layers=2, dropout=0.5).requires_grad_(False)\nlate(x)\nlate(x)\n"
    assert seen(tmp_path / "kept", f"{PRELUDE}{program}{frozen}").count(Count.DROPPED) == 1
    thawed = f"{frozen}late.requires_grad_(True)\nlate(x)\nlate(x)\n"
    assert seen(tmp_path / "withdrawn", f"{PRELUDE}{program}{thawed}").count(Count.DROPPED) == 0


def test_a_withdrawal_of_nothing_counts_nothing(tmp_path: Path) -> None:
    prepare(tmp_path)
    Notes(tmp_path).withdraw(facts.MOST_FACTS)
    assert collect(tmp_path).count(Count.DROPPED) == 0


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each question for the optimizers of the process, and each walk for the weights that they hold."""
    asked: list[str] = []
    optimizers, reaches = surroundings.optimizers, passing.reaches_optimizer

    def all_optimizers() -> object:
        asked.append("optimizers")
        return optimizers()

    def walk(*arguments: object) -> bool:
        asked.append("walk")
        return reaches(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(surroundings, "optimizers", all_optimizers)
    monkeypatch.setattr(passing, "reaches_optimizer", walk)
    return asked


def test_the_optimizers_are_asked_for_once_per_finding(tmp_path: Path, asked: list[str]) -> None:
    several = "nets = [Net().eval(), Net().eval(), Net().eval()]\n"
    step = "one, two, three = nets[0](x), nets[1](x), nets[2](x)\n    (one + two + three).sum().backward()\n"
    found = findings(tmp_path, f"{several}for _ in range(5):\n    {step}")
    assert (found[0].times, len(found)) == (5, 3)
    assert sorted(asked) == ["optimizers"] * 3 + ["walk"] * 3


@pytest.mark.parametrize("held", [False, True])
def test_a_silent_form_is_looked_at_once(tmp_path: Path, asked: list[str], held: bool) -> None:
    net = "net = Net(num_layers=2, dropout=0.5).eval()\nnet.rnn.train()\n"
    kept = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n" if held else ""
    found = findings(tmp_path, f"{net}{kept}for _ in range(5):\n    net(x).sum().backward()\n")
    assert [(one.pattern, one.times) for one in found] == ([] if held else [("rnn-train-rest-eval", 5)])
    assert asked == ["optimizers"]


def test_the_note_says_how_many_are_written_down() -> None:
    every = dict.fromkeys(range(Count.TIMES), 0) | {Count.ATTACHED: 1, Count.FORWARDS: 1, Count.DROPPED: 2}
    assert limits(Collected(counts=every), Device.CPU) == (LEFT_OUT.format(facts.MOST_FACTS),)
