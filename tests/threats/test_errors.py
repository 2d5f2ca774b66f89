"""T17: whatever a row holds, a question has the same outcome, the same text, the same price and the same shape.

Every node, function, part and unit that SQL may have here stands in one of the statements below: a test counts them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp
from tests.effort import some

import privet as pv
from privet.engines.duckdb.attaching import attach
from privet.errors import NoAnswer, NoBounds, QueryError
from privet.ledger import Ledger, memory_ledger
from privet.planner import noise as planner_noise
from privet.planner.ranks import ChosenRanks
from privet.requests import queries
from privet.sql import expressions, grammar, hints, tokens
from privet.sql.names import Catalogue
from privet.sql.source import SqlText
from privet.tables.relation import Table
from privet.tables.schema import Column
from privet.tables.types import UNITS

# --- the tables ---------------------------------------------------------------------------------------

PEOPLE: dict[str, tuple[str, Column | None, str]] = {  # type in the file, declaration, a harmless value
    "person_id": ("VARCHAR", None, "'poison'"),
    "region": ("VARCHAR", pv.keys("north", "south", other="elsewhere"), "'north'"),
    "zone": ("BIGINT", pv.keys(1, 2, 3), "2"),
    "age": ("BIGINT", pv.integer(0, 110), "40"),
    "hours": ("HUGEINT", pv.integer(1, 60, required=True), "8"),
    "income": ("DOUBLE", pv.number(0, 200_000), "1000.5"),
    "rate": ("FLOAT", pv.number(-0.5, 0.5), "0.25"),
    "share": ("DECIMAL(38,37)", pv.number(-1, 1), "0.5"),
    "smoker": ("BOOLEAN", pv.boolean(), "true"),
    "name": ("VARCHAR", pv.text(), "'Ann'"),
    "day": ("DATE", pv.date("2024-01-01", "2025-12-31"), "'2025-03-04'"),
    "born": ("DATE", pv.date("1950-01-01", "1950-12-31"), "'1950-06-07'"),
    "seen": ("TIMESTAMP", pv.timestamp("2025-01-01", "2025-01-02T23:59:59"), "'2025-01-01 07:08:09'"),
}
VISITS: dict[str, tuple[str, Column | None, str]] = {
    "person_id": ("VARCHAR", None, "'poison'"),
    "amount": ("DOUBLE", pv.number(0, 2_000), "10"),
    "kind": ("VARCHAR", pv.keys("call", "stay"), "'call'"),
}
REGIONS = pa.table({"code": ["north", "south"], "area": [3, 5], "coast": ["yes", "no"]})

POISON: dict[str, dict[str, str]] = {
    # whose row it is
    "no id": {"person_id": "NULL"},
    "an empty id": {"person_id": "''"},
    "a long id": {"person_id": "repeat('x', 100_000)"},
    "an odd id": {"person_id": "'\u202e💥\u0301'"},
    "the id of somebody else": {"person_id": "'p1'"},
    # numbers
    "NaN": {"income": "'nan'", "rate": "'nan'", "amount": "'nan'"},
    "infinity": {"income": "'inf'", "rate": "'inf'", "amount": "'inf'"},
    "minus infinity": {"income": "'-inf'", "rate": "'-inf'", "amount": "'-inf'"},
    "minus zero": {"income": "-0.0", "rate": "-0.0", "amount": "-0.0"},
    "a huge float": {"income": "1e308", "rate": "3.4e38", "amount": "1e308"},
    "a huge float below zero": {"income": "-1e308", "rate": "-3.4e38", "amount": "-1e308"},
    "a tiny float": {"income": "5e-324", "rate": "1e-45", "amount": "2.2e-308"},
    "the least integer": {"age": "-9223372036854775808", "zone": "-9223372036854775808"},
    "the greatest integer": {"age": "9223372036854775807", "zone": "9223372036854775807"},
    "the least huge integer": {"hours": "'-170141183460469231731687303715884105728'"},
    "the greatest huge integer": {"hours": "170141183460469231731687303715884105727"},
    "zero below a fraction": {"hours": "0", "age": "0", "rate": "0", "share": "0"},
    "a decimal with all digits": {"share": "'9.9999999999999999999999999999999999999'"},
    "missing numbers": {"age": "NULL", "hours": "NULL", "income": "NULL", "rate": "NULL", "share": "NULL"},
    "missing amount": {"amount": "NULL", "kind": "NULL"},
    # texts
    "an empty text": {"name": "''", "region": "''", "kind": "''"},
    "a long text": {"name": "repeat('x', 1_000_000)", "region": "repeat('north', 100_000)"},
    "odd signs": {"name": "'\u202e💥\u0301'", "region": "'no\u0301rth'", "kind": "'Call '"},
    "a text with control signs": {"name": "chr(1) || chr(10) || 'An'", "region": "chr(127)"},
    "a text of SQL": {"name": "'An'' OR 1=1 --'", "region": "'north''; DROP TABLE people --'"},
    "texts of numbers": {"name": "'1e999'", "region": "'NaN'", "kind": "'true'"},
    "missing texts": {"name": "NULL", "region": "NULL", "smoker": "NULL"},
    # times
    "the end of time": {"day": "'infinity'", "born": "'infinity'", "seen": "'infinity'"},
    "the beginning of time": {"day": "'-infinity'", "born": "'-infinity'", "seen": "'-infinity'"},
    "the last date": {"day": "'5881580-07-10'", "seen": "'294247-01-10 04:00:54.775806'"},
    "the first date": {"day": "'5877642-06-25 (BC)'", "seen": "'290309-12-22 (BC) 00:00:00'"},
    "the year 1": {"day": "'0001-01-01'", "born": "'0001-01-01'", "seen": "'0001-01-01'"},
    "the year 9999": {"day": "'9999-12-31'", "born": "'9999-12-31'", "seen": "'9999-12-31 23:59:59.999999'"},
    "missing times": {"day": "NULL", "born": "NULL", "seen": "NULL"},
    # all of it
    "nothing at all": dict.fromkeys((*PEOPLE, *VISITS), "NULL"),
    "nothing but an id": dict.fromkeys({*PEOPLE, *VISITS} - {"person_id"}, "NULL"),
    "everything at once": {
        "age": "-9223372036854775808", "hours": "0", "income": "'nan'", "rate": "'-inf'", "share": "NULL",
        "amount": "'inf'", "name": "chr(1)", "region": "''", "day": "'infinity'", "seen": "'-infinity'",
    },
}  # fmt: skip
IN_PARQUET = ("NaN", "infinity", "minus infinity", "minus zero", "a huge float", "missing numbers", "a long text")
"""Asked of Parquet files, too: those carry the least and the greatest value of a column, and these are odd ones."""

# --- the statements -----------------------------------------------------------------------------------

_WRITTEN = """
-- counts
SELECT COUNT(*) AS n, COUNT(1), COUNT(income), COUNT(name), COUNT(day), COUNT(hours), COUNT(smoker), COUNT(DISTINCT
person_id) AS who FROM people

