"""``harness show`` and ``harness repro`` over a store: what they find by which name, and all that they say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest
from builders import HOSTILE, die, fail, make_plan, make_records

from harness.campaign import Selection, choose
from harness.console import show_script, show_variant
from harness.console.variant import rerun_command, variant_lines
from harness.errors import HarnessError, NothingSelectedError, UsageError
from harness.matrix.axes import make_variant
from harness.matrix.expand import expand
from harness.matrix.naming import from_label, in_matrices, is_key, with_key
from harness.matrix.shelf import read_matrix
from harness.measured import Exactness, MachineState, Sample
from harness.model import Device, Outcome, Plan, Record, Variant
from harness.store.journal import Journal
from harness.store.layout import Store

Lines = list[str]


@pytest.fixture
def plan() -> Plan:
    return make_plan(cells=["lstm"], directions=[False], flags=["on"], fixed={"layers": 1, "dropout": 0.0})


@pytest.fixture
def store(plan: Plan, tmp_path: Path) -> Iterator[Store]:
    found = Store(tmp_path)
    with Journal.create(found.folder(plan.run), plan) as journal:
        for record in make_records(plan):
            journal.append(record)
    return found


def variant_of(plan: Plan, placement: str) -> Variant:
    return next(variant for variant in plan.variants if variant["placement"] == placement)


def lines(plan: Plan, variant: Variant, *records: Record) -> str:
    return "\n".join(variant_lines(plan, variant, records))


def test_show_says_everything(plan: Plan, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    variant = variant_of(plan, "eval-after-epoch")
    show_variant(store.latest(), variant.key[:8])
    said = capsys.readouterr().out
    for part in (
        f"variant {variant.key}  {variant.label}",
        "cell           lstm  (default)",
        "at the start: net.train()",
        "before the evaluation that follows every epoch: net.eval()",
        "predicted through cuDNN: raises",
        "on stub (PyTorch's CUDA code with no GPU behind it): backward-error",
        "on cpu (where no forward takes the cuDNN path): ok",
        "backward, epoch 2, step 1",
        "RuntimeError: cudnn RNN backward can only be called in training mode",
        "epoch 2, step 1: a training step's forward in eval mode through cuDNN; a gradient reached it",
        "says it has to raise, since an eval forward through cuDNN got a gradient; so it was",
        "(300.0 MiB)",
        "device_name    harness stub (no GPU)",
        "timed          epoch 1, warm-up: 6 steps in ",
        " ms each (forward ",
        "    relative error against float64 on the CPU: weights 1e-07, input 3e-07; float32 explains up to 0.0001",
        "what the attempts on cpu come to",
        " sequences/s; too few blocks to say whether the times have settled",
        "  gradient       exact: within what float32 rounds; repeatability not tested",
        "run it again, alone:  harness run matrix matrix -a ",
        f"harness repro {variant.key} --run {plan.run} > repro.py",
    ):
        assert part in said, part


def test_every_field_of_a_record_is_shown(plan: Plan) -> None:
    variant = variant_of(plan, "train-always")
    record = make_records(plan)[0]
    marks = {
        field.name: f"<{field.name}>"
        for field in fields(record)
        if field.name in {"error_message", "traceback_tail", "reason", "memory_source", "losses_digest", "output_tail"}
        or field.name in {"weights_digest", "fingerprint", "started", "signal", "error_type"}
    }
    said = lines(plan, variant, replace(record, **marks, key=variant.key))  # type: ignore[arg-type]
    assert [mark for mark in marks.values() if mark not in said] == []


def test_what_was_measured_is_read_by_people_not_by_parsers(plan: Plan) -> None:
    """No float with all its digits, no tuple, no field's name with an underscore but those that have a line."""
    variant = variant_of(plan, "train-always")
    state = MachineState(1.2345678, 2596.123, 1980, 45, 312.3456, ("sw-thermal", "hw-slowdown"), 2)
    blocks = (
        Sample(1, 1, 0.012345678901, warmup=True, machine=MachineState(load=0.5)),
        Sample(2, 6, 0.112345678901, 0.101234567890, forward_s=0.03, backward_s=0.06, optimizer_s=0.01, machine=state),
        Sample(3, 19, 0.05002777000004244, steady=True),
    )
    seen = Exactness(1.23456789e-7, 3.3e-8, "float32", 1e-4, False, "ab", ("rnn",), ("rnn", "dropout"), changed=("x",))
    record = replace(
        make_records(plan)[1], key=variant.key, samples=blocks, exactness=seen, first_loss=1.3702384233474731
    )
    said = lines(plan, variant, record)
    assert not re.search(r"\d\.\d{7,}|\('|_s \d|None", said)
    for part in (
        "epoch 1, warm-up: 1 step in 12.35 ms; load 0.5\n",
        "epoch 2, in the epoch: 6 steps in 101.2 ms on the device (112.3 ms by the clock on the wall), 16.87 ms each "
        "(forward 5, backward 10, optimizer 1.667); load 1.235, CPU 2,596 MHz, GPU 1,980 MHz, at 45 °C, drawing "
        "312.3 W, other processes on the GPU: 2, held down by sw-thermal, hw-slowdown\n",
        "epoch 3, steady: 19 steps in 50.03 ms, 2.633 ms each\n",
        "weights 1.2e-07, input 3.3e-08",
        "dropout active in: rnn, dropout\n",
        "left changed: x\n",
        "outputs are not, to the bit, those in eval mode\n",
        "first_loss     1.37024\n",
    ):
        assert part in said, part


