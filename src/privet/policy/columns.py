"""How the columns of a private table are declared in a policy: the same kinds as in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Tag, model_validator

from privet.errors import UserError
from privet.policy import fields, toml
from privet.policy.fields import Part
from privet.tables.schema import Column, boolean, date, integer, keys, number, text, timestamp

Resolve = Callable[[str], str]
"""From a path in the policy to one that can be opened."""


class Declaration(Part):
    """A declared column."""

    def column(self, resolve: Resolve) -> Column:
        """The column as Python declares it; only `keys_from` reads a file, a public one."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not isinstance(self, KeysFromFile):
            self.column(str)
        return self


class Keys(Declaration):
    """One of a public list of values; every one of them appears in an answer."""

    keys: fields.Keys
    """All values, texts or integers, from what you know."""
    other: fields.Key | None = None
    """The key under which all other values count; without it, such rows are left out of groups."""

    def column(self, resolve: Resolve) -> Column:
        return keys(*self.keys, other=self.other)


class KeysFromFile(Declaration):
    """One of the values in a column of a public file."""

    keys_from: fields.FilePath
    """A public CSV or Parquet file."""
    column_: str = fields.aliased("column")
    """The column of that file."""
    other: fields.Key | None = None
    """The key under which all other values count; without it, such rows are left out of groups."""

    def column(self, resolve: Resolve) -> Column:
        from privet.sources import keys_from

        return keys_from(resolve(self.keys_from), self.column_, other=self.other)


class Integer(Declaration):
    """A whole number, clamped to public bounds."""

    integer: fields.IntegerBounds
    """The least and the greatest value, from what you know, never from the data."""
    required: bool = False
    """Whether a missing value counts as the lower bound."""

    def column(self, resolve: Resolve) -> Column:
        low, high = self.integer
        if low.denominator != 1 or high.denominator != 1:
            raise fields.Wrong("the bounds of an integer must be integers", {"number": [low, high]})
        if high - low > 2**52:
            raise UserError("the bounds of an integer must be at most 2^52 apart")
        return integer(int(low), int(high), required=self.required)


class Number(Declaration):
    """A real number, clamped to public bounds."""

    number: fields.NumberBounds
    """The least and the greatest value, from what you know, never from the data."""
    step: fields.Step | None = None
    """The step to which it is rounded before summing; by default, 2^-32 of the range."""
    required: bool = False
    """Whether a missing value counts as the lower bound."""

    def column(self, resolve: Resolve) -> Column:
        return number(*self.number, step=self.step, required=self.required)


class Date(Declaration):
    """A date in a public range."""

    date: fields.Moments
    """The first and the last day."""

    def column(self, resolve: Resolve) -> Column:
        return date(*self.date)


class Timestamp(Declaration):
    """A date with a time of day, in UTC, in a public range."""

    timestamp: fields.Moments
    """The first and the last moment."""

    def column(self, resolve: Resolve) -> Column:
        return timestamp(*self.timestamp)


class Plain(Declaration):
    """A boolean, or a text for filters."""

    type: Literal["boolean", "text"]
    """What it holds."""
    required: bool = False
    """For a boolean: whether a missing value counts as false."""

    def column(self, resolve: Resolve) -> Column:
        if self.type == "boolean":
            return boolean(required=self.required)
        if self.required:
            raise UserError("a text can't be required: only integers, numbers and booleans can")
        return text()


KINDS: dict[str, type[Declaration]] = {
    "keys": Keys,
    "keys_from": KeysFromFile,
    "integer": Integer,
    "number": Number,
    "date": Date,
    "timestamp": Timestamp,
    "type": Plain,
}
"""The key that says which kind a column is."""

EXAMPLES: dict[str, str] = {
    "keys": '{ keys = ["north", "south"], other = "elsewhere" }',
    "keys_from": '{ keys_from = "regions.csv", column = "region" }',
    "integer": "{ integer = [0, 110] }",
    "number": "{ number = [0, 200_000] }",
    "date": "{ date = [2024-01-01, 2024-12-31] }",
    "timestamp": "{ timestamp = [2024-01-01T00:00:00, 2024-12-31T23:59:59] }",
    "type": '"boolean"',
    "boolean": '"boolean"',
    "text": '"text"',
}
"""A column of each kind, as it is written."""

_SHORT = ("boolean", "text")
TAG = "\x00"
"""Marks the parts of pydantic's locations that are not keys."""


def kind(value: Any) -> str | None:
    """Which kind of column a value of the policy is meant to be.

    Example:
        >>> kind({"integer": [0, 110]}), kind("boolean"), kind({"between": [0, 110]})
        ('integer', 'short', None)
    """
    if isinstance(value, str):
        return "short" if value in _SHORT else None
    if isinstance(value, dict):
        return next((name for name in KINDS if name in value), None)
    return None


def _tag(value: Any) -> str | None:
    found = kind(value)
    return None if found is None else TAG + found


def refusal(value: Any) -> str:
    """Why a value does not declare a column."""
    if isinstance(value, str) and value in _NEEDS:
        return _NEEDS[value]
    kinds = ", ".join(name for name in KINDS if name != "type")
    return f'a column has one of {kinds}, or is "boolean" or "text"; not {toml.brief(value)}'


_NEEDS = {
    "keys": "list the keys: each of them appears in every answer",
    "keys_from": "keys_from needs a public file and its column",
    "integer": "an integer needs bounds, from what you know, never from the data",
    "number": "a number needs bounds, from what you know, never from the data",
    "date": "a date needs a range, from what you know, never from the data",
    "timestamp": "a timestamp needs a range, from what you know, never from the data",
    "type": 'a column needs a type, such as "boolean"',
}

ColumnShape = Annotated[
    Annotated[Literal["boolean", "text"], Tag(TAG + "short")]
    | Annotated[Keys, Tag(TAG + "keys")]
    | Annotated[KeysFromFile, Tag(TAG + "keys_from")]
    | Annotated[Integer, Tag(TAG + "integer")]
    | Annotated[Number, Tag(TAG + "number")]
    | Annotated[Date, Tag(TAG + "date")]
    | Annotated[Timestamp, Tag(TAG + "timestamp")]
    | Annotated[Plain, Tag(TAG + "type")],
    Discriminator(_tag),
]
"""A column, in any of its forms."""


def declared(shape: Declaration | str) -> Declaration:
    """A column in its long form."""
    return Plain(type=shape) if isinstance(shape, str) else shape  # type: ignore[arg-type]