-- aggregates
SELECT SUM(age) AS s, AVG(income) AS m, VAR_POP(rate) AS v, STDDEV_POP(share) AS d, SUM(smoker) AS b, SUM(income) /
NULLIF(SUM(hours), 0) AS r, COUNT(*) / COUNT(DISTINCT person_id) AS e, SUM(2) AS k FROM people

-- bounds that are found
SELECT APPROX_BOUNDS(income) AS b, APPROX_BOUNDS(income / age) AS c, APPROX_BOUNDS(rate * hours) AS d FROM people

-- arithmetic
SELECT SUM(income * 2 + age / 3 - 1) AS a, SUM(-age) AS b, SUM(age * age * hours) AS c, SUM(CLIP(1 / age, 0, 1)) AS
d, SUM(CLIP(income / rate, -9, 9)) AS e, SUM(CLIP(age / (age - 40), -9, 9)) AS f, SUM(CLIP(share * rate * income /
hours, -9, 9)) AS g, SUM(- (age + 1)) AS h FROM people

-- bounds
SELECT SUM(CLIP(income, 0, 100)) AS a, SUM(LEAST(GREATEST(rate, 0), 0.25)) AS b, SUM(LEAST(age, 50)) AS c,
SUM(GREATEST(share, 0)) AS d, SUM(CASE WHEN person.age = 40 THEN income * 1000000 END) AS e FROM people AS person

