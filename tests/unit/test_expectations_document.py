"""The file of expectations: what it may say; the shipped one speaks of everything, and no rule in it is dead."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from harness.expectations.compare import Kind
from harness.expectations.document import Expectations, ExpectationsFileError, Expected, parse_expectations
from harness.expectations.shelf import locate, read_expectations
from harness.matrix.axes import make_variant
from harness.matrix.expand import expand
from harness.matrix.shelf import names, read_matrix
from harness.model import Device, Outcome, Phase, Settings, Variant
from harness.placements import PLACEMENTS

SHIPPED = Path(__file__).parents[2] / "experiments" / "expected.yaml"


@cache
def shipped() -> tuple[Variant, ...]:
    found = {v.key: v for name in names() for v in expand(read_matrix(name)[1]).variants}
    return tuple(found.values())


@cache
def expectations() -> Expectations:
    return read_expectations(str(SHIPPED))


@pytest.mark.parametrize("device", Device)
def test_every_variant_of_every_shipped_matrix_has_its_rule(device: Device) -> None:
    assert len(shipped()) > 1000
    assert [v.label for v in shipped() if expectations().deciding(v, device) is None] == []


def test_no_shipped_rule_is_dead() -> None:
    for device in Device:
        speaking = {i for i, rule in enumerate(expectations().rules) if device in rule.devices}
        assert {expectations().deciding(v, device) for v in shipped()} == speaking


def test_the_stub_and_a_gpu_are_expected_to_agree() -> None:
    for variant in shipped():
        assert expectations().deciding(variant, Device.STUB) == expectations().deciding(variant, Device.CUDA)


def test_a_new_placement_is_covered_on_no_gpu_until_somebody_thinks_about_it() -> None:
    variant = make_variant({})
    unknown = Variant(dict(variant.axes) | {"placement": "something-new"}, "placement=something-new")
    assert expectations().deciding(unknown, Device.CUDA) is None
    assert expectations().deciding(unknown, Device.STUB) is None


@pytest.mark.parametrize("name", PLACEMENTS)
def test_two_independent_statements_agree(name: str) -> None:
    """The file is written by hand, the declarations are code; where they part, one of them is wrong."""
    position = expectations().deciding(make_variant({"placement": name}), Device.CUDA)
    assert position is not None
    outcome = expectations().rules[position].expect.outcome
    assert (outcome is Outcome.BACKWARD_ERROR) is PLACEMENTS[name].raises


def test_relative_places_follow_the_settings() -> None:
    rules = "rules: [{devices: [cuda], expect: {outcome: error, epoch: last, step: %s}, reason: x}]"
    middle = parse_expectations(rules % "after-middle", "x").rules[0].expect
    last = parse_expectations(rules % "last", "x").rules[0].expect
    assert middle.place(Settings(epochs=3, steps=6)) == (3, 4)
    assert middle.place(Settings(epochs=1, steps=3)) == (1, 2)
    assert last.place(Settings(epochs=2, steps=5)) == (2, 5)
    assert parse_expectations(rules % "2", "x").rules[0].expect.phase is None


def test_the_first_rule_that_speaks_decides() -> None:
    text = """
rules:
  - {devices: [cpu], match: {cell: gru}, expect: {outcome: ok}, reason: first}
  - {devices: [cpu, stub], match: {cudnn: on, cell: [gru, lstm]}, expect: {outcome: crash}, reason: second}
