"""The hull is enforced: whatever stands below the last step, a row adds what its measurement states, and no more.

The expression that is measured is replaced by an adversary: any integer that the engine can hold, or NULL, whatever its
type promised. Each vector must still be one that the measurement's corners allow. Here DuckDB counts, for one neighbour
after the other; test_hull_at_once.py has all engines, which count for all neighbours at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.effort import some
from tests.neighbours.exact import Exchangeable, Vectors, moved

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.engines.duckdb.types import stored
from privet.engines.sql import hull, numbers, statements
from privet.engines.sql.dialect import Dialect, Kind
from privet.engines.sql.expressions import Compiler
from privet.engines.sql.relations import OpenedPerPerson
from privet.engines.sql.text import Value
from privet.planner import ReleasePlan, plan
from privet.tables.expressions.nodes import Arithmetic, Case, Column, Node, Truncate
from privet.tables.operators import OfPerson
from privet.tables.statement import At
from privet.tables.stored_types import StoredType

ANY = [
    None, 0, 1, -1, 7, 29, 30, 31, 32, 2**31, -(2**31), 2**53 + 1, 2**62, 2**62 + 1, 2**63 - 1, -(2**63), 2**63, 2**64,
    2**126, -(2**126), 2**127 - 1, -(2**127) + 1,
]  # fmt: skip
"""What the adversary gives for a row, by its number."""

SMALL = [n if n is None or abs(n) < 2**54 else 1000 + i for i, n in enumerate(ANY)]
"""The same for twins, so that they fail by what they count and not by an overflow."""

TEXTS = ["NULL", "'a'", "'A'", "'b'", "''", "'z'", "chr(0)", "'a '", "'é'", "repeat('a', 5000)"]
DATES = ["NULL", "DATE '2024-01-01'", "DATE '2024-02-01'", "DATE '2024-02-29'", "DATE '0001-01-01'"]
TYPES = {"text": "VARCHAR(5000)", "date": "DATE"}
DATES += ["DATE '2024-03-31'", "DATE '5874897-12-31'", "DATE 'infinity'", "DATE '-infinity'", "DATE '2023-12-31'"]


def column(required: bool) -> Any:
    return pv.integer(0, len(ANY) - 1, required=required)


TARGET = pv.col("row") * 2 + pv.col("other")
FAR = pv.col("row") * 2 + 10**9 + pv.col("other")
REAL = pv.col("row") * 0.1 + pv.col("other")
ASKED: dict[str, dict[str, Any]] = {
    "count": {"n": pv.count(), "p": pv.count(pv.when(TARGET > 3, 1).otherwise())},
    "sum": {"s": pv.sum(TARGET)},
    "sum of a clip": {"s": pv.sum(TARGET.clip(3, 8))},
    "sum of tenths": {"s": pv.sum(REAL)},
    "sum far from 0": {"s": pv.sum(FAR)},
    "mean": {"m": pv.mean(TARGET)},
    "mean and count": {"m": pv.mean(TARGET), "n": pv.count()},
    "variance": {"v": pv.variance(TARGET)},
    "variance of tenths": {"v": pv.variance(REAL)},
    "histogram": {"h": pv.histogram(TARGET, [0, 10, "20.5", 50])},
    "histogram of tenths": {"h": pv.histogram(REAL, [0, "1/3", "2.1", 50])},
}


def given(dialect: Dialect, row: str, values: Sequence[object], kind: Kind) -> str:
    """One of some values, by the number of the row; of integers, those that the engine can hold."""

    def written(value: object) -> str:
        if isinstance(value, int):
            return dialect.integer(max(-dialect.widest, min(value, dialect.widest)), "wide")
        return f"CAST({'NULL' if value is None else value} AS {TYPES.get(kind) or dialect.types['wide']})"

    listed = (f"WHEN {i} THEN {written(value)}" for i, value in enumerate(values))
    return f"CASE {row} {' '.join(listed)} END"


class Adversary:
    """Gives any integer, text or date, or NULL, in place of an expression and of a person's greatest `other`."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        values: Sequence[int | None] = ANY,
        *,
        texts: Sequence[str] = TEXTS,
        dates: Sequence[str] = DATES,
    ) -> None:
        self.asked = 0
        honest, of_person = Compiler.value, OpenedPerPerson._of_person

        def value(compiler: Compiler, node: Node, mode: Any = "value") -> Value:
            found: tuple[Kind, Sequence[object]] | None = None
            if isinstance(node, Arithmetic) and node.right == Column("other"):
                found = "integer", values
            elif isinstance(node, Case) and node.branches[0][0] == (pv.col("row") > 3).node:
                found = "text", texts
            elif isinstance(node, Truncate):
                found = "date", dates
            if found is None:
                return honest(compiler, node, mode)
            self.asked += 1
            row = honest(compiler, Column("row"), mode)
            return Value(given(compiler.dialect, row.sql, found[1], found[0]), found[0], row.level)

        def greatest(opened: Any, what: OfPerson, *, keyed: bool) -> Value:
            if what != OfPerson("max", Column("other")):
                return of_person(opened, what, keyed=keyed)
            self.asked += 1
            row = of_person(opened, OfPerson("max", Column("row")), keyed=keyed)
            return Value(given(opened.dialect, row.sql, values, "integer"), "integer", row.level)

        monkeypatch.setattr(Compiler, "value", value)
        monkeypatch.setattr(OpenedPerPerson, "_of_person", greatest)


