"""Scripts as text: they compile, import PyTorch alone, and hold nothing that their variant does not need."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache

import pytest
from builders import HOSTILE, fail, make_plan, make_record
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.matrix.axes import AXES, make_variant
from harness.matrix.expand import expand
from harness.matrix.rules import impossible
from harness.matrix.shelf import names, read_matrix
from harness.model import Device, Outcome, Record, Settings, Value, Variant
from harness.placements import PLACEMENTS
from harness.repro.case import Case, case_of
from harness.repro.header import cudnn_version
from harness.repro.script import WRITTEN, script_of
from harness.repro.text import WIDTH

TORCH_ONLY = {"torch", "torch.nn.utils.rnn"}
DEFAULTS = Settings()


def script(variant: Variant, settings: Settings = DEFAULTS, *records: Record) -> str:
    return script_of(Case(variant, settings, "Matrix full", records))


def of(**axes: Value) -> str:
    return script(make_variant({name.replace("_", "-"): value for name, value in axes.items()}))


def imported(text: str) -> set[str]:
    """The modules that a script imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
    return found


def code(text: str) -> str:
    """A script without its comments."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


@cache
def shipped() -> list[Variant]:
    return [variant for name in names() for variant in expand(read_matrix(name)[1]).variants]


def test_every_shipped_variant_gives_a_short_script_of_torch_alone() -> None:
    lengths = []
    for variant in shipped():
        text = script(variant)
        compile(text, variant.key, "exec", dont_inherit=True)
        assert imported(text) <= TORCH_ONLY, variant.label
        assert "harness" not in code(text)
        assert max(map(len, text.splitlines())) <= WIDTH, variant.label
        lengths.append(len(text.splitlines()))
    assert sorted(lengths)[len(lengths) // 2] <= 60
    assert max(lengths) <= 90


def axis_values() -> st.SearchStrategy[dict[str, Value]]:
    def one(name: str) -> st.SearchStrategy[Value]:
        spec = AXES[name]
        match spec.kind:
            case "choice":
                return st.sampled_from(spec.choices)
            case "switch":
                return st.booleans()
            case "integer":
                return st.integers(spec.minimum, 10**6)
            case "fraction":
                return st.floats(0, 0.999)

    return st.fixed_dictionaries({name: one(name) for name in AXES})


@settings(max_examples=150, deadline=None)
@given(
    axes=axis_values(),
    loop=st.builds(
        Settings,
        epochs=st.integers(1, 1000),
        steps=st.integers(1, 10_000),
        evaluation_steps=st.integers(0, 100),
        seed=st.integers(0, 2**63 - 1),
        learning_rate=st.floats(0, 1e6),
    ),
)
def test_any_possible_variant_with_any_settings_gives_a_script(axes: dict[str, Value], loop: Settings) -> None:
    variant = make_variant(axes)
    if impossible(variant) is None:
        text = script(variant, loop)
        assert imported(text) <= TORCH_ONLY
        assert text.endswith('print("ok")\n')


def test_a_script_has_only_what_its_variant_needs() -> None:
    plain = code(of(placement="train-always"))
    for absent in (
        "eval()",
        "dropout",
        "norm",
        "pack",
        "autocast",
        "cudnn.enabled",
        "encoder",
        "kept",
        "if step",
        "float16",
    ):
        assert absent not in plain, absent
    assert plain.count("net.train()") == 1
    assert "optimizer" not in of(placement="eval-always")
    assert "net.rnn.dropout" not in of(placement="rnn-train-dropout-zero")
    assert "net.rnn.dropout = 0.25" in of(placement="rnn-train-dropout-zero", layers=2, dropout=0.25)
    assert "torch.backends.cudnn.enabled = False" in of(placement="eval-cudnn-off-process")
    assert "torch.backends.cudnn.enabled = False" in of(cudnn="off")
    assert "self.train()" in of(placement="train-in-forward")
    assert "class NoGradient" in of(placement="eval-output-unused")
    assert 'nonlinearity="relu"' in of(cell="rnn-relu")
    assert "nonlinearity" not in of(cell="rnn-tanh")
    assert "torch.float64" in of(dtype="float64")
    assert "logits.float()" in of(dtype="float16")
    assert "logits.float()" not in of(dtype="float64")


def test_the_helper_switches_where_the_loop_does() -> None:
    text = script(make_variant({"placement": "eval-by-helper"}), Settings(steps=7))
    assert "        if step == 4:\n            net.eval()\n" in text


def test_without_an_evaluation_there_is_none() -> None:
    text = code(script(make_variant({}), Settings(evaluation_steps=0)))
    assert "held_out" not in text
    assert "no_grad" not in text
    assert "range(1, 2)" in script(make_variant({"placement": "inner-loop-in-eval"}), Settings(evaluation_steps=0))


@pytest.mark.parametrize("name", PLACEMENTS)
def test_the_header_says_what_was_seen_where(name: str) -> None:
    plan = make_plan(placements=[name], cells=["lstm"], directions=[False], flags=["on"])
    variant = plan.variants[0]
    records = tuple(make_record(plan, variant, device) for device in plan.devices)
    text = script_of(case_of(plan, variant, records))
    head = " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))
    assert f"{name}: " in head
    assert "Seen on a stub (PyTorch's own CUDA code with no GPU behind it" in head
    assert "Seen on a CPU, where no forward takes the cuDNN path" in head
    assert "torch 2.14.1" in head
    assert "cuDNN 9.19.0" in head
    assert variant.key in head
    assert f"Run {plan.run}" in head


def test_the_device_is_the_one_that_has_something_to_show() -> None:
    plan = make_plan(placements=["train-always"], cells=["lstm"], directions=[False], flags=["on"])
    variant = plan.variants[0]
    stub, cpu = (make_record(plan, variant, device) for device in (Device.STUB, Device.CPU))
    assert '.to("cuda")' in script_of(case_of(plan, variant, (stub, cpu)))
    failed = script_of(case_of(plan, variant, (stub, fail(cpu, Outcome.ERROR, "no such primitive"))))
    assert '.to("cpu")' in failed
    assert "cuda" not in code(failed)
    assert "torch.set_num_threads(1)" in failed


def test_nothing_that_a_record_says_leaves_the_comment() -> None:
    plan = make_plan(placements=["train-always"], cells=["lstm"], directions=[False], flags=["on"])
    record = fail(make_record(plan, plan.variants[0], Device.STUB), Outcome.ERROR, HOSTILE + '\n"""\nexit(1)', "a\nb")
    record = replace(record, facts=dict(record.facts) | {"torch": "2\nexit(1)"})
    bare = code(script(plan.variants[0]))
    assert code(script_of(case_of(plan, plan.variants[0], (record,)))) == bare


@pytest.mark.parametrize(("number", "words"), [(92400, "9.24.0"), (90100, "9.1.0"), (8902, "8.9.2"), ("?", "?")])
def test_cudnn_versions_read_as_people_write_them(number: object, words: str) -> None:
    assert cudnn_version(number) == words


def test_what_no_script_can_say_is_refused() -> None:
    program = Variant({"program": "simple-rnn", "form": "fixed"}, "program=simple-rnn,form=fixed")
    with pytest.raises(UsageError, match="program of its own"):
        script(program)
    strange = Variant(dict(make_variant({}).axes) | {"quantum": True}, "quantum=true")
    with pytest.raises(UsageError, match="'quantum'"):
        script(strange)
    older = Variant({name: value for name, value in make_variant({}).axes.items() if name != "norm"}, "")
    with pytest.raises(UsageError, match="'norm'"):
        script(older)


def test_scripts_know_every_axis() -> None:
    assert set(WRITTEN) == set(AXES)
