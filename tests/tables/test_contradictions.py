"""Refused is only what no row meets, as the engine reads rows: rounded, clamped, missing, joined, of each person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.errors import UserError
from privet.tables.analysis import contradictions, outcomes
from privet.tables.analysis.constant_conditions import nevers
from privet.tables.analysis.contradictions import contradictory
from privet.tables.analysis.narrowing import domains, impossible
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.fluent import Expr
from privet.tables.operators import Operator, Where
from privet.tables.relation import Relation
from privet.tables.statement import Rows, Statement, Unbounded

col = pv.col
FIRST = date(2020, 1, 1)
START = datetime(2020, 1, 1)

COLUMNS = {
    "x": pv.number("-0.7", "-0.1"),
    "y": pv.number("0.1", "0.7", required=True),
    "w": pv.number(0, 1, step="1/4"),
    "a": pv.integer(0, 12),
    "day": pv.date("2020-01-01", "2020-03-31"),
    "ts": pv.timestamp("2020-01-01", "2020-01-02"),
    "k": pv.keys("u", "v", "q", other="else"),
    "ok": pv.boolean(),
    "name": pv.text(),
}
VALUES: dict[str, list[Any]] = {
    "x": [-0.7, -0.1, -0.3, -5.0, 5.0, None, None, -0.7, -0.1],
    "y": [0.1, 0.7, 0.3, None, -9.0, 0.7],
    "w": [0.0, 0.25, 0.5, 0.75, 1.0, 0.3, None],
    "a": [*range(13), -4, 99, None],
    "day": [FIRST + timedelta(days=n) for n in (0, 1, 2, 31, 60, 90, 500)] + [None],
    "ts": [START + timedelta(hours=n) for n in (0, 1, 24, 47, 99)] + [START + timedelta(microseconds=1), None],
    "k": ["u", "v", "q", "other", None],
    "ok": [True, False, None],
    "name": ["", "a", "b", "ab", None],
}
TYPES = {"day": pa.date32(), "ts": pa.timestamp("us")}
_CHANCE = Random(5)
DATA = pa.table(
    {"id": [n // 3 for n in range(600)]}
    | {name: pa.array([_CHANCE.choice(some) for _ in range(600)], TYPES.get(name)) for name, some in VALUES.items()}
)
MADE = pv.table("t", DATA, protect=pv.person("id", max_rows=3), columns=COLUMNS)
PUBLIC = pv.public_table("p", pa.table({"k": ["u", "v", "z"], "rate": [0.1, 0.3, 0.7], "pop": [10, 20, 15]}), key="k")
JOINED = MADE.join(PUBLIC, on="k")
PEOPLE = MADE.per_person(n=pv.count(), m=pv.mean("x"), total=pv.sum("y"), most=pv.greatest("a"), some=pv.count("x"))


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDB]:
    tables, public = {"t": (MADE.schema, MADE.source)}, {"p": (PUBLIC.schema, PUBLIC.source)}
    with DuckDB(tables, public, salt=b"", threads=1) as made:
        yield made


def met(engine: DuckDB, of: Operator) -> int:
    return engine.answer(Statement(of, (), Unbounded(), (Rows(),)))[0][0]


# --- random conditions ----------------------------------------------------------------------------------

ENDS = [Fraction(n, 10) for n in (-14, -7, -3, -1, 0, 1, 3, 7, 8, 14)] + [Fraction(n, 4) for n in range(5)]
TINY = [Fraction(0), Fraction(0), Fraction(0), Fraction(1, 10**12), -Fraction(1, 10**12), Fraction(1, 10**6)]

_OTHER = ("day", "ts", "k", "ok", "name")


@dataclass(slots=True)
class Asker:
    """Makes conditions whose constants are where ranges begin and end, or beside."""

    chance: Random
    names: tuple[str, ...]

    def number(self) -> tuple[Expr, list[Fraction]]:
        """An expression and constants that may be at its ends."""
        pick = self.chance.choice
        name = pick([name for name in self.names if name not in _OTHER])
        of = col(name)
        ends = [*map(Fraction, range(-1, 14)), Fraction(5, 2)] if name in ("a", "most", "n", "some", "pop") else ENDS
        c: Any = pick([1, 2, 3, Fraction(1, 10), Fraction(1, 3)])
        match pick(["plain"] * 5 + ["+", "*", "/", "neg", "floor", "abs", "clip", "case", "quotient"]):
            case "+":
                return of + c, [end + c for end in ends]
            case "*":
                return of * c, [end * c for end in ends]
            case "/":
                return of / c, [end / c for end in ends]
            case "neg":
                return -of, [-end for end in ends]
            case "floor":
                return (of * 3).floor(), [Fraction(n) for n in range(-3, 4)]
            case "abs":
                return abs(of), [abs(end) for end in ends]
            case "clip":
                return of.clip("-0.3", "0.3"), [Fraction(-3, 10), Fraction(3, 10), Fraction(0)]
            case "case":
                return pv.when(of.is_missing(), 5).otherwise(of), [*ends, Fraction(5)]
            case "quotient":
                other = pick([name for name in self.names if name not in _OTHER])
                return of / col(other), [Fraction(-7), Fraction(7), Fraction(1), Fraction(0), Fraction(1, 7)]
        return of, ends

    def leaf(self) -> Expr:
        pick = self.chance.choice
        sign: Any = pick(["==", "!=", "<", "<=", ">", ">="])
        match pick(["number"] * 5 + [kind for kind in ("day", "ts", "k", "ok", "name") if kind in self.names]):
            case "day":
                constant: Any = FIRST + timedelta(days=pick([0, 1, 2, 31, 32, 60, 90]))
                if pick([0, 0, 1]):
                    return col("day").part("month") == pick([1, 2, 3])
                of = col("day")
            case "ts":
                of, constant = col("ts"), START + timedelta(hours=pick([0, 1, 47]), microseconds=pick([0, 0, 1]))
            case "k":
                of, constant, sign = col("k"), pick(["u", "v", "q", "else"]), pick(["==", "!="])
                if pick([0, 0, 1]):
                    return of.starts_with(pick(["u", "e", ""]))
            case "ok":
                return pick([col("ok"), col("ok") == True, col("ok") == False])  # noqa: E712
            case "name":
                of, constant, sign = col("name"), pick(["", "a", "ab", "b"]), pick(["==", "!="])
                if pick([0, 0, 1]):
                    return of.starts_with(pick(["a", "b", ""]))
            case _:
                of, ends = self.number()
                constant = pick(ends) + pick(TINY)
                if pick([0] * 8 + [1]):
                    return Expr(e.Compare(sign, of.node, pick([of, self.number()[0]]).node))
                if pick([0] * 5 + [1]):
                    return of.is_in([constant, pick(ends)])
        if pick([0] * 9 + [1]):
            return of.is_missing()
        return Expr(e.Compare(sign, of.node, e.Constant(constant)))

    def condition(self, depth: int) -> Expr:
        match self.chance.choice(["leaf", "leaf", "not", "or", "and"]) if depth else "leaf":
            case "not":
                return ~self.condition(depth - 1)
            case "or":
                return self.condition(depth - 1) | self.condition(depth - 1)
            case "and":
                return self.condition(depth - 1) & self.condition(depth - 1)
        return self.leaf()


def found(engine: DuckDB, numbers: range) -> tuple[int, int, list[str]]:
    """Comparisons and conditions that were refused, and those of them that some row meets."""
    leaves, whole, wrong = 0, 0, []
    for number in numbers:
        chance = Random(number)
        base = chance.choice([MADE.relation, MADE.relation, JOINED, PEOPLE])
        few = chance.sample([*base.columns], chance.choice([1, 1, 2, 3]))
        few.append(chance.choice([name for name in base.columns if name not in _OTHER]))
        asker = Asker(chance, tuple(few))
        try:
            conditions = [asker.condition(chance.choice([0, 0, 1, 2])) for _ in range(chance.choice([1, 2, 2, 3]))]
            asked = base.where(*conditions)
            refused = [never for each in conditions for never in nevers(each.node, base.input.types())]
            unmet = impossible(asked.input)
        except UserError:
            continue
        for never in refused:
            leaf: e.Node = never.leaf
            if not isinstance(leaf, e.StartsWith):
                sign: Any = "==" if never.operator == "!=" else never.operator
                leaf = e.Compare(sign, never.compared, never.value)
            leaves += 1
            if met(engine, Where(base.input, leaf)):
                wrong.append(f"{Expr(leaf)}")
        if unmet:
            whole += 1
            together = Where(base.input, trees.joined("and", unmet))
            if met(engine, together) or met(engine, asked.input):
                wrong.append(" and ".join(str(Expr(each)) for each in unmet))
    return leaves, whole, wrong


def test_no_row_meets_what_is_refused(engine: DuckDB, effort: int) -> None:
    leaves, whole, wrong = found(engine, range(200 * effort))
    assert wrong == []
    assert leaves > 20
    assert whole > 20


TWINS: dict[str, tuple[Any, str, Any, int]] = {  # what is broken, how, and the number near which it is caught
    "constants are not rounded": (outcomes, "_code", lambda of: lambda kind, c: (c / kind.unit, c / kind.unit, 0), 0),
    "every other day is left out": (contradictions, "_DAY", lambda of: 2 * of, 1440),
    "missing is never asked for": (contradictions, "is_strict", lambda of: lambda node: True, 0),
    "any of several is all of them": (contradictions, "cases", lambda of: lambda *node, **how: of(*node, **how)[:1], 0),
}


@pytest.mark.parametrize("twin", list(TWINS))
def test_a_broken_twin_is_caught(twin: str, engine: DuckDB, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, broken, first = TWINS[twin]
    monkeypatch.setattr(where, name, broken(getattr(where, name)))
    starts = *range(first, 3000, 20), *range(0, first, 20)
    assert any(found(engine, range(start, start + 20))[2] for start in starts)


# --- examples -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "condition"),
    [
        (JOINED, col("rate") <= 0.1),
        (JOINED, col("rate") == 0.1),
        (JOINED, col("rate").is_in([0.1, 0.3])),
        (MADE, col("x") + 1 <= 0.3),
        (MADE, col("x") * 2 == -1.4),
        (MADE, col("x") / 3 <= Fraction(-7, 30)),
        (MADE, -col("x") >= 0.7),
        (MADE, (col("y") >= 0.7) & (col("y") <= Fraction(7, 10) - Fraction(1, 10**12))),
        (PEOPLE, col("m") <= -0.7),
        (PEOPLE, col("m") * 2 <= -1.4),
        (PEOPLE, col("n") == 3),
        (PEOPLE, col("some") == 0),
        (MADE, ~(col("a") < 0)),
        (MADE, ~col("a").is_in([200, 17.5])),
    ],
)
def test_what_matches_is_not_refused(engine: DuckDB, of: Any, condition: Expr) -> None:
    asked = of.where(condition)
    assert list(nevers(condition.node, of.where(condition).input.types())) == []
    assert impossible(asked.input) == ()
    assert met(engine, asked.input) > 0


@pytest.mark.parametrize(
    ("of", "conditions"),
    [
        (MADE, [col("a") > 5, col("a") < 6]),
        (MADE, [col("x") > -0.5, col("x") < -0.5]),
        (MADE, [col("x") > -0.5, col("x") <= -0.5]),
        (MADE, [col("w") > 0.75, col("w") < 1]),
        (MADE, [col("day") > FIRST, col("day") < date(2020, 1, 2)]),
        (MADE, [col("ts") > START, col("ts") < START + timedelta(microseconds=1)]),
        (MADE, [col("a") == 5, col("a") != 5]),
        (MADE, [col("x") == -0.5, col("x") != -0.5]),
        (MADE, [col("a").is_in([5, 8]), col("a").is_in([6, 7])]),
        (MADE, [col("a") <= 1, ~col("a").is_in([0, 1])]),
        (MADE, [col("a").is_missing(), col("a") > 5]),
        (MADE, [col("x").is_missing(), col("x") > col("y")]),
        (MADE, [(col("x") < -0.5) | (col("x") < -0.4), col("x") > -0.3]),
        (MADE, [col("day").part("month") == 1, col("day") > date(2020, 2, 1)]),
        (MADE, [col("a") > col("a")]),
        (MADE, [col("x") != col("x")]),
        (MADE, [col("name") == "a", col("name") == "b"]),
        (MADE, [col("name") == "a", col("name").starts_with("b")]),
        (JOINED, [col("k") == "else"]),
        (PEOPLE, [col("n") == 0]),
        (PEOPLE, [col("n") < 1]),
    ],
)
def test_what_contradicts_itself_is_found(engine: DuckDB, of: Any, conditions: list[Expr]) -> None:
    asked = of.where(*conditions)
    assert impossible(asked.input)
    assert met(engine, asked.input) == 0
    more = of.where(*conditions, *([col("ok")] if of is not PEOPLE else []))
    assert {*impossible(more.input)} <= {each.node for each in conditions}  # no more than it takes


def test_long_ranges_are_not_counted_through() -> None:
    kinds = MADE.relation.with_columns(long=col("x") * col("y") * col("y")).input.types()
    assert not contradictory([(col("long") != Fraction(-1, 5)).node, (col("long") < 0).node], kinds)


def test_many_cases_are_left_alone() -> None:
    many = [(col("a") == 1) | (col("ok")) for _ in range(12)]
    kinds = MADE.relation.input.types()
    assert not contradictory([each.node for each in many], kinds)
    assert contradictory([*(each.node for each in many), (col("a") > col("a")).node], kinds)


def test_an_inner_join_leaves_the_keys_of_the_public_table() -> None:
    key = (col("k").node,)
    assert domains(JOINED.input, key) == (("u", "v"),)
    assert domains(MADE.join(PUBLIC, on="k", how="left").input, key) == (("u", "v", "q", "else"),)
    assert domains(Relation(JOINED.input).where(col("k") != "u").input, key) == (("v",),)