-- rounding
SELECT SUM(FLOOR(income)) AS a, SUM(CEIL(rate)) AS b, SUM(CEILING(share)) AS c, SUM(ABS(rate)) AS d,
SUM(CLIP(FLOOR(1 / age), 0, 9)) AS e, SUM(ABS(age - hours)) AS f FROM people

-- choices
SELECT SUM(CASE WHEN age < 18 THEN 1 WHEN smoker THEN 2 ELSE 0 END) AS a, COUNT(CASE WHEN income > 10 THEN 1 ELSE
NULL END) AS b, SUM(CASE region WHEN 'north' THEN 1 WHEN 'south' THEN 2 END) AS c, SUM(IF(name = 'Ann', age, 1)) AS
d, SUM(COALESCE(age, hours, 0)) AS e, SUM(COALESCE(income, 0)) AS f FROM people

-- parts of dates
SELECT SUM(YEAR(day)) AS y, SUM(QUARTER(day)) AS q, SUM(MONTH(day)) AS m, SUM(DAY(day)) AS d, SUM(HOUR(seen)) AS h,
SUM(ISODOW(day)) AS w, SUM(EXTRACT(year FROM seen)) AS f, SUM(EXTRACT(QUARTER FROM day)) AS g, SUM(EXTRACT(isodow
FROM seen)) AS i, SUM(DATE_PART('month', seen)) AS j, SUM(DATE_PART('day', seen)) AS k, SUM(DATE_PART('hour', seen))
AS l, AVG(day - born) AS days FROM people

-- comparisons
SELECT COUNT(*) AS n FROM people WHERE age = 1 OR age <> 2 OR age != 3 OR income < 4 OR rate <= 5 OR share > 0.6 OR
hours >= 7 OR age = income OR rate < share OR income / age > 3

-- logic
SELECT COUNT(*) AS n FROM people WHERE NOT smoker AND (age > 3 OR TRUE) AND NOT (income IS NULL) OR FALSE

-- missing
SELECT COUNT(*) AS n FROM people WHERE (income IS NULL OR day IS NULL OR name IS NULL OR region IS NULL) AND hours
IS NOT NULL AND 1 / age IS NULL

-- lists and ranges
SELECT COUNT(*) AS n FROM people WHERE region IN ('north', 'south') OR zone NOT IN (1, 2) OR age BETWEEN 18 AND 64 OR
income NOT BETWEEN 1 AND 1e5 OR name IN ('', 'Ann') OR rate IN (0, 0.25)

-- texts
SELECT COUNT(*) AS n FROM people WHERE name LIKE 'An%' OR name NOT LIKE 'B%' OR STARTS_WITH(name, 'An') OR name =
'O''Neill' OR name <> '' OR STARTS_WITH(region, 'no')

-- dates
SELECT COUNT(*) AS n FROM people WHERE day >= DATE '2025-01-31' OR day IN ('2025-03-04') OR seen < TIMESTAMP
'2025-01-01 12:30:00' OR day = born OR day - born > 3

-- keys
SELECT region, smoker AS s, COUNT(*) AS n, AVG(income) AS m FROM people GROUP BY 1, s

-- integer keys
SELECT zone, CLIP(age, 39, 41) AS a, COUNT(*) AS n FROM people GROUP BY zone, a

-- bins
SELECT FLOOR(income / 50000) * 50000 AS bin, SUM(age) AS s FROM people GROUP BY bin

