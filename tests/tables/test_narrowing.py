"""Groups that conditions leave: no row that meets the conditions is in a group that was left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from tests.neighbours.questions import Asker, relation
from tests.neighbours.reference import Reference
from tests.neighbours.worlds import world
from tests.tables.rows import TYPES, Row, people, value
from tests.tables.test_constant_conditions import CONSTANTS, ORDERED
from tests.tables.test_expressions import SIMPLE

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.errors import QueryError, UserError
from privet.tables.analysis import conditions, inverses, narrowing
from privet.tables.analysis.narrowing import domains, impossible, left
from privet.tables.expressions import nodes as e
from privet.tables.expressions.fluent import Expr
from privet.tables.operators import Scan, Where
from privet.tables.relation import Relation
from privet.tables.schema import Schema
from privet.tables.statement import Rows, Statement, Unbounded
from privet.tables.types import NumberType, TimeType

col = pv.col

# --- by brute force, in exact arithmetic ----------------------------------------------------------

EDGES = st.lists(st.fractions(-4, 8, max_denominator=4), min_size=2, max_size=5, unique=True).map(
    lambda edges: tuple(sorted(edges))
)
KEYS: st.SearchStrategy[e.Node] = st.one_of(
    st.sampled_from([e.Column(name) for name in ("a", "c", "f", "region", "grade", "born")]),
    st.builds(e.Truncate, st.just(e.Column("born")), st.sampled_from(["year", "quarter", "month", "week", "day"])),
    st.builds(e.Truncate, st.just(e.Column("seen")), st.sampled_from(["year", "month", "week", "day", "hour"])),
    st.builds(e.DatePart, st.just(e.Column("born")), st.sampled_from(["year", "quarter", "month", "day", "weekday"])),
    st.builds(e.Bin, st.sampled_from([e.Column(name) for name in "abcz"]), EDGES),
    st.builds(e.Bin, st.just((col("a") * 2 + 1).node), EDGES),
    st.sampled_from(
        [
            col("b").floor().node,
            col("z").floor().node,
            (col("a") / 3).floor().node,
            (col("b") / 2 - 1).floor().node,
            (col("a") + col("c")).node,
            (1 - col("a")).node,
            abs(col("a")).node,
            (col("a") >= 2).node,
            (~(col("b") >= 2)).node,
            pv.when(col("a").is_missing(), 2).otherwise(col("a")).node,
            col("note").is_missing().node,
        ]
    ),
)


@st.composite
def compared(draw: st.DrawFn, of: e.Node) -> e.Node:
    """A condition on a key itself, or on the columns that it is made of."""
    names = sorted(conditions.columns(of))
    if draw(st.integers(0, 3)) == 0 and not isinstance(of, e.Bin | e.Compare | e.Not | e.IsMissing | e.Case):
        kind = of.type(TYPES)
        keys = [e.Constant(Fraction(k) if type(k) is int else k) for k in kind.keys()]  # type: ignore[arg-type]  # noqa: SIM118
        sign = draw(
            st.sampled_from(
                [
                    "==",
                    "!=",
                    *(["<", ">="] if of.type(TYPES) not in (TYPES["region"], TYPES["grade"], TYPES["f"]) else []),
                ]
            )
        )
        return e.Compare(sign, of, draw(st.sampled_from(keys)))  # type: ignore[arg-type]
    name = draw(st.sampled_from(names))
    if name == "note":
        return e.IsMissing(e.Column(name))
    if name in "abc" and draw(st.integers(0, 3)) == 0:  # a clip to ends that are not values of the column
        ends = sorted(draw(st.lists(st.fractions(-2, 6, max_denominator=2), min_size=2, max_size=2, unique=True)))
        cut = e.Clip(e.Column(name), ends[0], ends[1])
        twice = e.Arithmetic("+", cut, cut) if draw(st.booleans()) else cut
        edge = e.Constant(draw(st.sampled_from([*ends, 2 * ends[0], 2 * ends[1]])))
        return e.Compare(draw(st.sampled_from(["==", "<", ">="])), twice, edge)
    some = draw(st.lists(CONSTANTS[name], min_size=1, max_size=3))
    if draw(st.integers(0, 3)) == 0 and name != "f":
        return e.IsIn(e.Column(name), tuple(map(e.Constant, some)))
    sign = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">="] if name in ORDERED else ["==", "!="]))
    return e.Compare(sign, e.Column(name), e.Constant(some[0]))  # type: ignore[arg-type]


@st.composite
def questions(draw: st.DrawFn) -> tuple[tuple[e.Node, ...], e.Node]:
    """Conditions and a key."""
    key = draw(KEYS)
    found = []
    for _ in range(draw(st.integers(1, 2))):
        one = draw(st.one_of(compared(key), compared(key), SIMPLE))
        one = e.Not(one) if draw(st.integers(0, 4)) == 0 else one
        if draw(st.integers(0, 4)) == 0:
            one = e.Logic("or", (one, draw(compared(key))))
        found.append(one)
    return tuple(found), key


def asked(some: tuple[e.Node, ...]) -> Relation:
    of: Any = people().input
    for condition in some:
        of = Where(of, condition)
    return Relation(of)


def key_of(key: e.Node, row: Row) -> Any:
    found = value(key, row)
    if isinstance(key, e.Bin) and found is not None:
        return key.type(TYPES).keys()[found]
    return int(found) if isinstance(found, Fraction) else found


def _pool(chance: Random) -> Iterator[Row]:
    """Rows of every kind, with the ends of all ranges among them."""
    for _ in range(500):
        row = {
            "a": Fraction(chance.randint(-3, 7)),
            "b": Fraction(chance.randint(-8, 20), 4),
            "c": Fraction(chance.randint(1, 4)),
            "z": chance.choice([Fraction(1, 3), Fraction(7, 2), Fraction(chance.randint(2, 21), 6)]),
            "f": chance.random() < 0.5,
            "g": chance.random() < 0.5,
            "region": chance.choice(["north", "south", "elsewhere"]),
            "grade": chance.randint(1, 3),
            "note": chance.choice(["", "a", "ab", "b"]),
            "born": date(1999, 11, 20) + timedelta(days=chance.choice([0, 448, chance.randint(0, 448)])),
            "seen": datetime(2024, 2, 28, 22, 30)
            + timedelta(minutes=chance.choice([0, 3045, chance.randint(0, 3045)])),
        }
        for name in ("a", "b", "z", "f", "region", "grade", "note", "born", "seen"):
            row[name] = None if chance.random() < 0.1 else row[name]
        yield row


POOL = list(_pool(Random(1)))


def lost(made: tuple[tuple[e.Node, ...], e.Node]) -> bool:
    """Whether a row that meets the conditions is in a group that was left out."""
    given, key = made
    try:
        for condition in given:
            condition.type(TYPES)
        every = key.type(TYPES).keys()
        (kept,) = domains(asked(given).input, (key,))
    except QueryError:
        return False
    assert [x for x in every if x in kept] == list(kept)
    left_out = {*every} - {*kept}
    if not left_out:
        return False
    return any(
        key_of(key, row) in left_out and all(value(condition, row) is True for condition in given) for row in POOL
    )


@settings(max_examples=100)
@given(questions())
def test_no_row_is_in_a_group_that_was_left_out(made: tuple[tuple[e.Node, ...], e.Node]) -> None:
    assert not lost(made)


def _shorter(of: Callable[..., Any]) -> Callable[..., Any]:
    """Ranges of columns that end a little too early."""

    def found(*args: Any, **how: Any) -> Any:
        for name, low, high, is_open in of(*args, **how):
            less = timedelta(days=1) if isinstance(high, date) else Fraction(1, 2)
            yield name, low, high - less, is_open

    return found


def _later(of: Callable[..., Any]) -> Callable[..., Any]:
    """Bins that begin a little too late."""
    return lambda name, low, high, **how: of(name, low + 1 if isinstance(low, Fraction) else low, high, **how)


TWINS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "ranges end too early": (narrowing, "preimage", _shorter),
    "bins begin too late": (inverses, "_column", _later),
    "undecided is left out": (narrowing, "outcomes", lambda of: lambda *args: of(*args) - {True} or {True}),
}
QUICK = settings(max_examples=5_000, database=None, phases=[Phase.generate])


A = e.Column("a")
CAUGHT: dict[str, tuple[tuple[e.Node, ...], e.Node]] = {  # by these questions, which the search found
    "ranges end too early": (
        (e.Not(e.Compare("==", e.Clip(A, Fraction(0), Fraction(1)), e.Constant(Fraction(0)))),),
        e.Bin(A, (Fraction(0), Fraction(1))),
    ),
    "bins begin too late": (
        (e.Not(e.IsIn(A, (e.Constant(Fraction(0)),))),),
        e.Bin(A, (Fraction(-1), Fraction(0))),
    ),
    "undecided is left out": (
        (e.Not(e.IsIn(e.Column("born"), (e.Constant(date(2000, 1, 1)),))),),
        e.Truncate(e.Column("born"), "year"),
    ),
}


@pytest.mark.parametrize("twin", TWINS)
def test_a_broken_twin_is_caught(twin: str, monkeypatch: pytest.MonkeyPatch, effort: int) -> None:
    where, name, broken = TWINS[twin]
    assert not lost(CAUGHT[twin])
    monkeypatch.setattr(where, name, broken(getattr(where, name)))
    narrowing._left.cache_clear()
    try:
        assert lost(CAUGHT[twin])
        if effort > 1:
            assert find(questions(), lost, settings=QUICK)
    finally:
        narrowing._left.cache_clear()


# --- as engines read rows: out of range is clamped as a value, and no key -------------------------


def hostile(numbers: range) -> tuple[int, int]:
    """Rows of hostile tables that were lost, and groups that were left out."""
    gone = narrowed = 0
    for number in numbers:
        chance = Random(number)
        made = world(chance)
        reference = Reference(made, made.data)
        tables = {name: table.relation for name, table in made.tables.items()}
        for _ in range(6):
            try:
                of = relation(chance, made, tables)
                asker = Asker(chance, dict(of.input.types()))
                key = asker.key().node
                for _ in range(chance.choice([1, 2])):
                    of = of.where(near(asker, key, chance))
                every = key.type(of.input.types()).keys()
                (kept,) = domains(of.input, (key,))
            except UserError:
                continue
            narrowed += len(every) - len(kept)
            left_out, types = {*every} - {*kept}, of.input.types()
            if left_out:
                found = (reference.key(key, read, types) for _, read in reference.lines(of.input))
                gone += sum(one is not None and one in left_out for one in found)
    return gone, narrowed


def near(asker: Asker, key: e.Node, chance: Random) -> Expr:
    """A condition on the columns of a key."""
    names = sorted(conditions.columns(key))
    if not names or chance.random() < 0.2:
        return asker.condition(1)
    kinds = {name: asker.types[name] for name in names}
    made = Asker(chance, kinds).condition(chance.choice([0, 0, 1]))
    name = chance.choice(names)
    at = kinds[name]
    if isinstance(at, NumberType) and chance.random() < 0.6:
        bound = at.lower + (at.upper - at.lower) * Fraction(chance.randint(0, 8), 8)
        made = chance.choice([col(name) >= bound, col(name) < bound, col(name) <= bound, col(name) == bound])
    if isinstance(at, TimeType) and chance.random() < 0.6:
        made = chance.choice([col(name) >= at.last, col(name) < at.last, col(name) <= at.first])
    return made


def test_no_hostile_row_is_in_a_group_that_was_left_out(effort: int) -> None:
    gone, narrowed = hostile(range(80_000, 80_000 + 30 * effort))
    assert gone == 0
    assert narrowed > 50


def test_a_condition_inside_a_key_reads_values_as_where_does() -> None:
    age = pv.integer(0, 110)
    made = pv.table("t", pa.table({"age": [500, 20, None]}), protect=pv.each_row(), columns={"age": age})
    with DuckDB({"t": (made.schema, made.source)}, salt=b"") as engine:
        for condition in (col("age") >= 110, col("age").is_missing(), (col("age") > 30) | (col("age") < 10)):
            ((kept,),) = engine.answer(Statement(made.where(condition).input, (), Unbounded(), (Rows(),)))
            for key in (condition, pv.when(condition, True).otherwise(False)):
                found = engine.answer(Statement(Scan(made.schema), (key.node,), Unbounded(), (Rows(),)))
                assert found[1] == [kept]


def test_keys_that_are_read_in_two_ways_are_not_narrowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is out of range is clamped as a value of a person, and no value as a key; the broken twin forgets it."""
    rows = pa.table({"id": [1, 1], "age": [500, 20]})
    columns = {"age": pv.integer(0, 110)}
    made = pv.table("t", rows, protect=pv.person("id", max_rows=2), columns=columns)
    oldest = made.per_person(oldest=pv.greatest("age"))
    key, of = col("oldest").node, oldest.where(col("oldest") > 100).input
    with DuckDB({"t": (made.schema, made.source)}, salt=b"") as engine:
        found = engine.answer(Statement(of, (key,), Unbounded(), (Rows(),)))
        assert [group for group, (n,) in enumerate(found) if n] == [20]
    assert 20 in domains(of, (key,))[0]
    honest = conditions.rows_of
    monkeypatch.setattr(narrowing, "rows_of", lambda of: replace(honest(of), modal=frozenset()))
    narrowing._left.cache_clear()
    try:
        assert 20 not in domains(of, (key,))[0]
    finally:
        narrowing._left.cache_clear()


