"""What Postgres's catalogue says of a table: what is refused when it is declared, and noticed before a debit."""

from __future__ import annotations

import re
import socket
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pyarrow as pa
import pytest
from tests import in_postgres
from tests.cli.steward import ran

import privet as pv
from privet.engines.postgres import addresses, connections, tables
from privet.engines.postgres.types import identifier
from privet.errors import PrivetError, SourceError, UserError

AGES = {"age": pv.integer(0, 110)}
MOODS = {"mood": pv.keys("x", "y")}


@pytest.fixture(autouse=True)
def home(postgres: str) -> Iterator[str]:
    with in_postgres.at(postgres):
        yield postgres


def opened(address: str, **options: Any) -> pv.Table:
    return pv.table("t", address, **{"protect": pv.each_row(), "columns": AGES, **options})


def counted(table: pv.Table) -> int:
    with pv.Session([table], budget=pv.PureDP(10**6), ledger=None) as session:
        return int(session.release(table.agg(n=pv.count()), epsilon=10**5).values("n")[0])


def changes(table: pv.Table, what: str, *statements: str) -> None:
    """Statements that a running session notices before it pays."""
    with pv.Session([table], budget=pv.PureDP(10), ledger=None) as session:
        session.release(table.agg(n=pv.count()), epsilon=1)
        in_postgres.execute(*statements)
        with pytest.raises(SourceError, match=what):
            session.release(table.where(pv.col(table.schema.columns[0][0]).is_null()).agg(n=pv.count()), epsilon=1)
        assert session.spent == pv.PureDP(1)


SHOUT = [
    "CREATE FUNCTION shout(mood) RETURNS text LANGUAGE sql AS $$SELECT 'y'$$",
    "CREATE CAST (mood AS text) WITH FUNCTION shout(mood)",
]
MOODY = ["CREATE TYPE mood AS ENUM ('x', 'y')", "CREATE DOMAIN temper AS mood", "INSERT INTO t VALUES ('x')"]


@pytest.mark.parametrize("kind", ["mood", "temper"])
def test_a_cast_to_text_by_somebody_s_function(home: str, kind: str) -> None:
    in_postgres.execute(*MOODY[:2], f"CREATE TABLE t (mood {kind})", MOODY[2])
    table = opened(home, columns=MOODS)
    changes(table, "another cast to text", *SHOUT)
    with pytest.raises(SourceError, match=r"contains public\.mood, with a cast to text by a function"):
        opened(home, columns=MOODS)
    with (
        pytest.raises(SourceError, match="was changed in Postgres"),
        pv.Session([table], budget=pv.PureDP(1), ledger=None) as session,
    ):
        session.release(table.agg(n=pv.count()), epsilon=1)


def test_types_are_not_known_by_their_names_alone(home: str) -> None:
    in_postgres.execute(
        "CREATE SCHEMA numerics", "CREATE TYPE numerics.mood AS ENUM ('x', 'y')",
        "CREATE TYPE citext AS RANGE (subtype = integer)",
        "CREATE TABLE t (mood numerics.mood, span citext)", "INSERT INTO t VALUES ('x', '[1,2]')",
    )  # fmt: skip
    assert counted(opened(home, columns=MOODS)) == 1
    with pytest.raises(SourceError, match=r"contains public\.citext"):
        opened(home, columns={"span": pv.keys("x")})


def test_a_materialized_view(home: str) -> None:
    in_postgres.execute("CREATE MATERIALIZED VIEW t AS SELECT i AS age FROM generate_series(1, 7) AS i")
    assert counted(opened(home)) == 7
    changes(opened(home), "was changed", "ALTER MATERIALIZED VIEW t RENAME age TO elder", "SELECT 1")