-- buckets
SELECT WIDTH_BUCKET(rate, -0.25, 0.25, 2) AS b, COUNT(*) AS n FROM people GROUP BY b

-- months
SELECT DATE_TRUNC('quarter', day) AS q, COUNT(*) AS n FROM people GROUP BY q

-- years
SELECT YEAR(day), COUNT(*) AS n FROM people GROUP BY YEAR(day)

-- cases as keys
SELECT CASE WHEN age / hours > 3 THEN 'idle' ELSE 'busy' END AS k, age >= 65 AS old, COUNT(*) AS n FROM people GROUP
BY k, old

-- levels that are told apart
SELECT region, smoker, COUNT(*) AS n, GROUPING(region) AS g, n / SUM(n) OVER (PARTITION BY GROUPING_ID(region, smoker))
AS share FROM people GROUP BY ROLLUP (region, smoker)

-- texts that are named
SELECT name, COUNT(*) AS n, COUNT(DISTINCT zone) FILTER (WHERE smoker) AS z FROM people WHERE name IN ('Ann', 'Bob')
GROUP BY name

-- arranged
SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING n > 2 AND AVG(income) > 5 AND region <> 'south'
ORDER BY n DESC, region ASC LIMIT 2

-- ordered by what is hidden
SELECT zone, COUNT(*) AS n FROM people GROUP BY zone HAVING n BETWEEN -9 AND 9 OR zone IN (1) ORDER BY SUM(rate), 1
DESC

-- a public table
SELECT coast, SUM(area * income) AS s FROM people JOIN regions ON region = code GROUP BY coast

-- rows without a match
SELECT AVG(area) AS m, COUNT(coast) AS n FROM people LEFT JOIN regions AS r ON r.code = people.region

-- tables of the same people
SELECT region, kind, SUM(amount) AS s, COUNT(DISTINCT people.person_id) AS w FROM people JOIN visits ON
people.person_id = visits.person_id GROUP BY region, kind

-- using
SELECT coast, AVG(amount) AS m FROM (SELECT person_id, region AS code FROM people) AS p JOIN regions USING (code)
JOIN visits USING (person_id) GROUP BY coast

-- one row for each person
SELECT AVG(total) AS t, SUM(CLIP(n, 0, 2)) AS n, SUM(CLIP(least, 0, 9)) AS a, SUM(CLIP(most, 0, 9)) AS b,
SUM(CLIP(mean, 0, 9)) AS c FROM (SELECT person_id, SUM(amount) AS total, COUNT(*) AS n, MIN(amount) AS least,
MAX(amount) AS most, AVG(amount) AS mean, COUNT(amount) AS m FROM visits GROUP BY person_id)

-- a filter of persons
WITH often AS (SELECT person_id, COUNT(*) AS c FROM visits WHERE kind = 'call' GROUP BY 1), rich AS (SELECT
person_id, income / hours AS pay FROM people WHERE income > 100) SELECT COUNT(*) AS n, SUM(CLIP(pay, 0, 50)) AS s
FROM rich JOIN often ON rich.person_id = often.person_id WHERE c > 1 AND pay > 2

-- filters and patterns
SELECT COUNT(*) FILTER (WHERE LOWER(region) = 'north' OR UPPER(region) IN ('SOUTH')) AS n, AVG(income) FILTER (WHERE
region ILIKE 'N%' OR region NOT LIKE '%th') AS m FROM people

-- arithmetic on the answer
SELECT zone, smoker, COUNT(*) AS n, n / SUM(n) OVER (PARTITION BY zone) AS s, ROUND(AVG(rate), 1) - 3 AS r,
DP_INTERVAL_LOW(n) AS l, DP_INTERVAL_HIGH(n) AS h, 1 / (n - COUNT(age)) AS q FROM people GROUP BY zone, smoker