# --- examples -------------------------------------------------------------------------------------

SCHEMA = Schema.declare(
    "players",
    protect=pv.person("id", max_rows=5),
    columns={
        "year": pv.integer(1871, 2020),
        "age": pv.integer(0, 110),
        "income": pv.number(0, 200_000),
        "country": pv.keys("USA", "CAN", "PAN", other="elsewhere"),
        "debut": pv.date("1871-05-04", "2016-12-31"),
        "seen": pv.timestamp("2010-01-01", "2016-12-31T23:59:59"),
        "big": pv.integer(0, 2**50),
        "smoker": pv.boolean(),
    },
)
PLAYERS = Relation(Scan(SCHEMA))


def kept(of: Relation, key: str | Expr) -> list[Any]:
    (found,) = domains(of.input, (col(key).node if isinstance(key, str) else key.node,))
    return list(found)


def test_a_plain_key() -> None:
    assert kept(PLAYERS.where(col("year").is_between(2010, 2016)), "year") == list(range(2010, 2017))
    assert kept(PLAYERS.where(col("year") >= 2019), "year") == [2019, 2020]
    assert kept(PLAYERS.where(col("year").is_in([2001, 1999, 2005])), "year") == [1999, 2001, 2005]
    assert kept(PLAYERS.where((col("year") < 1872) | (col("year") > 2019)), "year") == [1871, 2020]
    assert kept(PLAYERS.where(col("country") != "USA"), "country") == ["CAN", "PAN", "elsewhere"]
    assert kept(PLAYERS.where(~col("country").is_in(["USA", "elsewhere"])), "country") == ["CAN", "PAN"]
    assert kept(PLAYERS.where(col("country").starts_with("P")), "country") == ["PAN"]
    assert kept(PLAYERS.where(col("smoker")), "smoker") == [True]
    assert kept(PLAYERS.where(~col("smoker")), "smoker") == [False]


