"""Axes: every spelling of a switch, the round trip of every value, and a nearest name for every slip."""

import itertools
import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.matrix.axes import (
    AXES,
    LARGEST_INTEGER,
    AxisSpec,
    UnknownAxisError,
    UnknownValueError,
    full_label,
    make_variant,
    spec_of,
)
from harness.model import HEADLINE_AXES, Value, format_value

SWITCHES = [spec for spec in AXES.values() if spec.kind == "switch"]
ON_OFF_CHOICES = [spec for spec in AXES.values() if "off" in spec.choices]
OTHER_CHOICES = [spec for spec in AXES.values() if spec.kind == "choice" and "off" not in spec.choices]
NUMBERS = [spec for spec in AXES.values() if spec.kind in {"integer", "fraction"}]

YAML_TRUE = ["true", "True", "TRUE", "on", "On", "ON", "yes", "Yes", "YES"]
YAML_FALSE = ["false", "False", "FALSE", "off", "Off", "OFF", "no", "No", "NO"]


def ids(spec: AxisSpec) -> str:
    return spec.name


def spellings(words: list[str]) -> list[object]:
    """Every word as YAML reads it bare and as it reads it quoted."""
    return [*(yaml.safe_load(word) for word in words), *words]


def values_of(spec: AxisSpec) -> st.SearchStrategy[Value]:
    match spec.kind:
        case "choice":
            return st.sampled_from(spec.choices)
        case "switch":
            return st.booleans()
        case "integer":
            return st.integers(spec.minimum, LARGEST_INTEGER)
        case "fraction":
            return st.floats(0, 1, exclude_max=True).map(abs)


any_value = st.sampled_from(list(AXES.values())).flatmap(lambda spec: values_of(spec).map(lambda v: (spec, v)))
any_axes = st.fixed_dictionaries({}, optional={name: values_of(spec) for name, spec in AXES.items()})


def test_the_axes_that_the_project_promises_are_there() -> None:
    assert set(AXES) == {
        *("cell", "bidirectional", "cudnn", "placement", "layers", "dropout", "dtype", "autocast", "packed"),
        *("proj-size", "batch-first", "bias", "norm", "batch", "seq-len", "input-size", "hidden-size"),
    }
    assert set(HEADLINE_AXES) <= set(AXES)


@pytest.mark.parametrize("spec", AXES.values(), ids=ids)
def test_a_default_is_a_value_of_its_axis(spec: AxisSpec) -> None:
    parsed = spec.parse(spec.default)
    assert parsed == spec.default
    assert type(parsed) is type(spec.default)


@pytest.mark.parametrize("spec", SWITCHES, ids=ids)
def test_a_switch_reads_every_spelling(spec: AxisSpec) -> None:
    assert [spec.parse(raw) for raw in [*spellings(YAML_TRUE), 1, "1", " true "]] == [True] * 21
    assert [spec.parse(raw) for raw in [*spellings(YAML_FALSE), 0, "0", " false "]] == [False] * 21


@pytest.mark.parametrize("spec", ON_OFF_CHOICES, ids=ids)
def test_an_on_off_choice_reads_every_spelling_of_off(spec: AxisSpec) -> None:
    assert {spec.parse(raw) for raw in spellings(YAML_FALSE)} == {"off"}


def test_cudnn_reads_every_spelling_of_on() -> None:
    assert {AXES["cudnn"].parse(raw) for raw in spellings(YAML_TRUE)} == {"on"}


def test_autocast_is_not_simply_on() -> None:
    for raw in spellings(YAML_TRUE):
        with pytest.raises(UnknownValueError, match="'autocast'"):
            AXES["autocast"].parse(raw)


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("spec", [*NUMBERS, *OTHER_CHOICES], ids=ids)
def test_no_boolean_is_mistaken_for_a_number_or_a_name(spec: AxisSpec, raw: bool) -> None:
    with pytest.raises(UnknownValueError, match=repr(spec.name)):
        spec.parse(raw)


@given(any_value)
def test_what_is_printed_can_be_read_back(pair: tuple[AxisSpec, Value]) -> None:
    spec, value = pair
    read = spec.parse(format_value(value))
    assert (read, type(read)) == (value, type(value))


NONSENSE = [None, [], {}, (), b"on", -1, "-1", 10**400, 10**5000, "9" * 5000, math.nan, math.inf, -math.inf]
NONSENSE += ["", " ", "١", "\ud800", "two\nlines"]


@pytest.mark.parametrize("spec", AXES.values(), ids=ids)
def test_nonsense_is_refused_in_one_line(spec: AxisSpec) -> None:
    for raw in NONSENSE:
        with pytest.raises(UnknownValueError) as caught:
            spec.parse(raw)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 200
        assert caught.value.advice


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(list(AXES.values())), json_like)
def test_a_value_is_read_or_refused(spec: AxisSpec, raw: object) -> None:
    try:
        value = spec.parse(raw)
    except UnknownValueError as error:
        assert "\n" not in str(error)
    else:
        assert spec.parse(value) == value
        assert isinstance(value, type(spec.default))