def rows(numbers: list[int]) -> Any:
    return pa.table({"row": pa.array(numbers, pa.int64()), "other": pa.array([1] * len(numbers), pa.int64())})


def vectors(adjacency: str, required: bool, ask: Any) -> tuple[ReleasePlan, list[Vectors]]:
    """The exact vectors of each row alone; first, under add/remove, of none."""
    columns = {"row": column(required), "other": column(required)}
    how: dict[str, Any] = {"protect": pv.each_row(), "adjacency": adjacency, "columns": columns}
    table = pv.table("t", rows([0]), **how)
    asked = plan(ask(table), epsilon=1)
    source = Exchangeable(table.source.rows, table.source.types())
    found = []
    with DuckDB({"t": (table.schema, source)}, salt=b"", threads=1) as engine:
        units: list[list[int]] = [[i] for i in range(len(ANY))]
        for numbers in [[], *units] if adjacency == "add/remove" else units:
            source.exchange(pv.table("t", rows(numbers), **how).source.rows)
            found.append(asked.coordinates([engine.answer(s) for s in asked.statements()]))
    return asked, found


def beyond(asked: ReleasePlan, seen: list[Vectors], adjacency: str) -> list[tuple[str, int, int]]:
    """The moves that are larger than claimed."""
    return [
        (part.measurement.rule, change, part.move.total)
        for old, new in product(seen[:1] if adjacency == "add/remove" else seen, seen)
        for part, change in zip(asked.noised, moved(old, new), strict=True)
        if change > part.move.total
    ]


