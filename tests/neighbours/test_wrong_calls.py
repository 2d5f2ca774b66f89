"""Wrong calls: each is refused with a text that leads to the right one, before anything is read or spent.

T4 and T6 among them: epsilons that are none, and bounds that are missing, empty or infinite.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.prices import loss

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.errors import PrivetError, UserError

ROWS = pa.table(
    {
        "who": [1, 2, 3],
        "income": [10.0, 20.0, 30.0],
        "age": [30, 40, 50],
        "region": ["north", "south", "mars"],
        "name": ["a", "b", "c"],
        "member": [True, False, None],
        "day": [date(2024, 1, 5), date(2024, 2, 5), None],
        "time": [datetime(2024, 1, 5, 7), datetime(2024, 2, 5), None],
        "tags": [[1], [2], [3]],
    }
)
COLUMNS = {
    "income": pv.number(0, 1000),
    "age": pv.integer(0, 110),
    "region": pv.keys("north", "south", other="other"),
    "name": pv.text(),
    "member": pv.boolean(),
    "day": pv.date("2024-01-01", "2024-12-31"),
    "time": pv.timestamp("2024-01-01", "2024-12-31"),
}
PERSON = pv.person("who", max_rows=2)
PLACES = pv.public_table("places", pa.table({"region": ["north"], "area": [3], "income": [7]}), key="region")
SIZES = pv.public_table("sizes", pa.table({"region": ["north"], "size": [3]}), key="region")
people = pv.table("people", ROWS, protect=PERSON, columns=COLUMNS)
visits = pv.table("visits", ROWS.select(["who", "name"]), protect=PERSON, columns={"name": pv.text()})
rows = pv.table("rows", ROWS, protect=pv.each_row(), columns=COLUMNS)
replaced = pv.table("r", ROWS, protect=PERSON, adjacency="replace", columns={"member": pv.boolean()})
n = people.agg(n=pv.count())
mean = people.agg(n=pv.count(), m=pv.mean("income"))

anything: Any = pv  # what a user may write, whatever the types say


def declare(**how: Any) -> Any:
    named: dict[str, Any] = {"protect": PERSON, "columns": COLUMNS, **how}
    source = named.pop("source", ROWS)
    return anything.table(named.pop("name", "people"), source, **named)


def session(**how: Any) -> Any:
    tables = how.pop("tables", [people, visits])
    return anything.Session(tables, **{"budget": pv.PureDP(5), "ledger": None, "public": [SIZES], "threads": 1, **how})


OPEN: list[Any] = []


@pytest.fixture
def open_session() -> Any:
    """A session of which nothing was spent."""
    new = ["created", "attached", "attached", "declared"]
    if not OPEN or [entry.kind for entry in OPEN[-1].ledger.history(OPEN[-1].name)] != new:
        OPEN.append(session(min_epsilon="1e-9"))
    return OPEN[-1]


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    for each in OPEN:
        each.close()


WRONG_TABLES: dict[str, Callable[[], Any]] = {
    # T6: bounds
    "no bounds": lambda: declare(columns={"income": anything.number(None, None)}),
    "infinite bound": lambda: pv.number(0, math.inf),
    "infinite text": lambda: pv.number("-inf", 0),
    "nan bound": lambda: pv.number(0, math.nan),
    "empty bounds": lambda: pv.number(5, 5),
    "reversed bounds": lambda: pv.number(5, 1),
    "a bool as a bound": lambda: pv.number(False, True),
    "a text as a bound": lambda: pv.number("a", 1),
    "bounds too large": lambda: pv.number(0, 1e300),
    "bounds too small": lambda: pv.number(0, 1e-320),
    "step zero": lambda: pv.number(0, 1, step=0),
    "step negative": lambda: pv.number(0, 1, step=-1),
    "step too large": lambda: pv.number(0, 1, step=2),
    "step too fine": lambda: pv.number(0, 1, step="1e-30"),
    "required is no flag": lambda: anything.number(0, 1, required="yes"),
    "half integer": lambda: anything.integer(0.5, 2),
    "integer reversed": lambda: pv.integer(2, 1),
    "integer too wide": lambda: pv.integer(-(2**62), 2**62),
    "integer beyond 64 bits": lambda: pv.integer(2**70, 2**70 + 1),
    # keys
    "no keys": lambda: pv.keys(),
    "keys in a list": lambda: anything.keys(["a", "b"]),
    "mixed keys": lambda: pv.keys("a", 1),
    "bool keys": lambda: pv.keys(True, False),
    "float keys": lambda: anything.keys(1.5, 2.5),
    "a key twice": lambda: pv.keys("a", "a"),
    "other is a key": lambda: pv.keys("a", "b", other="a"),
    "other of another kind": lambda: pv.keys("a", other=3),
    "a key with a line break": lambda: pv.keys("a\nb"),
    "a huge key": lambda: pv.keys(2**70),
    "an endless key": lambda: pv.keys("x" * 1000),
    # dates
    "no date": lambda: pv.date("yesterday", "2024-01-01"),
    "dates reversed": lambda: pv.date("2024-12-31", "2024-01-01"),
    "a number as a date": lambda: anything.date(2024, 2025),
    "a timestamp as a date": lambda: pv.date(datetime(2024, 1, 1), datetime(2024, 2, 1)),
    "a zone": lambda: pv.timestamp(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)),
    "a year too early": lambda: pv.date("0001-01-01", "2024-01-01"),
    # tables
    "no protection": lambda: declare(protect=None),
    "protection by name": lambda: declare(protect="who"),
    "person without a cap": lambda: pv.person("who"),
    "person with both caps": lambda: pv.person("who", max_rows=1, max_groups=2, max_rows_per_group=3),
    "half a cap": lambda: pv.person("who", max_groups=2),
    "cap zero": lambda: pv.person("who", max_rows=0),
    "cap a half": lambda: anything.person("who", max_rows=1.5),
    "cap infinite": lambda: anything.person("who", max_rows=math.inf),
    "cap True": lambda: pv.person("who", max_rows=True),
    "no id": lambda: pv.person("", max_rows=1),
    "id is not there": lambda: declare(protect=pv.person("person", max_rows=1)),
    "id of lists": lambda: declare(protect=pv.person("tags", max_rows=1)),
    "no columns": lambda: declare(columns={}),
    "columns in a list": lambda: declare(columns=["income"]),
    "a column not declared": lambda: declare(columns={"income": (0, 1)}),
    "a column that is not there": lambda: declare(columns={"incme": pv.number(0, 1)}),
    "a column of lists": lambda: declare(columns={"tags": pv.number(0, 1)}),
    "a text as a number": lambda: declare(columns={"name": pv.number(0, 1)}),
    "a number as keys": lambda: declare(columns={"income": pv.keys("a")}),
    "no name": lambda: declare(name=""),
    "a name that is no text": lambda: declare(name=7),
    "another adjacency": lambda: declare(adjacency="bounded"),
    "public rows of persons": lambda: declare(rows=3),
    "public rows added": lambda: declare(rows=3, protect=pv.each_row()),
    "a path that is not there": lambda: declare(source="nowhere.parquet"),
    "a csv": lambda: declare(source="people.csv"),
    "no source": lambda: declare(source=None),
    "a dict": lambda: declare(source={"income": [1]}),
    "a number": lambda: declare(source=5),
    "public key twice": lambda: pv.public_table("p", pa.table({"k": [1, 1], "a": [1, 2]}), key="k"),
    "public key not there": lambda: pv.public_table("p", pa.table({"k": [1]}), key="q"),
    "public table empty": lambda: pv.public_table("p", pa.table({"k": pa.array([], pa.int64())}), key="k"),
    "public key of floats": lambda: pv.public_table("p", pa.table({"k": [1.5]}), key="k"),
    # sessions
    "no tables": lambda: session(tables=[]),
    "a table, not a list": lambda: session(tables=people),
    "a frame": lambda: session(tables=[ROWS]),
    "a table twice": lambda: session(tables=[people, people]),
    "rows and persons": lambda: session(tables=[people, rows]),
    "two adjacencies": lambda: session(tables=[people, replaced]),
    "budget is a number": lambda: session(budget=3),
    "budget nothing": lambda: session(budget=None),
    "public is private": lambda: session(public=[people]),
    "private is public": lambda: session(tables=[SIZES]),
    "analyst is no text": lambda: session(analyst=b"x"),
    "name is no text": lambda: session(name=5),
    "ledger is none": lambda: session(ledger=5),
    "ledger has no name": lambda: session(ledger=""),
    "ledger of another kind": lambda: session(ledger="mysql://somewhere/people"),
    "ledger in no folder": lambda: session(ledger="/nowhere/at/all/people.ledger"),
    "ledger is a folder": lambda: session(ledger=Path(__file__).parent),
    "version is no text": lambda: session(version=5),
    "version is empty": lambda: session(version=""),
    "no threads": lambda: session(threads=0),
    "no amount of memory": lambda: session(memory="lots"),
    "nowhere to spill": lambda: session(spill="/nowhere/at/all"),
    "rows are looked at": lambda: list(anything.Table(people.schema, people.source)),
    "rows are counted": lambda: len(people),
}

WRONG_QUERIES: dict[str, Callable[[], Any]] = {
    "nothing asked": lambda: people.agg(),
    "a text asked": lambda: anything_of(people).agg(n="count"),
    "a column asked": lambda: anything_of(people).agg(n=pv.col("income")),
    "an aggregate that was not called": lambda: anything_of(people).agg(n=pv.count),
    "no such column": lambda: people.agg(n=pv.sum("incme")),
    "sum of a text": lambda: people.agg(n=pv.sum("name")),
    "mean of keys": lambda: people.agg(n=pv.mean("region")),
    "std of a date": lambda: people.agg(n=pv.std("day")),
    "sum of a number": lambda: anything.sum(5),
    "sum of nothing": lambda: anything.sum(None),
    "sum without bounds": lambda: people.agg(s=pv.sum(1 / pv.col("income"))),
    "sum of what has no bounds": lambda: people.per_person(t=pv.sum("income")).agg(s=pv.sum("t")),
    "a name twice": lambda: people.group_by("region").agg(region=pv.count()),
    "an empty name": lambda: people.agg(**{"": pv.count()}),
    "a name with a line break": lambda: people.agg(**{"a\nb": pv.count()}),
    "ratio of a mean": lambda: anything_of(pv.count()) / pv.mean("income"),
    "ratio with a number": lambda: anything_of(pv.sum("income")) / 7,
    "where nothing": lambda: people.where(),
    "where a number": lambda: people.where(pv.col("age")),
    "where a plain number": lambda: anything_of(people).where(5),
    "where a text": lambda: anything_of(people).where("age > 5"),
    "where a key": lambda: people.where(pv.col("region")),
    "where None": lambda: anything_of(people).where(None),
    "and for &": lambda: people.where((pv.col("age") > 3) and (pv.col("age") < 9)),
    "a chain": lambda: people.where(0 < pv.col("age") < 9),
    "age compared with a text": lambda: people.where(pv.col("age") > "18"),
    "keys in order": lambda: people.where(pv.col("region") > "north"),
    "text and number": lambda: people.where(pv.col("name") == 5),
    "date and number": lambda: people.where(pv.col("day") > 2024),
    "compared with None": lambda: people.where(pv.col("age") == None),  # noqa: E711
    "compared with a list": lambda: people.where(pv.col("age") == [1, 2]),
    "compared with nan": lambda: people.where(pv.col("age") > math.nan),
    "compared with inf": lambda: people.where(pv.col("age") < math.inf),
    "is_in a text": lambda: people.where(pv.col("region").is_in("north")),
    "is_in nothing": lambda: people.where(pv.col("region").is_in([])),
    "is_in numbers": lambda: people.where(pv.col("region").is_in([1, 2])),
    "starts_with of a number": lambda: people.where(pv.col("age").starts_with("1")),
    "starts_with a number": lambda: people.where(anything_of(pv.col("name")).starts_with(1)),
    "a text with NUL": lambda: people.where(pv.col("name") == "a\x00"),
    "half a surrogate": lambda: people.where(pv.col("name") == "\ud800"),
    "not of a number": lambda: people.where(~pv.col("age")),
    "arithmetic with a text": lambda: people.with_columns(a=pv.col("age") + "1"),
    "arithmetic with keys": lambda: people.with_columns(a=pv.col("region") * 2),
    "arithmetic too large": lambda: people.with_columns(a=pv.col("income") * 1e200 * 1e200),
    "a number too large": lambda: pv.col("age") + 10**400,
    "clip reversed": lambda: people.with_columns(a=pv.col("age").clip(9, 1)),
    "clip empty": lambda: people.with_columns(a=pv.col("age").clip(5, 5)),
    "clip outside": lambda: people.agg(a=pv.sum(pv.col("age").clip(500, 600))),
    "clip with nothing": lambda: anything_of(pv.col("age")).clip(None, 5),
    "clip of a text": lambda: people.with_columns(a=pv.col("name").clip(0, 1)),
    "clip at infinity": lambda: pv.col("age").clip(0, math.inf),
    "part of a number": lambda: people.with_columns(a=pv.col("age").part("year")),
    "part unknown": lambda: anything_of(pv.col("day")).part("century"),
    "hour of a date": lambda: people.with_columns(a=pv.col("day").part("hour")),
    "truncate unknown": lambda: anything_of(pv.col("day")).truncate("minute"),
    "days between timestamps": lambda: people.with_columns(a=pv.col("time") - pv.col("time")),
    "case not finished": lambda: people.with_columns(a=pv.when(pv.col("age") > 5, 1)),
    "case of two kinds": lambda: people.with_columns(a=pv.when(pv.col("age") > 5, 1).otherwise("a")),
    "case of a number": lambda: people.with_columns(a=pv.when(pv.col("age"), 1).otherwise(0)),
    "no new column": lambda: people.with_columns(),
    "a list as a column": lambda: people.with_columns(a=[1, 2, 3]),
    "a numpy array": lambda: people.with_columns(a=np.array([1, 2])),
    "a column that is a number": lambda: anything.col(5),
    "group by nothing": lambda: people.group_by(),
    "group by text and number": lambda: people.group_by("name", "income"),
    "group by a number": lambda: people.group_by("income"),
    "group by a time": lambda: people.group_by("time"),
    "group by what is not there": lambda: people.group_by("town"),
    "group by without a name": lambda: people.group_by(pv.col("age") + 1),
    "group by too much": lambda: people.group_by(a=pv.col("age"), b=pv.col("day")).agg(n=pv.count()),
    "group by 5": lambda: anything_of(people).group_by(5),
    "bins that fall": lambda: pv.bins("age", [5, 1]),
    "one edge": lambda: pv.bins("age", [5]),
    "edges in a text": lambda: anything.bins("age", "0,5"),
    "an edge that is none": lambda: pv.bins("age", [0, math.nan]),
    "an infinite edge": lambda: pv.bins("age", [0, math.inf]),
    "too many bins": lambda: pv.bins("age", list(range(2000))),
    "bins of a text": lambda: people.group_by(b=pv.bins("name", [0, 1])),
    "histogram of keys": lambda: people.agg(h=pv.histogram("region", [0, 1])),
    "join with nothing": lambda: people.join(None),
    "join with a frame": lambda: people.join(ROWS),
    "join on what is not there": lambda: people.join(SIZES, on="town"),
    "join on another kind": lambda: people.join(SIZES, on="age"),
    "join outer": lambda: people.join(SIZES, on="region", how="outer"),
    "join with a clash": lambda: people.join(PLACES, on="region"),
    "join of persons with a clash": lambda: people.join(visits),
    "join of persons on a column": lambda: people.join(visits.per_person(v=pv.count()), on="name"),
    "join of persons left": lambda: people.join(visits.per_person(v=pv.count()), how="left"),
    "join of rows": lambda: rows.join(visits.per_person(v=pv.count())),
    "join of two adjacencies": lambda: visits.join(replaced),
    "per_person of rows": lambda: rows.per_person(t=pv.sum("income")),
    "per_person of nothing": lambda: people.per_person(),
    "per_person of a std": lambda: people.per_person(t=pv.std("income")),
    "per_person of a text": lambda: people.per_person(t=pv.least("name")),
    "per_person sum without bounds": lambda: people.per_person(t=pv.sum(1 / pv.col("age"))),
}

EPSILONS: list[Any] = [
    math.nan, math.inf, -math.inf, 0, 0.0, -0.0, -1, True, False, "0", "", "one", "inf", "nan", "-0", None, [1], (1,),
    b"1", 1e-320, "1e-400", Fraction(0), Fraction(-1, 3), Decimal("NaN"), Decimal("Infinity"), 1j, "1/0",
    np.float64("nan"),
    np.bool_(True), np.array([1.0]), pv.PureDP(1), "0x1p0", "1e-10", "9" * 5000,
]  # fmt: skip

NO_VALUES: list[Any] = [None, "x", math.nan, math.inf, [1, math.nan], True, {}, [[1, 2]]]

WRONG_ASKS: dict[str, Callable[[Any], Any]] = {
    "no query": lambda s: s.release(people, epsilon=1),
    "a text": lambda s: s.release("SELECT 1", epsilon=1),
    "None": lambda s: s.release(None, epsilon=1),
    "groups without a question": lambda s: s.release(people.group_by("region"), epsilon=1),
    "no epsilon": lambda s: s.release(n),
    "epsilon and within": lambda s: s.release(n, epsilon=1, within={"n": 5}),
    **{f"epsilon {e!r:.30}": lambda s, e=e: s.release(n, epsilon=e) for e in EPSILONS},  # type: ignore[misc]
    **{
        f"confidence {c!r}": lambda s, c=c: s.release(n, epsilon=1, confidence=c)  # type: ignore[misc]
        for c in (0, 1, -1, 95, "95%", math.nan, None, True, "1")
    },
    "within unknown": lambda s: s.release(n, within={"m": 5}),
    "within nothing": lambda s: s.release(n, within={}),
    "within zero": lambda s: s.release(n, within={"n": 0}),
    "within nan": lambda s: s.release(n, within={"n": math.nan}),
    "within a number": lambda s: s.release(n, within=50),
    "within a list": lambda s: s.release(n, within=[50]),
    "within half of it": lambda s: s.release(people.agg(n=pv.count(), p=pv.count_people()), within={"n": 50}),
    "within a mean": lambda s: s.release(mean, within={"n": 50, "m": 10}),
    "weights unknown": lambda s: s.release(mean, epsilon=1, weights={"q": 2}),
    "weights zero": lambda s: s.release(mean, epsilon=1, weights={"n": 0}),
    "weights negative": lambda s: s.release(mean, epsilon=1, weights={"n": -1}),
    "weights a number": lambda s: s.release(mean, epsilon=1, weights=3),
    "assuming nothing": lambda s: s.release(mean, epsilon=1, assuming=0),
    "assuming a half": lambda s: s.release(mean, epsilon=1, assuming=1.5),
    "assuming too much": lambda s: s.release(mean, epsilon=1, assuming=2**50),
    "more than there is": lambda s: s.release(n, epsilon=100),
    "another table": lambda s: s.release(rows.agg(n=pv.count()), epsilon=1),
    "a public table it does not know": lambda s: s.release(
        visits.join(pv.public_table("x", pa.table({"k": ["a"], "z": [1]}), key="k"), on="name").agg(n=pv.count()),
        epsilon=1,
    ),
    "value without a label": lambda s: s.release_value(1, sensitivity=1, epsilon=1, label=""),
    "value without sensitivity": lambda s: s.release_value(1, sensitivity=0, epsilon=1, label="x"),
    "value too expensive": lambda s: s.release_value(1, sensitivity=1, epsilon=50, label="x"),
    "reopen without a reason": lambda s: s.reopen(""),
    **{
        f"request_id {r!r:.12}": lambda s, r=r: s.release(n, epsilon=1, request_id=r)  # type: ignore[misc]
        for r in (b"x", 5, ("a",), object())
    },
    **{
        f"label {text!r:.12}": lambda s, t=text: s.release_value(1, sensitivity=1, epsilon=1, label=t)  # type: ignore[misc]
        for text in (b"x", 5, ["a"], None, object())
    },
    **{
        f"simultaneous {flag!r:.12}": lambda s, f=flag: s.release(n, epsilon=1, simultaneous=f)  # type: ignore[misc]
        for flag in ("no", 1, None, object())
    },
    **{
        f"fresh {flag!r:.12}": lambda s, f=flag: s.release(n, epsilon=1, fresh=f)  # type: ignore[misc]
        for flag in ("no", 1, None, object())
    },
    **{
        f"value {v!r:.12}": lambda s, v=v: s.release_value(v, sensitivity=1, epsilon=1, label="mine")  # type: ignore[misc]
        for v in NO_VALUES
    },
}

HELP = re.compile(
    r"[Ww]rite|at most|[Tt]here are|[Gg]ive|[Tt]ake|[Ll]eave|[Cc]hoose|[Mm]ust be|[Aa]llowed|[Cc]ombine|[Cc]lip|"
    r"[Ss]ay |It has|The (parts|units|columns) are: |only epsilon|Create it|Name another|"
    r"Ask |Make |Declare|Convert|need|years 2 to 9000|is of|within|would be only noise|Rename|"
    r"A key contains|which holds|"
    r"too large or too small|"
    r"printable text of|Name a |are made with|same adjacency|never equal|has no rows|can't be released|label"
)


def anything_of(value: Any) -> Any:
    """The same, whatever the types say."""
    return value


def refused(call: Callable[[], Any]) -> str:
    """The text of the refusal."""
    with pytest.raises(PrivetError) as caught:
        call()
    error = caught.value
    assert isinstance(error, UserError)
    assert type(error).__module__ == "privet.errors"
    text = str(error)
    assert HELP.search(text), text
    assert 20 < len(text) < 700, text
    assert text.isprintable() or "\n" in text
    return text


@pytest.mark.parametrize("call", WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_wrong_declarations(call: Callable[[], Any]) -> None:
    refused(call)


@pytest.fixture
def untouched(open_session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on reading is an error; the session was opened before."""

    def touched(*_: Any, **__: Any) -> None:
        raise AssertionError("data were read")

    monkeypatch.setattr(DuckDB, "_run", touched)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("call", WRONG_QUERIES.values(), ids=WRONG_QUERIES)
