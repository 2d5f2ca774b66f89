"""T3 and M5: questions made so that rounding in floats would break what their types promise. Noise off.

An expression's type says between which numbers it lies and whether it can be missing; the sensitivity follows from
that. If what runs is not what was proved, a row can leave its bin, or be in two, exactly where a secret holds, and
move a sum by far more than its noise hides. Each attack here worked on an engine that computed in doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
import pytest
from tests.effort import some
from tests.neighbours.exact import Exchangeable, Vectors, moved

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.planner import ReleasePlan, plan
from privet.tables.expressions.fluent import Expr
from privet.tables.query import Query
from privet.tables.relation import Relation

BIG = 10**9
"""Added to what is summed: a row that goes missing moves the sum by it."""

Ask = Callable[[Relation], Query]


@dataclass(frozen=True)
class Attack:
    """Columns, the values that a row may hold in each, and the question."""

    columns: dict[str, Any]
    values: dict[str, tuple[Any, list[Any]]]
    """The Arrow type and the values of each column."""
    ask: Ask

    def rows(self) -> list[dict[str, Any]]:
        """Every row there can be."""
        lists = [values for _, values in self.values.values()]
        return [dict(zip(self.values, row, strict=True)) for row in product(*lists)]

    def arrow(self, rows: list[dict[str, Any]]) -> Any:
        columns = {n: pa.array([r[n] for r in rows], kind) for n, (kind, _) in self.values.items()}
        return pa.table({"who": pa.array([1] * len(rows), pa.int64()), **columns})

    def table(self, units: list[dict[str, Any]], protect: Any, adjacency: str, rows: int | None = None) -> pv.Table:
        source = self.arrow(units)
        return pv.table("t", source, protect=protect, adjacency=adjacency, columns=self.columns, rows=rows)


WAYS: dict[str, tuple[Any, str, int | None]] = {
    "each row, add/remove": (pv.each_row(), "add/remove", None),
    "each row, replace": (pv.each_row(), "replace", None),
    "each row, replace, rows public": (pv.each_row(), "replace", 1),
    "person of 3 rows, add/remove": (pv.person("who", max_rows=3), "add/remove", None),
    "person of 3 rows, replace": (pv.person("who", max_rows=3), "replace", None),
}


def exact(attack: Attack, table: pv.Table, asked: ReleasePlan, units: list[list[dict[str, Any]]]) -> list[Vectors]:
    """The exact vectors of the question over each of these tables."""
    return every(attack, table, [asked], units)[0]


def every(
    attack: Attack, table: pv.Table, plans: list[ReleasePlan], units: list[list[dict[str, Any]]]
) -> list[list[Vectors]]:
    """The same for several questions, through one engine."""
    source = Exchangeable(table.source.rows, table.source.types())
    asked = [(plan, plan.statements()) for plan in plans]
    found: list[list[Vectors]] = [[] for _ in plans]
    with DuckDB({"t": (table.schema, source)}, salt=b"", threads=1) as engine:
        for rows in units:
            made = pv.table("t", attack.arrow(rows), protect=table.schema.protect, columns=attack.columns)
            source.exchange(made.source.rows)
            for seen, (plan, statements) in zip(found, asked, strict=True):
                seen.append(plan.coordinates([engine.answer(each) for each in statements]))
    return found


def holds(attack: Attack, way: str) -> list[str]:
    """What one unit moves beyond the claim: every pair of neighbours that consist of this unit alone."""
    protect, adjacency, public = WAYS[way]
    rows = attack.rows()
    table = attack.table(rows[:1], protect, adjacency, public)
    asked = plan(attack.ask(table.relation), epsilon="0.001")
    size = 3 if way.startswith("person of 3") else 1
    units: list[list[dict[str, Any]]] = [[row] * size for row in rows]
    same_rows = way.startswith("each row, replace")  # then every neighbour has as many rows
    seen = exact(attack, table, asked, units if same_rows else [[], *units])
    before = seen[:1] if adjacency == "add/remove" else seen
    broken = []
    for (i, old), (j, new) in product(enumerate(before), enumerate(seen)):
        for part, change in zip(asked.noised, moved(old, new), strict=True):
            if change > part.move.total:
                broken.append(f"{part.measurement.rule} from {i} to {j} by {change}, claimed {part.move.total}")
    return broken


SECRET: dict[str, Any] = {"secret": pv.boolean(required=True)}
TOLD = {"secret": (pa.bool_(), [True, False])}


def secret(value: Any) -> Expr:
    return pv.when(pv.col("secret"), value).otherwise(0)


def summed(made: Expr) -> Ask:
    return lambda rows: rows.agg(s=pv.sum(made + BIG))


def in_bin(of: Any, low: Any, high: Any) -> Expr:
    """Whether a number lies in the one bin that holds its whole range: true, by its type."""
    made = pv.bins(of, [low, high])
    (label,) = made.node.type({"secret": SECRET["secret"].type, **KINDS}).keys()
    return made == label


KINDS: dict[str, Any] = {
    "a": pv.integer(0, 1, required=True).type,
    "x": pv.integer(2**62 - 300, 2**62, required=True).type,
    "y": pv.integer(2**62 - 300, 2**62, required=True).type,
    "r": pv.number(0, 1, required=True).type,
    "t": pv.number("0.1", "0.3", step="0.1", required=True).type,
}


def copies(value: Fraction, times: int) -> Attack:
    """A fraction added up some times, and the bin that ends where the exact sum does."""
    total = secret(value)
    for _ in range(times - 1):
        total = total + secret(value)
    ends = sorted([Fraction(0), value * times])
    return Attack(SECRET, TOLD, summed(in_bin(total, *ends)))


FRACTIONS = [
    (Fraction(1, 10), 3), (Fraction(1, 10), 6), (Fraction(-1, 10), 3), (Fraction(1, 5), 3), (Fraction(7, 10), 3),
    (Fraction(1, 3), 5), (Fraction(1, 3), 10), (Fraction(-1, 3), 5), (Fraction(2, 3), 5), (Fraction(1, 7), 10),
    (Fraction(1, 49), 14), (Fraction(1, 100), 6), (Fraction(2**53 + 1), 3), (Fraction(10**17, 3), 3),
]  # fmt: skip

WIDE = {name: pv.integer(2**62 - 300, 2**62, required=True) for name in "xy"}
WIDE_VALUES = {name: (pa.int64(), [0, 2**62 - 257, 2**62 - 256, 2**62 - 1, 2**62]) for name in "xy"}
X, Y, A, R, T = (pv.col(name) for name in "xyart")
SMALL: dict[str, Any] = {"a": pv.integer(0, 1, required=True)}
BITS = {"a": (pa.int64(), [0, 1])}
UNIT: dict[str, Any] = {"r": pv.number(0, 1, required=True)}
REALS = {"r": (pa.float64(), [0.0, 0.1, 1 / 3, 0.3, 0.7, 1.0, math.nextafter(0.3, 1), math.nan, math.inf])}
STEPS: dict[str, Any] = {"t": pv.number("0.1", "0.3", step="0.1", required=True)}
TENTHS = {"t": (pa.float64(), [0.1, 0.2, 0.3, 0.30000000000000004, 0.15, 0.25, math.nan, None])}

ATTACKS: dict[str, Attack] = {
    **{f"{times} times {value}": copies(value, times) for value, times in FRACTIONS},
    "a product": Attack(SECRET, TOLD, summed(in_bin(secret(0.1) * 3, 0, "0.3"))),
    "a product of tenths": Attack(SECRET, TOLD, summed(in_bin(secret(1.1) * secret(1.1), 0, "1.21"))),
    "floor": Attack(SECRET, TOLD, summed(in_bin(((secret(0.1) * 3 - 0.3) * 10**16).floor(), -3 * 10**15, 0))),
    "ceil": Attack(SECRET, TOLD, summed(in_bin((secret(0.1) * 3 * 10).ceil(), 0, 3))),
    "ceil of a sum": Attack(SECRET, TOLD, summed(in_bin((secret(0.7) + secret(0.1) + 0.2).ceil(), 0, 1))),
    "abs": Attack(SECRET, TOLD, summed(in_bin(abs(secret(-0.1) * 3), 0, "0.3"))),
    "division by a constant": Attack(SMALL, BITS, summed(in_bin(A / 10 * 3, 0, "0.3"))),
    "a clip between floats": Attack(UNIT, REALS, summed(in_bin(R.clip("0.1", "0.3") * 3, "0.3", "0.9"))),
    "a clip to thirds": Attack(UNIT, REALS, summed(in_bin(R.clip("1/3", "2/3") * 5, "5/3", "10/3"))),
    "declared tenths": Attack(STEPS, TENTHS, summed(in_bin(T + T + T, "0.3", "0.9"))),
    "a branch": Attack(
        SECRET, TOLD, summed(in_bin(pv.when(pv.col("secret"), secret(0.1) * 3).otherwise(0.2), 0, "0.3"))
    ),
    "missing": Attack(SECRET, TOLD, summed(pv.bins(secret(0.1) * 3, [0, "0.3"]).is_missing())),
    "not": Attack(SECRET, TOLD, summed(~in_bin(secret(0.1) * 3, 0, "0.3"))),
    "and": Attack(SECRET, TOLD, summed(in_bin(secret(0.1) * 3, 0, "0.3") & pv.col("secret"))),
    "one of": Attack(SECRET, TOLD, summed(pv.bins(secret(0.1) * 3, [0, "0.1", "0.3"]).is_in(["[0, 0.1)"]))),
    "a mean": Attack(SECRET, TOLD, lambda rows: rows.agg(m=pv.mean(in_bin(secret(0.1) * 3, 0, "0.3") + BIG))),
    "large integers cancel": Attack(WIDE, WIDE_VALUES, summed(in_bin(X - Y, -300, 300))),
    "large integers cancel to -1 or 0": Attack(
        WIDE, WIDE_VALUES, summed(in_bin(X.clip(2**62 - 257, 2**62 - 256) - (2**62 - 256), -1, 0))
    ),
    "large integers, halved": Attack(WIDE, WIDE_VALUES, summed(in_bin((X - 2**62) / 2, -150, 0))),
    "large integers, their sum": Attack(WIDE, WIDE_VALUES, summed(in_bin(X + Y - 2**63, -600, 0))),
    "large integers, their product": Attack(
        WIDE, WIDE_VALUES, summed(in_bin((X * Y).clip(2**124 - 1, 2**124) - 2**124, -1, 0))
    ),
}


@pytest.mark.parametrize(("attack", "way"), some(list(product(ATTACKS, WAYS)), every=3))
def test_t3_nothing_goes_missing_that_the_type_promises(attack: str, way: str) -> None:
    assert holds(ATTACKS[attack], way) == []


# --- M5: one bin for each row ---------------------------------------------------------------------

EDGES: dict[str, list[Any]] = {
    "halves": [0, 2**60 + 10, f"{2**60 + 10}.5", 2**62],
    "thirds": [0, 2**60 + 10, Fraction(3 * 2**60 + 31, 3), 2**62],
    "several": [0, 2**53 + 1, f"{2**53 + 1}.5", 2**60 + 10, f"{2**60 + 10}.5", 2**62],
}
PLACES = (2**53, 2**60)
BESIDE = [-600, -3, -1, 0, 1, 2, 3, 9, 10, 11, 12, 600]


def columns_near(place: int) -> Attack:
    """Integers about a place where they are not floats."""
    columns = {"i": pv.integer(place - 500, place + 500, required=True)}
    return Attack(columns, {"i": (pa.int64(), [place + i for i in BESIDE])}, lambda rows: rows.agg(n=pv.count()))


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("edges", list(EDGES))
def test_m5_a_row_is_in_one_bin_of_a_histogram(edges: str, way: str) -> None:
    for place in PLACES:
        attack = replace(columns_near(place), ask=lambda rows: rows.agg(h=pv.histogram("i", EDGES[edges])))
        assert holds(attack, way) == []


@pytest.mark.parametrize("edges", list(EDGES))
def test_m5_and_it_is_the_right_one(edges: str) -> None:
    """In histograms and in groups by bins."""
    ends = [Fraction(edge) for edge in EDGES[edges]]
    for place in PLACES:
        attack = columns_near(place)
        table = attack.table([], pv.each_row(), "add/remove")
        by_histogram = plan(table.agg(h=pv.histogram("i", EDGES[edges])), epsilon=1)
        by_group = plan(table.group_by(g=pv.bins("i", EDGES[edges])).agg(n=pv.count()), epsilon=1)
        rows = [place + i for i in BESIDE]
        clamped = [min(max(i, place - 500), place + 500) for i in rows]
        units = [[{"i": i}] for i in rows]
        in_bins = [list(v[0][0]) for v in exact(attack, table, by_histogram, units)]
        assert in_bins == [[int(low <= i < high) for low, high in pairwise(ends)] for i in clamped]
        inside = [[{"i": i}] for i in rows if i in clamped]  # as keys, what is out of range is no key
        in_groups = [[n for (n,) in v[0]] for v in exact(attack, table, by_group, inside)]
        assert in_groups == [[int(low <= u[0]["i"] < high) for low, high in pairwise(ends)] for u in inside]


# --- what is equal over the rationals is equal ----------------------------------------------------

COUNTED: dict[str, Any] = {
    "a": pv.integer(0, 12),
    "b": pv.integer(-7, 7),
    "t": pv.number(-3, 3, step="0.1"),
    "h": pv.number(0, 2, step="1/3"),
    "q": pv.number(-1, 1, step="0.25"),
    "n": pv.integer(2**62 - 9, 2**62),
    "d": pv.date("2024-01-01", "2024-12-31"),
}


def everything() -> Attack:
    values: dict[str, tuple[Any, list[Any]]] = {
        "a": (pa.int64(), [0, 1, 3, 7, 12]),
        "b": (pa.int64(), [-7, -1, 2]),
        "t": (pa.float64(), [0.1, 0.3, -0.7, 3.0]),
        "h": (pa.float64(), [1 / 3, 2 / 3, 5 / 3]),
        "q": (pa.float64(), [-0.25, 0.75]),
        "n": (pa.int64(), [2**62 - 9, 2**62 - 1, 2**62]),
        "d": (pa.date32(), [19_723, 19_782]),
    }
    return Attack(COUNTED, values, lambda rows: rows.agg(n=pv.count()))


a, b, t, h, q, n, d = (pv.col(name) for name in "abthqnd")

EQUAL: dict[str, tuple[Any, Any]] = {
    "tenths of integers": (a / 10 + b / 10, (a + b) / 10),
    "thirds of integers": (a / 3 + a / 3 + a / 3, a + 0),
    "three tenths": (t + t + t, t * 3),
    "tenths and tenths of ten": (t * 10, (t * 10).floor()),
    "tenths are integers in tenths": ((t * 10).ceil(), (t * 10).floor()),
    "thirds": (h + h + h, h * 3),
    "thirds, whole": ((h * 3).floor(), (h * 3).ceil()),
    "tenths and quarters": ((t + q) - q, t + 0),
    "tenths and thirds": ((t + h) * 30, t * 30 + h * 30),
    "a product": (t * (h + q), t * h + t * q),
    "squares": ((t - h) * (t + h), t * t - h * h),
    "large integers": ((n + a) - n, a + 0),
    "large products": (n * a - n * b, n * (a - b)),
    "days": ((d - d) / 7, a * 0),
    "branches": (pv.when(a > 2, t * 3).otherwise(h * 3), pv.when(a <= 2, h + h + h).otherwise(t + t + t)),
    "clips": ((t * 3).clip("-0.9", "0.9"), t.clip("-0.3", "0.3") * 3),
    "bins": (
        pv.when(pv.bins(t + t + t, [-9, "-0.3", "0.3", 9]) == "[0.3, 9]", 1).otherwise(0),
        pv.when(t >= 0.1, 1).otherwise(0),
    ),
}


@pytest.mark.parametrize("what", list(EQUAL))
def test_what_is_equal_is_equal(what: str) -> None:
    """Filtered by equality, all rows remain; by inequality, or by either order, none or all."""
    left, right = EQUAL[what]
    attack = everything()
    table = attack.table([], pv.each_row(), "add/remove")
    rows = attack.rows()
    conditions = (
        (left == right, len(rows)),
        (left != right, 0),
        (left < right, 0),
        (left >= right, len(rows)),
        ((left - right).is_between(0, 0), len(rows)),
    )
    plans = [plan(table.where(condition).agg(n=pv.count()), epsilon=1) for condition, _ in conditions]
    found = every(attack, table, plans, [rows])
    assert found == [[[[(expected,)]]] for _, expected in conditions]


def test_a_declared_step_is_read_onto_its_lattice() -> None:
    """0.1, and what is nearest to it, is one tenth; halves go up."""
    attack = Attack(
        {"t": pv.number(0, 1, step="0.1")},
        {"t": (pa.float64(), [0.1, 0.3, 0.7, 0.30000000000000004, 0.29999999999999993, 0.32, 0.25, 0.75])},
        lambda rows: rows.agg(n=pv.count()),
    )
    table = attack.table([], pv.each_row(), "add/remove")
    tenths = {1: 1, 3: 5, 7: 1, 8: 1}
    asked = [
        (k, plan(table.where(made).agg(n=pv.count()), epsilon=1))
        for k in range(11)
        for made in (pv.col("t") == Fraction(k, 10), pv.col("t") * 10 == k, pv.col("t").is_in([Fraction(k, 10)]))
    ]
    found = every(attack, table, [each for _, each in asked], [attack.rows()])
    for (k, _), [[[(count,)]]] in zip(asked, found, strict=True):
        assert count == tenths.get(k, 0), k


# --- persons, and what is made of them -------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("of", ["mean", "least", "greatest", "sum"])
def test_t3_a_person_stays_within_what_is_claimed(of: str, adjacency: str) -> None:
    """A person's tenths and thirds, added up or averaged, then cut into bins that end where the exact numbers do."""
    columns = {
        "t": pv.number("0.1", "0.3", step="0.1", required=True),
        "r": pv.number("1/3", "2/3", required=True),
        "n": pv.integer(2**62 - 9, 2**62, required=True),
    }
    attack = Attack(columns, {
        "t": (pa.float64(), [0.1, 0.3, 0.30000000000000004]),
        "r": (pa.float64(), [0.0, 1 / 3, 2 / 3, 1.0]),
        "n": (pa.int64(), [2**62, 2**62 - 9, 0]),
    }, lambda rows: rows.agg(n=pv.count()))  # fmt: skip
    table = attack.table([], pv.person("who", max_rows=6), adjacency)
    made = getattr(pv, of)
    persons = table.per_person(t=made("t"), r=made("r"), n=made("n"))
    if of == "sum":
        persons = persons.with_columns(
            t=pv.col("t").clip("0.1", "1.8"), r=pv.col("r").clip("1/3", 4), n=pv.col("n").clip(2**62 - 9, 6 * 2**62)
        )
    ends: dict[str, list[Any]] = {
        "t": ["0.1", "0.3" if of != "sum" else "1.8"],
        "r": ["1/3", "2/3" if of != "sum" else 4],
    }
    ends["n"] = [2**62 - 9, 2**62 if of != "sum" else 6 * 2**62]
    flags = {name: pv.bins(name, end).is_missing() for name, end in ends.items()}
    large = {f"s{name}": pv.sum(pv.when(flag, 0).otherwise(1) + BIG) for name, flag in flags.items()}
    none = persons.agg(n=pv.sum(pv.when(flags["t"] | flags["r"] | flags["n"], 1).otherwise(0)))
    asked = [
        plan(persons.agg(**large), epsilon=1),
        plan(persons.agg(t=pv.mean("t"), r=pv.mean("r")), epsilon=1),
        plan(persons.agg(h=pv.histogram("n", [0, 2**62 - 5, f"{2**62 - 5}.5", 6 * 2**62])), epsilon=1),
    ]
    units = [[], *([row] * k for row in some(attack.rows(), every=8) for k in (1, 3, 6))]
    *found, missing = every(attack, table, [*asked, plan(none, epsilon=1)], units)
    for each, seen in zip(asked, found, strict=True):
        before = seen[:1] if adjacency == "add/remove" else seen
        for old, new in product(before, seen):
            for part, change in zip(each.noised, moved(old, new), strict=True):
                assert change <= part.move.total
    assert missing == [[[(0,)]]] * len(units)


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()], ids=str)
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_t3_a_column_too_wide_for_its_own_step_is_summed_in_coarser_ones(kind: Any, adjacency: str) -> None:
    """The code that is summed is the one of the measurement, not the one in which the column is read."""
    declared = {"j": pv.integer(-(2**51), 2**51, required=True)}
    attack = Attack(declared, {"j": (kind, [0, 5, 2**51, -(2**51), None])}, lambda rows: rows.agg(s=pv.sum("j")))
    for way, (_, how, _) in WAYS.items():
        if how == adjacency:
            assert holds(attack, way) == []