@pytest.mark.parametrize(
    ("what", "adjacency", "required"), some(list(product(ASKED, ["add/remove", "replace"], [True, False])), every=3)
)
def test_an_adversary_below_stays_in_the_hull(
    what: str, adjacency: str, required: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    adversary = Adversary(monkeypatch)
    asked, seen = vectors(adjacency, required, lambda table: table.agg(**ASKED[what]))
    assert adversary.asked
    assert beyond(asked, seen, adjacency) == []


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_an_adversary_in_a_group_is_in_one_group_at_most(adjacency: str, monkeypatch: pytest.MonkeyPatch) -> None:
    adversary = Adversary(monkeypatch)
    for key in (TARGET, pv.bins(TARGET, [0, 10, "20.5", 50]), REAL >= 1, pv.bins(REAL, [0, "1/3", "2.1", 50])):
        asked, seen = vectors(adjacency, True, lambda table, key=key: table.group_by(k=key).agg(n=pv.count()))
        assert beyond(asked, seen, adjacency) == []
    assert adversary.asked


def test_without_the_last_step_it_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin that believes the type: what is missing stays missing."""
    Adversary(monkeypatch)
    monkeypatch.setattr(statements, "enforced", lambda dialect, code, *, missing: code)
    asked, seen = vectors("replace", True, lambda table: table.agg(**ASKED["sum far from 0"]))
    assert beyond(asked, seen, "replace")


# --- persons ------------------------------------------------------------------------------------------

CAPS: dict[str, Any] = {
    "rows": {"max_rows": 2},
    "one row": {"max_rows": 1},
    "groups": {"max_groups": 2, "max_rows_per_group": 1},
    "rows of groups": {"max_groups": 1, "max_rows_per_group": 3},
}
LABEL = pv.when(pv.col("row") > 3, "a").otherwise("b")
OF_PEOPLE: dict[str, Callable[[Any], Any]] = {
    "people": lambda t: t.agg(n=pv.count_people()),
    "people who": lambda t: t.where(TARGET > 3).agg(n=pv.count_people()),
    "people by number": lambda t: t.group_by(k=TARGET).agg(n=pv.count_people()),
    "rows, sum, mean": lambda t: t.agg(n=pv.count(), s=pv.sum(TARGET), m=pv.mean(FAR)),
    "by number": lambda t: t.group_by(k=TARGET).agg(n=pv.count(), s=pv.sum(FAR)),
    "by bin": lambda t: t.group_by(k=pv.bins(REAL, [0, "1/3", "2.1", 50])).agg(n=pv.count(), m=pv.mean(TARGET)),
    "by text": lambda t: t.group_by(k=LABEL).agg(n=pv.count(), s=pv.sum(TARGET)),
    "by month": lambda t: t.group_by(k=pv.col("day").truncate("month")).agg(n=pv.count(), s=pv.sum(TARGET)),
    "by text and month": lambda t: t.group_by(a=LABEL, b=pv.col("day").truncate("month")).agg(n=pv.count_people()),
    "histogram": lambda t: t.agg(h=pv.histogram(TARGET, [0, 10, "20.5", 50])),
    "of a person": lambda t: _each(t).agg(s=pv.sum("other"), v=pv.variance("other")),
    "from a person's": lambda t: _each(t).agg(s=pv.sum(TARGET), h=pv.histogram(TARGET, [0, 10, 50])),
    "by a person's": lambda t: _each(t).group_by(k=pv.bins("other", [0, 5, 31])).agg(n=pv.count()),
}


def _each(table: Any) -> Any:
    return table.per_person(row=pv.greatest("row"), other=pv.greatest("other"))


def people_table(persons: Sequence[Sequence[int]]) -> Any:
    numbers_ = [(i, row) for i, rows_ in enumerate(persons) for row in rows_]
    return pa.table(
        {
            "id": pa.array([i for i, _ in numbers_], pa.int64()),
            "row": pa.array([row for _, row in numbers_], pa.int64()),
            "other": pa.array([1] * len(numbers_), pa.int64()),
            "day": pa.array([19_750] * len(numbers_), pa.int32()).cast(pa.date32()),
        }
    )


def people(cap: str, adjacency: str, ask: Any) -> tuple[ReleasePlan, list[Vectors]]:
    """The exact vectors of one person beside another who stays; first, under add/remove, of the other alone."""
    columns = {"row": column(True), "other": column(True), "day": pv.date("2024-01-01", "2024-03-31")}
    how: dict[str, Any] = {"protect": pv.person("id", **CAPS[cap]), "adjacency": adjacency, "columns": columns}
    chance, stays = Random(cap), [1, 4, 9]
    persons = [[i] for i in range(len(ANY))] + [chance.choices(range(len(ANY)), k=k) for k in (2, 3, 5, 9, 22)]
    table = pv.table("t", people_table([stays]), **how)
    asked = plan(ask(table), epsilon=1)
    source = Exchangeable(table.source.rows, table.source.types())
    found = []
    with DuckDB({"t": (table.schema, source)}, salt=b"", threads=1) as engine:
        for rows_ in [[], *persons] if adjacency == "add/remove" else persons:
            source.exchange(pv.table("t", people_table([stays, rows_]), **how).source.rows)
            found.append(asked.coordinates([engine.answer(s) for s in asked.statements()]))
    return asked, found


@pytest.mark.parametrize(("what", "cap"), some(list(product(OF_PEOPLE, CAPS)), every=3))
def test_an_adversary_below_moves_a_person_by_no_more_than_claimed(
    what: str, cap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    adversary = Adversary(monkeypatch)
    adjacency = "replace" if cap in ("one row", "rows of groups") else "add/remove"
    asked, seen = people(cap, adjacency, OF_PEOPLE[what])
    assert adversary.asked or what == "people"
    assert beyond(asked, seen, adjacency) == []


# --- plain columns ------------------------------------------------------------------------------------

FLOATS = ["NULL", "'nan'", "'inf'", "'-inf'", "0", "-0.0", "5e-324", "1e308", "-1e308", "3", "7.5", "8.25", "1e19"]
INTEGERS = ["NULL", *(str(n) for n in ANY if n is not None)]
HELD = {
    "DOUBLE": FLOATS,
    "FLOAT": FLOATS[:7],
    "BIGINT": [n for n in INTEGERS if n == "NULL" or -(2**63) <= int(n) < 2**63],
    "UTINYINT": ["NULL", "0", "3", "9", "255"],
    "HUGEINT": INTEGERS,
    "UHUGEINT": ["NULL", "0", "7", str(2**128 - 1)],
    "DECIMAL(18,2)": ["NULL", "0", "7.99", "8.01", "-0.01", "9999999999999999.99", "-9999999999999999.99"],
    "DECIMAL(38,0)": ["NULL", "0", "9" * 38, "-" + "9" * 38],
}
PLAIN: dict[str, Any] = {
    "integer": pv.integer(3, 8),
    "required": pv.integer(3, 8, required=True),
    "number": pv.number(3, 8),
    "step": pv.number(3, 8, step="0.3"),
    "far": pv.number(2**40, 2**40 + 5, required=True),
}


class Listed:
    """One row at a time, of any type that DuckDB has."""

    identities = ()

    def __init__(self, source: str) -> None:
        self.source = source
        self.connection: Any = None

    def types(self) -> Mapping[str, StoredType]:
        return {"x": stored(self.source)}

    def files(self) -> Sequence[str]:
        return ()

    def attach(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        self.connection = connection
        connection.execute(f"CREATE TABLE {name} (x {self.source})")

    def put(self, values: Sequence[str]) -> None:
        self.connection.execute("DELETE FROM t0")
        for value in values:
            self.connection.execute(f"INSERT INTO t0 VALUES (({value})::{self.source})")


def plainly(what: str, source: str, adjacency: str) -> list[tuple[str, int, int]]:
    """The moves of a plain column that are larger than claimed."""
    rows_ = pa.table({"x": pa.array([1], pa.int64())})
    how: dict[str, Any] = {"protect": pv.each_row(), "adjacency": adjacency, "columns": {"x": PLAIN[what]}}
    table, held_ = pv.table("t", rows_, **how), Listed(source)
    ends = PLAIN[what].type.lower, PLAIN[what].type.upper
    asked = plan(
        table.agg(
            n=pv.count("x"), s=pv.sum("x"), v=pv.variance("x"), h=pv.histogram("x", [ends[0], ends[0] + 1, ends[1]])
        ),
        epsilon=1,
    )
    with DuckDB({"t": (table.schema, held_)}, salt=b"", threads=1) as engine:
        seen = []
        for values in [[], *([v] for v in HELD[source])] if adjacency == "add/remove" else [[v] for v in HELD[source]]:
            held_.put(values)
            seen.append(asked.coordinates([engine.answer(s) for s in asked.statements()]))
    return beyond(asked, seen, adjacency)


@pytest.mark.parametrize(
    ("what", "source", "adjacency"), some(list(product(PLAIN, HELD, ["add/remove", "replace"])), every=3)
)
def test_a_plain_column_is_clamped_where_it_is_read(what: str, source: str, adjacency: str) -> None:
    assert plainly(what, source, adjacency) == []


@pytest.mark.parametrize("source", ["DOUBLE", "BIGINT", "DECIMAL(18,2)"])
def test_a_leaf_without_its_clamp_is_caught(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HELD, source, ["NULL", "0", "3", "9", "1000"])
    monkeypatch.setattr(numbers, "clamped", unclamped)
    for name in ("clamped_integer", "clamped_float"):
        monkeypatch.setattr(Dialect, name, lambda self, x, ends, inside, codes: inside)
    monkeypatch.setattr(numbers, "in_hull", lambda dialect, code, width: code)
    assert plainly("integer", source, "add/remove")


# --- twins --------------------------------------------------------------------------------------------


def unclamped(n: str, least: int | str, most: int | str, inside: str, outside: str) -> str:
    """A twin that believes the type: what is outside is computed as what is inside."""
    return f"CASE WHEN {n} IS NOT NULL THEN {inside} END"


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("what", ["sum", "mean", "sum of tenths"])
def test_codes_that_are_not_clamped_are_caught(what: str, adjacency: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Adversary(monkeypatch, SMALL)
    ask = lambda table: table.agg(**ASKED[what])  # noqa: E731
    assert beyond(*vectors(adjacency, False, ask), adjacency) == []
    monkeypatch.setattr(hull, "clamped", unclamped)
    assert beyond(*vectors(adjacency, False, ask), adjacency)


def test_of_persons_too(monkeypatch: pytest.MonkeyPatch) -> None:
    Adversary(monkeypatch, SMALL)
    monkeypatch.setattr(hull, "clamped", unclamped)
    assert beyond(*people("rows", "add/remove", lambda t: _each(t).agg(s=pv.sum("other"))), "add/remove")


def test_a_row_in_two_bins_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    Adversary(monkeypatch, SMALL)
    honest = statements._tally

    def several(dialect: Any, tally: Any, reduced: Any, columns: list[str], shared: set[Any]) -> dict[int, int]:
        if not isinstance(tally, At):
            return honest(dialect, tally, reduced, columns, shared)
        columns.append(f"count_if({reduced.place(tally.value)} >= {tally.index})")
        return {len(columns) - 1: 1}

    monkeypatch.setattr(statements, "_tally", several)
    assert beyond(*vectors("add/remove", True, lambda t: t.agg(**ASKED["histogram"])), "add/remove")
