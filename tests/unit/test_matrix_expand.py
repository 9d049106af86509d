"""Expansion and selection: the product less the exclusions, in a stable order, without repeats."""

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import NothingSelectedError, UsageError
from harness.matrix.axes import AXES, AxisSpec, full_label, make_variant
from harness.matrix.document import MatrixDocument, parse_document
from harness.matrix.expand import LARGEST, Expansion, expand, parse_override, select
from harness.matrix.rules import RULES, impossible
from harness.model import Value, format_value

POOL: dict[str, tuple[Value, ...]] = {
    "cell": AXES["cell"].choices,
    "bidirectional": (True, False),
    "cudnn": ("off", "on"),
    "layers": (2, 1),
    "dropout": (0.0, 0.5),
    "proj-size": (0, 4, 64),
    "hidden-size": (8, 64),
    "packed": (False, True),
    "batch": (0, 4),
    "dtype": ("float32", "float64"),
    "autocast": ("off", "bfloat16"),
}
blocks = st.fixed_dictionaries(
    {},
    optional={
        name: st.lists(st.sampled_from(values), min_size=1, unique=True).map(tuple) for name, values in POOL.items()
    },
)
excludes = st.fixed_dictionaries({"match": blocks.filter(bool), "reason": st.sampled_from(["too slow", "seen enough"])})


def document(axes: Mapping[str, object], **others: object) -> MatrixDocument:
    return MatrixDocument.model_validate({"axes": dict(axes), **others})


def lists(block: Mapping[str, tuple[Value, ...]]) -> dict[str, list[Value]]:
    return {name: list(values) for name, values in block.items()}


documents = st.builds(
    lambda axes, include, exclude: document(
        lists(axes),
        include=[lists(block) for block in include],
        exclude=[{**item, "match": lists(item["match"])} for item in exclude],
    ),
    blocks,
    st.lists(blocks, max_size=2),
    st.lists(excludes, max_size=2),
)


def product(block: Mapping[str, tuple[Value, ...]]) -> list[dict[str, Value]]:
    full = {name: block.get(name, (spec.default,)) for name, spec in AXES.items()}
    return [dict(zip(full, values, strict=True)) for values in itertools.product(*full.values())]


@given(documents)
def test_expansion_is_the_product_less_the_exclusions(matrix: MatrixDocument) -> None:
    expansion = expand(matrix)
    cells = [cell for block in (matrix.axes, *matrix.include) for cell in product(block)]
    kept, left_out = [], {}
    for cell in cells:
        reasons = [e.reason for e in matrix.exclude if all(cell[name] in values for name, values in e.match.items())]
        if impossible(make_variant(cell)) is None and not reasons:
            if cell not in kept:
                kept.append(cell)
        else:
            left_out[make_variant(cell).label] = impossible(make_variant(cell)) or reasons[0]
    assert [dict(variant.axes) for variant in expansion.variants] == kept
    assert {exclusion.label: exclusion.reason for exclusion in expansion.exclusions} == left_out
    assert len(expansion.exclusions) == len(left_out)


@given(documents)
def test_no_key_and_no_label_twice(matrix: MatrixDocument) -> None:
    variants = expand(matrix).variants
    assert len({variant.key for variant in variants}) == len(variants)
    assert len({variant.label for variant in variants}) == len(variants)
    assert len({full_label(variant) for variant in variants}) == len(variants)


@given(blocks, st.randoms(use_true_random=False))
def test_the_order_of_axes_in_the_file_changes_nothing(block: dict[str, tuple[Value, ...]], random: object) -> None:
    names = list(block)
    random.shuffle(names)  # type: ignore[attr-defined]
    assert expand(document(lists({name: block[name] for name in names}))) == expand(document(lists(block)))


def test_the_order_of_values_in_the_file_is_kept() -> None:
    variants = expand(document({"cell": ["gru", "lstm"], "layers": [3, 1]})).variants
    assert [(v["cell"], v["layers"]) for v in variants] == [("gru", 3), ("gru", 1), ("lstm", 3), ("lstm", 1)]


