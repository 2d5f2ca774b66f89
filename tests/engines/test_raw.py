"""Where the engine asks the source's own value instead of what it is read as, nothing changes, whatever the value.

Comparisons with a constant are made on the raw column where that is quicker. Each is compared here with that of n, the
integer that the column is read as, over every special value and every number beside a bound or an edge.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, timedelta
from random import Random
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.effort import EFFORT

from privet.engines.duckdb.dialect import DuckDBDialect
from privet.engines.duckdb.types import stored
from privet.engines.reference.leaves import leaf
from privet.engines.sql import leaves, numbers
from privet.engines.sql.leaves import compare_raw, read
from privet.engines.sql.text import Context
from privet.tables import schema as declared
from privet.tables.schema import Column
from privet.tables.types import NumberType

DIALECT = DuckDBDialect()
OPERATORS = ["==", "!=", "<", "<=", ">", ">="]
SIGNS = {"==": "=", "!=": "<>"}
COLUMNS: dict[str, Column] = {
    "integer": declared.integer(-5, 20),
    "far": declared.integer(2**61, 2**61 + 2**40),
    "wide": declared.integer(-(2**51), 2**51),
    "number": declared.number(-10, 100),
    "small": declared.number(0, "1/3"),
    "tiny": declared.number("1e-100", "4e-100"),
    "large": declared.number(-(2**300), 2**300),
    "narrow": declared.number(2**52 + 512, 2**52 + 513),
    "step": declared.number(0, 10, step="0.1"),
    "required": declared.number(0, 10, required=True),
}
FLOATS = ["NULL", "'nan'", "'inf'", "'-inf'", "0.0", "-0.0", "5e-324", "-5e-324", "1e308", "-1e308"]
SOURCES = {
    "DOUBLE": FLOATS,
    "FLOAT": FLOATS[:7],
    "BIGINT": ["NULL", "9223372036854775807", "-9223372036854775808", "0"],
    "INTEGER": ["NULL", "2147483647", "-2147483648", "0"],
    "SMALLINT": ["NULL", "32767", "-32768", "0"],
    "TINYINT": ["NULL", "127", "-128", "0"],
    "UTINYINT": ["NULL", "255", "0"],
    "USMALLINT": ["NULL", "65535", "0"],
    "UINTEGER": ["NULL", "4294967295", "0"],
    "UBIGINT": ["NULL", "18446744073709551615", "0"],
    "HUGEINT": ["NULL", "170141183460469231731687303715884105727", "-170141183460469231731687303715884105727", "0"],
    "DECIMAL(18,2)": ["NULL", "9999999999999999.99", "-9999999999999999.99", "0.01"],
    "DECIMAL(38,0)": ["NULL", "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "1"],
    "VARCHAR": ["NULL", "'x'", "'1e999'", "'nan'", "'7'", "''"],
}


def places(kind: NumberType) -> list[int]:
    middle = (kind.least + kind.most) // 2
    near = [end + more for end in (kind.least, middle, kind.most) for more in (-1, 0, 1)]
    return sorted({k for k in near if kind.least - 1 <= k <= kind.most + 1})


def beside(kind: NumberType) -> list[str]:
    """Numbers at and beside the bounds and the edges between two n: where a comparison could tip."""
    found = set()
    for k in places(kind):
        for number in (kind.unit * k, kind.unit * (2 * k - 1) / 2):
            x = float(number)
            found |= {x, float(np.nextafter(x, -math.inf)), float(np.nextafter(x, math.inf))}
    return [repr(x) for x in sorted(found)]


Tested = tuple[str, int, str]
"""An operator, the n it compares with, and the comparison that is made on the raw value."""


def made_raw(column: Column, source: str, constants: list[int] | None = None) -> list[Tested]:
    """The comparisons that are made on the raw value."""
    kind = column.type
    assert isinstance(kind, NumberType)
    found = []
    for k in places(kind) if constants is None else constants:
        for operator in OPERATORS:
            made = compare_raw(DIALECT, column, stored(source), "v", leaves.Test(operator, k))
            if made is not None:
                found.append((operator, k, made.sql))
    return found


def compared(
    column: Column, source: str, values: list[str], constants: list[int] | None = None
) -> tuple[int, list[str]]:
    """How many comparisons were made on the raw value, and those that differ from n's."""
    tests = made_raw(column, source, constants)
    if not tests:
        return 0, []
    listed = " UNION ALL ".join(f"SELECT TRY_CAST({value} AS {source}) AS v" for value in values)
    n = read(column, stored(source), "v", "value", Context(DIALECT))
    shown = ["v"]
    for operator, k, sql in tests:
        shown += [sql, f"n {SIGNS.get(operator, operator)} {k}::HUGEINT"]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT v, ({n.sql}) AS n FROM ({listed})")
        rows = connection.execute(f"SELECT {', '.join(shown)} FROM t").fetchall()
    wrong = [
        f"{v!r} {operator} {k}: {a}, and n says {b}"
        for v, *pairs in rows
        for (operator, k, _), a, b in zip(tests, pairs[::2], pairs[1::2], strict=True)
        if a is not b
    ]
    return len(tests), wrong


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_comparison_with_the_raw_value_is_that_of_n(name: str, source: str) -> None:
    column = COLUMNS[name]
    kind = column.type
    assert isinstance(kind, NumberType)
    wholes = [f"{int(kind.unit * k)}" for k in places(kind)] if kind.unit >= 1 and kind.most < 2**63 else []
    _, wrong = compared(column, source, [*SOURCES[source], *beside(kind), *wholes, "0.05", "'0.5'"])
    assert wrong == []