def test_rights_for_single_columns(home: str) -> None:
    in_postgres.execute(
        "DROP ROLE IF EXISTS narrow", "CREATE ROLE narrow LOGIN", "CREATE TABLE t (pid int, age int, secret text)",
        "INSERT INTO t VALUES (1, 20), (2, 30)", "GRANT SELECT (pid, age) ON t TO narrow",
        "GRANT USAGE ON SCHEMA public TO narrow",
    )  # fmt: skip
    try:
        address = home.replace("postgres:@", "narrow@")
        table = opened(address, protect=pv.person("pid", max_rows=1))
        assert counted(table) == 2
        with pytest.raises(SourceError, match="permission denied"):
            opened(address, columns={"secret": pv.text()})
        changes(table, "was changed", "ALTER TABLE t ALTER age TYPE bigint")
    finally:
        in_postgres.execute("DROP OWNED BY narrow", "DROP ROLE narrow")


def test_row_level_security_that_is_switched_on_later(home: str) -> None:
    in_postgres.execute(
        "DROP ROLE IF EXISTS ruled", "CREATE ROLE ruled LOGIN", "CREATE TABLE t (age int)",
        "GRANT SELECT ON t TO ruled", "GRANT USAGE ON SCHEMA public TO ruled",
    )  # fmt: skip
    try:
        table = opened(home.replace("postgres:@", "ruled@"))
        changes(table, "row-level security.*Nothing was spent", "ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    finally:
        in_postgres.execute("DROP OWNED BY ruled", "DROP ROLE ruled")


@pytest.mark.parametrize("below", ["t", "inner_one"])
def test_a_view_that_is_replaced(home: str, below: str) -> None:
    in_postgres.execute(
        "CREATE TABLE people AS SELECT 20 AS age", "CREATE VIEW inner_one AS SELECT age FROM people",
        "CREATE VIEW t AS SELECT age FROM inner_one",
    )  # fmt: skip
    replaced = f"CREATE OR REPLACE VIEW {below} AS SELECT age + 1 AS age FROM people"
    changes(opened(home), "a view has another definition", replaced)


@pytest.mark.parametrize("other", ["numeric(12,2)", "numeric(38,10)", "double precision", "text"])
def test_numbers_of_any_length_are_ids_of_people(home: str, other: str) -> None:
    """All digits count, and zeros at the end do not."""
    in_postgres.execute(
        f"CREATE TABLE a (id numeric, x int); CREATE TABLE b (id {other}, y int)",
        "INSERT INTO a VALUES (1.000, 1), (2.50, 1), (1e40 + 1, 1), ('NaN', 1), (NULL, 1)",
        "INSERT INTO b VALUES ('1', 1), ('2.5', 1), ('3', 1), (NULL, 1)",
    )  # fmt: skip
    a, b = (
        pv.table(name, f"{home}#{name}", protect=pv.person("id", max_rows=1), columns={of: pv.integer(0, 1)})
        for name, of in (("a", "x"), ("b", "y"))
    )
    with pv.Session([a, b], budget=pv.PureDP(10**6), ledger=None) as session:
        joined = session.tables["a"].join(session.tables["b"])
        assert int(session.release(joined.agg(n=pv.count()), epsilon=10**5).values("n")[0]) == 2


VIRTUAL = "CREATE TABLE t (v int, age int GENERATED ALWAYS AS (v) VIRTUAL)"
COMPUTED = "ADD age int GENERATED ALWAYS AS (10 / v) VIRTUAL"
SET = "ALTER age SET EXPRESSION AS (10 / v)"


@pytest.mark.parametrize(("before", "after"), [
    ([VIRTUAL], [f"ALTER TABLE t {SET}"]),
    (["CREATE TABLE t (v int, age int)"], ["ALTER TABLE t DROP age", f"ALTER TABLE t {COMPUTED}"]),
    ([VIRTUAL], ["ALTER TABLE t DROP age", "ALTER TABLE t ADD age int"]),
    ([VIRTUAL.replace("t (", "b ("), "CREATE VIEW t AS SELECT age FROM b"], [f"ALTER TABLE b {SET}"]),
    ([f"{VIRTUAL} PARTITION BY LIST (v)", "CREATE TABLE p PARTITION OF t FOR VALUES IN (0)"], [f"ALTER TABLE p {SET}"]),
], ids=["set", "added", "removed", "below a view", "of a partition"])  # fmt: skip
def test_a_virtual_column_that_computes_something_else(home: str, before: list[str], after: list[str]) -> None:
    """An expression that fails for some rows would tell whether there are any."""
    with psycopg.connect(home) as connection:
        if connection.info.server_version < 180000:
            pytest.skip("this Postgres has no virtual generated columns")
    in_postgres.execute(*before)
    table = opened(home)
    assert counted(table) == 0
    changes(table, "another expression", *after)


FAR = [
    "CREATE FOREIGN DATA WRAPPER nothing", "CREATE SERVER far FOREIGN DATA WRAPPER nothing",
    "CREATE TABLE t (age int) PARTITION BY LIST (age)",
]  # fmt: skip
PART = "CREATE FOREIGN TABLE part PARTITION OF t FOR VALUES IN (1) SERVER far"


def test_foreign_tables_below_a_table(home: str) -> None:
    try:
        in_postgres.execute(*FAR)
        changes(opened(home), "was changed|no handler", PART)
        in_postgres.execute(
            "CREATE TABLE parent (age int)", "CREATE FOREIGN TABLE child () INHERITS (parent) SERVER far",
            "CREATE VIEW seen AS SELECT age FROM parent",
        )  # fmt: skip
        for name, foreign in {"t": "part", "parent": "child", "seen": "child"}.items():
            with pytest.raises(SourceError, match=rf"reads public\.{foreign}, a foreign table"):
                opened(f"{home}#{name}")
    finally:
        in_postgres.execute("DROP FOREIGN DATA WRAPPER IF EXISTS nothing CASCADE")


def test_settings_of_arrays_and_names(home: str) -> None:
    in_postgres.execute("CREATE TABLE t AS SELECT 20 AS age")
    address = f"{home}&options=-carray_nulls%3Doff%20-cquote_all_identifiers%3Don"
    table = opened(address)
    extra = pv.public_table("extra", pa.table({"age": [20], "who": pa.array([None], pa.string())}), key="age")
    joined = table.join(extra, on="age")
    with pv.Session([table], public=[extra], budget=pv.PureDP(10**6), ledger=None) as session:
        missing = joined.where(pv.col("who").is_null()).agg(n=pv.count())
        assert session.release(missing, epsilon=10**5).values("n") == [1]


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x\\", "a\\'b", "\\", "a\\\\", "a'b", "t\\'); SELECT 'x"])
def test_names_do_not_depend_on_how_the_database_reads_texts(home: str, name: str) -> None:
    """The first message of a transaction is read as a whole, before its own settings hold."""
    database = psycopg.conninfo.conninfo_to_dict(home)["dbname"]
    for setting in ("on", "off"):
        in_postgres.execute(f"ALTER DATABASE {database} SET standard_conforming_strings = {setting}")
        named, schema = identifier(name), identifier(f"of {name}")
        in_postgres.execute(
            "DROP TABLE IF EXISTS x", "CREATE TABLE x (age int)", f"DROP SCHEMA IF EXISTS {schema} CASCADE",
            f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.{named} ({named} int)",
            f"INSERT INTO {schema}.{named} VALUES (1), (2)",
        )  # fmt: skip
        table = opened(f"{home}#{quote(f'of {name}', safe='')}.{quote(name, safe='')}", columns={name: AGES["age"]})
        assert counted(table) == 2
        changes(table, "another type", f"ALTER TABLE {schema}.{named} ALTER {named} TYPE double precision")


def test_names_that_forge_a_marker_are_refused(home: str) -> None:
    in_postgres.execute('CREATE TABLE "\x010.0\x01" (age int)', "CREATE TABLE t (age int)")
    for name in ("\x010.0\x01", "%010.0%01", '"\x010.0\x01"', "a\u202eb", '"\x010.0\x01".t'):
        with pytest.raises(SourceError, match="is not the name of a table"):
            addresses.parsed(f"{home}#{name}")
    assert [each.table for each in tables.every(addresses.parsed(home))] == ["t"]


@pytest.mark.parametrize("name", ["at@t", "a@", "50%40", 'q"@".x', "hash#@", " blank ", "ask?me"])
def test_an_address_that_is_written_is_read_again(home: str, name: str) -> None:
    for schema in ("public", name):
        again = addresses.parsed(addresses.written(addresses.parsed(home).plain, schema, name))
        assert (again.schema, again.table) == (schema, name)


ADDRESSES = [
    f"{scheme}://{user}{host}{path}{query}{table}"
    for scheme in ("postgresql", "postgres")
    for user in ("", "me@", "me:hush@", "me%40corp:hu%2Fsh@", ":hush@")
    for host in ("", "h", "h:5432", "[::1]:5432", "h:1,[::1]:2", "%2Frun%2Fpostgresql")
    for path, query in (
        ("/base", ""), ("/b%20a", "?sslmode=require&sslrootcert=%2Fca.pem"), ("/base", "?host=/run/postgresql"),
        ("/", "?service=health"), ("", "?dbname=base"), ("/base", "?password=hush&user=you"),
    )
    for table in ("", '#clinic."A.b"')
]  # fmt: skip


@pytest.mark.parametrize("user", ["", "me@", "me:hush@"])
def test_an_address_without_its_password_leads_to_the_same_place(user: str) -> None:
    for text in (each for each in ADDRESSES if f"://{user}" in each):
        address = addresses.parsed(text)
        again = addresses.parsed(address.plain)
        given, kept = (psycopg.conninfo.conninfo_to_dict(each.url) for each in (address, again))
        given.pop("password", None)
        assert kept == given, text
        assert again.plain == address.plain
        if "password" not in psycopg.conninfo.conninfo_to_dict(address.url):
            assert address.plain == address.url


def test_a_policy_for_a_service_or_a_socket(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_postgres.execute("CREATE TABLE visits (patient int, age int)")
    parts = {name: str(value) for name, value in psycopg.conninfo.conninfo_to_dict(home).items()}
    service = tmp_path / "services"
    service.write_text("[health]\n" + "".join(f"{name}={value}\n" for name, value in parts.items()))
    monkeypatch.setenv("PGSERVICEFILE", str(service))
    monkeypatch.chdir(tmp_path)
    local = f"postgresql:///{parts['dbname']}?host={parts['host']}&user={parts['user']}"
    for address in ("postgresql:///?service=health", local):
        ran("init", f"{address}#visits", "--yes", "--person", "patient", "--max-rows", "5", "--force")
        assert f'source = "{address}#public.visits"' in (tmp_path / "privet.toml").read_text()


def test_tables_of_one_name_in_two_schemas(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_postgres.execute(
        "CREATE SCHEMA clinic", "CREATE TABLE visits (age int)", 'CREATE TABLE clinic."Visits" (age int)',
        "CREATE TABLE clinic.people (age int)", "CREATE TABLE clinic_visits (age int)",
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    ran("init", home, "--yes", "--each-row")
    (dataset,) = tomllib.loads((tmp_path / "privet.toml").read_text())["datasets"].values()
    found = {name: table["source"].partition("#")[2] for name, table in dataset["tables"].items()}
    assert found == {
        "visits": "public.visits", "clinic_Visits_2": "clinic.Visits", "people": "clinic.people",
        "clinic_visits": "public.clinic_visits",
    }  # fmt: skip


def test_two_roles_need_a_password_file(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_postgres.execute("CREATE TABLE visits (patient int, age int)")
    monkeypatch.chdir(tmp_path)
    said = ran("init", f"{home}#visits", "--yes", "--person", "patient", "--ledger", "postgresql://l@h/base").output
    assert "Use a password file (~/.pgpass) or a service: PGPASSWORD is for one role, not for two." in said


POLICY = """
ledger = "x.ledger"
[datasets.d]
budget = {{ epsilon = 1 }}
adjacency = "add/remove"
[datasets.d.tables.t]
source = "{source}"
protect = "each row"
[datasets.d.tables.t.columns]
age = {{ integer = [0, 110] }}
"""


@pytest.mark.parametrize("face", ["python", "policy"])
def test_who_can_t_connect_reads_what_helps(home: str, tmp_path: Path, face: str) -> None:
    wrong = {
        home.replace("/ledger_", "/no_ledger_"): "Check the host, the user and the database",
        home.replace("postgres:@", "nobody_at_all@"): "Check the host, the user and the database",
    }
    for address, what in wrong.items():
        policy = tmp_path / "privet.toml"
        policy.write_text(POLICY.format(source=address))
        with pytest.raises(PrivetError) as caught:
            opened(address) if face == "python" else pv.Session.open(policy)
        assert "can't connect" in str(caught.value)
        assert what in str(caught.value)
        assert "people.parquet" not in str(caught.value)
        assert re.search(r"ledger_\w+\S*: (database|role) .* does not exist\. Check", str(caught.value))


@pytest.mark.parametrize("said", ["no password supplied", 'password authentication failed for user "reader"'])
def test_a_password_that_is_missing_or_wrong(home: str, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise psycopg.OperationalError(f"connection failed: fe_sendauth: {said}")

    monkeypatch.setattr("privet.system.postgres.LimitedConnection.connect", refused)
    with pytest.raises(UserError, match=r"Set PGPASSWORD, or write the password to ~/\.pgpass"):
        opened(home)


def test_a_stopped_server_refuses_the_connection(unused: int) -> None:
    for hosts in (f"127.0.0.1:{unused}", f"127.0.0.1:{unused},127.0.0.1:{unused}"):
        with pytest.raises(SourceError) as caught:
            opened(f"postgresql://me:hush@{hosts}/base")
        assert str(caught.value) == (
            f"can't connect to postgresql://***@{hosts}/base: Connection refused. "
            "Check that Postgres is running there, and the host and the port: postgresql://USER@HOST:PORT/DATABASE"
        )


@pytest.fixture
def unused() -> int:
    """A port at which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


AT = 'connection to server at "db.example.org" (10.0.0.1), port 5432 failed: '


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (f"connection failed: {AT}FATAL:  no such thing", "no such thing"),
        (f"{AT}FATAL:  no encrypted way\n{AT}FATAL:  no other way", "no encrypted way; no other way"),
        (f"connection failed: {AT}fe_sendauth: no password supplied", "fe_sendauth: no password supplied"),
        (f"connection failed: {AT}timeout expired\n", "timeout expired"),
        ("connection is bad: no error details available", "no error details available"),
        (
            'connection is bad: connection to server on socket "/run/.s" failed: No such file or directory\n\tIs it?',
            "No such file or directory",
        ),
        (
            "server closed the connection unexpectedly\n\tThis probably means\n\tbefore or while processing.",
            "server closed the connection unexpectedly",
        ),
        ("failed to resolve host 'x': [Errno -2] Name or service not known", None),
        (f'{AT}invalid option "-chush"', 'invalid option "***"'),
        ("", "OperationalError"),
    ],
)  # fmt: skip
def test_a_server_s_own_words_are_said_once(error: str, words: str | None) -> None:
    address = addresses.parsed("postgresql://me:hush@db.example.org/base?options=-chush")
    assert connections.told(address, psycopg.OperationalError(error)) == (error if words is None else words)
