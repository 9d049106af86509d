"""Every example of docs/fix-it.md runs, and ends in the error without its cure; what is said not to help does not."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness import stub
from harness.modes.error import CUDNN_SAYS
from harness.placements import PLACEMENTS
from tests.contract.command import harness as run_harness
from tests.contract.programs.snippets import ended

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
PAGE = (DOCS / "fix-it.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SETUP, EXAMPLES = BLOCKS[0], BLOCKS[1:]
RAISES = f"RuntimeError: {CUDNN_SAYS}"

TAKES_A_GPU = 'device = "cuda" if torch.cuda.is_available() else "cpu"\n'
SETUP_ON_CPU = SETUP.replace(TAKES_A_GPU, 'device = "cpu"\n')


def without_a_cure(example: str) -> list[str]:
    """The example as often as it has cures, each time without one of them."""
    lines = example.splitlines()
    return [
        "\n".join([*lines[:number], uncured(line), *lines[number + 1 :]])
        for number, line in enumerate(lines)
        if "# cure" in line
    ]


def uncured(line: str) -> str:
    code, _, text = (part.strip() for part in line.partition("# cure"))
    indent = line[: len(line) - len(line.lstrip())]
    if text.startswith(": "):
        assert text[2:] in code
        return indent + code.replace(text[2:], "")
    return indent + ("if True:" if code.endswith(":") else "pass")


FAULTY = [faulty for example in EXAMPLES for faulty in without_a_cure(example)]

BEGIN = "model.eval()\nloss = loss_of(model, batches[0])\n"
FIRST_WEIGHT = "model.adapter.weight.grad"
MYTHS = {
    "`train()` just before `backward()`": (BEGIN + "model.train()\nloss.backward()", RAISES),
    "cuDNN off around the `backward()`": (
        BEGIN + "with torch.backends.cudnn.flags(enabled=False):\n    loss.backward()",
        RAISES,
    ),
    "`requires_grad_(False)` on the RNN": ("model.rnn.requires_grad_(False)\n" + BEGIN + "loss.backward()", RAISES),
    "`backward(retain_graph=True)`": (BEGIN + "loss.backward(retain_graph=True)", RAISES),
    "`zero_grad()`, or a new optimizer": (
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n" + BEGIN + "optimizer.zero_grad()\nloss.backward()",
        RAISES,
    ),
    "`with torch.enable_grad():` around the forward": (
        "model.eval()\nwith torch.enable_grad():\n    loss = loss_of(model, batches[0])\nloss.backward()",
        RAISES,
    ),
    "`with torch.no_grad():` around the forward": (
        "model.eval()\nwith torch.no_grad():\n    loss = loss_of(model, batches[0])\nloss.backward()",
        "RuntimeError: element 0 of tensors does not require grad",
    ),
    "`model.train()` for saliency": ("model.train()\nloss_of(model, batches[0]).backward()", "ok"),
    "running on a CPU": ("model.cpu().eval()(batches[0][0].cpu()).sum().backward()", "ok"),
}


@pytest.fixture(scope="module")
def on_stub(stub_device: None) -> dict[str, str]:
    """How every piece of code of this page ended on the stub; one process for all."""
    pieces = [*EXAMPLES, *FAULTY, *(code for code, _ in MYTHS.values())]
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.programs.snippets"],
        input=json.dumps([SETUP + piece for piece in pieces]),
        env=stub.ensure().environment(os.environ) | {"PYTHONPATH": str(REPOSITORY)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(pieces, json.loads(done.stdout), strict=True))


def on_cpu(piece: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()):
        return ended(SETUP_ON_CPU + piece)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs_on_the_stub_and_on_a_cpu_where_the_guard_is_silent(
    number: int, on_stub: dict[str, str]
) -> None:
    assert on_stub[EXAMPLES[number]] == "ok"
    with harness.guard():
        assert on_cpu(EXAMPLES[number]) == "ok"


@pytest.mark.parametrize("number", range(len(FAULTY)))
def test_an_example_without_its_cure_raises_on_the_stub_and_under_the_guard(
    number: int, on_stub: dict[str, str]
) -> None:
    assert on_stub[FAULTY[number]].startswith(RAISES)
    assert on_cpu(FAULTY[number]) == "ok", "on a CPU nothing is raised"
    with harness.guard():
        assert on_cpu(FAULTY[number]).startswith("EvalModeBackwardError: A gradient reached the LSTM 'rnn' of Tagger")


def test_what_runs_on_a_cpu_takes_no_gpu_where_there_is_one() -> None:
    assert SETUP.count(TAKES_A_GPU) == 1
    for piece in (SETUP_ON_CPU, *EXAMPLES, *FAULTY):
        assert "cuda" not in piece


def test_every_example_has_a_cure_and_no_other_is_on_the_page() -> None:
    assert all(without_a_cure(example) for example in EXAMPLES)
    assert len(BLOCKS) == PAGE.count("```python")
    assert sum("captum" in example for example in EXAMPLES) == 1


def test_the_page_begins_with_the_message() -> None:
    assert PAGE.startswith(f"# {RAISES}\n\n```text\n{RAISES}\n```\n")


def test_what_is_said_not_to_help_does_not(on_stub: dict[str, str]) -> None:
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", PAGE.split("## What does not help")[1], re.MULTILINE)[1:]
    assert [row for row, _ in rows] == list(MYTHS)
    for row, said in rows:
        code, expected = MYTHS[row]
        assert on_stub[code].startswith(expected), row
        kind = "the same error" if expected == RAISES else "another error" if expected != "ok" else "no error"
        assert said.startswith(kind), row


def test_train_mode_gives_another_gradient_than_eval_mode() -> None:
    code = f"""
