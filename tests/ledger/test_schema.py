"""Where a ledger may be, what it is of which version, and what is no ledger and left as it is."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.ledger.common import PEOPLE, ask, cost, furnish, pay
from tests.ledger.conftest import Where

from privet.errors import LedgerBusy, LedgerError, UserError
from privet.ledger import Ledger, open_ledger
from privet.ledger.storage import tables
from privet.ledger.storage.postgres import settings
from privet.privacy.guarantees import PureDP

Refusal = (LedgerError, UserError)


def sql(where: Where, *statements: str) -> list[tuple[object, ...]]:
    """Run statements past the ledger; what the last one found."""
    found: list[tuple[object, ...]] = []
    if "://" in str(where):
        with psycopg.connect(str(where), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
                found = cursor.fetchall() if cursor.description else []
    else:
        with closing(sqlite3.connect(where)) as file:
            for statement in statements:
                found = file.execute(statement).fetchall()
            file.commit()
    return found


# --- versions ----------------------------------------------------------------------------------------


def test_a_ledger_says_once_which_version_it_is_of(where: Where) -> None:
    for _ in range(2):
        open_ledger(where).close()
        assert sql(where, "SELECT version FROM privet_ledger") == [(tables.VERSION,)]


@pytest.mark.parametrize("version", [0, 2, 99])
def test_a_ledger_of_another_version_is_refused_and_left_as_it_is(where: Where, version: int) -> None:
    with closing(open_ledger(where)) as ledger:
        furnish(ledger)
        before = ledger.history("people")
    sql(where, f"UPDATE privet_ledger SET version = {version}")
    for read_only in (False, True):
        with pytest.raises(
            LedgerError, match=f"has format version '{version}', but this version of Privet reads only 1"
        ):
            open_ledger(where, read_only=read_only)
    assert sql(where, "SELECT version, number FROM privet_ledger") == [(version, 12)]
    sql(where, "UPDATE privet_ledger SET version = 1")
    with closing(open_ledger(where)) as ledger:
        assert ledger.history("people") == before


def test_a_version_that_changes_while_a_ledger_is_open_is_refused(where: Where) -> None:
    """Another Privet may have written what this one can't read."""
    with closing(open_ledger(where)) as ledger:
        furnish(ledger)
        sql(where, "UPDATE privet_ledger SET version = 2")
        with pytest.raises(LedgerError, match="has format version '2'"):
            pay(ledger, "x", cost("1/100"))
    assert sql(where, "SELECT number FROM privet_ledger") == [(12,)]


# --- files that are no ledgers -----------------------------------------------------------------------


def _database(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def _other_tables(path: Path) -> None:
    _database(path, "CREATE TABLE people (id INTEGER)", "INSERT INTO people VALUES (1)")


def _other_tables_with_a_log(path: Path) -> None:
    _database(path, "PRAGMA journal_mode = WAL", "CREATE TABLE people (id INTEGER)")


def _half_a_ledger(path: Path) -> None:
    open_ledger(path).close()
    _database(path, "DROP TABLE privet_ledger")


def _a_view_of_that_name(path: Path) -> None:
    _database(path, "CREATE TABLE people (version INTEGER)", "CREATE VIEW privet_ledger AS SELECT 1 AS version")


def _text(path: Path) -> None:
    path.write_text("id,age\n1,2\n")


def _broken(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + bytes(range(256)) * 40)


def _cut(path: Path) -> None:
    with closing(open_ledger(path)) as ledger:
        furnish(ledger)
    path.write_bytes(path.read_bytes()[:5000])


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "file").write_text("x")


def _more_than_a_ledger(path: Path) -> None:
    open_ledger(path).close()
    _database(path, "CREATE TABLE people (id INTEGER)")


def _a_ledger_of_before(path: Path) -> None:
    """Tables that ledgers had once: names of ours are among them."""
    _database(path, "CREATE TABLE privet_schema (version INTEGER)", "CREATE TABLE privet_entries (number INTEGER)")


def _long_text(path: Path) -> None:
    path.write_text("id,age\n1,2\n" * 500)


