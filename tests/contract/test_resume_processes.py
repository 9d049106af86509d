"""Resumes with real processes: two at once, a device that is gone, a changed machine."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from command import assert_sentence_and_advice, ended, harness, kept, only_run, processes_of, started, wait_until

from harness.model import Device

SLOW = """
description: attempts that take long enough to be met at work
settings: {epochs: 400, steps: 50, evaluation_steps: 1, deadline: 60}
axes: {placement: [eval-no-grad, train-always, train-each-epoch]}
"""
WORDS = ("run", "matrix", "slow.yaml", "--device", "cpu", "--no-tracking", "-q")


def test_two_coordinators_on_one_run(tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(SLOW)
    mark = uuid.uuid4().hex
    with started(*WORDS, cwd=tmp_path, env={"HARNESS_TEST_MARK": mark}) as first:
        wait_until(lambda: first.poll() is not None or (list(tmp_path.glob("mlruns/runs/*/plan.json"))))
        assert first.poll() is None, first.communicate()
        run = only_run(tmp_path).run
        status = json.loads(harness("status", "--json", cwd=tmp_path).out)
        assert status["state"] == "running"
        for words in (("run", "matrix", "--resume"), ("run", "matrix", "--resume", run, "--no-tracking"), ("sync",)):
            refused = harness(*words, cwd=tmp_path)
            assert (refused.code, refused.out) == (2, "")
            assert_sentence_and_advice(refused.err, f"another harness process is working on run {run}")
        assert first.poll() is None, "the first goes on"
        first.kill()
        first.wait()
    # What was refused is allowed at once when the first is dead, however it died; now two begin together.
    (tmp_path / "slow.yaml").write_text("the plan has the variants, nobody reads this any more")
    resume = ("run", "matrix", "--resume", run, "--no-tracking", "-q")
    with started(*resume, cwd=tmp_path) as one, started(*resume, cwd=tmp_path) as other:
        wait_until(lambda: one.poll() is not None or other.poll() is not None)
        loser, winner = (one, other) if one.poll() is not None else (other, one)
        lost = ended(loser)
        assert lost.code == 2, lost.err
        assert_sentence_and_advice(lost.err, "another harness process is working")
        winner.send_signal(signal.SIGINT)
        winner.send_signal(signal.SIGINT)
        assert ended(winner).code == 130
    _, records = kept(tmp_path)
    assert len({(record.key, record.attempt) for record in records}) == len(records)
    wait_until(lambda: not processes_of(mark))


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run on the CPU of which two records are missing."""
    root = tmp_path_factory.mktemp("unfinished")
    words = ("run", "matrix", "quick", "-a", "cell=lstm", "-a", "cudnn=on", "--device", "cpu", "--no-tracking", "-q")
    assert harness(*words, cwd=root).code == 0
    journal = only_run(root).records
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-2]) + lines[-2][:50])
    return root


def test_a_device_that_is_gone_is_one_sentence(unfinished: Path, tmp_path: Path) -> None:
    folder = only_run(unfinished)
    copy = tmp_path / "mlruns" / "runs" / folder.run
    copy.mkdir(parents=True)
    for file in (folder.plan, folder.records):
        (copy / file.name).write_bytes(file.read_bytes().replace(b'"cpu"', b'"cuda"'))
    before = (copy / "records.jsonl").read_bytes()
    # Nothing that this machine may have is to be seen.
    refused = harness("run", "matrix", "--resume", cwd=tmp_path, env={"CUDA_VISIBLE_DEVICES": "-1"})
    assert (refused.code, refused.out) == (2, "")
    assert_sentence_and_advice(refused.err, f"run {folder.run} cannot go on here, since it was planned on cuda")
    cut = before[: before.rindex(b"\n") + 1]
    assert (copy / "records.jsonl").read_bytes() == cut, "half a line is cut off, and no record is added"
    assert not (copy / "sittings.jsonl").exists()


def test_a_machine_that_has_changed_is_said_kept_and_reported(unfinished: Path) -> None:
    folder = only_run(unfinished)
    plan = json.loads(folder.plan.read_text())
    plan["environment"]["torch"], plan["environment"]["git_commit"] = "2.5.0", "0123abc"
    folder.plan.write_text(json.dumps(plan) + "\n")
    looked = harness("run", "matrix", "--resume", "--dry-run", cwd=unfinished)
    assert (looked.code, len(looked.out.splitlines())) == (0, 2)
    assert all(line.endswith("(missing)") for line in looked.out.splitlines())
    end = harness("run", "matrix", "--resume", "--no-tracking", cwd=unfinished)
    assert end.code == 0, end.err
    assert "on cpu" not in end.err, "what the device was not asked is not said to have changed"
    assert re.search(r"^note: not as in sitting 1: torch 2\.5\.0, now ", end.err, re.MULTILINE)
    assert "goes on: 2 of 12 attempts of quick, sitting 2" in end.err
    planned, records = kept(unfinished)
    assert planned.devices == (Device.CPU,)
    assert [record.sitting for record in records] == [1] * 10 + [2] * 2
    report = folder.report.read_text()
    assert "Sitting 2 made 2 of the 12 attempts that count, and not under the conditions of sitting 1: " in report
    assert "torch 2.5.0, now " in report
    assert all(record.label in report.partition("## Caveats")[2] for record in records[-2:])
    assert "other than in sitting 1: torch 2.5.0, now " in harness("status", cwd=unfinished).out

    # Now it is complete.
    journal, sittings = folder.records.read_bytes(), folder.sittings.read_bytes()
    folder.report.unlink()
    end = harness("run", "matrix", "--resume", "--no-tracking", cwd=unfinished)
    assert end.code == 0
    assert "nothing is missing, all 12 planned attempts are recorded" in end.err
    assert folder.report.read_text() == report
    assert (folder.records.read_bytes(), folder.sittings.read_bytes()) == (journal, sittings)


def test_nothing_heavy_is_imported_for_status(unfinished: Path) -> None:
    script = (
        "import sys; sys.argv = ['harness', 'status'];\n"
        "from harness.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'mlflow', 'pandas', 'matplotlib', 'sqlalchemy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=unfinished, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
