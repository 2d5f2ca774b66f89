"""Typing rules by brute force: whatever a row holds, the value of an expression is in the range of its type."""

from __future__ import annotations

import time
from dataclasses import FrozenInstanceError, fields
from datetime import date, datetime
from fractions import Fraction
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.rows import TYPES, people, rows, value

import privet as pv
from privet.errors import QueryError, UserError
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.fluent import Expr
from privet.tables.expressions.rendering import show
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type

col = e.Column
loose: Any = pv
"""For what a type checker would refuse as well."""

small = st.fractions(-4, 9, max_denominator=4)


def is_of(kind: Type, x: Any) -> bool:
    """Whether a value, or None, may come out of an expression of this type."""
    if x is None:
        return kind.missing
    match kind:
        case NumberType():
            x = Fraction(x) if isinstance(x, bool) else x  # a condition among numbers is 0 or 1
            near = kind.unit if kind.rounded else 0  # the ends of a range are rounded; these values are not
            inside = kind.wide or kind.lower - near <= x <= kind.upper + near
            on_steps = kind.step is None or (x - kind.lower) % kind.step == 0 or x == kind.upper
            return isinstance(x, Fraction) and inside and on_steps and (not kind.integer or x.denominator == 1)
        case BooleanType():
            return isinstance(x, bool)
        case KeyType():
            return (0 <= x < len(kind.values)) if isinstance(x, int) and kind.textual else x in kind.keys()  # noqa: SIM118
        case TextType():
            return isinstance(x, str)
        case TimeType():
            cut = kind.unit is None or x == TIMES[kind.unit](x)
            return isinstance(x, datetime) == kind.timed and kind.first <= x <= kind.last and cut


def _start_of_week(x: date) -> date:
    monday = date.fromordinal(x.toordinal() - x.weekday())
    return datetime(monday.year, monday.month, monday.day) if isinstance(x, datetime) else monday


def _midnight(x: Any, **other: int) -> Any:
    at = {"hour": 0, "minute": 0, "second": 0, "microsecond": 0} if isinstance(x, datetime) else {}
    return x.replace(**at, **other)


TIMES: dict[str, Any] = {
    "year": lambda x: _midnight(x, month=1, day=1),
    "quarter": lambda x: _midnight(x, month=(1, 1, 1, 4, 4, 4, 7, 7, 7, 10, 10, 10)[x.month - 1], day=1),
    "month": lambda x: _midnight(x, day=1),
    "week": _start_of_week,
    "day": _midnight,
    "hour": lambda x: x.replace(minute=0, second=0, microsecond=0),
}


# --- expressions of every kind --------------------------------------------------------------------

numeric_leaves: st.SearchStrategy[e.Node] = st.one_of(
    st.sampled_from([col("a"), col("b"), col("c"), col("z"), col("f"), col("g")]), small.map(e.Constant)
)
times: st.SearchStrategy[e.Node] = st.one_of(
    st.just(col("born")),
    st.sampled_from(["year", "quarter", "month", "week", "day"]).map(lambda u: e.Truncate(col("born"), u)),  # type: ignore[arg-type]
    st.dates(date(1999, 1, 1), date(2002, 1, 1)).map(e.Constant),
)
stamps: st.SearchStrategy[e.Node] = st.one_of(
    st.just(col("seen")),
    st.sampled_from(["year", "quarter", "month", "week", "day", "hour"]).map(lambda u: e.Truncate(col("seen"), u)),  # type: ignore[arg-type]
)
texts: st.SearchStrategy[e.Node] = st.sampled_from([col("region"), col("note"), e.Constant("north"), e.Constant("a")])
edges = st.lists(small, min_size=2, max_size=5, unique=True).map(lambda x: tuple(sorted(x)))


def ordered(a: Fraction, b: Fraction) -> tuple[Fraction, Fraction]:
    return (a, b) if a < b else (b, a + 1)


def numbers_from(numbers: st.SearchStrategy[Any], conditions: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(e.Arithmetic, st.sampled_from("+-*/"), numbers, numbers),
        st.builds(e.Rounded, st.sampled_from(["floor", "ceil", "abs"]), numbers),
        st.builds(lambda of, a, b: e.Clip(of, *ordered(a, b)), numbers, small, small),
        st.builds(
            e.Case,
            st.lists(st.tuples(conditions, numbers), min_size=1, max_size=2).map(tuple),
            st.one_of(st.none(), numbers),
        ),
        st.builds(e.Arithmetic, st.just("-"), times, times),
        st.builds(e.DatePart, times, st.sampled_from(["year", "quarter", "month", "day", "weekday"])),
        st.builds(e.DatePart, stamps, st.sampled_from(["year", "quarter", "month", "day", "weekday", "hour"])),
        st.builds(e.Beyond, st.sampled_from([col("a"), col("b"), col("c"), col("z"), col("born"), col("seen")])),
    )


