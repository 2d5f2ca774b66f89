"""PEP 249: what it says about modules, connections and cursors, and what it costs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.asking import COUNT, POLICY, damaged, made

from privet import dbapi
from privet.errors import BudgetError, QueryError
from privet.exact import Exact
from privet.sql.binding import bound

ONE = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made(tmp_path_factory.mktemp("people"), POLICY.replace("epsilon = 3 }", "epsilon = 1000 }"))
    return folder / "privet.toml"


@pytest.fixture
def connection(policy: Path) -> Iterator[dbapi.Connection]:
    with dbapi.connect(policy, epsilon=0.25, max_epsilon=1) as opened:
        yield opened


def spent(connection: dbapi.Connection) -> Exact:
    return Exact(connection.limited.session.spent.epsilon)


def test_the_module() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    assert issubclass(dbapi.ProgrammingError, dbapi.DatabaseError)
    assert issubclass(dbapi.InterfaceError, dbapi.Error)
    assert dbapi.Date(2025, 1, 31) == date(2025, 1, 31)
    moment = datetime(2025, 1, 31, 8, 30, 5)
    assert dbapi.Timestamp(2025, 1, 31, 8, 30, 5) == dbapi.TimestampFromTicks(moment.timestamp()) == moment
    assert dbapi.Time(8, 30, 5) == dbapi.TimeFromTicks(moment.timestamp()) == moment.time()
    assert dbapi.DateFromTicks(moment.timestamp()) == moment.date()
    with pytest.raises(dbapi.NotSupportedError):
        dbapi.Binary(b"x")
    for name in dbapi.__all__:
        if name.endswith("Error") or name == "Warning":
            assert getattr(dbapi.Connection, name) is getattr(dbapi, name)


def test_an_answer(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.description is None
    cursor.execute(COUNT)
    assert cursor.description is not None
    assert [column[:2] for column in cursor.description] == [
        ("region", dbapi.STRING), ("n", dbapi.NUMBER), ("n_low", dbapi.NUMBER), ("n_high", dbapi.NUMBER),
        ("n_noisy", dbapi.BOOLEAN),
    ]  # fmt: skip
    assert cursor.rowcount == 3
    first = cursor.fetchone()
    assert first is not None
    assert first[0] == "north"
    assert first[2] <= first[1] <= first[3]
    assert [row[0] for row in cursor.fetchmany(1)] == ["south"]
    assert [row[0] for row in cursor] == ["elsewhere"]
    assert (cursor.fetchone(), cursor.fetchmany(5), cursor.fetchall()) == (None, [], [])
    assert cursor.release is not None
    assert cursor.release.certificate.document["dataset"] == "people"


def test_a_statement_is_paid_for_once(policy: Path, connection: dbapi.Connection) -> None:
    """Repeated, after a rollback, in another connection, by threads: it is the same answer."""
    asked = f"{ONE} WHERE age > 30"
    before, rows = spent(connection), []
    rows.append(connection.cursor().execute(asked).fetchall())
    connection.rollback()
    rows.append(connection.cursor().execute(asked).fetchall())
    connection.commit()
    with dbapi.connect(policy, epsilon=0.25, max_epsilon=0.25) as another:
        rows.append(another.cursor().execute(asked).fetchall())
        assert another.limited.allowance.left == Exact(1, 4)

    def ask() -> None:
        rows.append(connection.cursor().execute(f"{asked} LIMIT 10").fetchall())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert rows == [rows[0]] * 7
    assert spent(connection) - before == Exact(1, 4)


def test_the_price(connection: dbapi.Connection, policy: Path) -> None:
    cursor, before = connection.cursor(), spent(connection)
    cursor.execute("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5) COUNT(*) AS n FROM people WHERE age > 40")
    assert spent(connection) - before == Exact(1, 2)
    cursor.execute(f"{ONE} WHERE age > 41")
    assert connection.limited.allowance.left == Exact(1, 4)
    with pytest.raises(dbapi.OperationalError, match=r"only epsilon 0.25 is left of the 1 that this") as caught:
        cursor.execute("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.3) COUNT(*) AS n FROM people")
    assert isinstance(caught.value.__cause__, BudgetError)
    assert cursor.description is None
    with (
        dbapi.connect(policy, max_epsilon=1) as unpriced,
        pytest.raises(
            dbapi.ProgrammingError,
            match=r"neither the statement nor the connection says what to pay. Nothing was spent",
        ),
    ):
        unpriced.cursor().execute(ONE)
    with dbapi.connect(policy, epsilon=0.25, max_epsilon=1, intervals=False) as plain:
        described = plain.cursor().execute(COUNT).description
        assert described is not None
        assert [column[0] for column in described] == ["region", "n"]


PROBES = [
    "SELECT * FROM people", "SELECT DISTINCT region FROM people", "SELECT region FROM people LIMIT 0",
    f"{ONE} LIMIT 0", f"SELECT * FROM ({COUNT}) AS virtual_table LIMIT 1000", "SELECT version()", "select @@version",
    "SHOW TABLES", "PRAGMA table_info('people')", "SELECT table_name FROM information_schema.tables", "BEGIN",
    "SELECT current_schema()", "EXPLAIN SELECT COUNT(*) FROM people", "DROP TABLE people", f"{ONE}; {ONE}",
    "INSERT INTO people VALUES (1)", "CREATE TABLE x (a INT)", "SAVEPOINT a", "", "SELECT 1 FROM people", "SELECT 1, 2",
]  # fmt: skip


def test_probes_cost_nothing(connection: dbapi.Connection) -> None:
    before, cursor = spent(connection), connection.cursor()
    for probe in PROBES:
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute(probe)
    for constant, named in (("SELECT 1", "1"), ("select 1 as ok;", "ok")):
        cursor.execute(constant)
        assert cursor.fetchall() == [(1,)]
        assert cursor.description is not None
        assert cursor.description[0][0] == named
        assert cursor.release is None
    with pytest.raises(dbapi.NotSupportedError, match="Nothing was spent"):
        cursor.executemany(f"{ONE} WHERE age > ?", [(i,) for i in range(1000)])
    assert spent(connection) == before
    assert connection.limited.allowance.left == 1


def test_what_is_closed(policy: Path) -> None:
    connection = dbapi.connect(policy, epsilon=0.25, max_epsilon=1)
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match="nothing was asked yet"):
        cursor.fetchone()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="this cursor is closed"):
        cursor.execute(ONE)
    left = connection.cursor()
    connection.close()
    connection.close()
    for use in (connection.cursor, connection.commit, connection.rollback, lambda: left.execute(ONE)):
        with pytest.raises(dbapi.InterfaceError, match="this connection is closed"):
            use()


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"policy": "privet.toml", "epsilon": 1}, dbapi.InterfaceError, "max_epsilon is missing"),
        ({"policy": "privet.toml", "max_epsilon": 0}, dbapi.DataError, "max_epsilon must be"),
        ({"policy": "privet.toml", "max_epsilon": 1, "epsilon": "x"}, dbapi.DataError, "epsilon must be"),
        ({"max_epsilon": 1}, dbapi.InterfaceError, "either a policy or the address"),
        ({"policy": "none.toml", "max_epsilon": 1}, dbapi.InterfaceError, "there is no policy"),
        ({"url": "http://x.org", "max_epsilon": 1, "token": "t"}, dbapi.InterfaceError, "clear text"),
    ],
)
def test_wrong_connections(given: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        dbapi.connect(**given)


def test_an_engine_that_fails(tmp_path: Path) -> None:
    made(tmp_path)
    damaged(tmp_path / "people.parquet", "income")
    with dbapi.connect(tmp_path / "privet.toml", epsilon=0.25, max_epsilon=1) as connection:
        with pytest.raises(dbapi.OperationalError, match="It was paid for, and nothing was released"):
            connection.cursor().execute("SELECT AVG(income) AS a FROM people")
        assert connection.limited.allowance.left == Exact(3, 4)


# --- parameters ---------------------------------------------------------------------------------------------

VALUES = [
    (None, "NULL"), (True, "TRUE"), (7, "7"), (-7, "(-7)"), (0.1, "0.1"), (1e-7, "0.0000001"), (-2.5, "(-2.5)"),
    (Decimal("1.50"), "1.50"), ("it's", "'it''s'"), ("?", "'?'"), ("' OR 1=1 --", "''' OR 1=1 --'"),
    ("\\", "'\\'"), ("\\' OR 1=1 --", "'\\'' OR 1=1 --'"), ("/*", "'/*'"), (date(2025, 1, 31), "DATE '2025-01-31'"),
    (datetime(2025, 1, 31, 8, 30), "TIMESTAMP '2025-01-31 08:30:00'"), (10**40 + 1, f"{10**40 + 1}"),
    (Decimal("-0.1234567890123456789012345678901"), "(-0.1234567890123456789012345678901)"),
]  # fmt: skip


def test_values_become_literals() -> None:
    for value, written in VALUES:
        assert bound("SELECT COUNT(*) FROM t WHERE a = ? AND b = '?' -- ?", [value]) == (
            f"SELECT COUNT(*) FROM t WHERE a = {written} AND b = '?' -- ?"
        )


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a = ?", []), ("a = ?", [1, 2]), ("a = '?'", [1]), ("a = -- ?", [1]), ("a = e?", ["ab"]), ("a = ?1", [5]),
        ("a = 1?", [5]), ("a = ?'b'", ["a"]), ("a = '?", ["x"]), ("a = ?", [b"x"]), ("a = ?", [[1]]),
        ("a = ?", [float("nan")]), ("a = ?", [float("inf")]), ("a = ?", [Decimal("NaN")]),
        ("a = ?", [Decimal("1e999999")]), ("a = ?", [datetime.now(UTC)]), ("a = ?", ["x" * 20_000]), ("a = ?", [1j]),
    ],
)  # fmt: skip
def test_what_is_not_safe_is_refused(text: str, values: list[Any]) -> None:
    with pytest.raises(QueryError):
        bound(text, values)


def careless(text: str, values: list[Any]) -> str:
    """Puts values where question marks are, as texts."""
    for value in values:
        text = text.replace("?", f"'{value}'", 1)
    return text


def test_a_value_can_t_change_the_question(connection: dbapi.Connection) -> None:
    session = connection.limited.session
    asked, value = f"{ONE} WHERE region = ?", "north' OR age > 0 OR region = 'south"
    changed = session.plan(careless(asked, [value]), epsilon=0.1)
    assert "age" in repr(changed.query), "it breaks"
    with pytest.raises(dbapi.ProgrammingError, match="region can never be"):
        connection.cursor().execute(asked, (value,))
    rows = connection.cursor().execute(asked, ("north",)).fetchall()
    assert rows == connection.cursor().execute(f"{ONE} WHERE region = 'north'").fetchall()
    assert connection.cursor().execute(f"{ONE} WHERE region = 'north'", None).fetchall() == rows
    for wrong in ({"region": "north"}, "n", 5):
        with pytest.raises(dbapi.ProgrammingError, match="parameters must be a sequence"):
            connection.cursor().execute(asked, wrong)