IMPOSSIBLE = [
    ({"cell": "gru", "proj-size": 4}, "projection"),
    ({"cell": "rnn-tanh", "proj-size": 4}, "projection"),
    ({"cell": "lstm", "proj-size": 32, "hidden-size": 32}, "smaller"),
    ({"dropout": 0.5}, "only one"),
    ({"autocast": "float16", "dtype": "bfloat16"}, "autocast"),
    ({"packed": True, "batch": 0}, "at least one"),
]


@pytest.mark.parametrize(("axes", "mention"), IMPOSSIBLE)
def test_what_cannot_exist_is_left_out_with_its_reason(axes: dict[str, Value], mention: str) -> None:
    expansion = expand(document(axes, include=[{}]))
    assert len(expansion.variants) == 1
    assert [mention in exclusion.reason for exclusion in expansion.exclusions] == [True]
    assert expansion.exclusions[0].label == make_variant(axes).label


def test_every_rule_is_met_by_one_of_these_and_none_hits_the_defaults() -> None:
    met = {reason for _, reason in RULES if any(impossible(make_variant(axes)) == reason for axes, _ in IMPOSSIBLE)}
    assert met == {reason for _, reason in RULES}
    assert impossible(make_variant({})) is None
    assert impossible(make_variant({"proj-size": 31, "hidden-size": 32})) is None
    assert impossible(make_variant({"dropout": 0.5, "layers": 2})) is None


def test_an_override_sets_its_axis_everywhere() -> None:
    matrix = document({"cell": ["lstm", "gru"], "layers": [1, 2]}, include=[{"packed": True}, {"cell": "rnn-relu"}])
    variants = expand(matrix, ["cell=gru", "layers=3"]).variants
    assert {v["cell"] for v in variants} == {"gru"}
    assert {v["layers"] for v in variants} == {3}
    assert [v["packed"] for v in variants] == [False, True]


@pytest.mark.parametrize(
    ("text", "axis", "values"),
    [
        ("cell=lstm", "cell", ("lstm",)),
        ("cell=lstm,gru,lstm", "cell", ("lstm", "gru")),
        ("cell=all", "cell", AXES["cell"].choices),
        ("CELL = LSTM , GRU", "cell", ("lstm", "gru")),
        ("seq_len=3", "seq-len", (3,)),
        ("cudnn=off,yes", "cudnn", ("off", "on")),
        ("bias=on,0,no", "bias", (True, False)),
        ("dropout=0,.5,1e-3", "dropout", (0.0, 0.5, 0.001)),
    ],
)
def test_an_override_is_read(text: str, axis: str, values: tuple[Value, ...]) -> None:
    assert parse_override(text) == (axis, values)


