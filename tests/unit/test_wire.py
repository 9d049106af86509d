"""The wire: what is written can be read back, and what cannot be read is one kind of error."""

import json
import math
import struct
from dataclasses import fields, replace
from mmap import mmap
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import JournalError
from harness.measured import MachineState
from harness.model import (
    Device,
    Exclusion,
    KernelPath,
    Order,
    Outcome,
    Phase,
    Plan,
    Record,
    Sample,
    Settings,
    Sighting,
    Variant,
)
from harness.wire import (
    BREADCRUMB_SIZE,
    ORDER_SCHEMA,
    PLAN_SCHEMA,
    RECORD_SCHEMA,
    Breadcrumb,
    NewerSchemaError,
    dump,
    load,
)

Thing = Order | Record | Plan
NEWEST = {Order: ORDER_SCHEMA, Record: RECORD_SCHEMA, Plan: PLAN_SCHEMA}

text = st.text(st.characters(codec="utf-8"), max_size=20)
broken_text = st.text(st.characters(categories=["Cs", "Ll"]), min_size=1, max_size=6)
numbers = st.floats()
counts = st.integers(0, 2**63)
values = text | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
facts = st.dictionaries(text, values | st.none(), max_size=3)
anything = st.recursive(
    st.none() | values, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2)
)
variants = st.builds(Variant, axes=st.dictionaries(text, values, max_size=4), label=text)
settings = st.builds(
    Settings,
    **dict.fromkeys(["epochs", "steps", "evaluation_steps", "warmup_epochs", "seed", "replicates"], counts),
    learning_rate=numbers,
    deadline=numbers,
)
orders = st.builds(
    Order,
    text,
    variants,
    st.sampled_from(Device),
    settings,
    counts,
    counts,
    text,
    st.lists(text, max_size=2).map(tuple),
    sitting=counts,
)
plans = st.builds(
    Plan,
    *(text, text, text, text),
    st.lists(st.sampled_from(Device), max_size=2).map(tuple),
    settings,
    st.lists(variants, max_size=2).map(tuple),
    st.lists(st.builds(Exclusion, text, text), max_size=2).map(tuple),
    text,
    st.lists(text, max_size=2).map(tuple),
    st.dictionaries(text, anything, max_size=2),
    st.lists(text, max_size=2).map(tuple),
)
parts = dict.fromkeys(["forward_s", "backward_s", "optimizer_s"], st.none() | numbers)
samples = st.builds(
    Sample,
    *(counts, counts, numbers, st.none() | numbers, st.booleans(), st.booleans()),
    machine=st.none() | st.from_type(MachineState),
    **parts,
)
sightings = st.builds(
    Sighting,
    *(counts, counts, st.booleans(), st.none() | st.sampled_from(KernelPath), st.none() | st.booleans(), text),
)
OPTIONAL: dict[str, st.SearchStrategy[object]] = {
    **dict.fromkeys(["error_type", "error_message", "fingerprint", "traceback_tail", "reason", "memory_source"], text),
    **dict.fromkeys(["losses_digest", "weights_digest", "started", "signal", "output_tail"], text),
    **dict.fromkeys(["first_step_s", "first_loss", "last_loss", "wall_s"], numbers),
    **dict.fromkeys(["epoch", "step", "sequences_per_step", "timesteps_per_step", "peak_memory_bytes"], counts),
    "exit_code": st.integers(-255, 255),
    "phase": st.sampled_from(Phase),
    "path": st.sampled_from(KernelPath),
}
TOLD = {"run", "key", "label", "device", "outcome", "replicate", "attempt", "sightings", "samples"}
TOLD |= {"results", "facts", "sitting", "schema"}
# A field that this table does not know yet is in the round trip all the same.
HINTS = get_type_hints(Record)
OPTIONAL |= {f.name: st.from_type(HINTS[f.name]) for f in fields(Record) if f.name not in TOLD | set(OPTIONAL)}
records = st.builds(
    Record,
    *(text, text, text, st.sampled_from(Device), st.sampled_from(Outcome)),
    replicate=counts,
    attempt=counts,
    sitting=counts,
    sightings=st.lists(sightings, max_size=2).map(tuple),
    samples=st.lists(samples, max_size=2).map(tuple),
    results=st.dictionaries(text, anything, max_size=2),
    facts=facts,
    **{name: st.none() | strategy for name, strategy in OPTIONAL.items()},
)
things = orders | records | plans


def test_every_field_of_a_record_is_in_the_round_trip() -> None:
    assert TOLD | set(OPTIONAL) == {field.name for field in fields(Record)}


@given(things)
def test_what_is_written_is_read_back(thing: Thing) -> None:
    line = dump(thing)
    assert "\n" not in line
    # repr, because NaN is not equal to itself
    assert repr(load(type(thing), line)) == repr(thing)
    assert repr(load(type(thing), line.encode())) == repr(thing)
    assert dump(load(type(thing), line)) == line


