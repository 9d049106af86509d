"""The scripts of ``harness repro`` on the stub: each ends as its record says, at the same epoch and step."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from command import harness, kept

from harness import stub
from harness.matrix.axes import make_variant
from harness.matrix.expand import expand
from harness.matrix.shelf import names, read_matrix
from harness.model import Outcome, Phase, Plan, Record, Settings, Variant
from harness.placements import PLACEMENTS
from harness.repro.case import Case, case_of
from harness.repro.script import script_of

MANY_SCRIPTS = Path(__file__).parent / "programs" / "many_scripts.py"

KINDS: dict[str, Any] = {
    "cell": ["rnn-tanh", "rnn-relu", "lstm", "gru"],
    "bidirectional": [True],
    "cudnn": ["off"],
    "dtype": ["float64", "float16", "bfloat16"],
    "autocast": ["float16", "bfloat16"],
    "packed": [True],
    "proj-size": [8, 16],
    "layers": [2, 3],
    "dropout": [0.5],
    "batch-first": [True],
    "bias": [False],
    "norm": ["batch-norm"],
    "batch": [0, 1],
    "seq-len": [1, 64],
    "hidden-size": [1, 8],
}
"""What has to occur among the scripts that are run, besides every placement."""


def sample(plan: Plan) -> list[Variant]:
    """Two variants of every placement, with cuDNN on, and some of everything else that the matrix has."""
    through_cudnn = [variant for variant in plan.variants if variant["cudnn"] == "on"]
    by_placement = (islice((v for v in through_cudnn if v["placement"] == name), 0, None, 3) for name in PLACEMENTS)
    placements = chain.from_iterable(islice(variants, 2) for variants in by_placement)
    kinds: Iterator[Variant] = chain.from_iterable(
        islice((v for v in plan.variants[::-1] if v[axis] == value and v["placement"] == placement), 1)
        for axis, values in KINDS.items()
        for value in values
        for placement in ("eval-always", "train-each-epoch")
    )
    return list({variant.key: variant for variant in chain(placements, kinds)}.values())


@pytest.fixture(scope="module")
def run(full_on_stub: Path) -> tuple[Plan, dict[str, Record]]:
    plan, records = kept(full_on_stub)
    return plan, {record.key: record for record in records}


@pytest.fixture(scope="module")
def ended(run: tuple[Plan, dict[str, Record]]) -> dict[str, dict[str, Any]]:
    """How the script of every sampled variant ended, by the variant's key."""
    plan, records = run
    scripts = {v.key: script_of(case_of(plan, v, (records[v.key],))) for v in sample(plan)}
    done = subprocess.run(
        [sys.executable, str(MANY_SCRIPTS)],
        input=json.dumps(scripts),
        capture_output=True,
        text=True,
        check=False,
        env=stub.ensure().environment(os.environ),
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def test_the_sample_has_everything(run: tuple[Plan, dict[str, Record]]) -> None:
    plan, records = run
    chosen = sample(plan)
    assert len(chosen) >= 80
    assert {variant["placement"] for variant in chosen} == set(PLACEMENTS)
    missing = {(a, x) for a, values in KINDS.items() for x in values if not any(v[a] == x for v in chosen)}
    assert missing == set()
    outcomes = {records[variant.key].outcome for variant in chosen}
    assert outcomes == {Outcome.OK, Outcome.BACKWARD_ERROR, Outcome.ERROR}
    assert {records[variant.key].phase for variant in chosen} == {Phase.BACKWARD, Phase.EVALUATE}


def test_every_script_ends_as_its_record_says(
    run: tuple[Plan, dict[str, Record]], ended: dict[str, dict[str, Any]]
) -> None:
    wrong = {
        records.label: (said, wanted)
        for key, outcome in ended.items()
        if (said := ending(outcome)) != (wanted := expected_ending(records := run[1][key], run[0]))
    }
    assert wrong == {}


def ending(ended: dict[str, Any]) -> tuple[int, str, str]:
    """Exit code, the last place that the script named, and the last word it had."""
    places = re.findall(r"^epoch .*$", ended["out"], re.MULTILINE)
    last = (ended["err"] if ended["code"] else ended["out"]).strip().splitlines()[-1]
    return ended["code"], places[-1], last


def expected_ending(record: Record, plan: Plan) -> tuple[int, str, str]:
    if record.outcome is Outcome.OK:
        inner = ", step 1" if "inner-loop-in-eval" in record.label else ""
        return 0, f"epoch {plan.settings.epochs}, evaluation{inner}", "ok"
    evaluation = ", evaluation" if record.phase is Phase.EVALUATE else ""
    place = f"epoch {record.epoch}{evaluation}, step {record.step}"
    return 1, place, f"{record.error_type}: {record.error_message}"


def test_a_stranger_runs_the_printed_script(full_on_stub: Path, run: tuple[Plan, dict[str, Record]]) -> None:
    """The whole way: the command prints it, a file has it, plain Python runs it."""
    record = next(r for r in run[1].values() if r.epoch == 2 and r.outcome is Outcome.BACKWARD_ERROR)
    printed = harness("repro", record.key[:9], cwd=full_on_stub)
    assert (printed.code, printed.err) == (0, "")
    script = full_on_stub / "repro.py"
    script.write_text(printed.out)
    done = subprocess.run(
        [sys.executable, "repro.py"],
        cwd=full_on_stub,
        capture_output=True,
        text=True,
        check=False,
        env=stub.ensure().environment(os.environ),
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "epoch 2, step 1"
    assert done.stderr.splitlines()[-1] == "RuntimeError: cudnn RNN backward can only be called in training mode"
    assert done.stderr.splitlines()[0] == "Traceback (most recent call last):"
    head = printed.out.split("import torch")[0].replace("\n# ", " ")
    for said in ("a stub (PyTorch's own CUDA code with no GPU behind it", "torch 2", "cuDNN ", "epoch 2, step 1"):
        assert said in head


def test_without_a_gpu_a_script_says_in_a_sentence_what_it_needs(tmp_path: Path) -> None:
    script = tmp_path / "repro.py"
    script.write_text(script_of(Case(make_variant({"placement": "eval-always"}), Settings(), "Default settings")))
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "no GPU here; the top of this file says how to do without one\n"
    assert "# Without a GPU: `harness stub run -- python repro.py`" in script.read_text()


def test_show_imports_nothing_heavy(full_on_stub: Path, run: tuple[Plan, dict[str, Record]]) -> None:
    key = next(iter(run[1]))
    program = (
        "import sys; from harness.cli import cli\n"
        f"cli.main(['show', {key!r}], standalone_mode=False)\n"
        f"cli.main(['repro', {key!r}], standalone_mode=False)\n"
        "cli.main(['check'], standalone_mode=False)\n"
        "sys.exit(str({'torch', 'mlflow', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=full_on_stub, capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == "set()"
    assert key in done.stdout


@pytest.mark.skipif(find_spec("ruff") is None, reason="ruff is a development tool, and not installed here")
def test_every_script_is_as_ruff_would_format_it(tmp_path: Path) -> None:
    """At the default line length and at this project's; and ruff finds no name unused or unknown."""
    for name in names():
        matrix = read_matrix(name)[1]
        for variant in expand(matrix).variants:
            text = script_of(Case(variant, matrix.settings.settings(), name))
            (tmp_path / f"s{variant.key}.py").write_text(text)
    ruff = [sys.executable, "-m", "ruff"]
    checks = [
        [*ruff, "format", "--check", "--isolated", "--line-length", "88", str(tmp_path)],
        [*ruff, "format", "--check", "--isolated", "--line-length", "120", str(tmp_path)],
        [*ruff, "check", "--isolated", "--no-cache", "--select", "E,F,W,I,B,UP,SIM,RET,RUF", str(tmp_path)],
    ]
    for command in checks:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
