"""The file of expectations: YAML text -> validated rules. Every complaint names the file and the line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from harness.errors import UsageError
from harness.matrix.document import AxisValues
from harness.matrix.strict_yaml import Path, complaint, parse
from harness.model import Device, Outcome, Phase, Settings, Variant

AFTER_MIDDLE = "after-middle"
"""The first step of an epoch's second half: where a helper called in mid-epoch shows."""


class ExpectationsFileError(UsageError):
    """A file of expectations cannot be found, parsed, validated or edited."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _no_switch(raw: object) -> object:
    """Pydantic would read a boolean as the number 1."""
    if isinstance(raw, bool):
        raise ValueError("expected a number, not a switch")  # noqa: TRY004 - pydantic collects ValueErrors
    return raw


Count = Annotated[int, BeforeValidator(_no_switch), Field(ge=1)]
Step = Annotated[Literal["after-middle", "last"] | Count, BeforeValidator(_no_switch)]


class Expected(_Strict):
    """What an attempt should come to. ``error`` is a regular expression, searched in ``Type: message``."""

    outcome: Literal[Outcome.OK, Outcome.BACKWARD_ERROR, Outcome.ERROR, Outcome.OOM, Outcome.TIMEOUT, Outcome.CRASH]
    phase: Phase | None = None
    epoch: Annotated[Literal["last"] | Count, BeforeValidator(_no_switch)] | None = None
    step: Step | None = None
    error: str | None = None

    @field_validator("error")
    @classmethod
    def _is_a_pattern(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return pattern

    @model_validator(mode="after")
    def _ok_is_all(self) -> Expected:
        if self.outcome is Outcome.OK and self.model_fields_set - {"outcome"}:
            raise ValueError("an attempt that is ok ends nowhere in particular; leave phase, epoch, step and error out")
        return self

    def place(self, settings: Settings) -> tuple[int | None, int | None]:
        """Epoch and step as numbers, for a run with ``settings``."""
        epoch = settings.epochs if self.epoch == "last" else self.epoch
        steps = {AFTER_MIDDLE: settings.steps // 2 + 1, "last": settings.steps}
        return epoch, steps[self.step] if isinstance(self.step, str) else self.step


class Rule(_Strict):
    """What is expected of the variants that match, on some devices, and why."""

    devices: Annotated[tuple[Device, ...], Field(min_length=1)]
    match: AxisValues = Field(default_factory=dict)
    expect: Expected
    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

    def covers(self, variant: Variant, device: Device) -> bool:
        """Whether the rule speaks of ``variant`` on ``device``."""
        return device in self.devices and all(variant.axes.get(axis) in values for axis, values in self.match.items())


class _Document(_Strict):
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Expectations:
    """The rules of a file, in its order; ``node`` is their list in the file, and tells where each of them stands."""

    source: str
    text: str
    rules: tuple[Rule, ...]
    node: yaml.SequenceNode

    def deciding(self, variant: Variant, device: Device) -> int | None:
        """The position of the rule that decides: the first that speaks of ``variant`` on ``device``; None without."""
        return next((i for i, rule in enumerate(self.rules) if rule.covers(variant, device)), None)

    def line(self, position: int) -> int:
        """The line on which a rule begins."""
        return int(self.node.value[position].start_mark.line) + 1

    @cached_property
    def devices(self) -> frozenset[Device]:
        """The devices of which any rule speaks."""
        return frozenset(device for rule in self.rules for device in rule.devices)


def parse_expectations(text: str, source: str) -> Expectations:
    """The rules that ``text`` holds; ``source`` is the file's name, for complaints.

    Raises:
        ExpectationsFileError: not YAML, a key given twice, or not a list of rules; it names file and line.
    """
    node, raw = parse(text, source, ExpectationsFileError)
    if not isinstance(raw, Mapping):
        raise ExpectationsFileError(
            f"{source}: a file of expectations is a mapping with the key 'rules'", "See docs/expectations.md."
        )
    try:
        document = TypeAdapter(_Document).validate_python(raw)
    except ValidationError as error:
        raise complaint(error, node, source, _keys_at, ExpectationsFileError) from error
    except RecursionError as error:
        raise ExpectationsFileError(f"{source}: an anchor in this file contains itself", "Mend the file.") from error
    return Expectations(source, text, document.rules, _rules_node(node))


def _rules_node(node: yaml.Node | None) -> yaml.SequenceNode:
    assert isinstance(node, yaml.MappingNode)
    rules = next(value for key, value in node.value if key.value == "rules")
    assert isinstance(rules, yaml.SequenceNode)
    return rules


def _keys_at(path: Path) -> Iterable[str]:
    if len(path) == 1:
        return _Document.model_fields
    return (Expected if "expect" in path[:-1] else Rule).model_fields
