"""Spark's integers are those of Python: arithmetic near the ends of its types, calendars, floats, and every expression.

Each statement of Spark's takes half a second of a processor, however small it is: so one computes much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import starmap
from math import floor, inf, nan
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import in_spark
from tests.effort import some
from tests.engines import test_expressions as cases
from tests.engines import test_holders as holding
from tests.exactly import holds, lattice, present, squares, total
from tests.spark import SparkServer

import privet as pv
from privet.engines.reference.engine import Reference
from privet.engines.spark import sessions
from privet.engines.spark.addresses import parsed
from privet.engines.spark.dialect import SparkDialect
from privet.engines.spark.engine import Spark
from privet.engines.spark.sessions import Session
from privet.engines.sql.dialect import Dialect
from privet.engines.sql.text import Context
from privet.tables.expressions.nodes import Column
from privet.tables.holders import Held, Holders
from privet.tables.operators import Scan
from privet.tables.statement import PeopleInGroups, Rows, Statement, Unbounded

DIALECT = SparkDialect()
LIMIT = 2**126


@pytest.fixture(scope="module")
def spark(spark_server: SparkServer) -> Iterator[Session]:
    with sessions.reading(parsed(spark_server.address)) as session:
        yield session


@pytest.fixture(scope="module", params=["false", "true"], ids=["null", "ansi"])
def either(request: pytest.FixtureRequest, spark: Session) -> Iterator[Session]:
    """Whether what does not fit is NULL, as in our own sessions, or an error: for the dialect, it must not matter."""
    before = sessions.setting(spark, "spark.sql.ansi.enabled")
    spark.spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield spark
    spark.spark.conf.set("spark.sql.ansi.enabled", before)


def computed(session: Session, columns: list[str], rows: str, parameters: list[str] | None = None) -> list[Any]:
    """These columns, for each row; one is `i`, by which they are put in order."""
    listed = ", ".join(f"CAST({sql} AS STRING)" for sql in columns)
    bound = {f"p{i}": text for i, text in enumerate(parameters or [], 1)}
    found = sessions.run(session, f"SELECT i, array({listed}) FROM ({rows})", bound)
    return [row[1] for row in sorted(found)]


def listed(values: list[str]) -> str:
    """Rows with the columns `i` and `x`; not folded to constants before Spark computes anything."""
    return f"SELECT i, x FROM (SELECT posexplode(array({', '.join(values)})) AS (i, x)) WHERE i < {len(values)}"


# --- integers -------------------------------------------------------------------------------------


def near(*powers: int) -> list[int]:
    """Integers around these, of either sign."""
    some = {sign * (2**power + more) for sign in (1, -1) for power in powers for more in (-3, -2, -1, 0, 1, 2)}
    return [*sorted(n for n in some if abs(n) < LIMIT), 0, 5, -7]


def test_wide_integers_are_divided_exactly(either: Session) -> None:
    chance = Random(1)
    numbers = near(2, 31, 52, 62, 63, 64, 100, 125, 126) + [chance.randrange(-LIMIT, LIMIT) for _ in range(40)]
    numbers = [n for n in numbers if abs(n) < LIMIT]
    by = [1, 2, 3, 7, 10, 2**31, 10**9 + 7, 2**62 - 1, 2**63, 10**19, 2**64 + 13, 10**30, 2**125, 10**37]
    places = [1, 2, 30, 62, 63, 64, 100, 125]
    columns = [DIALECT.floor_divided("x", each, -1, "wide") for each in by]
    columns += [DIALECT.shifted("x", each, "wide") for each in places]
    columns += [DIALECT.divided(DIALECT.absolute("x", "wide"), str(each), "wide") for each in by]
    size = DIALECT.absolute("x", "wide")
    columns += [DIALECT.divided(size, f"nullif(CAST({each} AS DECIMAL(38, 0)) + 0 * i, 0)", "wide") for each in by]
    columns += [DIALECT.try_cast("x", "BIGINT"), f"{size} % 10", DIALECT.negated("x"), "x + 0", "x * 1"]
    expected: list[list[Any]] = [
        [n // each for each in by]
        + [n >> each for each in places]
        + [abs(n) // each for each in by] * 2
        + [n if -(2**63) <= n < 2**63 else None, abs(n) % 10, -n, n, n]
        for n in numbers
    ]
    found = computed(either, columns, listed([DIALECT.integer(n, "wide") for n in numbers]))
    assert [[None if cell is None else int(cell) for cell in row] for row in found] == expected


def test_narrow_integers(either: Session) -> None:
    numbers = [n for n in near(2, 31, 52, 61) if abs(n) < 2**62]
    by, places = [2, 3, 7, 2**31, 10**9 + 7, 2**61], [1, 2, 31, 32, 33, 61]
    columns = [DIALECT.floor_divided("x", each, -(2**62), "narrow") for each in by]
    columns += [DIALECT.shifted("x", each) for each in places] + [DIALECT.low_bits("abs(x)", each) for each in places]
    expected = [
        [n // each for each in by] + [n >> each for each in places] + [abs(n) & ((1 << each) - 1) for each in places]
        for n in numbers
    ]
    found = computed(either, columns, listed([DIALECT.integer(n) for n in numbers]))
    assert [list(map(int, row)) for row in found] == expected


def test_sums_do_not_overflow(either: Session) -> None:
    """What is added in pieces is what Python adds: codes of up to 53 bits, squares, and wide ones of either sign."""
    chance = Random(2)
    for largest in (1, 2**23 - 1, 2**33, 2**53, 2**62):
        numbers = [largest] * 20 + [chance.randrange(largest + 1) for _ in range(20)]
        signs = [n * (-1) ** i for i, n in enumerate(numbers)]
        both = ", ".join(f"({n}L, {m}L)" for n, m in zip(numbers, signs, strict=True))
        sums = [DIALECT.total("a", largest), DIALECT.total("b", largest), DIALECT.total("a"), DIALECT.total("b")]
        found = sessions.run(either, f"SELECT {', '.join(sums)} FROM VALUES {both} AS t(a, b)")
        assert list(map(int, found[0])) == [sum(numbers), sum(signs)] * 2, largest
    wide = [LIMIT // 2 - 1, LIMIT // 2 - 5, -(LIMIT // 2), 7]
    values = ", ".join(f"({DIALECT.integer(n, 'wide')})" for n in wide)
    assert int(sessions.run(either, f"SELECT {DIALECT.total('a')} FROM VALUES {values} AS t(a)")[0][0]) == sum(wide)


def test_spark_itself_divides_and_negates_otherwise(spark: Session) -> None:
    """Its own quotient of decimals is a bigint, which wraps; of a decimal's negative it keeps 34 digits."""
    ours = [DIALECT.floor_divided("x", 3, -1, "wide"), DIALECT.negated("x"), DIALECT.absolute("x", "wide")]
    found = computed(spark, ["x div 3", "-x", "abs(x)", *ours], listed([str(1 - LIMIT)]))[0]
    expected = [(1 - LIMIT) // 3, LIMIT - 1, LIMIT - 1]
    assert [int(each) for each in found[3:]] == expected
    assert all(int(each) != right for each, right in zip(found[:3], expected, strict=True))


# --- floats ---------------------------------------------------------------------------------------


def test_floats_become_integers_exactly(either: Session) -> None:
    chance = Random(3)
    floats = [nan, inf, -inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 5e-324, 1e308, 2.0**52 + 0.5, 0.49999999999999994]
    floats += [sign * (2.0**power + more) for sign in (1, -1) for power in (31, 52, 53, 62) for more in (-1, 0, 1)]
    floats += [-(2.0**63), 2.0**63, 2.0**63 - 1024, 1e19, -1e19, 1e30, -(2.0**126), 2.0**126 + 2.0**80]
    floats += [chance.uniform(-1, 1) * 2.0 ** chance.randrange(-10, 126) for _ in range(60)]
    wide = f"CASE WHEN abs(x) <= {DIALECT.float(2.0**126)} THEN {DIALECT.floored('x', 'x', None, 'wide')} END"
    narrow = f"CASE WHEN abs(x) < {DIALECT.float(2.0**62)} THEN {DIALECT.floored('x', 'x', None, 'narrow')} END"
    columns = [wide, narrow, DIALECT.whole("x"), DIALECT.is_whole("x"), DIALECT.is_nan("x")]

    def expected(x: float) -> list[str | None]:
        finite = x == x and abs(x) != inf
        return [
            str(floor(x)) if finite and abs(x) <= 2.0**126 else None,
            str(floor(x)) if finite and abs(x) < 2.0**62 else None,
            str(round(x)) if finite and -(2.0**63) <= x < 2.0**63 else None,
            str(not finite or x == floor(x)).lower(),
            str(x != x).lower(),
        ]

    special = {"nan": "CAST('NaN' AS DOUBLE)", "inf": "CAST('inf' AS DOUBLE)", "-inf": "CAST('-inf' AS DOUBLE)"}
    values = [special.get(repr(x)) or ("(-0e0D)" if repr(x) == "-0.0" else DIALECT.float(x)) for x in floats]
    found = computed(either, columns, listed([*values, "CAST(NULL AS DOUBLE)"]))
    assert found == [*map(expected, floats), [None] * 5]


# --- dates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_the_calendar_is_that_of_python(spark: Session, zone: str, effort: int) -> None:
    """Every day from the year 1 to 9999 (every 97th, and all of some years), as a date and as a timestamp."""
    spark.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        last = date(9999, 12, 31).toordinal()
        some = {*range(1, last + 1, 97 if effort == 1 else 1), *range(577_000, 577_800), *range(719_000, 719_900), last}
        ends = [date(y, 1, 1).toordinal() + k for y in (1582, 1900, 1970, 2000, 2024) for k in (-1, 0, 58, 59, 60)]
        days = sorted({*some, *ends})
        parts = ("year", "quarter", "month", "day", "weekday", "hour")
        periods = ("year", "quarter", "month", "week", "day")
        first, instant = date(1, 1, 1), DIALECT.instant(datetime(1, 1, 1))
        columns = [DIALECT.part(part, of) for of in ("x", "m") for part in parts]  # type: ignore[arg-type]
        columns += [DIALECT.truncated(each, "x", "date") for each in periods]  # type: ignore[arg-type]
        columns += [DIALECT.truncated(each, "m", "time") for each in (*periods, "hour")]  # type: ignore[arg-type]
        columns += [DIALECT.periods(each, DIALECT.moment(first), "x") for each in periods]  # type: ignore[arg-type]
        columns += [DIALECT.days("x", DIALECT.moment(date(2000, 2, 29))), DIALECT.in_utc("z", f"z >= {instant}")]
        columns += [f"m BETWEEN {DIALECT.moment(datetime(1970, 1, 1))} AND {DIALECT.moment(datetime(2000, 1, 1, 13))}"]
        moments = "timestampadd(HOUR, 13, CAST(x AS TIMESTAMP_NTZ)) AS m"
        zoned = "timestamp_micros((unix_date(x) * 24L + 13) * 3600000000L) AS z"
        dates = "SELECT date_from_unix_date(n) AS x, n AS i FROM (SELECT explode(from_json(:p1, 'array<int>')) AS n)"
        rows = f"SELECT *, {moments}, {zoned} FROM ({dates})"
        epoch = date(1970, 1, 1).toordinal()
        found = computed(spark, columns, rows, [str([day - epoch for day in days])])
        for day, row in zip(days, found, strict=True):
            assert row == calendar(date.fromordinal(day)), day
    finally:
        spark.spark.conf.set("spark.sql.session.timeZone", "UTC")


def calendar(day: date) -> list[str]:
    quarter = (day.month - 1) // 3
    starts = [
        day.replace(month=1, day=1),
        day.replace(month=3 * quarter + 1, day=1),
        day.replace(day=1),
        day - timedelta(days=day.weekday()),
        day,
    ]
    parts = [day.year, quarter + 1, day.month, day.day, day.weekday() + 1]
    since = day.toordinal() - 1
    numbers = [day.year - 1, (day.year - 1) * 4 + quarter, (day.year - 1) * 12 + day.month - 1, since // 7, since]
    at = f"{day} 13:00:00"
    return [
        *map(str, [*parts, 0, *parts, 13]),
        *map(str, starts),
        *(f"{start} 00:00:00" for start in starts),
        at,
        *map(str, numbers),
        str((day - date(2000, 2, 29)).days),
        at,
        str(date(1970, 1, 1) <= day <= date(2000, 1, 1)).lower(),
    ]


# --- texts ----------------------------------------------------------------------------------------


def test_texts_are_found_by_their_bytes(either: Session) -> None:
    texts = ["", "a", "A", "a ", "á", "a\u0301", "ß", "ss", "x'y", 'x"y', "\\n", "\n", "\x00", "💥", "日本", "[", "{}"]
    texts += [f"v{i}" for i in range(200)]
    context = Context(DIALECT)
    columns = [DIALECT.place("x", tuple(texts), context), DIALECT.place("x", tuple(texts[:8]), context)]
    columns += [DIALECT.is_listed("x", tuple(texts[3:40]), context)]
    columns += [DIALECT.starts_with("x", context.bind("a"))]
    columns += [DIALECT.is_short("x", 4)]
    asked = [*texts, "other", "v1 ", "V1", "v 1", "\u202e", "\u00a0"]
    values = [context.bind(text) for text in asked]
    found = computed(either, columns, listed([*values, "CAST(NULL AS STRING)"]), context.parameters)
    for text, row in zip(asked, found, strict=False):
        place = texts.index(text) if text in texts else None
        assert row == [
            None if place is None else str(place),
            str(place) if place is not None and place < 8 else None,
            str(place is not None and 3 <= place < 40).lower(),
            str(text.startswith("a")).lower(),
            str(len(text.encode()) <= 4).lower(),
        ], text
    assert found[-1] == [None, None, "false", None, None]


def test_what_is_not_utf_8_is_no_key(spark: Session) -> None:
    can_be_sent = DIALECT.can_be_sent("CAST(x AS STRING)")
    assert can_be_sent is not None
    assert computed(spark, [can_be_sent], listed(["X'ff00'", "X'61'"])) == [["false"], ["true"]]


# --- expressions ----------------------------------------------------------------------------------


def row(chance: Random) -> dict[str, Any]:
    def number() -> float | None:
        special = [None, 0.0, -0.0, 0.5, 1.5, 2.5, 5e-324, 1e308, inf, -inf, nan]
        return chance.choice([*special, chance.uniform(-12, 110), float(chance.randrange(-12, 110))])

    def whole() -> int | None:
        ends = [7, 3, 4, 2**60, 2**60 + 1, 2**60 + 2, 2**61, 2**61 + 12345, 2**61 + 2**40, 2**63 - 1, -(2**63)]
        return chance.choice([None, *ends])

    texts = [None, "north", "south", "a'b", "", "else", "North", "northern", "ñ", "💥", "v7", "\x00"]
    days = [None, date(1, 1, 1), date(9999, 12, 31), *(date(2023, 12, 1) + timedelta(d) for d in range(0, 120, 3))]
    times = [None, datetime(1, 1, 1), *(datetime(2023, 12, 31) + timedelta(minutes=m) for m in range(0, 5000, 47))]
    fine = number()
    return {
        **{name: number() for name in ("x", "n", "z", "j")},
        "y": fine if fine is None or abs(fine) > 1e38 or fine != fine else cases._single(fine),
        **{name: whole() for name in ("big", "i")},
        **{name: chance.choice([None, True, False]) for name in ("b", "f")},
        **{name: chance.choice(texts) for name in ("k", "t")},
        "d": chance.choice(days),
        "m": chance.choice(times),
    }


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    chance = Random(4)
    return [row(chance) for _ in range(120)]


@pytest.fixture(scope="module")
def engine(spark_server: SparkServer, rows: list[dict[str, Any]]) -> Iterator[Spark]:
    with in_spark.at(spark_server):
        source = in_spark.stored(cases.SCHEMA, pa.Table.from_pylist(rows, cases.ARROW))
        with Spark({"t": (cases.SCHEMA, source)}, salt=b"salt") as made:
            yield made


def asked(keys: tuple[Any, ...], *tallies: Any) -> Statement:
    return Statement(Scan(cases.SCHEMA), keys, Unbounded(), tallies)


def test_numbers_and_conditions_are_what_python_says(engine: Spark, rows: list[dict[str, Any]]) -> None:
    tallies: list[tuple[str, Any, int]] = []
    for expr in cases.NUMBERS:
        bounds = lattice(expr.node, cases.TYPES)
        codes = [cases.code(v, bounds) for v in (cases.of(expr.node, each) for each in rows) if v is not None]
        on = bounds.lower, bounds.step, bounds.width
        tallies += [(f"total {expr!r}", total(expr.node, *on), sum(codes))]
        tallies += [(f"squares {expr!r}", squares(expr.node, *on), sum(x * x for x in codes))]
    for expr in cases.CONDITIONS:
        values = [cases.of(expr.node, each) for each in rows]
        tallies += [(f"holds {expr!r}", holds(expr.node), values.count(True))]
        tallies += [(f"present {expr!r}", present(expr.node), len(rows) - values.count(None))]
    wrong = []
    for first in range(0, len(tallies), 30):  # one of all of them would be too long for Java
        some = tallies[first : first + 30]
        found = engine.answer(asked((), *(tally for _, tally, _ in some)))[0]
        wrong += [(name, a, b) for a, (name, _, b) in zip(found, some, strict=True) if a != b]
    assert wrong == []


@pytest.mark.parametrize("key", some(cases.KEYS, every=2), ids=repr)
def test_groups_are_what_python_says(engine: Spark, rows: list[dict[str, Any]], key: Any) -> None:
    values = [cases.of(key.node, each, key=True) for each in rows]
    domain: Any = key.node.type(cases.TYPES)
    expected = [[sum(v is not None and v == each for v in values)] for each in domain.keys()]  # noqa: SIM118
    assert engine.answer(asked((key.node,), Rows())) == expected


# --- holders of keys --------------------------------------------------------------------------------


def test_who_holds_which_key(spark_server: SparkServer) -> None:
    """Keys that nobody listed: each person's, and without a cap that chooses, those of the reference."""
    chance = Random(5)
    some_rows = [
        (chance.randrange(9), chance.choice(holding.TEXTS), chance.choice(holding.NUMBERS)) for _ in range(150)
    ]
    table = holding.table(some_rows)
    keys = tuple(map(Column, ("k", "n")))
    with in_spark.at(spark_server), Reference({"t": (table.schema, table.source)}, salt=b"salt") as reference:
        source = in_spark.moved(table).source
        with Spark({"t": (table.schema, source)}, salt=b"salt") as engine:
            for most, listed_ in ((200, keys), (200, keys[:1]), (3, keys[:1])):
                statement = Holders(table.relation.input, listed_, PeopleInGroups(most))
                assert engine.supports(statement) is None
                found, expected = engine.holders(statement), reference.holders(statement)
                if most == 200:
                    assert found == expected
                assert found
                everyone = reference.holders(Holders(table.relation.input, listed_, PeopleInGroups(200)))
                assert people(found) <= people(everyone)  # some of a person's three may be texts that can't appear


class Careless(SparkDialect):
    """What is right for other databases."""

    once = Dialect.once


def test_the_rows_of_a_person_are_moved_once(spark_server: SparkServer) -> None:
    """Spark would move them by person and text, and then again by person."""
    table = holding.table([(1, "a", 0), (1, "b", 0), (1, "a", 0), (2, "a", 0), (2, "\n", 0)])
    with in_spark.at(spark_server):
        source = in_spark.moved(table).source
        with Spark({"t": (table.schema, source)}, salt=b"salt") as engine, engine._used() as session:
            for weighed, expected in (
                (True, [(("a",), 2, 2), (("b",), 2, 1)]),
                (False, [(("a",), 2, 2), (("b",), 2, 1)]),
            ):
                statement = Holders(table.relation.input, (Column("k"),), PeopleInGroups(2), weighed)
                for dialect in (Careless(), DIALECT):
                    engine._dialect = dialect
                    sql = engine.compile_holders(statement).sql
                    plan = str(sessions.run(session, f"EXPLAIN {sql}")[0][0])  # from the top down
                    assert plan.count("Exchange hashpartitioning(u") == (1 if dialect is DIALECT else 2)
                assert engine.holders(statement) == list(starmap(Held, expected))


def test_texts_that_are_not_utf_8_stay_where_they_are(spark_server: SparkServer, tmp_path: Path) -> None:
    """Spark sends results as Arrow, where they are an error: one that a row would cause."""
    data = pa.table({"who": [1, 2, 2, 3], "k": pa.array([b"a", b"\xff\xfe", b"a", b"\xff\xfe"], pa.binary())})
    # a text column, without a check of its bytes
    texts = pa.StringArray.from_buffers(4, *data["k"].combine_chunks().buffers()[1:])
    path = tmp_path / "odd.parquet"
    pq.write_table(data.set_column(1, "k", texts), path)
    table = pv.table(
        "t", f"{spark_server.address}#{path}", protect=pv.person("who", max_rows=5), columns={"k": pv.text()}
    )
    with Spark({"t": (table.schema, table.source)}, salt=b"salt") as engine:
        for weighed in (True, False):
            statement = Holders(table.relation.input, (Column("k"),), PeopleInGroups(2), weighed)
            assert people(engine.holders(statement)) == {("a",): 2}


def people(found: list[Held]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for each in found:
        counts[each.key] += each.people
    return counts