-- one row for each person and key
SELECT kind, AVG(total) AS t, COUNT(*) AS n FROM (SELECT person_id, kind, FLOOR(amount / 500) * 500 AS bin, SUM(amount)
AS total FROM visits GROUP BY person_id, kind, bin) GROUP BY kind
"""
STATEMENTS: dict[str, str] = {
    "rows": "SELECT COUNT(*) AS n FROM people",
    "levels": "SELECT region, smoker, COUNT(*) AS n, SUM(income) AS s FROM people GROUP BY ROLLUP (region, smoker)",
    "cubes": "SELECT region, smoker, COUNT(*) AS n FROM people GROUP BY CUBE (region, smoker)",
    "sets": "SELECT region, smoker, AVG(age) AS m FROM people GROUP BY GROUPING SETS ((region, smoker), (region), ())",
    "quantiles": """SELECT region, MEDIAN(income) AS m, QUANTILE_CONT(age, 0.9) AS q, MIN(income) AS low, MAX(age) AS h,
PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY income) AS p FROM people GROUP BY region""",
    **dict(block.strip().split("\n", 1) for block in _WRITTEN.split("\n-- ")[1:]),
    "cut dates": "SELECT COUNT(*) AS n FROM people WHERE "
    + " OR ".join(f"DATE_TRUNC('{unit}', seen) = seen" for unit in UNITS)
    + "".join(f" OR DATE_TRUNC('{unit}', day) <= born" for unit in UNITS if unit != "hour"),
}
"""By what they have in them."""

REFUSED: dict[str, str] = {
    "no such column": "SELECT SUM(incme) FROM people",
    "no bounds": "SELECT SUM(income / age) FROM people",
    "the id": "SELECT person_id, COUNT(*) FROM people GROUP BY person_id",
    "a row": "SELECT * FROM people",
    "not supported": "SELECT MODE(income) FROM people",
    "no SQL": "SELECT COUNT(*) FROM people WHERE",
}


def table(name: str, source: Any, columns: dict[str, Any], rows: int) -> Table:
    declared = {name: column for name, (_, column, _) in columns.items() if column is not None}
    return pv.table(name, source, protect=pv.person("person_id", max_rows=rows), columns=declared)


def typed(columns: dict[str, tuple[str, Any, str]], given: dict[str, str]) -> str:
    """A row as SQL: harmless but for what is given."""
    cells = (f"({given.get(name, fine)})::{kind} AS {name}" for name, (kind, _, fine) in columns.items())
    return "SELECT " + ", ".join(cells)


@dataclass
class Seen:
    """The exact integers of every question, before noise."""

    exact: list[Any] = field(default_factory=list)


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    """The noisy integers come out the same whatever the data, so that all else that can be seen must be the same."""
    found = Seen()
    real = planner_noise.add_noise

    def add_noise(made: Any, exact: Any, ranks: Any = MappingProxyType({})) -> Any:
        _, event = real(made, exact, ranks)
        found.exact.append(exact)
        chance = Random(str(made.query))

        def vector(part: Any) -> tuple[int, ...]:
            codes = len(part.measurement.steps) if isinstance(part, ChosenRanks) else 0
            some = [chance.choice([-3, 0, 5, 40, 10**6]) for _ in range(part.measurement.size)]
            return (*sorted(map(abs, some[:codes])), *some[codes:])

        return tuple(tuple(vector(part) for _ in range(made.groups_of(part))) for part in made.noised), event

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(queries, "add_noise", add_noise)
        yield found


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file: each table without a poisonous row (0), and with each of them."""
    path = tmp_path_factory.mktemp("threats") / "people.duckdb"
    with duckdb.connect(path) as connection:
        for name, columns in (("people", PEOPLE), ("visits", VISITS)):
            rows = [typed(columns, {"person_id": f"'p{i}'"}) for i in range(6)]
            if name == "people":
                rows += [typed(columns, {"person_id": "'p7'", "region": "'south'", "age": "17", "income": "NULL"})]
            connection.execute(f"CREATE TABLE {name}0 AS {' UNION ALL '.join(rows)}")
            for i, given in enumerate(POISON.values(), start=1):
                row = typed(columns, given)
                connection.execute(f"CREATE TABLE {name}{i} AS FROM {name}0 UNION ALL {row}")
            for variant in (0, *(number(poison) for poison in IN_PARQUET)):
                connection.execute(f"COPY {name}{variant} TO '{path.parent / name}{variant}.parquet'")
    return path