def test_bins() -> None:
    ages, edges = pv.bins("age", [0, 18, 65, 110]), [0, 50_000, 100_000, 200_000]
    assert kept(PLAYERS.where(col("age") >= 18), ages) == ["[18, 65)", "[65, 110]"]
    assert kept(PLAYERS.where(col("age") > 17), ages) == ["[18, 65)", "[65, 110]"]
    assert kept(PLAYERS.where(col("age") < 18), ages) == ["[0, 18)"]
    assert kept(PLAYERS.where(col("age") == 65), ages) == ["[65, 110]"]
    assert kept(PLAYERS.where(ages == "[18, 65)"), ages) == ["[18, 65)"]
    assert kept(PLAYERS.where(col("income") >= 50_000), pv.bins("income", edges)) == [
        "[50000, 100000)",
        "[100000, 200000]",
    ]
    assert kept(PLAYERS.where(col("income") < 50_000), pv.bins("income", edges)) == ["[0, 50000)"]
    assert kept(PLAYERS.where(col("income") <= 50_000), pv.bins("income", edges)) == ["[0, 50000)", "[50000, 100000)"]


def test_what_rounding_may_move_stays() -> None:
    """As engines round, a constant that is almost an edge can be that edge."""
    edges = pv.bins("income", [0, 50_000, 200_000])
    almost = Fraction(50_000) - Fraction(1, 10**9)
    assert kept(PLAYERS.where(col("income") <= almost), edges) == ["[0, 50000)", "[50000, 200000]"]
    assert kept(PLAYERS.where(col("income") <= 49_000), edges) == ["[0, 50000)"]
    assert len(kept(PLAYERS.where(col("age") / (col("age") + 1) > 5), "age")) == 111  # a quotient decides nothing


