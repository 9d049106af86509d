"""The nouns: frozen, counted right, and made of the standard library alone."""

import ast
import importlib
import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import model
from harness.model import (
    Caveat,
    Device,
    KernelPath,
    Order,
    Outcome,
    Phase,
    Plan,
    Record,
    Sample,
    Settings,
    Sighting,
    Value,
    Variant,
    format_value,
)

VARIANT = Variant({"cell": "lstm", "layers": 2}, "cell=lstm")


def imports_of(module: ModuleType) -> set[str]:
    """The modules that ``module`` imports, itself or by way of others of this project."""
    tree = ast.parse(Path(str(module.__file__)).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in imported if name.partition(".")[0] == "harness"}
    return (imported - ours).union(*(imports_of(importlib.import_module(name)) for name in ours))


def test_only_the_standard_library_is_imported() -> None:
    assert {name.partition(".")[0] for name in imports_of(model)} <= sys.stdlib_module_names


def test_the_words_are_those_of_the_design() -> None:
    assert list(Outcome) == ["ok", "backward-error", "error", "oom", "timeout", "crash", "skipped", "not-run"]
    assert list(Phase) == ["build", "forward", "backward", "step", "evaluate"]
    assert list(Device) == ["cuda", "stub", "cpu"]
    assert list(KernelPath) == ["cudnn", "miopen", "mkldnn", "native"]


def test_on_the_stub_nothing_is_computed() -> None:
    assert [device for device in Device if not device.computes] == [Device.STUB]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((True, "true"), (False, "false"), (0, "0"), (1, "1"), (-3, "-3"), ("lstm", "lstm"), ("", "")),
        *((0.0, "0"), (0.5, "0.5"), (0.1, "0.1"), (1e-5, "1e-05"), (0.001953125, "0.001953125"), (1 / 3, repr(1 / 3))),
    ],
)
def test_a_value_is_spelt(value: Value, text: str) -> None:
    assert format_value(value) == text


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_two_floats_never_share_a_spelling(one: float, other: float) -> None:
    assert float(format_value(one)) == one
    assert (format_value(one) == format_value(other)) <= (one == other)


def test_a_key_is_of_axes_alone() -> None:
    assert Variant({"layers": 2, "cell": "lstm"}, "another label").key == VARIANT.key
    values: list[Value] = [1, 1.0, True, "1", "true", 0, 0.0, False, "0", ""]
    assert len({Variant({"a": value}, "").key for value in values}) == len(values)
    assert len({Variant(axes, "").key for axes in ({}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 1})}) == 5
    assert len(VARIANT.key) == 12
    assert set(VARIANT.key) <= set("0123456789abcdef")


def test_a_change_of_the_key_scheme_changes_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = VARIANT.key
    monkeypatch.setattr(model, "KEY_SCHEME", model.KEY_SCHEME + 1)
    assert VARIANT.key != before


def plan(*devices: Device, variants: int = 3, replicates: int = 1) -> Plan:
    return Plan("r", "m", "", "", devices, Settings(replicates=replicates), (VARIANT,) * variants)


@pytest.mark.parametrize(
    ("made", "attempts"),
    [
        (plan(), 0),
        (plan(Device.CPU, variants=0), 0),
        (plan(Device.CPU), 3),
        (plan(Device.STUB, Device.CPU), 6),
        (plan(Device.CPU, replicates=5), 15),
        (plan(Device.STUB, replicates=5), 3),
        (plan(Device.STUB, Device.CPU, replicates=5), 18),
        (plan(Device.CUDA, replicates=5), 15),
    ],
)
def test_replicates_count_where_kernels_really_run(made: Plan, attempts: int) -> None:
    assert made.attempts == attempts


def test_an_order_has_a_name_of_its_own_within_a_run() -> None:
    other = Variant({"cell": "gru"}, "cell=gru")
    orders = [
        Order("run", variant, device, Settings(), replicate, attempt)
        for variant in (VARIANT, other)
        for device in Device
        for replicate in (0, 1, 11)
        for attempt in (1, 11)
    ]
    assert len({order.name for order in orders}) == len(orders)


RECORD = Record("run", "key", "label", Device.CPU, Outcome.OK)


@pytest.mark.parametrize(
    "thing",
    [
        VARIANT,
        RECORD,
        plan(),
        Settings(),
        Sample(1, 1, 0.5),
        Sighting(1, 1, training=True),
        Order("run", VARIANT, Device.CPU, Settings()),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_a_noun_cannot_be_changed(thing: object) -> None:
    for field in fields(thing):  # type: ignore[arg-type]
        with pytest.raises(FrozenInstanceError):
            setattr(thing, field.name, None)


def test_what_was_not_observed_is_none_or_empty_and_never_zero() -> None:
    told = {"run", "key", "label", "device", "outcome", "replicate", "attempt", "sitting", "schema"}
    for field in fields(Record):
        if field.name not in told:
            assert getattr(RECORD, field.name) in (None, (), {}), field.name


def test_caveats_are_sentences_of_their_own() -> None:
    assert len(Caveat.__members__) == len(set(Caveat))
    assert all(caveat.endswith(".") and caveat[0].isupper() and "\n" not in caveat for caveat in Caveat)
