"""A question without SQL: what a form says, and the SELECT that it makes.

The SELECT is read by the same parser as one that was typed, so a form can ask nothing that SQL could not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from privet.sql.quoting import quoted
from privet.tables.relation import Table
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type

MEASURES = (
    ("count", "number of rows"),
    ("people", "number of people"),
    ("mean", "mean"),
    ("sum", "sum"),
    ("median", "median"),
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("deviation", "standard deviation"),
)
_FUNCTIONS = {
    "mean": "AVG", "sum": "SUM", "median": "MEDIAN", "minimum": "MIN", "maximum": "MAX", "deviation": "STDDEV_POP",
}  # fmt: skip
COMPARISONS = (
    ("=", "is"),
    ("<>", "is not"),
    (">=", "is at least"),
    ("<=", "is at most"),
    (">", "is more than"),
    ("<", "is less than"),
)
_MOST_BINS = 110  # values of a whole number that become groups of their own


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a column with a value; no column means no condition."""

    column: str = ""
    how: str = "="
    value: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """What somebody filled in, and what there is to choose from."""

    table: str
    measure: str
    column: str
    by: str
    by2: str
    conditions: tuple[Condition, Condition]
    numbers: tuple[str, ...]
    groupable: tuple[str, ...]
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    sql: str
    measures: Sequence[tuple[str, str]] = field(default=MEASURES)
    comparisons: Sequence[tuple[str, str]] = field(default=COMPARISONS)


def filled(given: Mapping[str, Sequence[str]], tables: Mapping[str, Table], *, texts: bool = True) -> Form:
    """The form with what was chosen; what does not exist in the chosen table is ignored.

    Groups by `texts`, whose keys are not public, need a budget with a delta.
    """

    def first(name: str, allowed: Sequence[str], default: str = "") -> str:
        value = next(iter(given.get(name, ())), default)
        return value if value in allowed else default

    table = first("table", list(tables), next(iter(tables)))
    types = {name: column.type for name, column in tables[table].schema.columns}
    numbers = tuple(name for name, type_ in types.items() if isinstance(type_, NumberType | BooleanType))
    groups = tuple(
        name for name, type_ in types.items() if _groupable(type_) and (texts or not isinstance(type_, TextType))
    )
    person = getattr(tables[table].schema.protect, "id", None)
    measures = MEASURES if person is not None else tuple(each for each in MEASURES if each[0] != "people")
    measure = first("measure", [key for key, _ in measures], "count")
    column = first("column", numbers)
    if measure in _FUNCTIONS and not column and numbers:
        column = numbers[0]
    by, by2 = first("by", groups), first("by2", groups)
    by, by2 = (by2, "") if not by or by == by2 else (by, by2)
    columns, hows, values = ([*given.get(name, ()), "", ""] for name in ("where", "how", "value"))
    allowed = {key for key, _ in COMPARISONS}
    conditions = tuple(
        Condition(columns[i], hows[i] if hows[i] in allowed else "=", values[i]) if columns[i] in types else Condition()
        for i in range(2)
    )
    keys = [str(key) for type_ in types.values() if isinstance(type_, KeyType) for key in type_.values]
    made = _select(table, measure, column, [each for each in (by, by2) if each], conditions, types, person)
    return Form(
        table,
        measure,
        column,
        by,
        by2,
        (conditions[0], conditions[1]),
        numbers,
        groups,
        tuple(types),
        tuple(dict.fromkeys(keys))[:400],
        made,
        measures,
    )


def _groupable(type_: Type) -> bool:
    if isinstance(type_, NumberType):
        return type_.integer and not type_.wide and type_.upper - type_.lower <= _MOST_BINS
    return isinstance(type_, KeyType | BooleanType | TimeType | TextType)


def _select(
    table: str,
    measure: str,
    column: str,
    by: Sequence[str],
    conditions: Sequence[Condition],
    types: Mapping[str, Type],
    person: str | None,
) -> str:
    taken = {name.casefold() for name in types}
    if measure == "people" and person is not None:
        asked, name = f"COUNT(DISTINCT {quoted(person)})", "people"
    elif measure in _FUNCTIONS and column:
        asked, name = f"{_FUNCTIONS[measure]}({quoted(column)})", f"{measure}_{_plain(column)}"
    else:
        asked, name = "COUNT(*)", "n"
    while name.casefold() in taken:
        name += "_"
    groups = [
        f"DATE_TRUNC('month', {quoted(each)})" if isinstance(types[each], TimeType) else quoted(each) for each in by
    ]
    named = [
        f"{group} AS {_free('month', taken)}" if group != quoted(each) else group
        for group, each in zip(groups, by, strict=True)
    ]
    lines = [f"SELECT {', '.join([*named, f'{asked} AS {quoted(name)}'])}", f"FROM {quoted(table)}"]
    wheres = [
        f"{quoted(each.column)} {each.how} {_constant(each.value, types[each.column])}"
        for each in conditions
        if each.column
    ]
    lines += [f"{'WHERE' if i == 0 else '  AND'} {where}" for i, where in enumerate(wheres)]
    lines += [f"GROUP BY {', '.join(groups)}"] if groups else []
    return "\n".join(lines)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "value"


_NUMBER = re.compile(r"\s*-?[0-9][0-9_,]*(\.[0-9]+)?\s*")


def _constant(value: str, type_: Type) -> str:
    """A constant of SQL; what is no number or date is a text, which the parser then refuses or not."""
    text = value.strip()
    if isinstance(type_, BooleanType):
        return "FALSE" if text.casefold() in ("", "false", "no", "0", "f") else "TRUE"
    whole_keys = isinstance(type_, KeyType) and isinstance(type_.values[0], int)
    if (isinstance(type_, NumberType) or whole_keys) and _NUMBER.fullmatch(text):
        return text.replace(",", "").replace("_", "")
    written = "'" + text.replace("'", "''") + "'"
    if isinstance(type_, TimeType):
        for kind, word in ((date, "DATE"), (datetime, "TIMESTAMP")):
            try:
                kind.fromisoformat(text)
            except ValueError:
                continue
            return f"{word} {written}"
    return written
