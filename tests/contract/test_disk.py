"""Disks full, read-only or emptied by somebody, and journals of a newer harness: one sentence, and nothing lost."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from command import (
    HARNESS,
    Ended,
    assert_sentence_and_advice,
    environment,
    harness,
    kept,
    only_run,
    started,
    wait_until,
)

import harness as package
from harness.matrix.axes import make_variant
from harness.model import Device, Outcome, Plan, Record, Settings
from harness.store.journal import Journal, read_records
from harness.store.layout import RunFolder, Store, new_run_id

SMALL = """
settings: {epochs: 2, steps: 2, evaluation_steps: 1}
axes: {placement: [eval-always, train-always, train-each-epoch]}
"""
RUN = "run matrix small.yaml --device cpu"

NEEDED = {"HARNESS": HARNESS, "PACKAGE": str(Path(package.__file__).parent), "PYTHON": sys.base_prefix}
MOUNT = 'mount -t tmpfs -o "size=$1" none "$2"'
STEPS = """
set -e
step() { n=$1; shift; set +e; "$HARNESS" "$@" >"$OUT/$n.out" 2>"$OUT/$n.err"; echo $? >"$OUT/$n.code"; set -e; }
"""


@dataclass(frozen=True)
class Alone:
    """A mount namespace for a script, in which ``store`` can be any file system; what it says lands in ``out``."""

    store: Path
    out: Path

    def run(self, script: str) -> None:
        """Run a shell ``script``; ``step NAME WORDS`` in it runs ``harness WORDS`` in the store."""
        variables = environment({**NEEDED, "OUT": str(self.out), "STORE": str(self.store)})
        words = ["unshare", "--map-root-user", "--mount", "sh", "-c", STEPS + script]
        end = subprocess.run(words, env=variables, cwd="/", capture_output=True, text=True, check=False, timeout=240)
        assert end.returncode == 0, end.stderr

    def step(self, name: str) -> Ended:
        """How a step ended."""
        texts = ((self.out / f"{name}.{kind}").read_text() for kind in ("code", "out", "err"))
        code, out, err = texts
        return Ended(int(code), out, err)


@pytest.fixture
def alone(tmp_path: Path) -> Alone:
    """Skips where this system lets nobody mount anything."""
    made = Alone(tmp_path / "store", tmp_path / "out")
    made.store.mkdir()
    made.out.mkdir()
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh", "4k", str(made.store)]
    try:
        end = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        pytest.skip("needs unshare (util-linux)")
    if end.returncode:
        pytest.skip(f"nothing can be mounted here: {end.stderr.strip()}")
    return made


@pytest.mark.timeout(240)
def test_a_full_disk_costs_nothing_that_was_recorded_and_the_run_goes_on(alone: Alone) -> None:
    """Two pages: the plan has one, the journal the other, which the third record no longer fits into."""
    (alone.out / "small.yaml").write_text(SMALL)
    alone.run(f"""
        mount -t tmpfs -o size=8k none "$STORE"; cd "$STORE"
        step run {RUN.replace("small.yaml", '"$OUT/small.yaml"')} --no-tracking
        step status status
        cp -a "$STORE" "$OUT/full"
        mount -o remount,size=4m "$STORE"
        step resume run matrix --resume --no-tracking
        cp -a "$STORE" "$OUT/freed"
    """)
    run = alone.step("run")
    assert run.code == 4
    assert_told(run, "records.jsonl: the disk is full", "Free some space")
    plan, records = kept(alone.out / "full")
    assert 0 < len(records) < plan.attempts == 3
    journal = only_run(alone.out / "full").records.read_bytes()
    assert journal.endswith(b"}\n")
    status = alone.step("status")
    assert status.code == 0
    assert "--resume" in status.out

    assert alone.step("resume").code == 0, alone.step("resume").err
    assert only_run(alone.out / "freed").records.read_bytes().startswith(journal)
    assert [record.sitting for record in kept(alone.out / "freed")[1]] == [1] * len(records) + [2] * (3 - len(records))


def test_a_limit_on_the_size_of_files_is_told_like_a_full_disk(tmp_path: Path) -> None:
    """The same without being root: the journal may have 4 KiB."""
    (tmp_path / "small.yaml").write_text(SMALL)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    run = harness(*RUN.split(), "--no-tracking", cwd=tmp_path, preexec_fn=limit)
    assert run.code == 4
    assert_told(run, "records.jsonl: file too large", "--store DIR")
    _, records = kept(tmp_path)
    assert len(records) in {1, 2}
    assert only_run(tmp_path).records.read_bytes().endswith(b"}\n")


@pytest.mark.timeout(240)
def test_a_full_disk_of_mlflow_is_a_caveat_that_a_sync_makes_up_for(alone: Alone, tmp_path: Path) -> None:
    root = tmp_path / "elsewhere"
    root.mkdir()
    (root / "small.yaml").write_text(SMALL)
    alone.run(f"""
        mount -t tmpfs -o size=1m none "$STORE"; head -c 900k /dev/zero >"$STORE/fill"; cd "{root}"
        step run {RUN} --tracking-uri "sqlite:///$STORE/mlflow.db"
        rm "$STORE/fill"; mount -o remount,size=4m "$STORE"
        step sync sync --tracking-uri "sqlite:///$STORE/mlflow.db"
    """)
    run = alone.step("run")
    assert run.code == 0, run.err
    assert "harness sync" in run.out + run.err
    assert "Traceback" not in run.err
    assert "ERROR" not in run.err
    assert "full" in only_run(root).report.read_text()
    assert len(kept(root)[1]) == 3
    assert alone.step("sync").code == 0, alone.step("sync").err


@pytest.mark.timeout(240)
def test_no_room_for_temporary_files_hurts_no_attempt(alone: Alone) -> None:
    """With breadcrumbs in a file on a full disk, whoever wrote one would die of SIGBUS, by no fault of its own."""
    (alone.out / "small.yaml").write_text(SMALL)
    alone.run(f"""
        mount --bind "$OUT" /mnt; mount -t tmpfs none "$STORE"
        cp "$OUT/small.yaml" "$STORE"; mount --bind "$STORE" /srv; OUT=/mnt
        TMPDIR=; for full in /tmp /var/tmp /dev/shm; do
            [ -d $full ] || continue
            for needed in "$HARNESS" "$PACKAGE" "$PYTHON"; do  # it would be hidden with all that is there
                case "$needed" in $full/*) continue 2;; esac
            done
            mount -t tmpfs -o size=4k none $full; head -c 64k /dev/zero >$full/fill 2>/dev/null || true
            export TMPDIR=$full
        done
        test "$TMPDIR"; cd /srv
        step run {RUN} --no-tracking
        cp -a /srv /mnt/kept
    """)
    assert alone.step("run").code == 0, alone.step("run").err
    assert [record.outcome for record in kept(alone.out / "kept")[1]] == [Outcome.OK] * 3


def keep_a_run(root: Path) -> RunFolder:
    """A run of one variant with its record, as a harness leaves it."""
    variant = make_variant({})
    folder = Store(root).folder(new_run_id())
    plan = Plan(folder.run, "quick", "", "2026-01-01T00:00:00+00:00", (Device.CPU,), Settings(), (variant,))
    with Journal.create(folder, plan) as journal:
        journal.append(Record(folder.run, variant.key, variant.label, Device.CPU, Outcome.OK))
    return folder


@pytest.mark.timeout(240)
def test_a_read_only_store_can_be_looked_at_and_is_not_written_to(alone: Alone) -> None:
    folder = keep_a_run(alone.store)
    (alone.out / "small.yaml").write_text(SMALL)
    alone.run(f"""
        mount --bind "$STORE" /mnt; mount -o remount,bind,ro /mnt; cd /mnt
        step run {RUN.replace("small.yaml", '"$OUT/small.yaml"')} --no-tracking
        step resume run matrix --resume --retry all --no-tracking
        step sync sync
        step report report
        step status status
        step show show {make_variant({}).key}
    """)
    for name in ("run", "resume", "sync"):
        assert alone.step(name).code == 4, name
        assert_told(alone.step(name), "read-only file system", "--store DIR")
    for name in ("report", "status", "show"):
        assert (alone.step(name).code, alone.step(name).err) == (0, ""), name
    assert "at work" not in alone.step("status").out
    assert len(read_records(folder)) == 1


@pytest.mark.timeout(240)
def test_a_run_folder_that_is_deleted_meanwhile_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text("settings: {epochs: 10, steps: 50, deadline: 60}\naxes: {cell: all}\n")
    with started("run", "matrix", "long.yaml", "--device", "cpu", "--no-tracking", cwd=tmp_path) as process:
        wait_until(lambda: process.poll() is not None or list(tmp_path.glob("mlruns/runs/*/records.jsonl")))
        folder = only_run(tmp_path)
        wait_until(lambda: process.poll() is not None or read_records(folder))
        shutil.rmtree(folder.path)
        _, err = process.communicate(timeout=120)
    end = Ended(process.returncode, "", err)
    assert end.code == 4
    assert_told(end, "records.jsonl was deleted while the run was writing to it", "Start a new run")
    assert not folder.plan.exists()


