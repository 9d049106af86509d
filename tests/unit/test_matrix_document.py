"""Matrix files: whatever is wrong with one is said in one sentence with its line, and nothing else ever happens."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import MatrixFileError
from harness.matrix.axes import AXES
from harness.matrix.document import parse_document
from harness.model import Settings

AXES_OF = "axes: {cell: lstm}\n"

# name -> (text, line of the complaint, what it has to mention)
MALFORMED: dict[str, tuple[str, int | None, str]] = {
    "empty file": ("", None, "mapping"),
    "comment only": ("# nothing\n", None, "mapping"),
    "a scalar": ("\nhello\n", 2, "mapping"),
    "a list": ("- cell\n- layers\n", 1, "mapping"),
    "a number": ("5", 1, "mapping"),
    "no axes": ("description: nothing\n", 1, "axes"),
    "axes is null": ("axes:\n", 1, "axis names"),
    "axes is a list": ("description: x\naxes: [cell]\n", 2, "axis names"),
    "axes is a word": ("axes: all\n", 1, "axis names"),
    "unknown key": (AXES_OF + "settigns: {epochs: 3}\n", 2, "'settigns'"),
    "key with a line break": (AXES_OF + '"two\\nlines": 1\n', 2, "two"),
    "key of a hundred kilobytes": (AXES_OF + f"? {'k' * 100_000}\n: 1\n", 2, "kkk"),
    "number as key": (AXES_OF + "3: 4\n", 2, "3"),
    "list as key": (AXES_OF + "? [a, b]\n: 4\n", 2, "unhashable"),
    "unknown axis": ("axes:\n  cell: lstm\n  laers: 2\n", 3, "'laers'"),
    "axis is null": ("axes:\n  ~: 2\n", None, "'None'"),
    "axis is a number": ("axes:\n  cell: lstm\n  7: 2\n", 3, "'7'"),
    "misspelt value": ("axes:\n  cell:\n    - ltsm\n", 2, "'ltsm'"),
    "value is null": ("axes:\n  layers:\n", 2, "'layers'"),
    "value is a mapping": ("axes:\n  layers: {a: 1}\n", 2, "'layers'"),
    "value is a list of lists": ("axes:\n  layers: [[1]]\n", 2, "'layers'"),
    "value is a date": ("axes:\n  layers: 2020-01-01\n", 2, "'layers'"),
    "value is a time": ("axes:\n  layers: 2020-01-01 10:00:00\n", 2, "'layers'"),
    "value is a set": ("axes:\n  layers: !!set {1, 2}\n", 2, "'layers'"),
    "value is binary": ("axes:\n  layers: !!binary aGVsbG8=\n", 2, "'layers'"),
    "value is NaN": ("axes:\n  dropout: .nan\n", 2, "'dropout'"),
    "value is infinite": ("axes:\n  dropout: .inf\n", 2, "'dropout'"),
    "value too large": ("axes:\n  dropout: 1.0\n", 2, "'dropout'"),
    "value below zero": ("axes:\n  batch: -1\n", 2, "'batch'"),
    "value below the minimum": ("axes:\n  layers: 0\n", 2, "'layers'"),
    "a float for a number": ("axes:\n  layers: 1.5\n", 2, "'layers'"),
    "a boolean for a number": ("axes:\n  layers: yes\n", 2, "'layers'"),
    "a boolean for a name": ("axes:\n  dtype: off\n", 2, "'dtype'"),
    "a number of 400 digits": (f"axes:\n  dropout: 1{'0' * 400}\n", 2, "'dropout'"),
    "a number of 5000 digits": (f"axes:\n  layers: {'9' * 5000}\n", 2, "99"),
    "no values": ("axes:\n  cell: []\n", 2, "no values"),
    "all of a number": ("axes:\n  layers: all\n", 2, "'all'"),
    "axis in two spellings": ("axes:\n  seq-len: 4\n  seq_len: 8\n", 3, "twice"),
    "axis twice": ("axes:\n  cell: lstm\n  layers: 1\n  cell: gru\n", 4, "twice"),
    "key twice": (AXES_OF + "axes: {cell: gru}\n", 2, "twice"),
    "description is a number": (AXES_OF + "description: 5\n", 2, "string"),
    "description is null": (AXES_OF + "description:\n", 2, "string"),
    "include is a mapping": (AXES_OF + "include: {cell: lstm}\n", 2, "tuple"),
    "include of a word": (AXES_OF + "include:\n  - cell\n", 3, "axis names"),
    "misspelt in include": (AXES_OF + "include:\n  - cell: gru\n  - cell: lstm\n    dtype: flot\n", 5, "'flot'"),
    "exclude without reason": (AXES_OF + "exclude:\n  - match: {cell: lstm}\n", 3, "reason"),
    "exclude with an empty reason": (AXES_OF + "exclude:\n  - match: {cell: lstm}\n    reason: ''\n", 4, "reason"),
    "exclude with a blank reason": (AXES_OF + "exclude:\n  - match: {cell: lstm}\n    reason: ' '\n", 4, "reason"),
    "exclude without match": (AXES_OF + "exclude:\n  - reason: because\n", 3, "match"),
    "exclude that names no axis": (AXES_OF + "exclude:\n  - match: {}\n    reason: because\n", 3, "no axis"),
    "exclude with a slip": (AXES_OF + "exclude:\n  - match: {cell: lstm}\n    raeson: because\n", 4, "raeson"),
    "exclude of an unknown value": (AXES_OF + "exclude:\n  - match: {cell: x}\n    reason: because\n", 3, "'x'"),
    "settings is a list": (AXES_OF + "settings: [1]\n", 2, "settings"),
    "settings is null": (AXES_OF + "settings:\n", 2, "settings"),
    "unknown setting": (AXES_OF + "settings:\n  epoch: 3\n", 3, "'epoch'"),
    "no epochs": (AXES_OF + "settings:\n  epochs: 0\n", 3, "epochs"),
    "a boolean for epochs": (AXES_OF + "settings:\n  epochs: on\n  warmup_epochs: 0\n", 3, "epochs"),
    "a boolean for steps": (AXES_OF + "settings:\n  steps: yes\n", 3, "steps"),
    "a boolean for a deadline": (AXES_OF + "settings:\n  deadline: true\n", 3, "deadline"),
    "a word for a number": (AXES_OF + "settings:\n  steps: many\n", 3, "steps"),
    "half a step": (AXES_OF + "settings:\n  steps: 1.5\n", 3, "steps"),
    "no deadline": (AXES_OF + "settings:\n  deadline: 0\n", 3, "deadline"),
    "an endless deadline": (AXES_OF + "settings:\n  deadline: .inf\n", 3, "deadline"),
    "a deadline that is no number": (AXES_OF + "settings:\n  deadline: .nan\n", 3, "deadline"),
    "a negative seed": (AXES_OF + "settings:\n  seed: -1\n", 3, "seed"),
    "an enormous seed": (AXES_OF + "settings:\n  seed: 9223372036854775808\n", 3, "seed"),
    "more steps than a breadcrumb counts": (AXES_OF + "settings:\n  steps: 4294967296\n", 3, "steps"),
    "more replicates than the command line takes": (AXES_OF + "settings:\n  replicates: 1001\n", 3, "replicates"),
    "nothing measured": (AXES_OF + "settings: {epochs: 2, warmup_epochs: 2}\n", 2, "measured"),
    "tab as indent": ("axes:\n\tcell: lstm\n", 2, "not YAML"),
    "open bracket": ("axes:\n  cell: [lstm\n", 3, "not YAML"),
    "open quote": ('axes:\n  cell: "lstm\n', 3, "not YAML"),
    "bad indentation": ("axes:\n    cell: lstm\n  layers: 2\n", 3, "not YAML"),
    "unknown anchor": ("axes:\n  cell: *nobody\n", 2, "not YAML"),
    "two documents": (AXES_OF + "---\n" + AXES_OF, 2, "not YAML"),
    "a Python object": ("axes:\n  cell: !!python/object/apply:os.system [echo]\n", 2, "not YAML"),
    "a tag with a line break": ("axes:\n  cell: !a%0Ab lstm\n", 2, "not YAML"),
    "a date that is none": ("axes:\n  layers: 2020-13-45\n", 2, "not YAML"),
    "an integer that is none": ('axes:\n  layers: !!int ""\n', 2, "not YAML"),
    "a float that is none": ('axes:\n  dropout: !!float ""\n', 2, "not YAML"),
    "a boolean that is none": ("axes:\n  bias: !!bool perhaps\n", 2, "not YAML"),
    "a timestamp that is none": ("axes:\n  bias: !!timestamp now\n", 2, "not YAML"),
    "NUL": ("axes:\n  cell: l\0stm\n", 2, "U+0000"),
    "lone surrogate": ("axes:\n  cell: \ud800\n", 2, "U+D800"),
    "a directive of the future": ("%YAML 9.9\n---\n" + AXES_OF, 1, "not YAML"),
    "anchor in itself": ("axes: &a\n  cell: *a\n", 2, "'cell'"),
    "list in itself": (AXES_OF + "include: &a\n  - *a\n", 2, "axis names"),
    "merge of several": ("a: &a {cell: lstm}\naxes:\n  <<: [*a, *a]\n", 3, "'<<'"),
    "ten thousand brackets": ("[" * 10_000, None, "not YAML"),
    "ten thousand nested mappings": ("axes: " + "{a: " * 10_000, None, "not YAML"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_matrix_is_one_sentence_with_its_line(name: str) -> None:
    text, line, mention = MALFORMED[name]
    with pytest.raises(MatrixFileError) as caught:
        parse_document(text, "my.yaml")
    sentence = str(caught.value)
    assert sentence.startswith("my.yaml:" if line is None else f"my.yaml, line {line}:") or (
        line is None and sentence.startswith("my.yaml, line ")
    )
    assert mention in sentence
    assert "\n" not in sentence
    assert len(sentence) < 500
    assert caught.value.advice
    assert caught.value.exit_code == 2


def bomb(leaf: str) -> str:
    levels = "\n".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12))
    return f"axes:\n  l0: &l0 {leaf}\n{levels}\n  cell: *l11\n"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        bomb("ha"),
        bomb("ha").replace("axes:", "settings:") + AXES_OF,
        bomb("ha").replace("axes:", "description:") + AXES_OF,
    ],
    ids=["axes", "settings", "description"],
)
def test_a_few_lines_that_stand_for_billions_are_refused_at_once(text: str) -> None:
    with pytest.raises(MatrixFileError) as caught:
        parse_document(text, "bomb.yaml")
    assert len(str(caught.value)) < 500


@pytest.mark.timeout(60)
def test_a_bomb_as_value_of_a_real_axis_is_refused_at_once() -> None:
    lines = bomb("ha").splitlines()
    text = "description: &l0 ha\n" + "axes:\n" + "\n".join(lines[2:]).replace("  l1:", "  cell:")
    with pytest.raises(MatrixFileError, match="line"):
        parse_document(text, "bomb.yaml")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("axes: {cel: lstm}", "'cell'"),
        ("axes: {cell: ltsm}", "'lstm'"),
        ("axis: {cell: lstm}\naxes: {}", "'axes'"),
        (AXES_OF + "settings: {epoch: 2}", "'epochs'"),
        (AXES_OF + "exclude: [{match: {cell: gru}, reason: x, reasons: y}]", "'reason'"),
    ],
)
def test_the_nearest_name_is_suggested(text: str, advice: str) -> None:
    with pytest.raises(MatrixFileError) as caught:
        parse_document(text, "my.yaml")
    assert advice in f"{caught.value} {caught.value.advice}"


WORDS = [*AXES, *(c for spec in AXES.values() for c in spec.choices), "axes", "include", "exclude", "match", "reason"]
WORDS += ["settings", "epochs", "steps", "deadline", "description", "all", "on", "off", "yes", "~", "1", "0.5", "-1"]
words = st.sampled_from(WORDS) | st.integers() | st.floats() | st.booleans() | st.none() | st.text(max_size=5)
nested = st.recursive(
    words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=12,
)
documents = nested | st.fixed_dictionaries(
    {"axes": st.dictionaries(st.sampled_from(list(AXES)), words | st.lists(words, max_size=3), max_size=3)},
    optional=dict.fromkeys(("include", "exclude", "settings", "description"), nested),
)


def check(text: str) -> None:
    try:
        document = parse_document(text, "made.yaml")
    except MatrixFileError as error:
        assert str(error).startswith("made.yaml")
        assert "\n" not in str(error)
        assert error.advice
    else:
        assert set(document.axes) <= set(AXES)
        for block in (document.axes, *document.include):
            for axis, values in block.items():
                assert values == tuple(AXES[axis].parse(value) for value in values)
                assert len(set(values)) == len(values) > 0


@given(documents)
def test_any_document_is_understood_or_refused(document: object) -> None:
    check(yaml.safe_dump(document, allow_unicode=True))


@given(st.lists(st.sampled_from([*WORDS, *"{}[],:&*!|>-?#%@'\"\n \t", "\n  ", ": ", "- ", "!!", "&a ", "*a ", "<<: "])))
def test_any_heap_of_tokens_is_understood_or_refused(tokens: list[str]) -> None:
    check("".join(tokens))


@given(st.text() | st.text(alphabet=st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF)))
def test_any_text_is_understood_or_refused(text: str) -> None:
    check(text)


def test_a_whole_document() -> None:
    document = parse_document(
        "\ufeffdescription: two cells\n"
        "settings: {epochs: 4, steps: 2, seed: 7, deadline: 5, learning_rate: 0.1, replicates: 3}\n"
        "axes:\n"
        "  cell: all\n"
        "  Batch_First: [on, Off, 'yes', 1]\n"
        "  cudnn: [on, off]\n"
        "  dropout: [0, 0.0, .5]\n"
        "include:\n"
        "  - {layers: [1, '2', 2]}\n"
        "exclude:\n"
        "  - match: {cell: gru, layers: 2}\n"
        "    reason: ' too slow '\n",
        "whole.yaml",
    )
    assert document.axes == {
        "cell": ("rnn-tanh", "rnn-relu", "lstm", "gru"),
        "batch-first": (True, False),
        "cudnn": ("on", "off"),
        "dropout": (0.0, 0.5),
    }
    assert document.include == ({"layers": (1, 2)},)
    assert [(exclude.match, exclude.reason) for exclude in document.exclude] == [
        ({"cell": ("gru",), "layers": (2,)}, "too slow")
    ]
    assert document.settings.settings() == Settings(
        epochs=4, steps=2, seed=7, deadline=5.0, learning_rate=0.1, replicates=3
    )


def test_settings_that_a_matrix_leaves_out_are_the_defaults() -> None:
    assert parse_document(AXES_OF, "x.yaml").settings.settings() == Settings()


def test_an_anchor_and_a_merge_save_repetition() -> None:
    document = parse_document("axes: &a {cell: gru, layers: 2}\ninclude:\n  - {<<: *a, layers: 3}\n", "x.yaml")
    assert document.include == ({"cell": ("gru",), "layers": (3,)},)
