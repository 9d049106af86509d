"""A matrix file: YAML text -> a validated ``MatrixDocument``. Every complaint names the file and the line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from harness.errors import MatrixFileError, UsageError
from harness.matrix.axes import spec_of
from harness.matrix.strict_yaml import Path, complaint, parse
from harness.model import Settings, Value


def _axis_values(raw: object) -> dict[str, tuple[Value, ...]]:
    """Axis name -> values; one value, a list of them, or the word ``all`` for every value of a choice axis."""
    if not isinstance(raw, Mapping):
        raise ValueError("expected axis names with their values")  # noqa: TRY004 - pydantic collects ValueErrors
    found: dict[str, tuple[Value, ...]] = {}
    for name, values in raw.items():
        try:
            spec = spec_of(str(name))
            if spec.name in found:
                raise _axis_error(name, f"the axis {spec.name!r} is given twice, in two spellings; keep one")
            if values == "all" and spec.choices:
                found[spec.name] = spec.choices
                continue
            listed = values if isinstance(values, list) else [values]
            found[spec.name] = tuple(dict.fromkeys(spec.parse(value) for value in listed))
        except UsageError as error:
            raise _axis_error(name, f"{error}. {error.advice}") from error
        if not found[spec.name]:
            raise _axis_error(name, f"axis {spec.name!r} has no values; give it one, or leave the axis out")
    return found


def _axis_error(axis: object, message: str) -> PydanticCustomError:
    """Carries the axis, so that the complaint can name its line and not that of the whole mapping."""
    return PydanticCustomError("axis", "{message}", {"message": message, "axis": axis})


AxisValues = Annotated[dict[str, tuple[Value, ...]], BeforeValidator(_axis_values)]


def _names_an_axis(match: AxisValues) -> AxisValues:
    if not match:
        raise ValueError("it names no axis, so it would exclude nothing")
    return match


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Exclude(_Strict):
    """Variants that match on every named axis are left out, for a reason that the report repeats."""

    match: Annotated[AxisValues, AfterValidator(_names_an_axis)]
    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _no_switch(raw: object) -> object:
    """YAML reads a bare ``on`` or ``yes`` as a boolean, and pydantic would read that as 1."""
    if isinstance(raw, bool):
        raise ValueError("expected a number, not a switch")  # noqa: TRY004 - pydantic collects ValueErrors
    return raw


Whole = Annotated[int, BeforeValidator(_no_switch)]
Real = Annotated[float, BeforeValidator(_no_switch), Field(allow_inf_nan=False)]

_DEFAULT = Settings()


class SettingsPatch(_Strict):
    """The settings that a matrix changes; see ``harness.model.Settings``."""

    epochs: Whole = Field(default=_DEFAULT.epochs, ge=1, lt=2**31)
    steps: Whole = Field(default=_DEFAULT.steps, ge=1, lt=2**31)
    evaluation_steps: Whole = Field(default=_DEFAULT.evaluation_steps, ge=0, lt=2**31)
    warmup_epochs: Whole = Field(default=_DEFAULT.warmup_epochs, ge=0)
    learning_rate: Real = Field(default=_DEFAULT.learning_rate, ge=0)
    seed: Whole = Field(default=_DEFAULT.seed, ge=0, lt=2**63)
    deadline: Real = Field(default=_DEFAULT.deadline, gt=0)
    replicates: Whole = Field(default=_DEFAULT.replicates, ge=1, le=1000)
    threads: Whole = Field(default=_DEFAULT.threads, ge=0, le=1024)
    timed_blocks: Whole = Field(default=_DEFAULT.timed_blocks, ge=0, le=1000)
    block_ms: Real = Field(default=_DEFAULT.block_ms, gt=0, le=60_000)

    @model_validator(mode="after")
    def _something_is_measured(self) -> SettingsPatch:
        if self.warmup_epochs >= self.epochs:
            raise ValueError(
                f"warmup_epochs is {self.warmup_epochs} of {self.epochs} epochs, so nothing would be measured"
            )
        return self

    def settings(self) -> Settings:
        """The settings, as the plan keeps them."""
        return Settings(**self.model_dump())


class MatrixDocument(_Strict):
    """What a matrix file says."""

    description: str = ""
    axes: AxisValues
    include: tuple[AxisValues, ...] = ()
    exclude: tuple[Exclude, ...] = ()
    settings: SettingsPatch = SettingsPatch()


def parse_document(text: str, source: str) -> MatrixDocument:
    """The matrix that ``text`` describes; ``source`` is the file's name, for complaints.

    Raises:
        MatrixFileError: not YAML, a key given twice, or not a matrix; the sentence names file and line.
    """
    node, raw = parse(text, source, MatrixFileError)
    if not isinstance(raw, Mapping):
        where = source if node is None else f"{source}, line {node.start_mark.line + 1}"
        raise MatrixFileError(f"{where}: a matrix is a mapping with at least the key 'axes'", "See `harness plan`.")
    try:
        return TypeAdapter(MatrixDocument).validate_python(raw)
    except ValidationError as error:
        raise complaint(error, node, source, _keys_at, MatrixFileError) from error
    except RecursionError as error:
        raise MatrixFileError(f"{source}: an anchor in this file contains itself", "Mend the file.") from error


def _keys_at(path: Path) -> Iterable[str]:
    owners: dict[str, type[_Strict]] = {"settings": SettingsPatch, "exclude": Exclude}
    return (owners.get(str(path[0]), MatrixDocument) if len(path) > 1 else MatrixDocument).model_fields
