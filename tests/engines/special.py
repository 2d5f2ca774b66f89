"""Special values, as one table: what is stored, what is asked of it, and what every engine has to find, by hand.

Each topic has columns of its own in one table, and all its cases are tallies of one statement: two statements compare
everything on an engine. `REFUSED` has what an engine can't compute, with the reason that it gives before any debit; it
is strict, and docs/engines.md has a table of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from privet.privacy.adjacency import each_row
from privet.tables import schema as declared
from privet.tables.expressions.fluent import Expr, bins, col, when
from privet.tables.expressions.nodes import Bin, Types
from privet.tables.expressions.typing_rules import as_number
from privet.tables.operators import Scan
from privet.tables.schema import Column, Schema
from privet.tables.statement import At, Code, Given, Place, Present, Squares, Statement, Tally, Total, Unbounded

NAN, INF = float("nan"), float("inf")
Ask = Callable[..., Expr]


@dataclass(frozen=True)
class Number:
    """The value of an expression for each row, None where it is missing; on this lattice, or in its own units."""

    ask: Ask
    expected: Sequence[Any]
    lattice: tuple[Any, Any, int] | None = None
    """Its lower end, its step and its width."""

    def _code(self, of: Expr, types: Types) -> Code:
        if self.lattice is not None:
            lower, step, width = self.lattice
            return Code(of.node, Fraction(lower), Fraction(step), width, True)
        unit = as_number(of.node.type(types), "test").range.unit
        return Code(of.node, -1000 // unit * unit, unit, int(5000 // unit), True)

    def tallies(self, of: Expr, types: Types) -> list[Tally]:
        code = self._code(of, types)
        return [Present(code), Total(code), Squares(code)]

    def counted(self, row: int, of: Expr, types: Types) -> list[int]:
        if self.expected[row] is None:
            return [0, 0, 0]
        code = self._code(of, types)
        steps = (Fraction(self.expected[row]) - code.lower) / code.step
        assert steps.denominator == 1, self.expected
        assert 0 <= steps <= code.width
        return [1, int(steps), int(steps) ** 2]


@dataclass(frozen=True)
class Truth:
    """Whether a condition holds for each row; None where that is not known."""

    ask: Ask
    expected: Sequence[bool | None]

    def tallies(self, of: Expr, types: Types) -> list[Tally]:
        return [Present(Given(of.node)), Total(Code(of.node, Fraction(0), Fraction(1), 1, True))]

    def counted(self, row: int, of: Expr, types: Types) -> list[int]:
        return [int(self.expected[row] is not None), int(self.expected[row] is True)]


@dataclass(frozen=True)
class Bins:
    """Which bin each row is in, from 0; None if it is in none."""

    ask: Ask
    expected: Sequence[int | None]

    def tallies(self, of: Expr, types: Types) -> list[Tally]:
        assert isinstance(of.node, Bin)
        place = Place(of.node, len(of.node.edges) - 1)
        return [At(place, index) for index in range(place.size)]

    def counted(self, row: int, of: Expr, types: Types) -> list[int]:
        return [int(self.expected[row] == index) for index in range(len(self.tallies(of, types)))]


@dataclass(frozen=True)
class Topic:
    """Columns with special values, and cases; `ask` of a case gets the columns in their order."""

    name: str
    columns: Sequence[tuple[Any, Column]]
    cases: Sequence[Number | Truth | Bins]

    @property
    def size(self) -> int:
        return len(self.columns[0][0])


def _of(values: Sequence[Any], kind: Any, column: Column) -> list[tuple[Any, Column]]:
    return [(pa.array(values, kind, from_pandas=False), column)]


T, F, N = True, False, None
QUARTERS = declared.number(-10, 10, step="0.25")
FIVE = [NAN, None, INF, -INF, 1.0]
BOTH = [(a, b) for a in (T, F, N) for b in (T, F, N)]
OLD = [date(1969, 12, 31), date(1900, 2, 28), date(1960, 2, 29), date(1938, 11, 9)]
GREGORIAN = [date(1582, 10, 4), date(1582, 10, 15), date(1500, 2, 28), date(4, 2, 29), date(2, 1, 1)]
LEAP = [date(2000, 2, 29), date(1900, 3, 1), date(2024, 2, 29), date(2023, 2, 28), date(2400, 12, 31)]
WEEKS = [date(2020, 12, 31), date(2021, 1, 1), date(2021, 1, 3), date(2021, 1, 4), date(1969, 12, 28)]
INSTANTS = [datetime(2024, 3, 10, 6, 59, 59), datetime(2024, 3, 10, 7), datetime(1969, 12, 31, 23, 59, 59, 999_999)]
TEXTS = ["a", "A", "\u00e1", "a\u0301", "a ", "", "\u00df", "ss", None, "\U0001f600"]
ONLY = {text: [None if each is None else each == text for each in TEXTS] for text in TEXTS if text is not None}
EVER = declared.date("0002-01-01", "2500-12-31")
TIMED = declared.timestamp("1960-01-01", "2030-01-01")
MOST = 2**63 - 1
HALVES = [2.5, -2.5, 0.5, -0.5, 0.49999999999999994, 0.5000000000000001, -0.5000000000000001]


def _zoned(values: Sequence[datetime], zone: str) -> Any:
    return pa.array(values, pa.timestamp("us")).cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))


TOPICS = (
    Topic("NaN and NULL are missing; infinities are clamped", _of(FIVE, pa.float64(), QUARTERS), (
        Number(lambda x: x, [N, N, 10, -10, 1]),
        Truth(lambda x: x > 3, [N, N, T, F, F]), Truth(lambda x: x <= 3, [N, N, F, T, T]),
        Truth(lambda x: x == x, [N, N, T, T, T]), Truth(lambda x: x.is_missing(), [T, T, F, F, F]),
    )),
    Topic("greatest and least (`clip`) of NaN and NULL", _of(FIVE, pa.float64(), QUARTERS), (
        Number(lambda x: x.clip(-1, 5), [N, N, 5, -1, 1]),
        Number(lambda x: when(x.is_missing(), 7).otherwise(x).clip(0, 8), [7, 7, 8, 0, 1]),
        Number(lambda x: x + x, [N, N, 20, -20, 2]),
    )),
    Topic("-0.0 is 0.0", _of([-0.0, 0.0, -1.0], pa.float64(), QUARTERS), (
        Number(lambda x: x, [0, 0, -1]), Truth(lambda x: x == 0, [T, T, F]), Truth(lambda x: x < 0, [F, F, T]),
        Truth(lambda x: (1 / x).is_missing(), [T, T, F]),
    )),
    Topic("subnormal numbers", _of([5e-324, -5e-324, 2.2250738585072014e-308], pa.float64(), declared.number(0, 1)), (
        Number(lambda x: x, [0, 0, 0], (0, 1, 9)), Truth(lambda x: (x / 2 * 2).is_missing(), [F, F, F]),
    )),
    Topic("three-valued logic", [(pa.array([a for a, _ in BOTH]), declared.boolean()),
                                 (pa.array([b for _, b in BOTH]), declared.boolean())], (
        Truth(lambda a, b: a & b, [T, F, N, F, F, F, N, F, N]), Truth(lambda a, b: a | b, [T, T, T, T, F, N, T, N, N]),
        Truth(lambda a, b: ~a, [F, F, F, T, T, T, N, N, N]), Truth(lambda a, b: a == b, [T, F, N, F, T, N, N, N, N]),
    )),
    Topic("division of integers: exact, and missing by 0",
          _of([-7, 7, -5, 5, 0, None], pa.int64(), declared.integer(-10, 10)), (
        Number(lambda x: x / 2, [Fraction(-7, 2), Fraction(7, 2), Fraction(-5, 2), Fraction(5, 2), 0, N]),
        Number(lambda x: (x / 2).floor(), [-4, 3, -3, 2, 0, N]), Number(lambda x: (x / 2).ceil(), [-3, 4, -2, 3, 0, N]),
        Number(lambda x: x / x, [1, 1, 1, 1, N, N]), Number(lambda x: (x / -2).floor(), [3, -4, 2, -3, 0, N]),
    )),
    Topic("halves are rounded up", _of(HALVES, pa.float64(), declared.number(-10, 10, step=1)), (
        Number(lambda x: x, [3, -2, 1, 0, 0, 1, -1]),
    )),
    Topic("halves of integers", _of([-5, 5, -7, 1, -1], pa.int64(), declared.integer(-10, 10)), (
        Number(lambda x: (x / 2 + Fraction(1, 2)).floor(), [-2, 3, -3, 1, 0]),
    )),
    Topic("2^53 + 1", _of([2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1], pa.int64(),
                          declared.integer(2**53 - 9, 2**53 + 9)), (
        Number(lambda x: x, [2**53, 2**53 + 1, 2**53 + 2, 2**53 - 9], (2**53 - 9, 1, 18)),
        Truth(lambda x: x == 2**53 + 1, [F, T, F, F]), Truth(lambda x: x < 2**53, [F, F, F, T]),
    )),
    Topic("ends of int64", _of([MOST, -MOST - 1, 0, None], pa.int64(), declared.integer(2**62 - 9, 2**62)), (
        Truth(lambda x: x > 2**62 - 9, [T, F, F, N]), Number(lambda x: x - 2**62, [0, -9, -9, N]),
        Number(lambda x: x * x, [2**124, 2**124, 2**124, N], (0, 2**110, 2**15)),
    )),
    Topic("products of more than 126 bits, rounded",
          _of([2**62, 0, None], pa.int64(), declared.integer(2**62 - 9, 2**62)), (
        Number(lambda x: x * x * x, [2**186, 2**186, N], (0, 2**170, 2**17)),
    )),
    Topic("sums beyond int64", _of([2**51, 2**51, 2**51 - 1], pa.int64(), declared.integer(0, 2**51)), (
        Number(lambda x: x, [2**51, 2**51, 2**51 - 1], (0, 1, 2**51)),
    )),
    Topic("bins of integers near 2^60, with an edge at a half",
          _of([2**60 - 2, 2**60, 2**60 + 1, 2**60 + 3], pa.int64(), declared.integer(2**60 - 2, 2**60 + 3)), (
        Bins(lambda x: bins(x, [2**60 - 2, 2**60 + Fraction(1, 2), 2**60 + 3]), [0, 0, 1, 1]),
    )),
    Topic("decimals", _of([Decimal("0.05"), Decimal("-0.05"), Decimal("0.15"), Decimal("9999999999999999.99"), None],
                          pa.decimal128(18, 2), declared.number(-10, 10, step="0.1")), (
        Number(lambda x: x, [Fraction(1, 10), 0, Fraction(2, 10), 10, N]),
        Truth(lambda x: x > 0, [T, F, T, T, N]),
    )),
    Topic("decimals of 38 digits", _of([Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(5), None],
                                       pa.decimal128(38, 0), declared.integer(-10, 10)), (
        Number(lambda x: x, [10, -10, 5, N]), Truth(lambda x: x > 0, [T, F, T, N]),
    )),
    Topic("32-bit floats", _of([0.1, 3.4e38, 1e-45, NAN], pa.float32(), declared.number(0, 1, step="0.001")), (
        Number(lambda x: x, [Fraction(1, 10), 1, 0, N]),
    )),
    Topic("unsigned integers of 64 bits", _of([2**64 - 1, 0, 7, None], pa.uint64(), declared.integer(0, 10)), (
        Number(lambda x: x, [10, 0, 7, N]),
    )),
    Topic("texts differ by case, accents and blanks at the end", _of(TEXTS, pa.string(), declared.text()), (
        *(Truth(lambda x, text=text: x == text, ONLY[text]) for text in ("a", "A", "a ", "\u00df", "ss")),
        Truth(lambda x: x.is_in(["A", "ss"]), [F, T, F, F, F, F, F, T, N, F]),
        Truth(lambda x: x.starts_with("a"), [T, F, F, T, T, F, F, F, N, F]),
        Truth(lambda x: x.starts_with("a "), [F, F, F, F, T, F, F, F, N, F]),
    )),
    Topic("combining characters; characters beyond 16 bits", _of(TEXTS, pa.string(), declared.text()), (
        *(Truth(lambda x, text=text: x == text, ONLY[text]) for text in ("\u00e1", "a\u0301", "\U0001f600")),
        Truth(lambda x: x.starts_with("\u00e1"), [F, F, T, F, F, F, F, F, N, F]),
    )),
    Topic("empty texts are not NULL", _of(TEXTS, pa.string(), declared.text()), (
        Truth(lambda x: x == "", ONLY[""]), Truth(lambda x: x.is_missing(), [each is None for each in TEXTS]),
        Truth(lambda x: x.starts_with(""), [N if each is None else T for each in TEXTS]),
    )),
    Topic("instants are read in UTC", [(_zoned(INSTANTS, "America/New_York"), TIMED)], (
        Number(lambda x: x.hour(), [6, 7, 23]), Number(lambda x: x.day(), [10, 10, 31]),
        Truth(lambda x: x < datetime(1970, 1, 1), [F, F, T]),
        Truth(lambda x: x.truncate("day") == datetime(1969, 12, 31), [F, F, T]),
    )),
    Topic("times without a zone", [(pa.array(INSTANTS, pa.timestamp("us")), TIMED)], (
        Number(lambda x: x.hour(), [6, 7, 23]),
        Truth(lambda x: x.truncate("hour") == datetime(2024, 3, 10, 7), [F, T, F]),
    )),
    Topic("dates before 1970", _of(OLD, pa.date32(), EVER), (
        Number(lambda x: x.year(), [1969, 1900, 1960, 1938]), Number(lambda x: x.month(), [12, 2, 2, 11]),
        Number(lambda x: x.day(), [31, 28, 29, 9]), Number(lambda x: x.quarter(), [4, 1, 1, 4]),
        Number(lambda x: x.weekday(), [each.isoweekday() for each in OLD]),
    )),
    Topic("dates before 1582, in the Gregorian calendar", _of(GREGORIAN, pa.date32(), EVER), (
        Number(lambda x: x.year(), [1582, 1582, 1500, 4, 2]), Number(lambda x: x.month(), [10, 10, 2, 2, 1]),
        Number(lambda x: x.day(), [4, 15, 28, 29, 1]),
        Number(lambda x: x.weekday(), [each.isoweekday() for each in GREGORIAN]),
        Truth(lambda x: x < date(1582, 10, 5), [T, F, T, T, T]),
    )),
    Topic("times before 1582", _of([datetime(1582, 10, 4, 12), datetime(1500, 2, 28, 23), datetime(4, 2, 29, 1)],
                                   pa.timestamp("us"), declared.timestamp("0002-01-01", "2500-12-31")), (
        Number(lambda x: x.day(), [4, 28, 29]), Number(lambda x: x.hour(), [12, 23, 1]),
    )),
    Topic("leap days", _of(LEAP, pa.date32(), EVER), (
        Number(lambda x: x.day(), [29, 1, 29, 28, 31]),
        Truth(lambda x: x.truncate("month") == date(2024, 2, 1), [F, F, T, F, F]),
        Truth(lambda x: x.truncate("quarter") == date(1900, 1, 1), [F, T, F, F, F]),
        Truth(lambda x: x.truncate("year") == date(2400, 1, 1), [F, F, F, F, T]),
    )),
    Topic("weeks begin on Monday (ISO)", _of(WEEKS, pa.date32(), EVER), (
        Truth(lambda x: x.truncate("week") == date(2020, 12, 28), [T, T, T, F, F]),
        Truth(lambda x: x.truncate("week") == date(2021, 1, 4), [F, F, F, T, F]),
        Truth(lambda x: x.truncate("week") == date(1969, 12, 22), [F, F, F, F, T]),
        Number(lambda x: x.weekday(), [4, 5, 7, 1, 7]),
    )),
)  # fmt: skip

REFUSED: Mapping[tuple[str, str], str] = {
    ("reference", "products of more than 126 bits, rounded"):
        "a number takes more than 126 bits, and the reference engine does not round it as others do",
}  # fmt: skip
"""By engine and topic: the reason that `supports` gives. Strict: what is listed is refused, and nothing else is."""


def table() -> tuple[Schema, Any]:
    """One table with the columns of every topic, and the number of the row."""
    size = max(topic.size for topic in TOPICS)
    columns: dict[str, Column] = {"row": declared.integer(0, size - 1)}
    arrays: dict[str, Any] = {"row": pa.array(range(size), pa.int64())}
    for number, topic in enumerate(TOPICS):
        for place, (values, column) in enumerate(topic.columns):
            name = f"c{number}_{place}"
            columns[name] = column
            arrays[name] = pa.concat_arrays([values, pa.nulls(size - len(values), values.type)])
    return Schema.declare("special", protect=each_row(), columns=columns), pa.table(arrays)


def expressions(topic: Topic) -> list[tuple[Number | Truth | Bins, Expr]]:
    """The cases of a topic, and what each asks of its columns."""
    given = [col(f"c{TOPICS.index(topic)}_{place}") for place in range(len(topic.columns))]
    return [(case, case.ask(*given)) for case in topic.cases]


def statement(schema: Schema, topics: Sequence[Topic], *, by_row: bool = True) -> Statement:
    """All cases of some topics; for each row, or for all together."""
    of = Scan(schema)
    tallies = [tally for topic in topics for case, ask in expressions(topic) for tally in case.tallies(ask, of.types())]
    return Statement(of, (col("row").node,) if by_row else (), Unbounded(), tuple(tallies))


def right(schema: Schema, topics: Sequence[Topic]) -> list[list[list[int] | None]]:
    """By row, by case: the integers to be found; None where a topic has no such row."""
    types = Scan(schema).types()
    size = max(topic.size for topic in TOPICS)
    return [
        [
            case.counted(row, ask, types) if row < topic.size else None
            for topic in topics
            for case, ask in expressions(topic)
        ]
        for row in range(size)
    ]