def test_what_was_timed_before_an_attempt_failed_comes_to_nothing(plan: Plan) -> None:
    variant = variant_of(plan, "eval-after-epoch")
    (record,) = [r for r in make_records(plan) if r.key == variant.key and r.device is Device.CPU]
    block = Sample(1, 6, 0.1)
    well = lines(plan, variant, replace(record, samples=(block,)))
    failed = lines(plan, variant, replace(record, samples=(block,), outcome=Outcome.ERROR))
    assert "what the attempts on cpu come to\n  " in well
    assert "what the attempts on cpu come to" not in failed


def test_replicates_are_told_apart_and_summed_up(plan: Plan) -> None:
    variant = variant_of(plan, "train-always")
    twice = replace(plan, settings=replace(plan.settings, replicates=2))
    records = [r for r in make_records(twice) if r.key == variant.key]
    said = lines(twice, variant, *records)
    assert ", replicate 0, attempt 1: ok" in said and ", replicate 1, attempt 1: ok" in said
    assert said.count("what the attempts on cpu come to") == 1
    assert "; repeatable\n" in said
    assert "what the attempts on stub come to" not in said, "nothing was measured there"


def test_a_contradiction_is_loud_and_hostile_text_is_tame(plan: Plan) -> None:
    variant = variant_of(plan, "eval-always")
    record = next(r for r in make_records(plan) if r.key == variant.key and r.device is Device.STUB)
    assert "CONTRADICTS" in lines(plan, variant, replace(record, outcome=Outcome.OK))
    said = lines(
        plan, variant, replace(fail(record, Outcome.ERROR, HOSTILE), output_tail=HOSTILE, facts={"a": HOSTILE})
    )
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_a_variant_without_a_record_says_so(plan: Plan) -> None:
    variant = plan.variants[0]
    assert "on stub (PyTorch's CUDA code with no GPU behind it): not-run, there is no record" in lines(plan, variant)
    dead = die(make_records(plan)[0], Outcome.TIMEOUT, "still running after 60 s")
    said = lines(plan, variant, dead)
    assert "reason         still running after 60 s" in said
    assert "says nothing about an attempt that ended as timeout" in said


def test_a_timeout_is_shown_with_its_silence_and_the_last_stacks(plan: Plan) -> None:
    dead = die(make_records(plan)[0], Outcome.TIMEOUT, "still running after its deadline of 60 s; hung: it")
    dump = "Current thread 0x1 (most recent call first):\n  File x, line 3 in f"
    said = lines(plan, plan.variants[0], replace(dead, deadline_s=60.0, silent_s=58.5, output_tail=dump))
    assert "deadline_s     60\n" in said
    assert "silent_s       58.5\n" in said
    assert "    Current thread 0x1 (most recent call first):\n      File x, line 3 in f" in said


