"""What may stand in a policy: numbers, texts and ranges that are taken exactly, or refused in words."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
)

from privet.addresses import is_address, masked
from privet.errors import UserError
from privet.exact import Exact, exact, nonnegative, positive, whole
from privet.policy import toml
from privet.relation.schema import called

_RATIO = {"type": "string", "pattern": r"^ *[+-]?[0-9.][0-9._]*([eE][+-]?[0-9]+|/[0-9]+)? *$"}


class Part(BaseModel):
    """A table of the policy: unknown keys are refused, nothing is converted, nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class Wrong(UserError):
    """A refusal that knows which value to write instead; None if it knows none."""

    def __init__(self, what: str, write: Any) -> None:
        super().__init__(what)
        self.write = write


def aliased(name: str, default: Any = ...) -> Any:
    """A field whose name in the policy is taken in Python."""
    return Field(default, alias=name)


# --- numbers ----------------------------------------------------------------------------------


def _schema(**limits: int) -> WithJsonSchema:
    """A number is written as one, or exactly, in quotes."""
    return WithJsonSchema({"anyOf": [{"type": "number", **limits}, _RATIO]})


def _nonnegative(value: Any, info: ValidationInfo) -> Exact:
    return nonnegative(_loose(value, str(info.field_name)), name=str(info.field_name))


def _positive(value: Any, info: ValidationInfo) -> Exact:
    return positive(_loose(value, str(info.field_name)), name=str(info.field_name))


def _whole(value: Any, info: ValidationInfo) -> int:
    return whole(_loose(value, str(info.field_name)), name=str(info.field_name))


def _loose(value: Any, name: str) -> Any:
    """What may be a number, as it is; the rest of TOML is refused in its own words."""
    if isinstance(value, bool | list | dict | date | time):
        raise UserError(f"{name} must be a number, not {toml.brief(value)}.")
    if isinstance(value, Decimal) and (not value.is_finite() or Decimal(repr(float(value))) == value):
        return float(value)  # the same number, and shown as it was written
    return value


Epsilon = Annotated[Exact, PlainValidator(_nonnegative), _schema(minimum=0)]
Delta = Annotated[Exact, PlainValidator(_nonnegative), _schema(minimum=0, exclusiveMaximum=1)]
Step = Annotated[Exact, PlainValidator(_positive), _schema(exclusiveMinimum=0)]
Whole = Annotated[int, PlainValidator(_whole), WithJsonSchema({"type": "integer", "minimum": 1})]


# --- ranges -----------------------------------------------------------------------------------


def _two(value: Any, what: str, example: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise UserError(f"{what} needs two ends, such as {example}, not {toml.brief(value)}.")
    return value


def _bounds(value: Any, info: ValidationInfo) -> tuple[Exact, Exact]:
    given = _two(value, str(info.field_name), "[0, 110]")
    named = tuple(zip(("lower", "upper"), given, strict=True))
    for name, end in named:
        if isinstance(end, str | float | Decimal) and str(end).strip("+-").lower() in ("inf", "infinity"):
            raise UserError(
                f"{name} is {toml.value(end)}: without finite bounds one row can move an answer without limit. "
                "Bounds come from what you know, never from the data."
            )
    lower, upper = (exact(_loose(end, name), name=name) for name, end in named)
    if lower >= upper:
        swapped = {info.field_name: [given[1], given[0]]} if lower > upper else None
        raise Wrong(f"lower must be less than upper, not {toml.brief(given)}.", swapped)
    return lower, upper


def _moments(value: Any, info: ValidationInfo) -> tuple[Any, Any]:
    kind = info.field_name
    first, last = _two(value, str(kind), "[2024-01-01, 2024-12-31]")
    for end in (first, last):
        if not isinstance(end, date | str) or (kind == "date" and isinstance(end, datetime)):
            raise UserError(f"a range of {kind}s needs {kind}s, not {toml.brief(end)}.")
        if isinstance(end, datetime) and end.tzinfo is not None:
            raise UserError(f"timestamps are in UTC, and written without a zone, not {toml.brief(end)}.")
    return first, last


def _ends(of: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"type": "array", "prefixItems": [of, of], "minItems": 2, "maxItems": 2})


_MOMENT = {"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?$"}

IntegerBounds = Annotated[tuple[Exact, Exact], PlainValidator(_bounds), _ends({"anyOf": [{"type": "integer"}, _RATIO]})]
NumberBounds = Annotated[tuple[Exact, Exact], PlainValidator(_bounds), _ends({"anyOf": [{"type": "number"}, _RATIO]})]
Moments = Annotated[tuple[Any, Any], PlainValidator(_moments), _ends(_MOMENT)]


# --- keys, names, paths -----------------------------------------------------------------------


NAMED = "dataset, table, column, analyst or version"
"""What has a name; a refusal puts in which of them it is."""


def _key(value: Any) -> str | int:
    if isinstance(value, str) or type(value) is int:
        return value
    raise UserError(f"a key is a text or an integer, not {toml.brief(value)}.")


def _keys(value: Any) -> tuple[str | int, ...]:
    if not isinstance(value, list) or not value:
        raise UserError(f"keys must be a list of texts or of integers, not {toml.brief(value)}.")
    return tuple(map(_key, value))


_KEY: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
_LIST = {"type": "array", "items": _KEY, "minItems": 1, "uniqueItems": True}

Key = Annotated[str | int, PlainValidator(_key), WithJsonSchema(_KEY)]
Keys = Annotated[tuple[str | int, ...], PlainValidator(_keys), WithJsonSchema(_LIST)]


def _name(value: str) -> str:
    return called(value, NAMED)


def _path(value: str) -> str:
    if not value.strip() or "\x00" in value:
        raise UserError(f"{toml.text(value)} is not a path.")
    if is_address(value):
        raise UserError(f"{toml.text(masked(value))} is not a file here: copy it to this machine first.")
    return value


Name = Annotated[str, AfterValidator(_name)]
FilePath = Annotated[str, AfterValidator(_path)]
