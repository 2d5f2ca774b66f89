"""The values of a policy: numbers, strings and ranges, read exactly or refused with a reason."""

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

from privet.errors import Remedy, UserError
from privet.exact import Exact, exact, nonnegative, positive, whole
from privet.policy import toml
from privet.system.addresses import COPY, SOURCES, is_address, masked
from privet.system.object_addresses import ObjectAddress, is_object_address
from privet.tables.kinds import Form
from privet.tables.schema import check_name

_RATIO = {"type": "string", "pattern": r"^ *[+-]?[0-9.][0-9._]*([eE][+-]?[0-9]+|/[0-9]+)? *$"}


class Part(BaseModel):
    """A table of the policy: unknown keys are refused, nothing is converted, and it is immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class Wrong(UserError):
    """An error with the value to write instead; None if there is none."""

    def __init__(self, what: str, write: Any) -> None:
        super().__init__(what)
        self.write = write


def aliased(name: str, default: Any = ...) -> Any:
    """A field whose name in the policy is reserved in Python."""
    return Field(default, alias=name)


# --- numbers ----------------------------------------------------------------------------------


def _schema(**limits: int) -> WithJsonSchema:
    """A number, or an exact ratio in quotes."""
    return WithJsonSchema({"anyOf": [{"type": "number", **limits}, _RATIO]})


def _nonnegative(value: Any, info: ValidationInfo) -> Exact:
    return nonnegative(_loose(value, str(info.field_name)), name=str(info.field_name))


def _positive(value: Any, info: ValidationInfo) -> Exact:
    return positive(_loose(value, str(info.field_name)), name=str(info.field_name))


def _whole(value: Any, info: ValidationInfo) -> int:
    return whole(_loose(value, str(info.field_name)), name=str(info.field_name))


def _loose(value: Any, name: str) -> Any:
    """A value that may be a number, unchanged; other values of TOML are refused."""
    if isinstance(value, bool | list | dict | date | time):
        raise UserError(f"{name} must be a number, not {toml.brief(value)}")
    if isinstance(value, Decimal) and (not value.is_finite() or Decimal(repr(float(value))) == value):
        return float(value)  # the same number, and shown as it was written
    return value


Epsilon = Annotated[Exact, PlainValidator(_nonnegative), _schema(minimum=0)]
Delta = Annotated[Exact, PlainValidator(_nonnegative), _schema(minimum=0, exclusiveMaximum=1)]


def _share(value: Any, info: ValidationInfo) -> Exact:
    share = _positive(value, info)
    if share > 1:
        raise UserError(f"{info.field_name} must be at most 1, not {toml.brief(value)}")
    return share


Step = Annotated[Exact, PlainValidator(_positive), _schema(exclusiveMinimum=0)]
Share = Annotated[Exact, PlainValidator(_share), _schema(exclusiveMinimum=0, maximum=1)]
Whole = Annotated[int, PlainValidator(_whole), WithJsonSchema({"type": "integer", "minimum": 1})]


# --- ranges -----------------------------------------------------------------------------------


def _two(value: Any, what: str, example: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise UserError(f"{what} needs two bounds, such as {example}, not {toml.brief(value)}")
    return value


def _bounds(value: Any, info: ValidationInfo) -> tuple[Exact, Exact]:
    written = _two(value, str(info.field_name), "[0, 110]")
    named = tuple(zip(("lower", "upper"), written, strict=True))
    for name, end in named:
        if isinstance(end, str | float | Decimal) and str(end).strip("+-").lower() in ("inf", "infinity"):
            raise UserError(
                f"{name} is {toml.value(end)}: without finite bounds, one row could change an answer without limit",
                remedy=Remedy("Choose bounds from what you know, never from the data"),
            )
    lower, upper = (exact(_loose(end, name), name=name) for name, end in named)
    if lower >= upper:
        swapped = {info.field_name: [written[1], written[0]]} if lower > upper else None
        raise Wrong(f"lower must be less than upper, not {toml.brief(written)}", swapped)
    return lower, upper


def _integers(value: Any, info: ValidationInfo) -> tuple[int, int]:
    low, high = _bounds(value, info)
    if low.denominator != 1 or high.denominator != 1:
        raise Wrong("the bounds of an integer must be integers", {"number": [low, high]})
    if high - low > 2**52:
        raise UserError("the bounds of an integer must be at most 2^52 apart")
    return int(low), int(high)


def _moments(value: Any, info: ValidationInfo) -> tuple[Any, Any]:
    kind = info.field_name
    first, last = _two(value, str(kind), "[2024-01-01, 2024-12-31]")
    for end in (first, last):
        if not isinstance(end, date | str) or (kind == "date" and isinstance(end, datetime)):
            raise UserError(f"a range of {kind}s needs {kind}s, not {toml.brief(end)}")
        if isinstance(end, datetime) and end.tzinfo is not None:
            raise UserError(f"timestamps must be in UTC, without a time zone, not {toml.brief(end)}")
    return first, last


def _ends(bounds: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"type": "array", "prefixItems": [bounds, bounds], "minItems": 2, "maxItems": 2})


_MOMENT = {"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?$"}

IntegerBounds = Annotated[tuple[int, int], PlainValidator(_integers), _ends({"anyOf": [{"type": "integer"}, _RATIO]})]
NumberBounds = Annotated[tuple[Exact, Exact], PlainValidator(_bounds), _ends({"anyOf": [{"type": "number"}, _RATIO]})]
Moments = Annotated[tuple[Any, Any], PlainValidator(_moments), _ends(_MOMENT)]


# --- keys, names, paths -----------------------------------------------------------------------


def _key(value: Any) -> str | int:
    if isinstance(value, str) or type(value) is int:
        return value
    raise UserError(f"a key must be a string or an integer, not {toml.brief(value)}")


def _keys(value: Any) -> tuple[Any, ...]:
    if isinstance(value, dict) and value:
        return ({parent: _keys(some) for parent, some in value.items()},)
    if not isinstance(value, list) or not value:
        raise UserError(f"keys must be a list of strings or of integers, not {toml.brief(value)}")
    return tuple(map(_key, value))


_KEY: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
_LIST: dict[str, Any] = {"type": "array", "items": _KEY, "minItems": 1, "uniqueItems": True}
_KEYS = {"anyOf": [_LIST, {"type": "object", "additionalProperties": _LIST, "minProperties": 1}]}

Key = Annotated[str | int, PlainValidator(_key), WithJsonSchema(_KEY)]
Keys = Annotated[tuple[Any, ...], PlainValidator(_keys), WithJsonSchema(_KEYS)]


def _name(value: str) -> str:
    return check_name(value, "name")


def _version(value: str) -> str:
    return check_name(value, "version")


def path(value: str) -> str:
    """A path to files on this machine."""
    if not value.strip() or "\x00" in value:
        raise UserError(f"{toml.text(value)} is not a path")
    if is_address(value):
        raise UserError(
            f"{toml.text(masked(value))} is not a file on this machine", remedy=Remedy("Copy it to this machine first")
        )
    return value


def path_or_objects(value: str) -> str:
    """A path to files on this machine, or the address of objects in a store."""
    if is_object_address(value):
        return str(ObjectAddress.parse(value))
    if is_address(value):
        raise UserError(
            f"{toml.text(masked(value))} is not a source that Privet can read",
            allowed=SOURCES,
            remedy=Remedy(COPY),
        )
    return path(value)


Name = Annotated[str, AfterValidator(_name)]
"""The name of a dataset, a table, a column or an analyst."""
Version = Annotated[str, AfterValidator(_version)]
FilePath = Annotated[str, AfterValidator(path)]
RowsPath = Annotated[str, AfterValidator(path_or_objects)]
"""A file, or the address of objects in a store."""

FORMS: dict[Form, Any] = {
    "integers": IntegerBounds, "numbers": NumberBounds, "dates": Moments, "timestamps": Moments,
    "keys": Keys, "key": Key, "file": FilePath, "text": str, "step": Step, "flag": bool,
}  # fmt: skip
"""How each parameter of a column is read."""
