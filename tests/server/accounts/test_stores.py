"""S10, L8 to L11: a store that was emptied, truncated, replaced or changed, or made by another version, is refused."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.server.accounts.common import Opener, analyst, opened, steward

from privet.errors import LedgerBusy, LedgerError, UserError
from privet.ledger import open_ledger
from privet.server.accounts import AccountError, Accounts, StoreBusy, StoreError
from privet.server.accounts.accounts import beside


def run(path: str, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


TRIGGER = (
    "CREATE TRIGGER t AFTER UPDATE OF revoked ON privet_accounts_tokens "
    "BEGIN UPDATE privet_accounts_tokens SET revoked = NULL; END"
)
DAMAGE: dict[str, tuple[str, ...]] = {
    "a trigger": (TRIGGER,),
    "a view": ("CREATE VIEW v AS SELECT * FROM privet_accounts_people",),
    "another table": ("CREATE TABLE t (a)",),
    "an index": ("CREATE INDEX i ON privet_accounts_people (role)",),
    "a missing table": ("DROP TABLE privet_accounts_sessions",),
    "another column": ("ALTER TABLE privet_accounts_people ADD COLUMN a",),
    "no version": ("DELETE FROM privet_accounts",),
    "two versions": ("INSERT INTO privet_accounts SELECT * FROM privet_accounts",),
    "a newer version": ("UPDATE privet_accounts SET version = 3",),
    "an older version": ("UPDATE privet_accounts SET version = 0",),
    "an older version with newer tables": ("UPDATE privet_accounts SET version = 1",),
    "no tables": (
        "PRAGMA writable_schema = ON",
        "DELETE FROM sqlite_schema",
        "PRAGMA writable_schema = RESET",
        "VACUUM",
    ),
    "a write-ahead log": ("PRAGMA journal_mode = WAL",),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused_when_opened_and_while_in_use(tmp_path: Path, damage: str) -> None:
    path = str(tmp_path / "people.accounts")
    with opened(path) as accounts:
        steward(accounts)
        text, _ = accounts.create_token("sam", "notebook")
        assert accounts.bearer(text) is not None
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            for statement in DAMAGE[damage]:
                other.execute(statement)
            for act in (lambda: accounts.bearer(text), accounts.people, lambda: accounts.add("ana")):
                with pytest.raises(StoreError):
                    act()
            with pytest.raises(StoreError):
                Accounts.open(path)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 4096)


def to_a_byte(path: Path) -> None:
    os.truncate(path, 1)


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def linked(path: Path) -> None:
    path.with_name("second name").hardlink_to(path)


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("change", [emptied, truncated, to_a_byte, removed, replaced, linked, zeroed])
def test_a_file_that_changes_under_its_server_lets_nobody_in(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "people.accounts"
    with opened(str(path)) as accounts:
        steward(accounts)
        text, _ = accounts.create_token("sam", "notebook")
        change(path)
        for act in (lambda: accounts.add("ana"), accounts.people, lambda: accounts.bearer(text)):
            with pytest.raises((StoreError, AccountError)):
                act()
    if change is replaced:
        return  # a restored copy, once it is opened again
    if change is removed:
        with pytest.raises(AccountError, match="no account store"):
            Accounts.open(path, create=False)
        return
    with pytest.raises((StoreError, AccountError)):
        Accounts.open(path)


def test_files_that_are_no_stores_are_refused(tmp_path: Path) -> None:
    def refused(name: str, match: str, kind: type[Exception] = AccountError) -> None:
        with pytest.raises(kind, match=match):
            Accounts.open(tmp_path / name)

    (tmp_path / "text").write_text("not a database, but more than a page of text. " * 50)
    (tmp_path / "text").chmod(0o600)
    refused("text", "not a database", StoreError)
    run(str(tmp_path / "other"), "CREATE TABLE t (a)")
    (tmp_path / "other").chmod(0o600)
    refused("other", "is not an account store")
    open_ledger(tmp_path / "ledger").close()
    refused("ledger", "is not an account store")
    (tmp_path / "folder").mkdir()
    refused("folder", "is not an account store")
    refused("no folder/x", "there is no folder")
    refused("x-journal", "choose another name|Choose another name")
    (tmp_path / "gone-journal").touch()
    refused("gone", "is missing, but its 'gone-journal' is still there", StoreError)
    for address in ("mysql://me:secret@host/base", "", "a\nb"):
        with pytest.raises(UserError) as raised:
            Accounts.open(address)
        assert "secret" not in str(raised.value)


def test_only_its_owner_can_use_a_store(tmp_path: Path) -> None:
    path = tmp_path / "people.accounts"
    mask = os.umask(0)
    try:
        Accounts.open(path).close()
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    with pytest.raises(StoreError, match="chmod 600"):
        Accounts.open(path)


def test_an_interrupted_write_is_rolled_back(tmp_path: Path) -> None:
    """A journal that a killed process left is used: the store is as before its transaction."""
    path, copy = tmp_path / "people.accounts", tmp_path / "crashed.accounts"
    with opened(str(path)) as accounts:
        analyst(accounts)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("PRAGMA cache_size = 1")  # writes to the file before the commit
            other.execute("BEGIN")
            other.execute("UPDATE privet_accounts_people SET name = 'eve', role = 'steward'")
            for number in range(2000):
                row = (f"{number:016x}", "x" * 200, "", "eve", 1, 1, 0)
                other.execute("INSERT INTO privet_accounts_sessions VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            shutil.copy(path, copy)
            shutil.copy(f"{path}-journal", f"{copy}-journal")
            other.execute("ROLLBACK")
    copy.chmod(0o600)
    assert b"evesteward" in copy.read_bytes(), "it was half written"
    with opened(str(copy)) as crashed:
        assert [person.name for person in crashed.people()] == ["ana"]


def test_a_held_lock_is_a_bounded_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from privet.server.accounts import in_sqlite

    monkeypatch.setattr(in_sqlite, "PATIENCE", 0.05)
    path = tmp_path / "people.accounts"
    with opened(str(path)) as accounts, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="is busy") as raised:
            accounts.add("ana")
        assert isinstance(raised.value, LedgerBusy)
        assert accounts.people() == [], "readers need no lock"
        other.execute("ROLLBACK")
        accounts.add("ana")


def test_a_closed_store_says_so(open_accounts: Opener) -> None:
    accounts = open_accounts()
    accounts.close()
    with pytest.raises(StoreError, match="is closed"):
        accounts.people()


# --- Postgres ---------------------------------------------------------------------------------------

IN_POSTGRES = {
    "a trigger": (
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER t BEFORE UPDATE ON privet_accounts_tokens FOR EACH ROW EXECUTE FUNCTION f()",
    ),
    "a rule": ("CREATE RULE r AS ON UPDATE TO privet_accounts_tokens DO INSTEAD NOTHING",),
    "row security": ("ALTER TABLE privet_accounts_people ENABLE ROW LEVEL SECURITY",),
    "a missing table": ("DROP TABLE privet_accounts_sessions",),
    "no version": ("DELETE FROM privet_accounts",),
    "a newer version": ("UPDATE privet_accounts SET version = 3",),
}


def test_a_damaged_database_is_refused_when_opened_and_while_in_use(databases: Callable[[], str]) -> None:
    where = databases()
    for damage, statements in IN_POSTGRES.items():
        with opened(where) as accounts, psycopg.connect(where, autocommit=True) as other:
            if not accounts.people():
                steward(accounts)
            text, token = accounts.create_token("sam", damage)
            for statement in statements:
                other.execute(statement.encode())
            for act in (lambda: accounts.revoke_token(token.id), lambda: accounts.bearer(text)):  # noqa: B023
                with pytest.raises(StoreError):
                    act()
            with pytest.raises(StoreError):
                Accounts.open(where)
            other.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


def test_an_address_leads_everybody_to_one_store(postgres: str) -> None:
    """A second store in another schema of the same database would have other stewards."""
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("CREATE SCHEMA elsewhere")
    inside = f"{postgres}&options=-csearch_path%3Delsewhere"
    with pytest.raises(AccountError, match="no account store"):
        Accounts.open(postgres, create=False)
    Accounts.open(inside).close()
    with pytest.raises(StoreError, match="'elsewhere'"):
        Accounts.open(postgres)
    Accounts.open(inside, create=False).close()


def test_accounts_live_beside_their_ledger(postgres: str, tmp_path: Path) -> None:
    for where in (postgres, str(tmp_path / "people.ledger")):
        with closing(open_ledger(where)) as ledger, opened(beside(where)) as accounts:
            steward(accounts)
            ledger.verify()
    assert sorted(path.name for path in tmp_path.iterdir() if "journal" not in path.name) == [
        "people.ledger",
        "people.ledger.accounts",
    ]


def test_a_lost_connection_is_replaced(postgres: str) -> None:
    with opened(postgres) as accounts, psycopg.connect(postgres, autocommit=True) as other:
        steward(accounts)
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert len(accounts.people()) == 1


def test_a_busy_row_in_postgres_is_a_bounded_wait(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from privet.ledger.storage import database

    monkeypatch.setattr(database, "PATIENCE", 0.1)
    with opened(postgres) as accounts, psycopg.connect(postgres) as other:
        other.execute("SELECT * FROM privet_accounts FOR UPDATE")
        with pytest.raises(StoreBusy, match="is busy"):
            accounts.add("ana")
        assert accounts.people() == []
        other.rollback()
        accounts.add("ana")


def test_errors_of_stores_are_errors_of_ledgers() -> None:
    """Whoever handles the one handles the other: the command line's exit codes, and a server's answers."""
    assert issubclass(StoreError, LedgerError)
    assert issubclass(StoreBusy, (LedgerBusy, StoreError))