def test_floors() -> None:
    assert kept(PLAYERS.where(col("age") >= 30), (col("age") / 10).floor()) == list(range(3, 12))
    assert kept(PLAYERS.where(col("income") >= 150_000), (col("income") / 10_000).floor()) == list(range(15, 21))


def test_dates() -> None:
    since = PLAYERS.where(col("debut") >= date(2010, 1, 1))
    assert kept(since, col("debut").part("year")) == list(range(2010, 2017))
    assert kept(since, col("debut").truncate("year")) == [date(y, 1, 1) for y in range(2010, 2017)]
    late = PLAYERS.where(col("debut") > date(2016, 11, 30))
    assert kept(late, col("debut").truncate("month")) == [date(2016, 12, 1)]
    of_2015 = PLAYERS.where(col("debut").part("year") == 2015)
    assert kept(of_2015, col("debut").truncate("quarter")) == [date(2015, m, 1) for m in (1, 4, 7, 10)]
    junes = PLAYERS.where(col("debut").part("month") == 6, col("debut") >= date(2014, 1, 1))
    assert kept(junes, col("debut").truncate("month")) == [date(y, 6, 1) for y in (2014, 2015, 2016)]
    seen = PLAYERS.where(col("seen") >= datetime(2016, 12, 1), col("seen") < datetime(2016, 12, 2))
    assert kept(seen, col("seen").truncate("day")) == [datetime(2016, 12, 1)]
    early = PLAYERS.where(col("seen") < datetime(2010, 1, 1, 2))
    assert kept(early, col("seen").truncate("hour")) == [datetime(2010, 1, 1, 0), datetime(2010, 1, 1, 1)]