"""
    rules = parse_expectations(text, "x")
    gru, lstm = make_variant({"cell": "gru"}), make_variant({"cell": "lstm"})
    assert [rules.deciding(v, d) for v in (gru, lstm) for d in Device] == [None, 1, 0, None, 1, 1]
    assert rules.deciding(make_variant({"cudnn": "off"}), Device.STUB) is None
    assert (rules.line(0), rules.line(1)) == (3, 4)
    assert rules.rules[1].expect.phase is None


RULE = "rules:\n  - devices: [stub]\n    expect: {outcome: ok}\n    reason: because\n"
BAD: dict[str, tuple[str, str]] = {
    "not YAML": ("rules: [", "x.yaml, line 1: not YAML"),
    "a list": ("- a", "a mapping with the key 'rules'"),
    "nothing": ("", "a mapping with the key 'rules'"),
    "no rules": ("rule: []", "there is no key 'rule' here"),
    "a key given twice": (RULE + "    reason: no\n", "line 5: the key 'reason' is given twice"),
    "a misspelt key": (RULE.replace("expect:", "expct:"), "line 3: rules.0.expct: there is no key 'expct' here"),
    "a misspelt key within": (RULE.replace("outcome", "outcom"), "there is no key 'outcom' here"),
    "no reason": (RULE.replace("because", "''"), "line 4: rules.0.reason"),
    "no devices": (RULE.replace("[stub]", "[]"), "line 2: rules.0.devices"),
    "an unknown device": (RULE.replace("stub", "tpu"), "line 2: rules.0.devices.0"),
    "an unknown outcome": (RULE.replace("ok", "fine"), "line 3: rules.0.expect.outcome"),
    "what cannot be expected": (RULE.replace("ok", "not-run"), "line 3: rules.0.expect.outcome"),
    "a place for ok": (RULE.replace("ok}", "ok, epoch: 2}"), "leave phase, epoch, step and error out"),
    "an unknown axis": (RULE + "    match: {cel: lstm}\n", "line 5: rules.0.match.cel: there is no axis 'cel'"),
    "an unknown value": (RULE + "    match: {cell: lsmt}\n", "'lsmt'"),
    "a boolean step": (RULE.replace("ok}", "error, step: on}"), "not a switch"),
    "step zero": (RULE.replace("ok}", "error, step: 0}"), "line 3: rules.0.expect.step"),
    "a bad pattern": (RULE.replace("ok}", "error, error: '('}"), "not a regular expression"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_malformed_file_is_one_sentence_with_its_line(case: str) -> None:
    text, hint = BAD[case]
    with pytest.raises(ExpectationsFileError) as caught:
        parse_expectations(text, "x.yaml")
    assert hint in str(caught.value)
    assert str(caught.value).startswith("x.yaml")
    assert "\n" not in str(caught.value)
    assert caught.value.advice


def test_files_are_found_as_matrices_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate() == SHIPPED
    own = tmp_path / "experiments" / "expected.yaml"
    own.parent.mkdir()
    own.write_text(RULE)
    (tmp_path / "experiments" / "mine.yaml").write_text(RULE)
    assert locate().absolute() == own
    assert locate("mine").absolute() == own.with_name("mine.yaml")
    assert locate("experiments/mine.yaml").name == "mine.yaml"
    for missing in ("yours", "yours.yaml", "no/where", "a\0b", "x" * 5000):
        with pytest.raises(ExpectationsFileError, match="there is no file"):
            locate(missing)
    own.write_bytes(b"\xff\xfe")
    with pytest.raises(ExpectationsFileError, match="UTF-8"):
        read_expectations()


def test_phases_are_spelt_as_records_spell_them() -> None:
    phases = {rule.expect.phase for rule in expectations().rules}
    assert phases == {None, Phase.FORWARD, Phase.BACKWARD, Phase.EVALUATE}


def test_the_docs_show_a_file_that_is_one_and_name_every_kind_and_key() -> None:
    text = (SHIPPED.parents[1] / "docs" / "expectations.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (rule,) = parse_expectations(example, "docs").rules
    assert expectations().deciding(make_variant({"placement": "eval-after-epoch"}), Device.CUDA) is not None
    assert rule.expect.place(Settings()) == (2, 1)
    named = set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))
    keys = {"devices", "match", "reason", *(f"expect.{name}" for name in Expected.model_fields)}
    assert named == keys | {str(kind) for kind in Kind}