torch.manual_seed(0)
gradients = []
for train in (False, False, True):
    model.train(train)
    model.zero_grad()
    loss_of(model, batches[0]).backward()
    gradients.append({FIRST_WEIGHT}.clone())
assert torch.equal(gradients[0], gradients[1])
assert not torch.allclose(gradients[0], gradients[2])
"""
    assert on_cpu(code) == "ok"


def test_the_diagnosis_on_the_page_is_that_of_its_first_example(stub_device: None, tmp_path: Path) -> None:
    lines = EXAMPLES[0].splitlines(keepends=True)
    (tmp_path / "train.py").write_text(SETUP + "\n" + "".join(line for line in lines if "# cure" not in line))
    (shown,) = re.findall(r"```text\n(error: .*?)```", PAGE, re.DOTALL)
    ended = run_harness("diagnose", "--device", "stub", "train.py", cwd=tmp_path)
    assert ended.code == 1
    assert f"\n\n{shown}\n" in ended.err


def test_links_lead_somewhere() -> None:
    headings = {name: anchors((DOCS / name).read_text()) for name in ("fix-it.md", "guard.md")}
    for target in re.findall(r"\]\(([^)]*)\)", PAGE):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        assert (DOCS / (file or "fix-it.md")).exists(), target
        assert not anchor or anchor in headings[file or "fix-it.md"], target


def anchors(page: str) -> set[str]:
    """What GitHub calls the headings of a page."""
    found = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_placement_that_raises_has_its_case_on_the_page() -> None:
    cases = {
        "eval-after-epoch": "training-loops",
        "eval-by-helper": "helpers-and-callbacks",
        "eval-always": "saliency-and-attribution",
        "eval-then-use": "gradients-inside-an-evaluation",
        "train-before-backward": "what-does-not-help",
        "rnn-eval-rest-train": "frozen-rnns",
        "inner-loop-in-eval": "gradients-inside-an-evaluation",
        "eval-output-reused": "older-outputs",
        "eval-cudnn-off-backward": "what-does-not-help",
    }
    assert set(cases) == {name for name, placement in PLACEMENTS.items() if placement.raises}
    assert set(cases.values()) <= anchors(PAGE)