def test_a_short_part_of_a_long_range() -> None:
    """There are more days, and more integers, than an answer may have groups; the condition leaves few."""
    with pytest.raises(QueryError, match="more than 10,000"):
        PLAYERS.group_by("debut")
    may = PLAYERS.where(col("debut").is_between(date(2010, 5, 1), date(2010, 5, 31)))
    assert kept(may, "debut") == [date(2010, 5, d) for d in range(1, 32)]
    assert kept(PLAYERS.where(col("big") >= 2**50 - 2), "big") == [2**50 - 2, 2**50 - 1, 2**50]
    assert kept(PLAYERS.where(col("big").is_in([5, 7])), "big") == [5, 7]


def test_through_other_steps() -> None:
    named = PLAYERS.with_columns(y=col("debut").part("year"))
    assert kept(named.where(col("y") >= 2015), "y") == [2015, 2016]
    assert kept(PLAYERS.where(col("debut") >= date(2015, 1, 1)).with_columns(y=col("debut").part("year")), "y") == [
        2015,
        2016,
    ]
    again = PLAYERS.where(col("year") >= 2019).with_columns(year=col("age"))
    assert kept(again, "year") == list(range(111))  # another column now
    shifted = PLAYERS.with_columns(year=col("year") + 1).where(col("year") >= 2020)
    assert kept(shifted, "year") == [2020, 2021]
    visits = Relation(
        Scan(Schema.declare("visits", protect=pv.person("id", max_rows=3), columns={"kind": pv.keys("a", "b")}))
    )
    assert kept(PLAYERS.where(col("year") >= 2019).join(visits.where(col("kind") == "b")), "kind") == ["b"]
    people = PLAYERS.per_person(n=pv.count(), oldest=pv.greatest("age"))
    assert kept(people.where(col("n") >= 10), pv.bins("n", [0, 5, 10, 20])) == ["[10, 20]"]
    assert len(kept(people.where(col("oldest") >= 100), "oldest")) == 111  # as a key it is another value