GONE = ("report", "status", "sync", "run matrix --resume")


def test_a_run_folder_that_was_deleted_is_no_run_any_more(tmp_path: Path) -> None:
    other, gone = keep_a_run(tmp_path), keep_a_run(tmp_path)
    shutil.rmtree(gone.path)
    for words in GONE:
        end = harness(*words.split(), gone.run, cwd=tmp_path)
        assert end.code == 2, words
        assert_told(end, f"no run '{gone.run}'", other.run)
    assert len(read_records(other)) == 1


NEWER = {
    "records.jsonl": ("report", "status", "sync", "check", "run matrix --resume --retry all", "show 0"),
    "plan.json": ("report", "run matrix --resume"),
}


@pytest.mark.parametrize("file", NEWER)
def test_what_a_newer_harness_wrote_is_left_alone(tmp_path: Path, file: str) -> None:
    path = keep_a_run(tmp_path).path / file
    newer = '{"schema": 99, "colour": "green"}\n'
    path.write_text(path.read_text() + newer if file == "records.jsonl" else newer)
    before = path.read_bytes()
    for words in NEWER[file]:
        end = harness(*words.split(), cwd=tmp_path)
        assert end.code == 4, words
        assert_told(end, f"{file}", "schema 99, newer than", "Upgrade harness")
        assert path.read_bytes() == before


def assert_told(end: Ended, *hints: str) -> None:
    """The last two lines are one sentence and one advice; before them stands at most how the run went."""
    *before, sentence, advice = end.err.splitlines()
    assert_sentence_and_advice(f"{sentence}\n{advice}", *hints)
    assert not [line for line in before if not line.startswith("run ")], end.err
