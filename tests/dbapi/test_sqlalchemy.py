"""The dialect `privet://`, as SQLAlchemy, pandas and tools for charts use it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects import registry
from sqlalchemy.pool import NullPool
from tests.cli.asking import COUNT, POLICY, made
from tests.client.real import PACE, served

import privet as pv
from privet.dbapi.dialect import PrivetDialect
from privet.exact import Exact

ONE = "SELECT COUNT(*) AS n FROM people"
registry.register("privet", "privet.dbapi.dialect", "PrivetDialect")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    declared = POLICY.replace("epsilon = 3 }", "epsilon = 1000 }")
    return made(tmp_path_factory.mktemp("people"), declared) / "privet.toml"


@pytest.fixture
def engine(policy: Path) -> Iterator[sa.Engine]:
    opened = sa.create_engine(f"privet:///{policy}?dataset=people&epsilon=0.25&max_epsilon=1")
    yield opened
    opened.dispose()


def spent(policy: Path) -> Exact:
    with pv.Session.open(policy) as session:
        return Exact(session.spent.epsilon)


def left(engine: sa.Engine) -> Exact:
    with engine.connect() as connection:
        opened: Any = connection.connection.driver_connection
        return Exact(opened.limited.allowance.left)


def test_the_entry_point_names_the_dialect() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"]["sqlalchemy.dialects"]["privet"].partition(":")
    assert getattr(import_module(module), name) is PrivetDialect


def test_pandas(engine: sa.Engine, policy: Path) -> None:
    before = spent(policy)
    frame = pd.read_sql(COUNT, engine)
    assert [*frame.columns] == ["region", "n", "n_low", "n_high", "n_noisy"]
    assert [*frame["region"]] == ["north", "south", "elsewhere"]
    assert frame["n"].dtype == "int64"
    with engine.connect() as connection:
        again = pd.read_sql(sa.text(COUNT), connection)
        chunks = [*pd.read_sql(sa.text(COUNT), connection, chunksize=2)]
    assert frame.equals(again)
    assert frame.equals(pd.concat(chunks, ignore_index=True))
    asked = f"{ONE} WHERE region = ? AND age > ?"
    assert len(pd.read_sql(asked, engine, params=("south", 20))) == 1
    assert spent(policy) - before == Exact(1, 2)
    for table in ("people", "nobody"):
        with pytest.raises((pd.errors.DatabaseError, exc.DatabaseError)):
            pd.read_sql(table, engine)
    with pytest.raises(exc.DatabaseError):
        frame.to_sql("copy", engine)
    assert spent(policy) - before == Exact(1, 2)


def test_expressions(engine: sa.Engine) -> None:
    people = sa.Table("people", sa.MetaData(), autoload_with=engine)
    asked = (
        sa.select(people.c.region, sa.func.count().label("n"))
        .where(people.c.age > 20, people.c.smoker == sa.true(), people.c.region.in_(["north", "south"]))
        .group_by(people.c.region)
        .limit(10)
    )
    with engine.begin() as connection:
        result = connection.execute(asked)
        assert [*result.keys()] == ["region", "n", "n_low", "n_high", "n_noisy"]
        rows = result.all()
        assert [row.region for row in rows] == [row[0] for row in rows] == ["north", "south"]
        assert connection.execute(asked).all() == rows
        assert rows[0].n_low <= rows[0].n <= rows[0].n_high
        assert connection.scalar(sa.select(sa.literal_column("1"))) == 1
    assert left(engine) == Exact(3, 4)


def test_describing_never_pays(engine: sa.Engine, policy: Path) -> None:
    before, inspector = spent(policy), sa.inspect(engine)
    assert inspector.get_table_names() == ["people"]
    assert inspector.has_table("people")
    assert not inspector.has_table(COUNT)
    assert not inspector.has_table("people", schema="other")
    columns = {column["name"]: column for column in inspector.get_columns("people")}
    assert {name: type(column["type"]) for name, column in columns.items()} == {
        "region": sa.String, "age": sa.BigInteger, "income": sa.Float, "smoker": sa.Boolean, "day": sa.Date,
    }  # fmt: skip
    assert columns["age"]["comment"] == "an integer in 0..110"
    assert inspector.get_pk_constraint("people")["constrained_columns"] == []
    keys = ("foreign_keys", "indexes", "unique_constraints", "check_constraints")
    assert [getattr(inspector, f"get_{each}")("people") for each in keys] == [[]] * 4
    assert inspector.get_schema_names() == inspector.get_view_names() == []
    assert inspector.get_table_comment("people")["text"] == "protects each person_id; uses at most 1 row of each"
    metadata = sa.MetaData()
    metadata.reflect(engine)
    assert [*metadata.tables] == ["people"]
    with pytest.raises(exc.NoSuchTableError):
        inspector.get_columns("nobody")
    assert spent(policy) == before
    assert left(engine) == 1


PROBES = (
    "SELECT * FROM people", "SELECT DISTINCT region FROM people", "SELECT * FROM people LIMIT 0", f"{ONE} LIMIT 0",
    "SELECT people.region, people.age FROM people", "SELECT version()", f"SELECT * FROM ({COUNT}) AS virtual_table",
    "ROLLBACK", "SHOW DATABASES",
)  # fmt: skip


def test_probes_cost_nothing(engine: sa.Engine, policy: Path) -> None:
    before = spent(policy)
    with engine.connect() as connection:
        for probe in PROBES:
            with pytest.raises(exc.ProgrammingError):
                connection.exec_driver_sql(probe)
        with pytest.raises(exc.NotSupportedError):
            connection.execute(sa.text(f"{ONE} WHERE age > :age"), [{"age": i} for i in range(100)])
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
        with pytest.raises(exc.ProgrammingError), connection.begin_nested():
            connection.exec_driver_sql(ONE)
    assert engine.dialect.do_ping(engine.raw_connection().driver_connection)  # type: ignore[arg-type]
    assert spent(policy) == before


# --- pools --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", [None, NullPool])
def test_ten_threads_share_one_maximum(policy: Path, pool: type[sa.Pool] | None) -> None:
    """Each thread has a connection of its own, opened at the same moment as the others, or for each question."""
    options: dict[str, Any] = {"pool_size": 10} if pool is None else {"poolclass": pool}
    engine = sa.create_engine(f"privet:///{policy}?epsilon=0.25&max_epsilon=1", pool_pre_ping=True, **options)
    before, first = spent(policy), 50 if pool is None else 65
    refusals: list[str] = []

    def ask(number: int) -> bool:
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(f"{ONE} WHERE age > {first + number}").all()
            return True
        except exc.OperationalError as error:
            refusals.append(str(error))
            return False

    with ThreadPoolExecutor(10) as threads:
        answered = [*threads.map(ask, range(10))]
    assert sum(answered) == 4
    assert all("that this connection may spend" in each for each in refusals)
    assert spent(policy) - before == 1
    engine.dispose()  # new connections have no new maximum
    assert left(engine) == 0
    again = answered.index(True)
    assert ask(again), "a stored answer is free"
    assert not ask(answered.index(False))
    assert spent(policy) - before == 1
    engine.dispose()


def test_a_maximum_for_each_connection_would_not_hold(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PrivetDialect.connect

    def careless(self: PrivetDialect, *cargs: Any, **cparams: Any) -> Any:
        self._shared = None
        return whole(self, *cargs, **cparams)

    monkeypatch.setattr(PrivetDialect, "connect", careless)
    engine, before = sa.create_engine(f"privet:///{policy}?epsilon=0.25&max_epsilon=0.25"), spent(policy)
    with engine.connect() as one, engine.connect() as other:
        one.exec_driver_sql(f"{ONE} WHERE income > 5")
        other.exec_driver_sql(f"{ONE} WHERE income > 6")
    engine.dispose()
    assert spent(policy) - before == Exact(1, 2), "it breaks"


def test_transactions_do_nothing(engine: sa.Engine, policy: Path) -> None:
    before = spent(policy)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        rows = connection.exec_driver_sql(f"{ONE} WHERE age > 33").all()
    with engine.connect() as connection, connection.begin() as transaction:
        assert connection.exec_driver_sql(f"{ONE} WHERE age > 33").all() == rows
        transaction.rollback()
    assert spent(policy) - before == Exact(1, 4)


# --- URLs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("privet:///p.toml?epsilon=1", "max_epsilon is missing"),
        ("privet:///p.toml?max_epsilon=0", "max_epsilon must be"),
        ("privet:///p.toml?max_epsilon=1&epsilon=much", "epsilon must be"),
        ("privet:///p.toml?max_epsilon=1&max_epsilon=9", "is given twice"),
        ("privet:///p.toml?max_epsilon=1&token=secret", "there is no option 'token'"),
        ("privet:///p.toml?max_epsilon=1&intervals=maybe", "must be true or false"),
        ("privet:///p.toml?max_epsilon=1&tls=true", "tls is for servers"),
        ("privet://p.toml?max_epsilon=1", "write three slashes: privet:///p.toml"),
        ("privet://?max_epsilon=1", "neither a policy nor a server"),
        ("privet://ana:secret@x.org/people?max_epsilon=1", "must not contain a name or a token"),
        ("privet://x.org/people?max_epsilon=1&analyst=bob", "a server knows who you are"),
        ("privet://x.org/people?max_epsilon=1&dataset=other", "names the dataset twice"),
    ],
)
def test_wrong_urls(url: str, said: str) -> None:
    with pytest.raises(exc.ArgumentError, match=said) as caught:
        sa.create_engine(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "address", "dataset"),
    [
        ("privet://privet.example.org/people?max_epsilon=1", "https://privet.example.org", "people"),
        ("privet://x.org:8443?max_epsilon=1&dataset=people", "https://x.org:8443", "people"),
        ("privet://localhost:8765?max_epsilon=1", "http://localhost:8765", None),
        ("privet://localhost:8765/people?max_epsilon=1&tls=true", "https://localhost:8765", "people"),
        ("privet://[::1]:8765/people?max_epsilon=1", "http://[::1]:8765", "people"),
    ],
)
def test_urls_of_servers(url: str, address: str, dataset: str | None) -> None:
    _, given = PrivetDialect().create_connect_args(sa.make_url(url))
    assert (given["url"], given["dataset"]) == (address, dataset)


def test_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, POLICY + PACE)
    with served(tmp_path / "privet.toml") as serving:
        monkeypatch.setenv("PRIVET_TOKEN", serving.token())
        where = serving.url.removeprefix("http://")
        engine = sa.create_engine(f"privet://{where}/people?epsilon=0.5&max_epsilon=0.5&intervals=false")
        frame = pd.read_sql(COUNT, engine)
        assert [*frame.columns] == ["region", "n"]
        assert frame.equals(pd.read_sql(COUNT, engine))
        assert sa.inspect(engine).get_table_names() == ["people"]
        with pytest.raises(pd.errors.DatabaseError, match=r"nothing is left of the 0\.5"):
            pd.read_sql(ONE, engine)
        engine.dispose()
        assert serving.datasets["people"].session(analyst="ana").spent == pv.PureDP(0.5)