@given(things)
def test_a_line_is_strict_json_that_says_its_schema(thing: Thing) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    raw = json.loads(dump(thing), parse_constant=refuse)
    assert raw["schema"] == NEWEST[type(thing)]


def record(**others: object) -> Record:
    return replace(Record("run", "key", "label", Device.CPU, Outcome.OK), **others)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -0.0, 1e308, 5e-324])
def test_a_number_that_json_does_not_know_stays_what_it_was(number: float) -> None:
    thing = record(last_loss=number, samples=(Sample(1, 1, number, number),))
    back = load(Record, dump(thing))
    assert [repr(x) for x in (back.last_loss, back.samples[0].wall_s, back.samples[0].device_s)] == [repr(number)] * 3
    order = Order("run", Variant({}, ""), Device.CPU, Settings(deadline=number, learning_rate=number))
    assert repr(load(Order, dump(order))) == repr(order)


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, True, False, "0", "1", "true", "1.0", "NaN", "", 10**30])
def test_an_axis_value_keeps_its_type(value: str | float | bool) -> None:
    variant = Variant({"axis": value}, "label")
    back = load(Order, dump(Order("run", variant, Device.CPU, Settings()))).variant
    assert (back["axis"], type(back["axis"])) == (value, type(value))
    assert back.key == variant.key


def test_what_the_first_version_wrote_is_read_with_the_new_fields_absent() -> None:
    line = (
        '{"run":"run","key":"key","label":"label","device":"cpu","outcome":"ok","replicate":0,"attempt":1,'
        '"sightings":[],"samples":[{"epoch":1,"steps":6,"wall_s":0.5,"warmup":true}],"results":{},"facts":{},"schema":1}'
    )
    old = load(Record, line)
    assert old == replace(record(), samples=(Sample(1, 6, 0.5, warmup=True),), schema=1)
    assert (old.sitting, old.silent_s) == (1, None)
    assert old.exactness is old.samples[0].machine is old.samples[0].forward_s is None
    settings = json.loads(dump(THINGS[2]))["settings"]
    del settings["timed_blocks"], settings["block_ms"]
    plan = {**json.loads(dump(THINGS[2])), "settings": settings, "schema": 1}
    assert load(Plan, json.dumps(plan)).settings == Settings()


def test_absent_fields_are_left_out_and_stay_absent() -> None:
    raw = json.loads(dump(record()))
    assert None not in raw.values()
    assert not set(raw) & set(OPTIONAL)
    assert load(Record, dump(record())) == record()


@given(broken_text)
def test_half_a_surrogate_pair_does_not_lose_a_record(broken: str) -> None:
    """A file name that is not UTF-8 ends in an error message like that; the record must not die of it."""
    told = broken.encode("utf-8", "backslashreplace").decode()
    thing = record(error_message=broken, results={broken: [broken, {"a": broken}]}, facts={"a": broken})
    assert load(Record, dump(thing)) == record(
        error_message=told, results={told: [told, {"a": told}]}, facts={"a": told}
    )
    order = Order("run", Variant({"a": broken}, broken), Device.STUB, Settings(), arguments=(broken, "b"))
    assert load(Order, dump(order)) == replace(order, variant=Variant({"a": told}, told), arguments=(told, "b"))
    plan = Plan("r", "m", broken, "", (Device.CPU,), Settings(), (order.variant,), command=(broken,))
    assert load(Plan, dump(plan)) == replace(
        plan, description=told, variants=(Variant({"a": told}, told),), command=(told,)
    )


THINGS: list[Thing] = [
    Order("run", Variant({"cell": "lstm"}, "cell=lstm"), Device.CPU, Settings()),
    record(),
    Plan("run", "quick", "", "", (Device.CPU,), Settings(), ()),
]


def kind_of(thing: Thing) -> str:
    return type(thing).__name__


@pytest.mark.parametrize("thing", THINGS, ids=kind_of)
@pytest.mark.parametrize("later", [1, 2, 10**30])
def test_a_newer_schema_is_refused_even_if_it_has_other_fields(thing: Thing, later: int) -> None:
    schema = NEWEST[type(thing)] + later
    for line in (json.dumps({**json.loads(dump(thing)), "schema": schema}), json.dumps({"schema": schema, "new": []})):
        with pytest.raises(NewerSchemaError, match=f"schema {schema}") as caught:
            load(type(thing), line)
        assert "Upgrade" in caught.value.advice


@pytest.mark.parametrize("thing", THINGS, ids=kind_of)
@pytest.mark.parametrize("schema", [0, -1, "2", "1", 2.0, 1.0, True, None, [2], {}])
def test_a_schema_that_nobody_ever_wrote_is_refused(thing: Thing, schema: object) -> None:
    with pytest.raises(JournalError, match="schema"):
        load(type(thing), json.dumps({**json.loads(dump(thing)), "schema": schema}))