WHOLE = ["BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UTINYINT", "USMALLINT", "UINTEGER"]
RAW = {(name, source) for name in ("integer", "far", "wide") for source in WHOLE}
RAW |= {
    (name, "DOUBLE") for name in ("integer", "wide", "number", "small", "tiny", "large")
}  # no float is an edge of "narrow"


def test_these_comparisons_are_made_on_raw_values_and_no_others() -> None:
    made = {(name, source) for name in COLUMNS for source in SOURCES if made_raw(COLUMNS[name], source)}
    assert made == RAW


def drawn(chance: Random, kind: NumberType, source: str) -> tuple[list[str], list[int]]:
    """Values about the range, of all sizes, and on and beside edges; and constants in the range and beyond."""
    width = kind.most - kind.least
    constants = [chance.choice([kind.least, kind.most]) + chance.randint(-2, 2) for _ in range(3)]
    constants += [chance.randint(kind.least - 1, kind.most + 1) for _ in range(6)]
    values = ["NULL"]
    for _ in range(60):
        n = chance.choice([*constants, chance.randint(kind.least - width, kind.most + width)])
        x = float(kind.unit * (2 * n + chance.choice([-1, 0, 0, 1])) / 2)
        for _ in range(chance.randint(0, 2)):
            x = math.nextafter(x, chance.choice([-math.inf, math.inf]))
        values.append(repr(chance.choice([x, x, x, math.ldexp(chance.random() - 0.5, chance.randint(-1070, 1020))])))
        if source in WHOLE:
            values.append(str(math.floor(kind.unit * n) + chance.randint(-1, 1)))
            values.append(str(chance.randint(-(2**63), 2**63 - 1) >> chance.randint(0, 62)))
    return values, constants


@pytest.mark.parametrize(("name", "source"), sorted(RAW))
def test_a_random_search_finds_no_difference(name: str, source: str) -> None:
    chance, kind = Random(f"{name} {source}"), COLUMNS[name].type
    assert isinstance(kind, NumberType)
    for _ in range(1 if EFFORT == 1 else 3):
        values, constants = drawn(chance, kind, source)
        made, wrong = compared(COLUMNS[name], source, values, constants)
        assert made
        assert wrong == []