@pytest.mark.parametrize(
    "text",
    [
        *("", "=", "cell", "cell=", "cell= ", "cell=,", "cell=lstm,", "=lstm", "cel=lstm", "cell=ltsm", "cell:lstm"),
        *("cell==lstm", "layers=0", "layers=all", "layers=1.5", "layers=" + "9" * 5000, "dropout=1", "dropout=nan"),
        *(
            "dropout=inf",
            "bias=2",
            "bias=maybe",
            "batch=-1",
            "batch=1;2",
            "cell=lstm\n",
            "a\nb=1",
            "\ud800=\ud800",
            "\0=1",
        ),
    ],
)
def test_a_malformed_override_is_one_sentence(text: str) -> None:
    if text == "cell=lstm\n":  # white space around a value is not malformed
        assert parse_override(text) == ("cell", ("lstm",))
        return
    with pytest.raises(UsageError) as caught:
        parse_override(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
    assert caught.value.advice


@given(st.text() | st.builds("{}={}".format, st.sampled_from(list(AXES)), st.text()))
def test_any_override_is_read_or_refused(text: str) -> None:
    try:
        axis, values = parse_override(text)
    except UsageError as error:
        assert "\n" not in str(error)
    else:
        assert values == tuple(AXES[axis].parse(value) for value in values)


def values_of(spec: AxisSpec) -> list[Value]:
    return list(spec.choices) or ([True, False] if spec.kind == "switch" else [spec.default, spec.minimum])


@pytest.mark.parametrize("spec", AXES.values(), ids=lambda spec: spec.name)
def test_what_a_label_says_can_be_given_as_override(spec: AxisSpec) -> None:
    for value in values_of(spec):
        assert parse_override(f"{spec.name}={format_value(value)}") == (spec.name, (value,))


def test_an_axis_overridden_twice_is_refused_rather_than_half_dropped() -> None:
    with pytest.raises(UsageError, match="'cell' is given twice"):
        expand(document({}), ["cell=lstm", "layers=2", "CELL=gru"])


def test_a_matrix_of_more_than_the_largest_size_is_refused_before_it_is_made() -> None:
    huge = {"batch": list(range(1000)), "seq-len": list(range(1, 1001))}
    with pytest.raises(UsageError, match="1,000,000 variants"):
        expand(document(huge))
    with pytest.raises(UsageError, match="variants"):
        expand(document({}, include=[huge]))
    assert len(expand(document(huge), ["batch=1", "seq-len=2"]).variants) == 1


def test_many_blocks_that_together_are_too_large_are_refused() -> None:
    block = {"batch": list(range(300)), "seq-len": list(range(1, 301))}
    assert LARGEST > 300 * 300
    with pytest.raises(UsageError, match="180,001 variants"):
        expand(document({}, include=[block, block]))


EXPANSION = expand(document({"cell": "all", "cudnn": [True, False], "layers": [1, 2], "placement": ["eval-always"]}))


@pytest.mark.parametrize(
    ("globs", "count"),
    [
        ([], 16),
        (["gru"], 4),
        (["cell=gru*"], 4),
        (["gru", "lstm"], 8),
        (["gru", "gru"], 4),
        (["rnn-*"], 0),
        (["*rnn-*"], 8),
        (["*rnn-????,*"], 8),
        (["layers=2"], 8),
        # only the full label names an axis at its default
        (["layers=1"], 8),
        (["*cudnn=off*layers=1*"], 4),
        (["*layers=[12]*"], 16),
        (["*layers=[!1]*"], 8),
        (["hidden-size=32"], 16),
        (["cell=lstm,bidirectional=false,cudnn=on,placement=eval-always"], 2),
        (["*placement=eval-always"], 8),
    ],
)
def test_selection_by_glob(globs: list[str], count: int) -> None:
    if count == 0:
        with pytest.raises(NothingSelectedError, match="matches"):
            select(EXPANSION, globs)
        return
    chosen = select(EXPANSION, globs)
    assert len(chosen.variants) == count
    assert [v for v in EXPANSION.variants if v in chosen.variants] == list(chosen.variants)
    assert chosen.exclusions == EXPANSION.exclusions


@given(st.integers(0, len(EXPANSION.variants) - 1))
def test_a_full_label_selects_its_own_variant_alone(index: int) -> None:
    variant = EXPANSION.variants[index]
    assert select(EXPANSION, [full_label(variant)]).variants == (variant,)


@given(st.lists(st.text(alphabet="*?[]!-^\\abcl=,\0\n(|)+{}." + "\ud800"), min_size=1, max_size=3))
def test_any_glob_selects_something_or_says_that_it_does_not(globs: list[str]) -> None:
    try:
        chosen = select(EXPANSION, globs)
    except (NothingSelectedError, UsageError) as error:
        assert "\n" not in str(error)
        assert error.advice
        assert error.exit_code == (2 if "" in globs else 3)
    else:
        assert 0 < len(chosen.variants) <= len(EXPANSION.variants)


def test_an_empty_selection_shows_a_label() -> None:
    with pytest.raises(NothingSelectedError, match="'lsmt' or 'x'") as caught:
        select(EXPANSION, ["lsmt", "x"])
    assert EXPANSION.variants[0].label in caught.value.advice


@pytest.mark.parametrize("globs", [[], ["lstm"]])
def test_a_matrix_with_nothing_left_says_why(globs: list[str]) -> None:
    text = "axes: {dropout: 0.5}\nexclude: [{match: {layers: 2}, reason: never}]"
    with pytest.raises(NothingSelectedError) as caught:
        select(expand(parse_document(text, "x.yaml")), globs)
    assert "only one" in caught.value.advice
    with pytest.raises(NothingSelectedError):
        select(Expansion((), ()), globs)
