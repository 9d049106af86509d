"""What a person sees, and what machines read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.console.diagnosed import check_target, lines_of, show_diagnosis
from harness.diagnose.facts import Count
from harness.diagnose.findings import Diagnosis, Exit, Finding
from harness.diagnose.reading import findings_of
from harness.errors import HarnessError, StoreError, UsageError
from harness.model import Device
from tests.watched import findings, seen

PROGRAM = """
def validate(net):
    net.eval()
    with torch.no_grad():
        net(x)

net = Net().train()
for epoch in range(3):
    for batch in [x, x]:
        net(batch).sum().backward()  # \x1b[31m red
    validate(net)
"""


UNSEEN = (
    "an error of an RNN that was not seen, on cpu (where no forward takes the cuDNN path); no other was seen to run."
)


def diagnosis(found: tuple[Finding, ...] = (), **changes: Any) -> Diagnosis:
    plain: dict[str, Any] = {"device": Device.CPU, "exit": Exit(0), "forwards": 9, "cudnn_forwards": 6, "backwards": 6}
    return Diagnosis(findings=found, **plain | changes)


def test_a_finding_reads_like_a_compilers_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = findings(tmp_path, PROGRAM)
    show_diagnosis(diagnosis(found), None)
    out, err = capsys.readouterr()
    assert out == ""
    assert "\x1b" not in err
    lines = err.splitlines()
    assert lines[1].startswith(
        "harness diagnose: 1 error that a GPU would raise; saw 9 RNN forwards, 6 of them with a graph"
    )
    assert "error that a GPU would raise: eval-after-epoch: " in err
    assert "  layer: LSTM 'rnn' of Net (" in err
    assert "its 4th forward, in the 3rd backward pass that reached it; 4 times in all" in err
    at = lines.index(next(line for line in lines if "put into eval mode: eval() on Net" in line))
    assert f"{tmp_path}/program.py:" in lines[at]
    assert lines[at + 1].endswith("|     net.eval()")
    assert any(line.startswith("        +     net.train()") for line in lines)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "nothing wrong; saw 9 RNN forwards"),
        ({"forwards": 0}, "no RNN was seen to run, on cpu"),
        ({"forwards": 0, "ended_unseen": True}, UNSEEN),
        ({"ended_unseen": True}, "an error of an RNN that was not seen; saw 9 RNN forwards"),
        (
            {"forwards": 1, "cudnn_forwards": 1, "backwards": 1},
            "saw 1 RNN forward, with a graph that cuDNN would run on a GPU, and 1 backward pass that reached it,",
        ),
        (
            {"forwards": 1, "cudnn_forwards": 0, "backwards": 0},
            "saw 1 RNN forward, without a graph that cuDNN would run on a GPU, and 0 backward passes that reached it",
        ),
        ({"cudnn_forwards": 1, "backwards": 1}, "saw 9 RNN forwards, 1 of them with a graph that cuDNN would run"),
        ({"device": Device.STUB}, "on stub (PyTorch's CUDA code with no GPU behind it)"),
    ],
)
def test_silence_says_what_it_looked_at(changes: dict[str, Any], words: str) -> None:
    assert any(words in line for line in lines_of(diagnosis(**changes)))


def test_the_json_is_as_the_docs_have_it(tmp_path: Path) -> None:
    found = findings(tmp_path, PROGRAM)
    target = tmp_path / "d.json"
    show_diagnosis(diagnosis(found, notes=("limited",)), str(target))
    told = json.loads(target.read_text())
    documented = (Path(__file__).parents[2] / "docs" / "diagnose.md").read_text()
    (finding,) = told["findings"]
    for key in (*told, *finding, *finding["switch"], *finding["count"], *finding["cure"], *finding["cure"]["edits"][0]):
        assert f'"{key}"' in documented, key
    assert (told["notes"], finding["count"]) == (["limited"], {"forward": 4, "backward": 3, "times": 4})


def test_the_docs_show_what_is_printed(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "diagnose.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    found = seen(tmp_path, program)
    told = Diagnosis(
        Device.CPU,
        Exit(0),
        found.count(Count.FORWARDS),
        found.count(Count.CUDNN_FORWARDS),
        found.count(Count.BACKWARDS),
        findings=findings_of(list(found.facts.values()), found.times),
    )
    lines = "\n".join(lines_of(told)).strip().replace(f"{tmp_path}/program.py", "tagger.py")
    # Which kernels a CPU takes is a matter of the build.
    assert re.sub(r"\(\w+ kernels\)", "(native kernels)", lines) == printed.strip()


def test_a_cure_that_needs_harness_is_told_with_one_that_does_not(tmp_path: Path) -> None:
    found = findings(tmp_path, "net = Net().eval()\nnet(x).sum().backward()\n")
    without = "  or, without harness: `with torch.backends.cudnn.flags(enabled=False):` around the same forward"
    assert [line for line in lines_of(diagnosis(found)) if line.startswith(without)]
    text = (tmp_path / "program.py").read_text()
    other = text.replace("\nnet(x)", "\nwith torch.backends.cudnn.flags(enabled=False):\n    net(x)")
    assert other != text
    assert seen(tmp_path / "other", other).facts == {}
    assert not any("without harness" in line for line in lines_of(diagnosis(findings(tmp_path / "p", PROGRAM))))


@pytest.mark.parametrize(
    ("start", "words"),
    [("net = Net()", "no train() before; eval() for"), ("net = Net().train()", "train() before; eval() for")],
)
def test_a_train_that_was_not_seen_is_not_told(tmp_path: Path, start: str, words: str) -> None:
    loop = "for epoch in range(2):\n    for batch in [x, x]:\n        net(batch).sum().backward()\n"
    (found,) = findings(tmp_path, f"{start}\n{loop}    net.eval()\n    with torch.no_grad():\n        net(x)\n")
    assert found.pattern == "eval-after-epoch"
    assert found.summary.startswith(words)


def test_no_summary_refers_to_another(tmp_path: Path) -> None:
    program = "net = Net().eval()\nopt = torch.optim.SGD(net.parameters(), 0.1)\nnet(x).sum().backward()\nopt.step()\n"
    (found,) = findings(tmp_path, program)
    assert found.pattern == "eval-then-use"
    assert "the same" not in found.summary


def test_json_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="cannot write") as info:
        show_diagnosis(diagnosis(), str(tmp_path))
    assert info.value.advice == "Name another file with --json."
    assert not isinstance(info.value, StoreError)


@pytest.mark.parametrize(("name", "words"), [("", "is a folder"), ("absent/d.json", "there is no folder for")])
def test_json_that_cannot_be_written_is_told_before_anything_runs(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_target(str(tmp_path / name))
    for fine in (None, "-", str(tmp_path / "d.json")):
        check_target(fine)