def conditions_from(numbers: st.SearchStrategy[Any], conditions: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    order = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds(e.Compare, order, numbers, numbers),
        st.builds(e.Compare, order, times, times),
        st.builds(e.Compare, st.sampled_from(["==", "!="]), texts, texts),
        st.builds(e.Logic, st.sampled_from(["and", "or"]), st.lists(conditions, min_size=2, max_size=3).map(tuple)),
        st.builds(e.Not, conditions),
        st.builds(e.IsIn, numbers, st.lists(small.map(e.Constant), min_size=1, max_size=3).map(tuple)),
        st.builds(e.IsIn, texts, st.lists(texts.filter(lambda t: isinstance(t, e.Constant)), min_size=1).map(tuple)),
        st.builds(e.IsMissing, st.one_of(numbers, texts, times, conditions)),
        st.builds(e.StartsWith, texts, st.sampled_from(["", "a", "no", "b"])),
    )


def levels(depth: int) -> tuple[st.SearchStrategy[Any], st.SearchStrategy[Any]]:
    """Numbers and conditions up to this depth."""
    numbers: st.SearchStrategy[Any] = numeric_leaves
    conditions: st.SearchStrategy[Any] = st.sampled_from([col("f"), col("g"), e.Constant(True)])
    for _ in range(depth):
        deeper = st.one_of(numbers, numbers_from(numbers, conditions))
        conditions = st.one_of(conditions, conditions_from(numbers, conditions))
        numbers = deeper
    return numbers, conditions


NUMBERS, CONDITIONS = levels(3)
_, SIMPLE = levels(1)
EXPRESSIONS: st.SearchStrategy[e.Node] = st.one_of(
    NUMBERS,
    CONDITIONS,
    st.builds(e.Bin, NUMBERS, edges),
    *(
        st.builds(
            e.Case,
            st.lists(st.tuples(SIMPLE, kind), min_size=1, max_size=2).map(tuple),
            st.one_of(st.none(), kind),
        )
        for kind in (texts, times, stamps)
    ),
)


@settings(max_examples=150)
@given(EXPRESSIONS, st.lists(rows, min_size=1, max_size=6))
def test_every_value_is_in_the_range_of_its_type(node: e.Node, some: list[Any]) -> None:
    try:
        kind = node.type(TYPES)
    except QueryError:
        return  # an ill-typed one, or clip to nothing: refused before anything is read
    for row in some:
        assert is_of(kind, value(node, row)), (show(node), kind, row, value(node, row))


def corner_rows() -> list[dict[str, Any]]:
    """Every column at its ends, and missing where it may be."""
    ends: dict[str, list[Any]] = {
        "a": [Fraction(-3), Fraction(0), Fraction(7), None],
        "b": [Fraction(-2), Fraction(0), Fraction(5), None],
        "c": [Fraction(1), Fraction(4)],
        "f": [False, True, None],
    }
    return [dict(zip(ends, found, strict=True)) for found in product(*ends.values())]


@pytest.mark.parametrize("operator", ["+", "-", "*", "/"])
@pytest.mark.parametrize("right", ["a", "b", "c", "f"])
@pytest.mark.parametrize("left", ["a", "b", "c", "f"])
def test_ranges_of_arithmetic_are_tight(operator: Any, left: str, right: str) -> None:
    """The ends of the range are reached, where the two sides are apart."""
    node = e.Arithmetic(operator, col(left), col(right))
    kind = node.type(TYPES)
    assert isinstance(kind, NumberType)
    found = [value(node, row) for row in corner_rows()]
    numbers = [x for x in found if x is not None]
    assert all(is_of(kind, x) for x in found)
    if left != right and not kind.wide:
        assert (min(numbers), max(numbers)) == (kind.lower, kind.upper)
        assert (None in found) == kind.missing or operator == "/"
    assert kind.integer == (operator != "/" and "b" not in (left, right))
    assert kind.wide == (operator == "/" and right != "c"), "a divisor that can be 0 has no range"