def contents(folder: Path) -> dict[str, bytes]:
    """But for the index of a write-ahead log, which readers make too."""
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {
        path.name: held
        for path, held in files.items()
        if not path.name.endswith(("-shm", "-wal")) or (held and path.name.endswith("-wal"))
    }


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_other_tables, "exists, but is not a ledger"),
        (_other_tables_with_a_log, "-wal' beside the ledger"),
        (_half_a_ledger, "has no 'privet_ledger'"),
        (_a_view_of_that_name, "'people', which Privet did not create|the view 'privet_ledger'"),
        (_more_than_a_ledger, "the table 'people', which Privet did not create"),
        (_a_ledger_of_before, "which Privet did not create"),
        (_text, "exists, but is not a ledger"),
        (_long_text, "exists, but is not a ledger"),
        (_broken, "exists, but is not a ledger"),
        (_cut, "can't be read"),
        (_folder, "exists, but is not a ledger"),
    ],
)
def test_what_is_no_ledger_is_refused_and_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], None], says: str
) -> None:
    path = tmp_path / "people.db"
    make(path)
    before = contents(tmp_path)
    for how in ({"create": True}, {"create": False}, {"read_only": True}):
        with pytest.raises(Refusal, match=says):
            open_ledger(path, **how)
        assert contents(tmp_path) == before


def test_an_empty_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """Privet makes none: a new ledger is complete before it has its name."""
    path = tmp_path / "people.ledger"
    path.touch()
    for how in ({"create": True}, {"create": False}, {"read_only": True}):
        with pytest.raises(LedgerError, match=r"people\.ledger' is an empty file.*the ledger was emptied"):
            open_ledger(path, **how)
        assert contents(tmp_path) == {"people.ledger": b""}


def test_a_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    """It holds every answer and who asked for it, whatever the umask says."""
    path, before = tmp_path / "people.ledger", os.umask(0)
    try:
        with closing(open_ledger(path)) as ledger:
            furnish(ledger)
            assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {
                "people.ledger": 0o600,
                "people.ledger-journal": 0o600,
            }
    finally:
        os.umask(before)


def test_a_ledger_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no ledger .*people\.ledger"):
        open_ledger(tmp_path / "people.ledger", create=False)
    with pytest.raises(UserError, match=r"there is no folder .*nowhere.* for the ledger 'people\.ledger'"):
        open_ledger(tmp_path / "nowhere" / "people.ledger")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="file"):
        open_ledger(tmp_path / "file" / "people.ledger")
    for odd in ("", "  ", "mysql://user@host/base", "sqlite:///people.ledger", "https://example.org/"):
        with pytest.raises(UserError, match="a ledger is a file or a Postgres address"):
            open_ledger(odd)
    for odd in ("x" * 300, "a\x00b"):
        with pytest.raises(Refusal):
            open_ledger(tmp_path / odd)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_ledger_has_odd_names_too(tmp_path: Path) -> None:
    for name in ("a b.ledger", "ä?mode=ro&x=1#y.ledger", "100%25.ledger", "file:memory", ":memory:x"):
        with closing(open_ledger(tmp_path / name)) as ledger:
            furnish(ledger)
        with closing(open_ledger(tmp_path / name, create=False)) as ledger:
            assert ledger.datasets() == ("people",)
        assert (tmp_path / name).stat().st_size > 0