def test_the_advice_never_explodes() -> None:
    """Aliases let a few lines of YAML stand for billions of items; what is shown of a value stays short."""
    bomb: object = "ha"
    for _ in range(30):
        bomb = [bomb] * 9
    for spec in AXES.values():
        with pytest.raises(UnknownValueError) as caught:
            spec.parse(bomb)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("axis", "slip", "meant"),
    [
        ("cell", "ltsm", "lstm"),
        ("cell", "rnn-tahn", "rnn-tanh"),
        ("placement", "eval-allways", "eval-always"),
        ("dtype", "bfloat61", "bfloat16"),
        ("norm", "batchnorm", "batch-norm"),
        ("cudnn", "onn", "on"),
    ],
)
def test_a_misspelt_value_is_answered_with_the_nearest(axis: str, slip: str, meant: str) -> None:
    with pytest.raises(UnknownValueError) as caught:
        AXES[axis].parse(slip)
    assert caught.value.advice == f"Did you mean {meant!r}?"


@pytest.mark.parametrize(
    ("slip", "meant"), [("cel", "cell"), ("hiden-size", "hidden-size"), ("placment", "placement"), ("layer", "layers")]
)
def test_a_misspelt_axis_is_answered_with_the_nearest(slip: str, meant: str) -> None:
    with pytest.raises(UnknownAxisError) as caught:
        spec_of(slip)
    assert caught.value.advice == f"Did you mean {meant!r}?"


@pytest.mark.parametrize("name", ["seq_len", "SEQ-LEN", " seq-len "])
def test_an_axis_has_more_than_one_spelling(name: str) -> None:
    assert spec_of(name) is AXES["seq-len"]


@given(st.text())
def test_any_other_name_is_a_usage_error(name: str) -> None:
    try:
        assert spec_of(name).name in AXES
    except UsageError as error:
        assert "\n" not in str(error)
        assert error.advice


@given(any_axes, st.randoms(use_true_random=False))
def test_a_key_does_not_depend_on_the_order_of_axes(axes: dict[str, Value], random: object) -> None:
    names = list(axes)
    random.shuffle(names)  # type: ignore[attr-defined]
    assert make_variant({name: axes[name] for name in names}).key == make_variant(axes).key


def two_values(spec: AxisSpec) -> st.SearchStrategy[tuple[AxisSpec, Value, Value]]:
    pair = st.lists(values_of(spec), min_size=2, max_size=2, unique=True)
    return pair.map(lambda values: (spec, values[0], values[1]))


@given(any_axes, st.sampled_from(list(AXES.values())).flatmap(two_values))
def test_a_change_of_any_axis_changes_key_and_labels(
    axes: dict[str, Value], change: tuple[AxisSpec, Value, Value]
) -> None:
    spec, before, after = change
    one, other = make_variant({**axes, spec.name: before}), make_variant({**axes, spec.name: after})
    assert one.key != other.key
    assert one.label != other.label
    assert full_label(one) != full_label(other)


def test_every_change_of_one_axis_gives_another_key() -> None:
    singles = [
        make_variant({spec.name: value})
        for spec in AXES.values()
        for value in (spec.choices or ((True, False) if spec.kind == "switch" else (spec.minimum + 0.5, 3, 7)))
        if value != spec.default
    ]
    variants = [make_variant({}), *singles]
    for one, other in itertools.combinations(variants, 2):
        assert one.key != other.key, (one.label, other.label)
        assert one.label != other.label


def test_zero_has_one_spelling() -> None:
    """-0.0 equals 0.0 and would print and hash otherwise: one label with two keys."""
    zeros = [AXES["dropout"].parse(raw) for raw in (0, 0.0, -0.0, "-0", "0.0", "-0.0", "-0e5")]
    assert {make_variant({"dropout": zero}).key for zero in zeros} == {make_variant({}).key}


def test_a_label_names_the_headline_axes_and_what_is_not_default() -> None:
    assert make_variant({}).label == "cell=lstm,bidirectional=false,cudnn=on,placement=train-each-epoch"
    assert make_variant({"dropout": 0.5, "bias": False}).label == (
        "cell=lstm,bidirectional=false,cudnn=on,placement=train-each-epoch,dropout=0.5,bias=false"
    )
    assert full_label(make_variant({"dropout": 0.5})).split(",") == [
        f"{name}={format_value(0.5 if name == 'dropout' else spec.default)}" for name, spec in AXES.items()
    ]


def test_the_key_scheme_is_stable() -> None:
    """Keys are kept in journals and MLflow stores; whoever changes them has to raise KEY_SCHEME."""
    assert make_variant({}).key == "dbd772b8a812"