def number(poison: str) -> int:
    return 1 + list(POISON).index(poison)


@dataclass(frozen=True)
class View:
    """What can be seen of a question, and, apart from it, the exact integers."""

    seen: tuple[object, ...]
    exact: Any = None
    parts: Any = None


@dataclass
class Asker:
    """Asks all statements of one variant of the tables; all share a ledger, and so the salt of the bounding."""

    database: Path
    found: Seen
    ledger: Ledger = field(default_factory=memory_ledger)

    def session(self, variant: int, *, parquet: bool = False) -> pv.Session:
        def stored(name: str) -> Any:
            file = self.database.parent / f"{name}{variant}.parquet"
            return file if parquet else pv.duckdb_file(self.database, f"{name}{variant}")

        people, visits = table("people", stored("people"), PEOPLE, 1), table("visits", stored("visits"), VISITS, 3)
        return self.opened(people, visits)

    def opened(self, *tables: Table) -> pv.Session:
        regions = pv.public_table("regions", REGIONS, key="code")
        return pv.Session(tables, public=[regions], budget=pv.PureDP(10**9), ledger=self.ledger, threads=1)

    def views(self, variant: int, *, parquet: bool = False) -> dict[str, View]:
        """Of all statements without poison; of every ninth one with it, by turns (all with `./dev test --all`)."""
        every = 9 if variant else 1
        with self.session(variant, parquet=parquet) as session:
            asked = some(list({**STATEMENTS, **REFUSED}.items()), every=every, start=variant)
            return {name: self.view(session, sql) for name, sql in asked}

    def view(self, session: pv.Session, sql: str) -> View:
        before = session.spent.epsilon
        try:
            release = session.release(sql, epsilon="1/3", fresh=True)
        except pv.PrivetError as error:
            return View((type(error), str(error), error.__cause__, session.spent.epsilon - before))
        looks = (str(release), repr(release), release.chart(), repr(release.to_arrow().schema))
        cost = (session.spent.epsilon - before, release.spent)
        shape = (release.columns, release.keys, len(release), repr(release.to_dicts()))
        return View((*shape, *cost, *_without_left(looks)), self.found.exact[-1], release.plan.noised)


def _without_left(texts: tuple[str, ...]) -> list[str]:
    """What is left of the budget is less with every question, here as anywhere."""
    return [re.sub(r"[\d,.]+ left", "... left", text) for text in texts]


@pytest.fixture(scope="module")
def asker(database: Path, seen: Seen) -> Asker:
    return Asker(database, seen)


@pytest.fixture(scope="module")
def clean(asker: Asker) -> dict[str, View]:
    return asker.views(0)


def test_without_poison_every_statement_is_answered(clean: dict[str, View]) -> None:
    assert {name: view.seen for name, view in clean.items() if name in STATEMENTS and view.exact is None} == {}
    assert {name for name, view in clean.items() if view.exact is None} == set(REFUSED)
    for name in REFUSED:
        assert clean[name].seen[0] in (QueryError, NoBounds)
        assert clean[name].seen[-1] == 0


def check(clean: dict[str, View], views: dict[str, View], *, times: int = 1) -> int:
    """That all looks the same, and no number moved by more than what is claimed; how many moved."""
    moved = 0
    for name, view in views.items():
        assert view.seen == clean[name].seen, name
        for part, before, after in zip(view.parts or (), clean[name].exact or (), view.exact or (), strict=True):
            pairs = [(x, y) for v, w in zip(before, after, strict=True) for x, y in zip(v, w, strict=True)]
            change = sum(abs(x - y) for x, y in pairs)
            assert change <= times * part.move.total, name
            moved += change > 0
    return moved