@pytest.mark.parametrize("function", ["floor", "ceil", "abs"])
@pytest.mark.parametrize("name", ["a", "b", "c", "f", "z"])
def test_ranges_of_rounding_are_tight(function: Any, name: str) -> None:
    node = e.Rounded(function, col(name))
    kind = node.type(TYPES)
    assert isinstance(kind, NumberType)
    grid: Any = {
        "a": range(-3, 8), "b": [Fraction(k, 4) for k in range(-8, 21)], "c": range(1, 5), "f": range(2),
        "z": [Fraction(k, 12) for k in range(4, 43)],
    }[name]  # fmt: skip
    found = [value(node, {name: Fraction(x)}) for x in grid]
    near = kind.unit if kind.rounded else 0  # the ends of a range are rounded as its values are
    assert abs(min(found) - kind.lower) <= near
    assert abs(max(found) - kind.upper) <= near
    assert kind.integer == all(x.denominator == 1 for x in found)


def test_integers_beyond_53_bits_stay_integers() -> None:
    wide: dict[str, Type] = {"x": NumberType(Fraction(0), Fraction(2**30), integer=True)}
    beyond = e.Arithmetic("*", col("x"), e.Constant(Fraction(2**40 + 1))).type(wide)
    assert isinstance(beyond, NumberType)
    assert beyond.integer
    assert (beyond.unit, beyond.least, beyond.most) == (Fraction(2**40 + 1), 0, 2**30)


def test_numbers_that_could_be_too_large_are_refused() -> None:
    huge: dict[str, Type] = {"x": NumberType(Fraction(0), Fraction(2**800))}
    with pytest.raises(QueryError, match=r"too large or too precise\. Clip its inputs.*clip\(0,"):
        e.Arithmetic("*", col("x"), col("x")).type(huge)
    tiny = NumberType(Fraction(1, 2**600), Fraction(1, 2**599))
    with pytest.raises(QueryError, match="too large or too precise"):
        e.Arithmetic("/", col("x"), col("y")).type({**huge, "y": tiny})