def test_what_can_not_be_decided_stays() -> None:
    assert left(PLAYERS.where(col("age") > 20).input, (col("year").node,)) is None
    assert left(PLAYERS.where(col("year") > col("age") + 1900).input, (col("country").node,)) is None
    assert kept(PLAYERS.where(col("year") > col("age") + 1900), "year") == list(range(1901, 2021))
    case = pv.when(col("age").is_missing(), 5).otherwise(col("age"))
    assert len(kept(PLAYERS.where(case == 110), case)) == 111


def test_long_chains_of_columns_are_left_alone() -> None:
    of = PLAYERS.with_columns(t=col("age"))
    for _ in range(40):
        of = of.with_columns(t=(col("t") + col("t")).clip(0, 100))
    assert len(kept(of.where(col("t") >= 5), "t")) == 101


@pytest.mark.parametrize(
    "conditions",
    [
        [col("age").is_between(65, 18)],
        [col("age") >= 65, col("age") <= 18],
        [col("country") == "USA", col("country") == "CAN"],
        [(col("country") == "USA") & (col("country") == "CAN") & (col("age") > 3)],
        [col("smoker"), col("smoker") == False],  # noqa: E712
        [col("year") > col("age") + 3000],
        [~(col("age") >= 0)],
        [pv.lit(1) == 2],
        [col("debut") < date(1900, 1, 1), col("debut") > date(1950, 1, 1)],
    ],
)
def test_conditions_that_no_row_meets(conditions: list[Expr]) -> None:
    assert impossible(PLAYERS.where(*conditions).input)
    assert impossible(PLAYERS.where(*conditions).per_person(n=pv.count()).input)
    assert impossible(PLAYERS.where(*conditions).with_columns(age=col("year"), country="USA").input)


def test_conditions_that_some_row_meets() -> None:
    for some in (
        [col("country").is_missing(), col("smoker")],
        [col("age") >= 110, col("income") > 3],
        [(col("country") == "USA") | (col("country") == "CAN")],
        [col("country").is_missing() | (col("country") == "USA"), col("country").is_missing()],
        [col("year") > col("age")],
    ):
        assert impossible(PLAYERS.where(*some).input) == ()