@pytest.mark.slow
@pytest.mark.parametrize("poison", POISON)
def test_t17_a_row_changes_nothing_but_the_numbers(asker: Asker, clean: dict[str, View], poison: str) -> None:
    """Outcome, text, debit, columns, keys and their order; and the exact numbers by no more than what is claimed."""
    times = 2 if poison == "the id of somebody else" else 1  # that person goes, and comes back with more
    assert check(clean, asker.views(number(poison)), times=times) or poison in ("no id", "nothing at all")


@pytest.mark.slow
@pytest.mark.parametrize("poison", IN_PARQUET)
def test_t17_nor_does_a_row_of_a_parquet_file(asker: Asker, clean: dict[str, View], poison: str) -> None:
    assert check(clean, asker.views(number(poison), parquet=True))


class Failing:
    """A broken twin: rows that make the engine fail, as a division or a cast of a naive translation would."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def types(self) -> Any:
        return self.source.types()

    def files(self) -> Any:
        return self.source.files()

    def attach(self, connection: Any, name: str) -> None:
        attach(connection, self.source, f"raw_{name}")
        odd = "CASE WHEN isinf(income) THEN error('row ' || person_id) ELSE income END AS income"
        connection.execute(f"CREATE VIEW {name} AS SELECT * REPLACE ({odd}) FROM raw_{name}")


def test_a_broken_twin_is_caught(database: Path, seen: Seen) -> None:
    views = []
    for variant in (0, number("infinity")):
        asker = Asker(database, seen)
        with asker.session(variant) as whole:
            people = whole.tables["people"]
            twin = Table(people.schema, Failing(people.source))
            with asker.opened(twin, whole.tables["visits"]) as session:
                views.append({"aggregates": asker.view(session, STATEMENTS["aggregates"])})
    with pytest.raises(AssertionError, match="aggregates"):
        check(*views)
    assert views[1]["aggregates"].seen[0] is NoAnswer


def test_every_node_and_function_stands_in_a_statement(asker: Asker) -> None:
    """What the front end comes to allow later must be asked here, too."""
    nodes, called = set(), set()
    with asker.session(0) as session:
        catalogue = Catalogue(SqlText(""), session.tables, session.public)
        for sql in STATEMENTS.values():
            source = SqlText(sql)
            tree = grammar.parsed(source, tokens.read(source, catalogue.names()))
            nodes |= {type(node) for node in tree.walk()}
            called |= {name.upper() for name in re.findall(r"(\w+)\(", sql)}
    assert set(grammar.ARGUMENTS) - nodes <= {exp.DateTrunc}  # which the parser makes of dates it knows the type of
    names = {name for several in grammar.CALLED.values() for name in several} | set(hints.FUNCTIONS)
    assert names - called == set()
    everything = " ".join(STATEMENTS.values())
    assert all(re.search(rf"(EXTRACT\(|DATE_PART\('){part}\b", everything, re.I) for part in expressions._PARTS)
    assert all(f"DATE_TRUNC('{unit}'" in everything for unit in UNITS)


def test_there_are_thirty_poisons_and_duckdb_can_t_take_them() -> None:
    """What is tested above is not nothing: on such rows, expressions like these fail, with the row in the text."""
    assert len(POISON) >= 30
    connection = duckdb.connect()
    for sql, value in (
        ("CAST('inf'::DOUBLE AS BIGINT)", "inf"),
        ("abs('-9223372036854775808'::BIGINT)", "9223372036854775808"),
        ("9223372036854775807 + 1::BIGINT", "9223372036854775807"),
        ("'1e999x'::DOUBLE", "1e999x"),
        ("'5881580-07-10'::DATE + 1", "(?i)date"),
    ):
        with pytest.raises(duckdb.Error, match=value):
            connection.execute(f"SELECT {sql}")