@pytest.mark.parametrize("name", ["number", "small", "tiny", "large"])
def test_an_edge_that_is_one_float_off_is_found_at_random(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest, kind = numbers.edge, COLUMNS[name].type
    assert isinstance(kind, NumberType)

    def off(*args: Any) -> str | None:
        found = honest(*args)
        return None if found is None else DIALECT.float(math.nextafter(float(found.strip("()")), math.inf))

    monkeypatch.setattr(numbers, "edge", off)
    chance = Random(name)
    assert any(compared(COLUMNS[name], "DOUBLE", *drawn(chance, kind, "DOUBLE"))[1] for _ in range(5))


def test_a_twin_that_forgets_nan_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = leaves.compare_raw

    def forgetful(*args: Any) -> Any:
        made = honest(*args)
        return None if made is None else replace(made, sql=made.sql.replace("NOT isnan(v)", "true"))

    monkeypatch.setitem(globals(), "compare_raw", forgetful)
    assert compared(COLUMNS["number"], "DOUBLE", FLOATS)[1]


def test_calendar_functions_are_right_on_every_day() -> None:
    """The engine's own year, quarter, month, day and weekday, and its cuts, in the years 2 to 9000.

    On every fifth day, and so on every day of every month of some year; on all with `./dev test --all`.
    """
    step = 5 if EFFORT == 1 else 1
    connection = duckdb.connect()
    days = f"SELECT unnest(generate_series(DATE '0002-01-01', DATE '9000-12-31', INTERVAL {step} DAY))::DATE AS d"
    found = connection.execute(
        f"SELECT d, year(d), quarter(d), month(d), day(d), isodow(d), date_trunc('year', d)::DATE, "
        f"date_trunc('quarter', d)::DATE, date_trunc('month', d)::DATE, date_trunc('week', d)::DATE FROM ({days})"
    ).fetchnumpy()
    first, last = date(2, 1, 1), date(9000, 12, 31)
    count = (last - first).days // step + 1
    start = np.datetime64("0002-01-01", "D")
    every = start + step * np.arange(count)
    order = np.argsort(found["d"].astype("datetime64[D]"), kind="stable")
    columns = [np.asarray(column)[order] for column in found.values()]
    assert (columns[0].astype("datetime64[D]") == every).all()
    years = every.astype("datetime64[Y]")
    months = every.astype("datetime64[M]")
    month = (months - years.astype("datetime64[M]")).astype(int) + 1
    quarter = (month + 2) // 3
    weekday = (step * np.arange(count) + first.weekday()) % 7 + 1  # one after the other
    expected = [
        years.astype(int) + 1970,
        quarter,
        month,
        (every - months.astype("datetime64[D]")).astype(int) + 1,
        weekday,
    ]
    for mine, theirs in zip(expected, columns[1:6], strict=True):
        assert (mine == theirs).all()
    cut = (years.astype("datetime64[M]") + (quarter - 1) * 3).astype("datetime64[D]")
    starts = [years.astype("datetime64[D]"), cut, months.astype("datetime64[D]"), every - (weekday - 1)]
    for mine, theirs in zip(starts, columns[6:], strict=True):
        assert (mine == theirs.astype("datetime64[D]")).all()
    assert last - timedelta(days=step) < every[-1].item() <= last
    assert date(1999, 12, 31) + timedelta(days=60) == date(2000, 2, 29)


# --- floats -------------------------------------------------------------------------------------------


def misread(column: Column) -> list[str]:
    """The floats beside bounds and halves that DuckDB reads as another n than the reference does."""
    kind = column.type
    assert isinstance(kind, NumberType)
    values = [*FLOATS, *beside(kind)]
    n = read(column, stored("DOUBLE"), "v", "value", Context(DIALECT))
    with duckdb.connect() as connection:
        listed = " UNION ALL ".join(f"SELECT TRY_CAST({value} AS DOUBLE) AS v" for value in values)
        rows = connection.execute(f"SELECT v, {n.sql} FROM ({listed})").fetchall()
    expected = [(v, leaf(column, v, "value").value) for v, _ in rows]
    return [
        f"{v!r} is {found}, and not {value}"
        for (v, found), (_, value) in zip(rows, expected, strict=True)
        if found != (None if value is None else value / kind.unit)
    ]


FROM_0 = {
    "from 0": declared.number(0, 200_000),
    "tenths": declared.number("0.3", "7.35", step="0.1"),
    "above 0": declared.number(5, 11),
    "coarse": declared.number(0, 2**60),
}


@pytest.mark.parametrize("name", [*COLUMNS, *FROM_0])
def test_a_float_has_the_code_of_its_exact_value(name: str) -> None:
    assert misread({**COLUMNS, **FROM_0}[name]) == []


def test_adding_one_half_would_round_what_is_just_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "_UNDER_HALF", 0.5)
    assert misread(FROM_0["from 0"])