# --- missing values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "missing"),
    [
        (pv.col("c") + 1, False),
        (pv.col("c") + pv.col("a"), True),
        (pv.col("c") / 2, False),
        (pv.col("c") >= 2, False),
        (pv.col("a") >= 2, True),
        (pv.col("a").is_missing(), False),
        ((pv.col("c") >= 2) & pv.col("g"), False),
        ((pv.col("c") >= 2) & pv.col("f"), True),
        (~pv.col("g"), False),
        (pv.col("c").is_in([1, 2]), False),
        (pv.col("region").is_in(["north"]), True),
        (pv.when(pv.col("a") > 1, 1).otherwise(0), False),
        (pv.when(pv.col("a") > 1, 1).otherwise(), True),
        (pv.when(pv.col("a") > 1, pv.col("a")).otherwise(0), True),
        (pv.bins("c", [1, 2, 4]), False),
        (pv.bins("c", [1, 2, 3]), True),
        (pv.bins("a", [-3, 7]), True),
        (abs(pv.col("c")), False),
        (pv.col("c").clip(2, 3), False),
        (pv.lit("north") == pv.col("region"), True),
        (pv.lit(3), False),
        (pv.col("born") - pv.lit(date(2000, 1, 1)), True),
        (pv.lit(date(2000, 1, 5)) - pv.lit(date(2000, 1, 1)), False),
    ],
    ids=str,
)
def test_what_can_be_missing(expression: Expr, missing: bool) -> None:
    assert expression.node.type(TYPES).missing is missing


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pv.col("age") + 1, r"there is no column 'age'. The columns are: a, b, c"),
        (lambda: pv.col("region") + 1, r"\+ needs a number, but this is one of 3 keys. Numbers and"),
        (lambda: pv.col("note") * 2, r"\* needs a number, but this is a text"),
        (lambda: pv.col("born") + pv.col("born"), r"\+ needs a number, but this is a date"),
        (lambda: pv.col("seen") - pv.col("seen"), r"only dates can be subtracted"),
        (lambda: pv.col("a") == "north", r"can't be compared.*pv\.col\(\"a\"\) == 2"),
        (lambda: pv.col("region") < "north", r"can't be compared by order"),
        (lambda: pv.col("f") < pv.col("g"), r"can't be compared by order"),
        (lambda: pv.col("f") == 1, r"can't be compared"),
        (lambda: pv.col("grade") == pv.col("b"), r"can't be compared"),
        (lambda: pv.col("grade") == pv.col("region"), r"can't be compared"),
        (lambda: pv.col("born") >= "2000-01-01", r"Write: datetime.date\(2000, 1, 1\)"),
        (lambda: pv.col("a") & pv.col("f"), r"and needs a condition, but this is an integer in -3\.\.7"),
        (lambda: ~pv.col("a"), r"not needs a condition"),
        (lambda: pv.when(pv.col("a"), 1).otherwise(0), r"when needs a condition"),
        (lambda: pv.when(pv.col("f"), 1).otherwise("no"), r"the values of a case must be all numbers, text"),
        (lambda: pv.when(pv.col("f"), pv.col("born")).otherwise(pv.col("seen")), r"must be all numbers, text"),
        (lambda: pv.when(pv.col("f"), pv.col("grade")).otherwise(1), r"must be all numbers, text"),
        (lambda: pv.col("a").is_in([]), r"a list must have 1 to 10,000 values"),
        (lambda: pv.col("a").is_in(range(10_001)), r"a list must have 1 to 10,000 values"),
        (lambda: pv.col("a").is_in(["x"]), r"is never equal to 'x'"),
        (lambda: pv.col("a").starts_with("x"), r"a prefix can be compared only with text"),
        (lambda: pv.col("grade").starts_with("1"), r"a prefix can be compared only with text, but this is"),
        (lambda: pv.col("a").part("year"), r"year needs a date or a timestamp, but this is an integer"),
        (lambda: pv.col("born").part("hour"), r"a date has no hour; only a timestamp has one"),
        (lambda: pv.col("born").truncate("hour"), r"a date has no hour; only a timestamp has one"),
        (lambda: pv.col("a").truncate("day"), r"truncate needs a date or a timestamp"),
        (lambda: pv.col("a").clip(8, 9), r"a clip to 8\.\.9 leaves nothing of -3\.\.7. Take bounds"),
        (lambda: pv.col("a").clip(2, 2), r"clip needs a lower bound below the upper one, not 2 and 2. .*clip\(2, 3\)"),
        (lambda: pv.col("a").clip(3, 2), r"clip needs a lower bound below the upper one, not 3 and 2. .*clip\(2, 3\)"),
        (lambda: pv.col("region").clip(0, 1), r"clip needs a number"),
        (lambda: pv.bins("region", [0, 1]), r"bins needs a number"),
        (
            lambda: pv.bins("a", [1, Fraction(10**7 + 1, 10**7), Fraction(10**7 + 2, 10**7), 2]),
            r"two of these bins look",
        ),
    ],
)
def test_ill_typed_expressions(build: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        build().node.type(TYPES)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: bool(pv.col("a") > 1), r"no truth value in Python. Combine conditions with &, \| and ~"),
        (lambda: 1 < pv.col("a") < 3, r"no truth value in Python"),
        (lambda: pv.col("a") + None, r"NoneType can't be used in an expression.*is_null\(\)"),
        (lambda: pv.col("a") == [1], r"list can't be used"),
        (lambda: pv.col("a") == float("nan"), r"must be a number, not nan"),
        (lambda: pv.col("a") < float("inf"), r"must be"),
        (lambda: pv.col("a") < 10**300, r"too large or too small"),
        (lambda: pv.col("a") < Fraction(1, 10**300), r"too large or too small"),
        (lambda: pv.col("a") < pv.when(pv.col("f"), 1), r"a case needs a final value.*otherwise\(0\)"),
        (lambda: pv.col("a").is_in("north"), r"is_in needs a list"),
        (lambda: loose.col("a").is_in(3), r"is_in needs a list"),
        (lambda: loose.col("born").part("century"), r"a date has no part 'century'. The parts are: year"),
        (lambda: loose.col("born").truncate("century"), r"can't be truncated to 'century'. The units are: year"),
        (lambda: pv.col("born") > datetime.fromisoformat("2000-01-01T00:00:00+01:00"), r"in UTC, without a time zone"),
        (lambda: pv.col("x\x00"), r"text of at most 10,000 characters without NUL"),
        (lambda: pv.col("\ud800"), r"text of at most 10,000 characters without NUL"),
        (lambda: loose.col(3), r"this needs text"),
        (lambda: pv.lit("x" * 10_001), r"this needs text"),
        (lambda: pv.bins("a", [1]), r"at least two edges"),
        (lambda: pv.bins("a", "12"), r"at least two edges"),
        (lambda: loose.bins("a", 5), r"at least two edges"),
        (lambda: pv.bins("a", range(1002)), r"at most 1,000 bins"),
        (lambda: pv.bins("a", [0, 1, 1]), r"the edges of bins must be in increasing order"),
        (lambda: loose.bins(7, [0, 1]), r"the name of a column or an expression, not 7"),
        (lambda: pv.col("a").clip(float("nan"), 1), r"lower must be a number"),
        (lambda: loose.sum(3), r"the name of a column or an expression"),
        (lambda: pv.sum("a") / 3, r"can be divided only by another count or sum"),
    ],
)
def test_what_can_not_be_written(build: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build()


def test_a_condition_is_no_dictionary_key() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(pv.col("a"))


# --- what is what -----------------------------------------------------------------------------------


def test_every_node_is_in_the_search_above() -> None:
    """A new kind of expression must join `EXPRESSIONS`, `value` and the tests of missing values."""
    assert {kind.__name__ for kind in get_args(e.Node)} == {
        "Column", "Constant", "Arithmetic", "Rounded", "Clip", "Compare", "Logic", "Not", "IsIn", "IsMissing",
        "StartsWith", "Case", "DatePart", "Truncate", "Bin", "Beyond",
        "Which",  # tests/engines/test_holders.py
        "OfAnswer",  # of released numbers: tests/planner/test_computed.py
        "Grouping",  # of the levels of an answer: tests/planner/test_computed_levels.py
    }  # fmt: skip


def columns_of(node: e.Node) -> set[str]:
    """The columns that are read, by way of `parts`."""
    own = {node.name} if isinstance(node, e.Column) else set[str]()
    return own.union(*(columns_of(part) for part in trees.parts(node)))


@given(EXPRESSIONS)
def test_parts_are_all_that_is_read(node: e.Node) -> None:
    """The columns that an expression reads are the ones without which it can't be evaluated or typed."""
    read = columns_of(node)
    assert read <= set(TYPES)
    only = {name: TYPES[name] for name in read}
    try:
        node.type(TYPES)
    except QueryError:
        return
    assert node.type(only) == node.type(TYPES)
    for name in read:
        with pytest.raises(QueryError, match="there is no column"):
            node.type({other: TYPES[other] for other in TYPES if other != name})


@given(EXPRESSIONS)
def test_nodes_are_values(node: e.Node) -> None:
    import copy

    twin = copy.deepcopy(node)
    assert twin == node
    assert hash(twin) == hash(node)
    first = fields(node)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(node, first, "other")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pv.col("a") + 1, 1 + pv.col("a")),
        (pv.col("a") - 1, 1 - pv.col("a")),
        (pv.col("a") / 2, 2 / pv.col("a")),
        (pv.col("a") < 1, pv.col("a") <= 1),
        (pv.lit(1), pv.lit(True)),
        (pv.lit("1"), pv.lit(1)),
        (pv.lit(date(2000, 1, 1)), pv.lit(datetime(2000, 1, 1))),
    ],
    ids=str,
)
def test_what_differs_is_not_equal(one: Any, other: Any) -> None:
    assert one.node != other.node