def test_a_glob_lists_what_it_means(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    show_variant(store.latest(), "placement=eval-output")
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 3
    assert "(stub backward-error, cpu ok)" in captured.out
    assert "3 variants match" in captured.err


def test_an_exact_label_is_one_variant_even_where_another_begins_so(
    plan: Plan, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    show_variant(store.latest(), variant_of(plan, "eval-always").label)
    assert capsys.readouterr().out.startswith("variant ")


@pytest.mark.parametrize(
    ("name", "kind", "hint"), [("0" * 12, UsageError, "lists? keys"), ("nothing*", NothingSelectedError, "Labels look")]
)
def test_unknown_names(store: Store, name: str, kind: type[HarnessError], hint: str) -> None:
    with pytest.raises(kind) as caught:
        show_variant(store.latest(), name)
    assert caught.value.exit_code == (2 if kind is UsageError else 3)
    assert __import__("re").search(hint, caught.value.advice)


def test_the_nearest_key_is_named_and_an_ambiguous_beginning_refused(plan: Plan) -> None:
    key = plan.variants[0].key
    with pytest.raises(UsageError, match="there is no variant") as caught:
        with_key(plan.variants, key[:8] + "0000", "here")
    assert key in caught.value.advice
    twice = {variant.key[0] for variant in plan.variants if sum(v.key[0] == variant.key[0] for v in plan.variants) > 1}
    with pytest.raises(UsageError, match="keys in here begin with") as caught:
        with_key(plan.variants, next(iter(twice)), "here")
    assert "Write more of it" in caught.value.advice
    assert with_key(plan.variants, key.upper(), "here") == plan.variants[0]


def test_repro_finds_a_run_then_a_matrix_then_a_label(
    plan: Plan, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    variant = variant_of(plan, "eval-always")
    show_script(store, variant.key, None)
    assert "Seen on a stub" in capsys.readouterr().out
    show_script(store, variant.label, None)
    assert f"Run {plan.run}" in capsys.readouterr().out
    other = expand(read_matrix("full")[1]).variants[-1]
    show_script(store, other.key[:10], None)
    assert "# Nobody has run this variant here yet" in (said := capsys.readouterr().out)
    assert "# Matrix full" in said
    show_script(store, "cell=gru,dtype=float16,seq-len=9", None)
    assert "Default settings" in capsys.readouterr().out
    with pytest.raises(UsageError, match="in run"):
        show_script(store, other.key, plan.run)


def test_repro_works_without_any_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_script(Store(tmp_path), "placement=eval-always", None)
    assert 'print("ok")' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("lstm", "neither a key nor a label"),
        ("cel=lstm", "no axis 'cel'"),
        ("cell=lsmt", "no value"),
        ("cell=lstm,cell=gru", "one value"),
        ("cell=all", "one value"),
        ("f" * 12, "no variant"),
    ],
)
def test_repro_of_what_is_none(tmp_path: Path, text: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint) as caught:
        show_script(Store(tmp_path), text, None)
    assert caught.value.advice


def test_keys_and_labels_are_told_apart() -> None:
    assert is_key("abc") and is_key("0123456789ab") and is_key("ABC")
    assert not is_key("lstm") and not is_key("0123456789abc") and not is_key("")
    assert from_label("cell=gru, bidirectional=yes") == make_variant({"cell": "gru", "bidirectional": True})
    name, settings, variant = in_matrices(expand(read_matrix("quick")[1]).variants[3].key)
    assert name in {"quick", "matrix"}
    assert settings.epochs == 3
    assert variant.key


@pytest.mark.parametrize("matrix", ["quick", "matrix", "full"])
def test_the_command_to_run_it_again_selects_it_alone(matrix: str) -> None:
    chosen = choose(Selection(matrix))
    plan = replace(make_plan(devices=[Device.STUB]), matrix=matrix, variants=chosen.expansion.variants)
    for variant in plan.variants[::37]:
        words = rerun_command(plan, variant)
        assert words[:4] == ["harness", "run", "matrix", matrix]
        assert words[-2:] == ["--device", "stub"]
        axes = tuple(words[i + 1] for i, word in enumerate(words) if word == "-a")
        assert [v.key for v in choose(Selection(matrix, axes)).expansion.variants] == [variant.key]
        narrowed = replace(plan, selection="-k 'cell=lstm'", variants=(variant,))
        axes = tuple(
            w for i, w in enumerate(rerun_command(narrowed, variant)) if rerun_command(narrowed, variant)[i - 1] == "-a"
        )
        assert [v.key for v in choose(Selection(matrix, axes)).expansion.variants] == [variant.key]


def test_a_file_of_ones_own_is_named_by_its_path(plan: Plan) -> None:
    own = replace(plan, matrix="mine", command=("harness", "run", "matrix", "sub/mine.yaml"))
    assert rerun_command(own, plan.variants[0])[3] == "sub/mine.yaml"
    program = Variant({"program": "simple-rnn"}, "program=simple-rnn")
    assert rerun_command(replace(plan, command=("harness", "run", "seed", "simple-rnn")), program)[2] == "seed"
