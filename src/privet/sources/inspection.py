"""A table compared with its declaration, row by row: for the steward's eyes only, and never for an analyst.

What an engine reads as missing, clamps or leaves out is counted by the same engine, without noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from privet.engines.base import Engine
from privet.engines.duckdb import inspection as of_duckdb
from privet.engines.postgres import inspection as of_postgres
from privet.engines.postgres.tables import PostgresTable
from privet.engines.registry import open_engine
from privet.engines.spark import inspection as of_spark
from privet.engines.spark.tables import SparkTable
from privet.errors import NoAnswer, SourceError, Subject
from privet.exact import Exact, show
from privet.names.lookalikes import confusable
from privet.privacy.adjacency import Person
from privet.tables import caps, nesting
from privet.tables.expressions.nodes import Beyond, Bin, Column, IsMissing, Logic, Node, Not
from privet.tables.groups import Listed
from privet.tables.operators import OfPerson, Operator, PerPerson, Scan, Where
from privet.tables.relation import Table
from privet.tables.schema import CEILING
from privet.tables.statement import At, Code, Given, Place, Present, Rows, Statement, Tally, Total, Unbounded
from privet.tables.types import MOST_GROUPS, KeyType, NumberType, TimeType, Type

MUCH = 0.01
"""From this share of rows or values on, what is left out or changed is a problem, and not only noted."""
FEW = 8
"""How many values that are no key are shown."""


@dataclass(frozen=True, slots=True)
class Stranger:
    """A value of a column of keys that is not declared."""

    value: Any
    rows: int
    like: str | None
    """A declared key that it looks like, if there is one."""

    def __str__(self) -> str:
        like = "" if self.like is None else f", which looks like {self.like!r}"
        return f"{self.value!r} ({caps.some(self.rows, 'row')}{like})"


@dataclass(frozen=True, slots=True)
class ColumnFound:
    """What a column has: how many values, how many outside of its bounds, and which are no key."""

    name: str
    type: Type
    values: int
    """Rows with a value, as questions read it: one that is not declared is missing, unless it counts as another key."""
    rows: int
    below: int = 0
    above: int = 0
    least: Any = None
    greatest: Any = None
    strangers: tuple[Stranger, ...] = ()
    """Undeclared values, the most frequent first."""
    within: str = ""
    """The column in whose keys its own lie."""
    contradicting: int = 0
    """Rows in which it lies in another key of that column than the row has."""

    @property
    def undeclared(self) -> int:
        """The rows with a value that is not declared."""
        return sum(each.rows for each in self.strangers)

    @property
    def missing(self) -> int:
        """The rows in which the source has no value."""
        other = isinstance(self.type, KeyType) and self.type.other is not None
        return self.rows - self.values - (0 if other else self.undeclared)

    def lines(self) -> Iterator[tuple[bool, str]]:
        """What does not fit, in words, and whether it is a problem."""
        for count, word, end in ((self.below, "below", 0), (self.above, "above", 1)):
            if count:
                seen = f"seen {_value(self.least)} to {_value(self.greatest)}"
                what = f"{_of(count, self.values, 'value')} {word} {_value(self._ends()[end])} clamped; {seen}"
                yield count > MUCH * self.values, what
        if self.strangers:
            other = self.type.other if isinstance(self.type, KeyType) else None
            how = "left out, or read as missing" if other is None else f"counted as {other!r}"
            shown = ", ".join(map(str, self.strangers[:FEW]))
            more = f", and {len(self.strangers) - FEW:,} more" if len(self.strangers) > FEW else ""
            alike = any(each.like is not None for each in self.strangers)
            much = other is None and self.undeclared > MUCH * self.rows
            values = caps.some(len(self.strangers), "undeclared value")
            what = f"{_of(self.undeclared, self.rows, 'row')} with {values} {how}"
            yield alike or much, f"{what}: {shown}{more}"

        if self.contradicting:
            rows = _of(self.contradicting, self.rows, "row")
            how = "left out of groups by both"
            yield self.contradicting > MUCH * self.rows, f"{rows} in another {self.within} than declared {how}"

    def _ends(self) -> tuple[Any, Any]:
        match self.type:
            case NumberType(lower, upper):
                return lower, upper
            case TimeType(first, last):
                return first, last
        return None, None

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        tree: dict[str, Any] = {"values": self.values, "missing": self.missing}
        if isinstance(self.type, NumberType | TimeType):
            tree |= {"below": self.below, "above": self.above, "least": self.least, "greatest": self.greatest}
        if isinstance(self.type, KeyType):
            tree["undeclared"] = [
                {"value": each.value, "rows": each.rows, "like": each.like} for each in self.strangers
            ]
        if self.within:
            tree["contradicting"] = {"within": self.within, "rows": self.contradicting}
        return tree


@dataclass(frozen=True, slots=True)
class TableFound:
    """What a table has: rows, people, how many are over the cap, and its columns."""

    name: str
    rows: int
    columns: tuple[ColumnFound, ...]
    people: int | None = None
    """Different ids; None if each row is protected on its own."""
    cap: int | None = None
    without_id: int = 0
    several: int = 0
    """People with more than one row."""
    most_rows: int = 0
    over: int = 0
    """People with more rows than the cap."""
    left_out: int = 0
    """Their rows over the cap."""

    def lines(self) -> Iterator[tuple[bool, str, str]]:
        """What to know of it, in words: whether it is a problem, the column, and what."""
        if self.people is None:
            yield False, "", caps.some(self.rows, "row")
        else:
            most = f", {caps.some(self.most_rows, 'row')} at most" if self.several else ", one row each"
            people = "1 person" if self.people == 1 else f"{self.people:,} people"
            yield False, "", f"{caps.some(self.rows, 'row')} of {people}{most}"
            if self.without_id:
                yield True, "", f"{_of(self.without_id, self.rows, 'row')} without an id left out"
            if self.over:
                most = caps.some(self.cap or 0, "row")
                who = f"{_of(self.over, self.people, 'person', 'people')} with more than {most}"
                much = self.left_out > MUCH * self.rows
                yield much, "", f"{who}: {_of(self.left_out, self.rows, 'row')} left out by the cap"
        for column in self.columns:
            yield from ((problem, column.name, what) for problem, what in column.lines())

    @property
    def problems(self) -> int:
        """How many lines are problems."""
        return sum(problem for problem, _, _ in self.lines())

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        tree: dict[str, Any] = {"rows": self.rows}
        if self.people is not None:
            tree |= {
                "people": self.people, "max_rows": self.cap, "rows_without_id": self.without_id,
                "people_with_several_rows": self.several, "most_rows_of_a_person": self.most_rows,
                "people_over_the_cap": self.over, "rows_over_the_cap": self.left_out,
            }  # fmt: skip
        tree["columns"] = {column.name: column.to_json() for column in self.columns}
        tree["problems"] = [f"{name}: {what}" if name else what for problem, name, what in self.lines() if problem]
        return tree


def inspect(table: Table) -> TableFound:
    """Read a whole table and compare it with its declaration."""
    schema, scan = table.schema, Scan(table.schema)
    kinds = {name: column.type for name, column in schema.columns}
    ordered = [name for name, kind in kinds.items() if isinstance(kind, NumberType | TimeType)]
    keyed = [name for name, kind in kinds.items() if isinstance(kind, KeyType)]
    person = schema.protect.id if isinstance(schema.protect, Person) else None
    source = table.source
    if isinstance(source, PostgresTable):
        raw = of_postgres.contents(source, ordered=ordered, keyed=keyed, person=person)
    elif isinstance(source, SparkTable):
        raw = of_spark.contents(source, ordered=ordered, keyed=keyed, person=person)
    else:
        raw = of_duckdb.contents(source, ordered=ordered, keyed=keyed, person=person)
    engine = open_engine({table.name: (schema, table.source)}, {}, salt=b"privet check", progress=True)
    try:
        sides = {name: _bin(Beyond(Column(name)), -1, 0, 1, 2) for name in ordered}
        tallies: list[Tally] = [Rows(), *(Present(Given(Column(name))) for name in kinds)]
        tallies += [At(place, i) for place in sides.values() for i in (0, 2)]
        rows, *counts = engine.answer(_all(scan, tallies))[0]
        values = dict(zip(kinds, counts, strict=False))
        below = dict(zip(ordered, counts[len(kinds) :: 2], strict=True))
        above = dict(zip(ordered, counts[len(kinds) + 1 :: 2], strict=True))
        nested = {name: column.within.column for name, column in schema.columns if column.within is not None}
        apart = {name: _contradicting(engine, scan, name, above) for name, above in nested.items()}
        columns = tuple(
            ColumnFound(
                name, kind, values[name], rows, below.get(name, 0), above.get(name, 0),
                *raw.extremes.get(name, (None, None)), _strangers(kind, raw.keys.get(name, [])),
                nested.get(name, ""), apart.get(name, 0),
            )
            for name, kind in kinds.items()
        )  # fmt: skip
        found = TableFound(table.name, rows, columns)
        if person is None:
            return found
        declared = caps.holding(scan)
        assert declared is not None
        cap, each = caps.rows_of(declared), Column("n")
        per_person = PerPerson(scan, (("n", OfPerson("count")),))
        several, over = _bin(each, 1, 2, CEILING), _bin(each, 1, cap + 1, CEILING)
        with_id = Code(each, Exact(0), Exact(1), CEILING, False)
        more = Code(each, Exact(cap), Exact(1), CEILING - cap, False)  # below the cap it is clamped to 0
        asked: list[Tally] = [Rows(), Total(with_id), At(several, 1), At(over, 1), Total(more)]
        people, owned, twice, capped, lost = engine.answer(_all(per_person, asked))[0]
        return TableFound(table.name, rows, columns, people, cap, rows - owned, twice, raw.most_rows, capped, lost)
    except NoAnswer:
        raise SourceError(
            f"the rows of {table.name!r} can't be read: the file is damaged, or there is too little memory",
            subject=Subject("table", table.name),
        ) from None
    finally:
        engine.close()


def _contradicting(engine: Engine, scan: Scan, name: str, above: str) -> int:
    """The rows with keys of both columns that are no possible combination."""
    both = (Column(above), Column(name))
    given = Where(scan, Logic("and", tuple(Not(IsMissing(key)) for key in both)))
    every = engine.answer(_all(given, [Rows()]))[0][0]
    values = tuple(key.type(scan.types()).keys() for key in both)
    possible = nesting.possible(scan, both, values) or ()
    for start in range(0, len(possible), MOST_GROUPS):
        some = Listed(values, possible[start : start + MOST_GROUPS])
        every -= sum(count for (count,) in engine.answer(Statement(scan, both, Unbounded(), (Rows(),), some)))
    return every


def _all(rows: Operator, tallies: list[Tally]) -> Statement:
    return Statement(rows, (), Unbounded(), tuple(tallies))


def _bin(of: Node, *edges: int) -> Place:
    return Place(Bin(of, tuple(map(Exact, edges))), len(edges) - 1)


def _strangers(kind: Type, keys: list[tuple[Any, int]]) -> tuple[Stranger, ...]:
    if not isinstance(kind, KeyType):
        return ()
    declared = {*kind.values}
    unknown = [(value, rows) for value, rows in keys if _plain(value) not in declared and value != kind.other]
    return tuple(Stranger(value, rows, _like(value, kind)) for value, rows in unknown)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value == value // 1 else value


def _like(value: Any, kind: KeyType) -> str | None:
    """The declared key that a value could be taken for: with blanks, in other capitals, with odd characters."""
    if not isinstance(value, str):
        return None
    texts = (key for key in kind.values if isinstance(key, str))
    return next((key for key in texts if key.strip() == value.strip() or confusable(key, value)), None)


def _of(count: int, total: int, what: str, several: str = "") -> str:
    named = what if count == 1 else several or f"{what}s"
    share = 100 * count / total if total else 0.0
    return f"{count:,} {named} ({'under 0.1' if share < 0.1 else f'{share:.1f}'} %)"


def _value(value: Any) -> str:
    match value:
        case Exact():
            return f"{value.numerator:,}" if value.denominator == 1 and abs(value) >= 10_000 else show(value)
        case date():
            return value.isoformat()
        case bool() | None | str():
            return repr(value)
        case int():
            return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return f"{value + 0.0:,.6g}" if isinstance(value, float) else str(value)  # of -0.0 this makes 0
