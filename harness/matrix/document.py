"""A matrix file: YAML text -> a validated ``MatrixDocument``. Every complaint names the file and the line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from harness.errors import MatrixFileError, UsageError
from harness.matrix.axes import nearest, spec_of
from harness.model import Settings, Value


def _axis_values(raw: object) -> dict[str, tuple[Value, ...]]:
    """Axis name -> values; one value, a list of them, or the word ``all`` for every value of a choice axis."""
    if not isinstance(raw, Mapping):
        raise ValueError("expected axis names with their values")  # noqa: TRY004 - pydantic collects ValueErrors
    found: dict[str, tuple[Value, ...]] = {}
    for name, values in raw.items():
        try:
            spec = spec_of(str(name))
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


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Exclude(_Strict):
    """Variants that match on every named axis are left out, for a reason that the report repeats."""

    match: AxisValues
    reason: str = Field(min_length=1)


_DEFAULT = Settings()


class SettingsPatch(_Strict):
    """The settings that a matrix changes; see ``harness.model.Settings``."""

    epochs: int = Field(default=_DEFAULT.epochs, ge=1)
    steps: int = Field(default=_DEFAULT.steps, ge=1)
    evaluation_steps: int = Field(default=_DEFAULT.evaluation_steps, ge=0)
    warmup_epochs: int = Field(default=_DEFAULT.warmup_epochs, ge=0)
    learning_rate: float = Field(default=_DEFAULT.learning_rate, ge=0, allow_inf_nan=False)
    seed: int = Field(default=_DEFAULT.seed, ge=0, lt=2**63)
    deadline: float = Field(default=_DEFAULT.deadline, gt=0, allow_inf_nan=False)
    replicates: int = Field(default=_DEFAULT.replicates, ge=1)

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
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        _refuse_duplicate_keys(node, source)
        raw = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise MatrixFileError(f"{source}, line {line}: not YAML: {error.problem}", "Mend the file.") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        # ValueError: a scalar that looks like a date or number and is none (2020-13-45)
        raise MatrixFileError(f"{source}: not YAML: {_one_line(error)}", "Mend the file.") from error
    if not isinstance(raw, Mapping):
        raise MatrixFileError(f"{source}: a matrix is a mapping with at least the key 'axes'", "See `harness plan`.")
    try:
        return TypeAdapter(MatrixDocument).validate_python(raw)
    except ValidationError as error:
        raise _complaint(error, node, source) from error
    except RecursionError as error:
        raise MatrixFileError(f"{source}: an anchor in this file contains itself", "Mend the file.") from error


def _complaint(error: ValidationError, node: yaml.Node | None, source: str) -> MatrixFileError:
    first = error.errors(include_url=False)[0]
    path = first["loc"]
    if first["type"] == "axis":
        path = (*path, first["ctx"]["axis"])
    where = ".".join(str(part) for part in path)
    message = first["msg"].removeprefix("Value error, ")
    advice = "Mend the file."
    if first["type"] == "extra_forbidden":
        message = f"there is no key {path[-1]!r} here"
        owners: dict[str, type[_Strict]] = {"settings": SettingsPatch, "exclude": Exclude}
        owner = owners.get(str(path[0]), MatrixDocument) if len(path) > 1 else MatrixDocument
        advice = nearest(str(path[-1]), owner.model_fields)
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return MatrixFileError(f"{source}, line {_line_of(node, path)}: {where}: {message.rstrip('.')}{more}", advice)


def _line_of(node: yaml.Node | None, path: tuple[Any, ...]) -> int:
    """The line of the node that ``path`` leads to, or of the last one on the way that exists."""
    line = 1
    for part in path:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line


def _refuse_duplicate_keys(node: yaml.Node | None, source: str) -> None:
    """YAML loaders keep the last of two equal keys in silence, which would drop half of a matrix."""
    for mapping in _mappings(node, set()):
        seen: set[str] = set()
        for key, _ in mapping.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                line = key.start_mark.line + 1
                raise MatrixFileError(f"{source}, line {line}: the key {key.value!r} is given twice", "Keep one.")
            seen.add(str(key.value))


def _mappings(node: yaml.Node | None, seen: set[int]) -> Iterator[yaml.MappingNode]:
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        yield node
        children = [child for pair in node.value for child in pair]
    else:
        children = node.value if isinstance(node, yaml.SequenceNode) else []
    for child in children:
        yield from _mappings(child, seen)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