def test_wrong_questions(call: Callable[[], Any]) -> None:
    refused(call)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("call", WRONG_ASKS.values(), ids=WRONG_ASKS)
def test_wrong_asking(call: Callable[[Any], Any], open_session: Any) -> None:
    before = open_session.ledger.history(open_session.name)
    refused(lambda: call(open_session))
    assert open_session.ledger.history(open_session.name) == before
    assert open_session.spent.epsilon == 0


def test_there_are_many() -> None:
    assert len(WRONG_TABLES) + len(WRONG_QUERIES) + len(WRONG_ASKS) >= 200


@pytest.mark.parametrize("how", ["explain", "plan"])
def test_explaining_refuses_the_same(how: str, open_session: Any) -> None:
    """What can't be released can't be planned, with the same words."""
    for epsilon in EPSILONS:
        if epsilon is None:
            continue
        assert refused(lambda e=epsilon: getattr(open_session, how)(n, epsilon=e)) == refused(  # type: ignore[misc]
            lambda e=epsilon: open_session.release(n, epsilon=e)  # type: ignore[misc]
        )


def test_numbers_that_are_exact_are_taken(open_session: Any) -> None:
    """Whatever a number is written as, it is meant as written, however long."""
    for epsilon in (
        1,
        "1",
        0.1,
        "0.1",
        "1/3",
        Fraction(1, 3),
        Decimal("0.1"),
        np.float64(0.1),
        np.int64(2),
        "1e-9",
        "0." + "1" * 150,
    ):
        made = open_session.plan(mean, epsilon=epsilon)
        assert loss(made.guarantee()) == made.epsilon
        assert sum(loss(part.price) for part in made.noised) == made.epsilon
    assert open_session.plan(n, epsilon=0.1).epsilon == Fraction(1, 10)
    assert open_session.spent.epsilon == 0


def test_t6_a_table_that_declares_no_bounds_does_not_exist(tmp_path: Path) -> None:
    """There is no way to declare a number without bounds, and no sum of a column that is not declared."""
    with pytest.raises(TypeError):
        anything.number()
    with pytest.raises(TypeError):
        anything.integer(0)
    only = pv.table("people", ROWS, protect=PERSON, columns={"age": pv.integer(0, 110)})
    with pytest.raises(UserError, match="no column 'income'"):
        only.agg(s=pv.sum("income"))
    with pytest.raises(UserError, match="no column 'who'"):
        only.where(pv.col("who") == 1)