def test_a_float_means_its_decimal() -> None:
    assert (pv.col("b") > 0.1).node == (pv.col("b") > Fraction(1, 10)).node == (pv.col("b") > Fraction("0.1")).node


# --- size -------------------------------------------------------------------------------------------


def doubled(times: int) -> Expr:
    """Few objects, but 2^times parts: an expression that shares its halves."""
    made = pv.col("c")
    for _ in range(times):
        made = (made + made).clip(0, 5)
    return made


def nested(depth: int) -> Expr:
    made = pv.col("c")
    for _ in range(depth):
        made = made + 1
    return made


@pytest.mark.parametrize("large", [lambda: doubled(60), lambda: nested(900), lambda: nested(20_000)])
@pytest.mark.parametrize(
    "use",
    [
        lambda x: people().agg(s=pv.sum(x)),
        lambda x: people().agg(s=pv.count(x)),
        lambda x: people().agg(s=pv.sum("c") / pv.sum(x)),
        lambda x: people().agg(s=pv.histogram(x, [0, 1])),
        lambda x: people().where(x > 1),
        lambda x: people().with_columns(d=x),
        lambda x: people().group_by(k=x > 1),
        lambda x: people().group_by(k=pv.when(x > 1, "a").otherwise("b")),
        lambda x: people(protect=pv.person("id", max_rows=2)).per_person(t=pv.mean(x)),
    ],
)
def test_what_is_too_large_to_look_at_is_refused_at_once(large: Any, use: Any) -> None:
    begin = time.process_time()
    with pytest.raises(QueryError, match="an expression can have at most"):
        use(large())
    assert time.process_time() - begin < 5


def test_what_is_long_is_allowed() -> None:
    people().where(nested(20) > 1, pv.col("a").is_in(range(-3, 3)), (pv.col("c") + pv.col("a")) * nested(5) > 2).agg(
        n=pv.count()
    )