@pytest.mark.parametrize("thing", THINGS, ids=kind_of)
def test_a_line_cut_anywhere_is_refused(thing: Thing) -> None:
    line = dump(thing)
    for end in range(len(line)):
        with pytest.raises(JournalError):
            load(type(thing), line[:end])


@pytest.mark.parametrize("thing", THINGS, ids=kind_of)
def test_a_line_without_one_of_its_fields_is_refused_or_has_its_default(thing: Thing) -> None:
    raw = json.loads(dump(thing))
    for name in raw:
        line = json.dumps({key: value for key, value in raw.items() if key != name})
        try:
            assert load(type(thing), line) == thing
        except JournalError as error:
            assert name in str(error)


GARBAGE: list[str | bytes] = [
    *("", " ", "\n", "null", "1", '"record"', "[]", "{}", "{", "}", "NaN", "{'a': 1}", '{"run": }', "[" * 100_000),
    *("1" * 5000, '{"a":' * 10_000, '"\\ud800"', '{"run": "\\ud800"}', "\ud800", '{"\ud800": 1}', "\0", "\ufeff{}"),
    *(b"\xff", b"\xed\xa0\x80", b'{"run": "\xff"}', b"\0" * 100, b"\x80\x04K\x01."),
    *(dump(THINGS[1]) + dump(THINGS[1]), dump(THINGS[1]) + "x", dump(THINGS[1]).replace('"ok"', '"fine"')),
    *(dump(THINGS[1]).replace('"ok"', "null"), dump(THINGS[1]).replace('"cpu"', '"CPU"')),
    *(dump(THINGS[1]).replace('"attempt":1', '"attempt":"one"'), dump(THINGS[1]).replace("[]", "{}")),
]


@pytest.mark.parametrize("index", range(len(GARBAGE)))
def test_garbage_is_a_journal_error(index: int) -> None:
    for kind in (Order, Record, Plan):
        with pytest.raises(JournalError) as caught:
            load(kind, GARBAGE[index])
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500


@given(st.binary() | st.text() | st.text('{}[]",:0123truenl\\u ') | anything.map(json.dumps), st.sampled_from(THINGS))
def test_any_garbage_is_a_journal_error(line: str | bytes, thing: Thing) -> None:
    with pytest.raises(JournalError):
        load(type(thing), line)


@given(st.sampled_from(THINGS), st.data())
def test_a_damaged_line_is_read_or_refused(thing: Thing, data: st.DataObject) -> None:
    line = bytearray(dump(thing).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(load(type(thing), bytes(line)), type(thing))
    except JournalError as error:
        assert "\n" not in str(error)


def test_one_kind_is_not_taken_for_another() -> None:
    for thing in THINGS:
        for kind in {Order, Record, Plan} - {type(thing)}:
            with pytest.raises(JournalError):
                load(kind, dump(thing))


@given(st.lists(st.tuples(st.sampled_from(Phase), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), min_size=1))
def test_a_breadcrumb_is_read_as_it_was_dropped(drops: list[tuple[Phase, int, int]]) -> None:
    memory = bytearray(BREADCRUMB_SIZE)
    writer, reader = Breadcrumb(memory), Breadcrumb(memory)
    for beats, (phase, epoch, step) in enumerate(drops, start=1):
        writer.drop(phase, epoch, step)
        assert reader.read() == (beats, phase, epoch or None, step or None)


def test_a_breadcrumb_works_in_shared_memory() -> None:
    with mmap(-1, BREADCRUMB_SIZE) as memory:
        assert Breadcrumb(memory).read() == (0, None, None, None)
        Breadcrumb(memory).drop(Phase.BACKWARD, 2, 7)
        assert Breadcrumb(memory).read() == (1, Phase.BACKWARD, 2, 7)


def test_no_beat_is_no_place() -> None:
    assert Breadcrumb(bytearray(BREADCRUMB_SIZE)).read() == (0, None, None, None)


def test_a_phase_that_does_not_exist_is_no_place() -> None:
    memory = bytearray(struct.pack("<QIIB", 3, 1, 1, len(Phase)))
    assert Breadcrumb(memory).read() == (0, None, None, None)


@given(st.binary(min_size=BREADCRUMB_SIZE, max_size=BREADCRUMB_SIZE))
def test_any_bytes_are_a_place_or_none(memory: bytes) -> None:
    beats, phase, epoch, step = Breadcrumb(bytearray(memory)).read()
    assert (phase is None) == (beats == 0)
    assert phase is not None or (epoch, step) == (None, None)
    assert 0 not in (epoch, step)