@contextmanager
def powerless() -> Iterator[None]:
    """What is not permitted is not permitted to root either, in here."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody can go to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_a_folder_that_can_not_be_written(public: Path) -> None:
    (public / "mine").mkdir(mode=0o555)
    with powerless(), pytest.raises(Refusal, match=r"people\.ledger"):
        open_ledger(public / "mine" / "people.ledger")
    assert list((public / "mine").iterdir()) == []


def test_a_folder_that_can_not_be_entered(public: Path) -> None:
    (public / "mine").mkdir()
    open_ledger(public / "mine" / "people.ledger").close()
    (public / "mine").chmod(0o000)
    for create in (True, False):
        with powerless(), pytest.raises(Refusal, match=r"people\.ledger"):
            open_ledger(public / "mine" / "people.ledger", create=create)


@pytest.mark.parametrize("journal", [True, False])
@pytest.mark.parametrize("mode", [0o444, 0o000])
def test_a_ledger_that_can_not_be_written(public: Path, mode: int, journal: bool) -> None:
    path, beside = public / "mine" / "people.ledger", public / "mine" / "people.ledger-journal"
    path.parent.mkdir()
    with closing(open_ledger(path)) as ledger:
        furnish(ledger)
    if not journal:
        beside.unlink()
    before = contents(path.parent)
    path.chmod(mode)
    path.parent.chmod(0o555)
    with powerless(), pytest.raises(Refusal, match=r"you do not have permission to write the ledger"):
        open_ledger(path)
    path.parent.chmod(0o755)
    assert contents(path.parent) == before


def test_a_ledger_that_can_only_be_read_can_be_looked_at(public: Path) -> None:
    path = public / "mine" / "people.ledger"
    path.parent.mkdir()
    with closing(open_ledger(path)) as ledger:
        furnish(ledger)
        receipt = ledger.head()
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)
    with powerless(), closing(open_ledger(path, read_only=True)) as ledger:
        assert ledger.verify(receipt).entries == {"people": 12}
        with pytest.raises(UserError, match="opened read-only"):
            pay(ledger, "x", cost("1/100"))


@pytest.mark.parametrize("content", [b"x", b"people", b"SQLite format 3\x00", b"x" * 511])
def test_a_small_file_that_is_no_ledger_is_left_alone(tmp_path: Path, content: bytes) -> None:
    """SQLite itself takes a file of one byte for an empty database."""
    path = tmp_path / "people.ledger"
    path.write_bytes(content)
    with pytest.raises(UserError, match="exists, but is not a ledger"):
        open_ledger(path)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["people.ledger"]


def test_sqlite_is_told_to_wait_for_the_disk(tmp_path: Path) -> None:
    """What a debit is worth in a power cut hangs on these two, in every connection."""
    with closing(open_ledger(tmp_path / "people.ledger")) as ledger:
        ledger.create(PEOPLE)
        ledger._database._drop()  # and it connects anew
        with ledger._database.writing(lambda connection: connection) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "persist"
            assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2, "FULL"


# --- Postgres ----------------------------------------------------------------------------------------


def _tables(address: str) -> list[tuple[object, ...]]:
    return sql(address, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")


def test_postgres_that_does_not_wait_for_the_disk_is_refused(postgres: str) -> None:
    ((name,),) = sql(postgres, "SELECT current_database()")
    sql(postgres, f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(LedgerError, match="synchronous_commit is off in Postgres, so a debit could be lost"):
        open_ledger(postgres)
    assert _tables(postgres) == []
    sql(postgres, f"ALTER DATABASE {name} SET synchronous_commit = local")
    with closing(open_ledger(postgres)) as ledger:
        furnish(ledger)
    sql(postgres, f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(LedgerError, match="synchronous_commit is off"):
        open_ledger(postgres)


def test_nothing_waits_for_ever_in_postgres(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every connection; a statement that takes too long is a busy ledger, and no broken one."""
    limits = {"lock_timeout": "5s", "statement_timeout": "1s", "idle_in_transaction_session_timeout": "1s"}
    monkeypatch.setattr(settings, "LONGEST", 1)
    with closing(open_ledger(postgres)) as ledger:
        furnish(ledger)
        for _ in range(2):
            with ledger._database.reading(lambda connection: connection) as connection:
                assert {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in limits} == limits
            ledger._database._drop()  # and it connects anew
        with pytest.raises(LedgerBusy), ledger._database.writing(lambda connection: connection) as connection:
            connection.execute("SELECT pg_sleep(20)").fetchone()
        ledger.verify()


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_postgres_that_does_not_sync_at_all_is_refused(server: str, postgres: str, setting: str) -> None:
    def turn(how: str) -> None:
        sql(server, f"ALTER SYSTEM SET {setting} = {how}", "SELECT pg_reload_conf()")
        end = time.monotonic() + 10
        while sql(server, f"SHOW {setting}") != [(how,)] and time.monotonic() < end:
            time.sleep(0.01)

    turn("off")
    try:
        with pytest.raises(LedgerError, match=f"{setting} is off in Postgres, so a debit could be lost"):
            open_ledger(postgres)
        assert _tables(postgres) == []
    finally:
        turn("on")
    open_ledger(postgres).close()


