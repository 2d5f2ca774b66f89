"""The tables of a dataset in words, for a page, and as completions for its editor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from privet.exact import Exact, show
from privet.sql.functions import FUNCTIONS
from privet.sql.quoting import quoted
from privet.tables import schema, wording
from privet.tables.relation import PublicTable, Table
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type

_OUTSIDE = "Values outside are clamped, or in no group."
_KEYS = 400  # of a column, that are completed
_KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "AS", "AND", "OR", "NOT", "IN", "BETWEEN",
    "LIKE", "IS NULL", "IS NOT NULL", "JOIN", "LEFT JOIN", "ON", "USING", "CASE WHEN", "THEN", "ELSE", "END", "DESC",
    "ROLLUP", "CUBE", "OPTIONS",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnWords:
    """A column: its name, as SQL writes it, and what it can be."""

    name: str
    written: str
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class TableWords:
    """A table: whom it protects, and its columns."""

    name: str
    protects: str
    columns: tuple[ColumnWords, ...]
    public: bool = False


def tables(private: Mapping[str, Table], public: Mapping[str, PublicTable]) -> tuple[TableWords, ...]:
    """Every table in words: the private ones, then the public ones."""
    found = [
        TableWords(
            name,
            wording.protected(table.schema),
            tuple(_column(each, column) for each, column in table.schema.columns),
        )
        for name, table in private.items()
    ]
    for name, joined in public.items():
        columns = tuple(
            ColumnWords(each, quoted(each), _kind(type_), _range(type_)) for each, type_ in _public_types(joined)
        )
        found.append(TableWords(name, f"joined on {joined.schema.key}", columns, public=True))
    return tuple(found)


def _public_types(table: PublicTable) -> Iterable[tuple[str, Type]]:
    return ((name, getattr(column, "type", column)) for name, column in table.schema.columns)


def _column(name: str, column: schema.Column) -> ColumnWords:
    words = _range(column.type)
    if column.within is not None:
        words += f" Each lies within one {column.within.column}."
    return ColumnWords(name, quoted(name), _kind(column.type), words)


def _kind(type_: Type) -> str:
    match type_:
        case NumberType():
            return "whole number" if type_.integer else "number"
        case BooleanType():
            return "yes or no"
        case KeyType():
            return "keys"
        case TimeType():
            return type_.kind
        case TextType():
            return "text"
        case _:
            return str(getattr(type_, "kind", ""))


def _range(type_: Type) -> str:
    """What a column can be, as a sentence."""
    match type_:
        case NumberType(lower, upper, step=step):
            what = "A whole number" if type_.integer else "A number"
            if type_.wide:
                return f"{what} without bounds: clip it before you sum it."
            steps = f", in steps of {show(step)}" if step is not None else ""
            return f"{what} from {_number(lower)} to {_number(upper)}{steps}. {_OUTSIDE}"
        case BooleanType():
            return "True or false."
        case KeyType(values, other):
            count = f"One of {len(values):,} keys: " if len(values) > 24 else "One of " if len(values) > 1 else "Only "
            rest = (
                f" Any other value counts as {other}." if other is not None else " Any other value counts as missing."
            )
            listed = ", ".join(map(str, values[:24]))
            more = f", and {len(values) - 24:,} more" if len(values) > 24 else ""
            return f"{count}{listed}{more}.{rest}"
        case TimeType(first, last):
            return f"A {type_.kind} from {first} to {last}. {_OUTSIDE}"
        case TextType():
            return "A text. As a group, its keys are not public: they cost a delta, and only frequent ones appear."
        case _:
            return f"{str(type_)[:1].upper()}{str(type_)[1:]}."


def _number(x: Exact) -> str:
    return f"{int(x):,}" if x.denominator == 1 and abs(x) < 10**15 else show(x)


def completions(private: Mapping[str, Table], public: Mapping[str, PublicTable]) -> str:
    """What the editor can complete, as JSON: [[what is written, what it is], ...]."""
    words: dict[str, str] = {}
    every: list[tuple[str, Any]] = [*private.items(), *public.items()]
    for name, _ in every:
        words[quoted(name)] = "table"
    for name, table in every:
        for each, column in table.schema.columns:
            type_ = getattr(column, "type", column)
            words.setdefault(quoted(each), f"{name}: {_kind(type_)}")
            if isinstance(type_, KeyType):
                for key in type_.keys()[:_KEYS]:
                    words.setdefault("'" + key.replace("'", "''") + "'" if isinstance(key, str) else str(key), each)
    for function in FUNCTIONS.values():
        if function.suggested:
            words.setdefault(f"{function.name}(", "function")
    for word in _KEYWORDS:
        words.setdefault(word, "")
    return json.dumps(list(words.items()), ensure_ascii=False)