def test_postgres_that_stops_waiting_for_the_disk_is_refused(postgres: str) -> None:
    """New connections of an open ledger take the new setting, and are refused."""
    ((name,),) = sql(postgres, "SELECT current_database()")
    with closing(open_ledger(postgres)) as ledger:
        ledger.create(PEOPLE)
        sql(postgres, f"ALTER DATABASE {name} SET synchronous_commit = off")
        ledger._database._drop()  # and it connects anew
        with pytest.raises(LedgerError, match="synchronous_commit is off"):
            pay(ledger, "x", cost("0.1"))
    sql(postgres, f"ALTER DATABASE {name} RESET synchronous_commit")
    with closing(open_ledger(postgres)) as ledger:
        assert ledger.balance("people").spent == PureDP.ZERO


def test_how_postgres_waits_does_not_change_while_a_connection_lasts(postgres: str, server: str) -> None:
    """`ALTER SYSTEM` reaches sessions that are open, but for what they have set themselves."""
    with closing(open_ledger(postgres)) as ledger:
        ledger.create(PEOPLE)
        sql(server, "ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()")
        try:
            end = time.monotonic() + 10
            while sql(server, "SHOW synchronous_commit") != [("off",)] and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(0.2)
            with ledger._database.writing(lambda connection: connection) as connection:
                assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
        finally:
            sql(server, "ALTER SYSTEM RESET synchronous_commit", "SELECT pg_reload_conf()")


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_the_isolation_that_postgres_has_by_default_does_not_matter(postgres: str, level: str) -> None:
    ((name,),) = sql(postgres, "SELECT current_database()")
    sql(postgres, f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")
    with (
        closing(open_ledger(postgres)) as one,
        closing(open_ledger(postgres)) as two,
    ):
        one.create(PEOPLE)

        def spend(ledger: Ledger) -> None:
            for _ in range(10):
                ledger.settle(pay(ledger, None, cost("1/100")), "answered", "42")

        with ThreadPoolExecutor() as pool:
            list(pool.map(spend, (one, two)))
        assert one.balance("people").spent == PureDP("1/5")


def test_postgres_may_hold_other_tables(postgres: str) -> None:
    sql(postgres, "CREATE TABLE people (id INTEGER)", "INSERT INTO people VALUES (7)")
    with closing(open_ledger(postgres)) as ledger:
        furnish(ledger)
        ledger.verify()
    assert sql(postgres, "SELECT * FROM people") == [(7,)]
    assert [name for (name,) in _tables(postgres)] == [
        "people",
        "privet_answers",
        "privet_entries",
        "privet_leases",
        "privet_ledger",
    ]


@pytest.mark.parametrize("prefix", ["postgresql://", "postgres://", "postgresql+psycopg://"])
def test_postgres_addresses(postgres: str, prefix: str) -> None:
    with closing(open_ledger(postgres.replace("postgresql://", prefix))) as ledger:
        ledger.create(PEOPLE)
        ask(ledger, "x", "42")


def test_a_postgres_that_is_not_there(postgres: str, tmp_path: Path) -> None:
    for address in (
        postgres.replace("/ledger_", "/nowhere_").replace("postgres:@", "postgres:hush@"),
        f"postgresql://me:hush@/base?host={tmp_path}",
        "postgresql://me:hush@127.0.0.1:1/base?connect_timeout=2",
    ):
        with pytest.raises(LedgerError, match="can't be read or written") as caught:
            open_ledger(address)
        assert "hush" not in str(caught.value)
        assert caught.value.__cause__ is None
    with pytest.raises(UserError, match="this is not a valid Postgres address"):
        open_ledger("postgresql://me:hush@host:port/base")
