"""L11: what is not ours in a ledger's database (triggers, views, tables, indexes, rules) is refused or noticed in time.

Whoever could put them there could also edit the tables; but an edit shows in the chain, and a trigger undoes the next
debit after it was made.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.ledger.common import PEOPLE, cost
from tests.threats.peers import REFUSALS, ask, holds, session

from privet.errors import LedgerError
from privet.ledger import Ledger, open_ledger

PRICE = "1/10"
TIMES = list(product(["BEFORE", "AFTER"], ["INSERT", "UPDATE", "DELETE"]))
UNDO = "DELETE FROM privet_entries WHERE text LIKE '%reserved%'"


def debit(ledger: Ledger, request: str | None = None) -> None:
    charge = ledger.reserve(dataset="people", analyst="ann", request_id=request, events=[cost(PRICE)])
    ledger.settle(charge, "answered", "42")


def made(where: str | Path) -> None:
    """A ledger with two answers."""
    with closing(open_ledger(where)) as ledger:
        ledger.create(PEOPLE)
        for _ in range(2):
            debit(ledger)


def is_refused(where: str | Path) -> bool:
    """Whether it does not open, in words."""
    try:
        open_ledger(where).close()
    except REFUSALS as error:
        return "\n" not in str(error)
    return False


def is_granted(ledger: Ledger) -> bool:
    try:
        debit(ledger)
    except LedgerError:
        return False
    return True


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "template.ledger"
    made(path)
    return path


def sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        for statement in statements:
            file.execute(statement)


def tables_of(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as file:
        return [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]


def triggers(path: Path) -> list[str]:
    return [
        f"CREATE TRIGGER undo {time} {event} ON {table} BEGIN {UNDO}; END"
        for table, (time, event) in product(tables_of(path), TIMES)
    ]


OBJECTS: dict[str, list[str]] = {
    "a trigger that does nothing": ["CREATE TRIGGER idle AFTER INSERT ON privet_leases BEGIN SELECT 1; END"],
    "a trigger that mutes": [
        "CREATE TRIGGER mute BEFORE INSERT ON privet_answers BEGIN SELECT RAISE(IGNORE); END",
    ],
    "a view": ["CREATE VIEW watch AS SELECT * FROM privet_entries"],
    "a view in place of a table": [
        "ALTER TABLE privet_entries RENAME TO hidden",
        "CREATE VIEW privet_entries AS SELECT * FROM hidden WHERE text NOT LIKE '%reserved%'",
    ],
    "a view that can be written to": [
        "ALTER TABLE privet_leases RENAME TO hidden",
        "CREATE VIEW privet_leases AS SELECT * FROM hidden",
        "CREATE TRIGGER past INSTEAD OF INSERT ON privet_leases BEGIN SELECT 1; END",
    ],
    "a table": ["CREATE TABLE notes (text)"],
    "a table like ours": ["CREATE TABLE privet_notes (text)"],
    "a virtual table": ["CREATE VIRTUAL TABLE notes USING fts5(text)"],
    "an index": ["CREATE INDEX mine ON privet_entries (hash)"],
    "an index that refuses": ["CREATE UNIQUE INDEX mine ON privet_entries (hash) WHERE hash = 'capped'"],
    "a further column": ["ALTER TABLE privet_leases ADD COLUMN note TEXT DEFAULT 'x'"],
    "statistics": ["ANALYZE"],
    "a missing table": ["DROP TABLE privet_leases"],
    "a table that forgives": [
        "PRAGMA writable_schema = ON",
        (
            "UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', 'NOT NULL ON CONFLICT IGNORE') "
            "WHERE name = 'privet_entries'"
        ),
    ],
    "a column that ignores case": [
        "PRAGMA writable_schema = ON",
        (
            "UPDATE sqlite_master SET sql = replace(sql, 'hash TEXT', 'hash TEXT COLLATE NOCASE') "
            "WHERE name = 'privet_entries'"
        ),
    ],
}


@pytest.mark.slow
def test_triggers_of_every_kind_before_it_is_opened(template: Path, tmp_path: Path) -> None:
    for n, trigger in enumerate(triggers(template)):
        path = tmp_path / f"{n}.ledger"
        shutil.copyfile(template, path)
        sql(path, trigger)
        assert is_refused(path), trigger
        sql(path, "DROP TRIGGER undo")
        assert not is_refused(path), "afterwards it is a ledger again"


@pytest.mark.slow
def test_triggers_of_every_kind_while_it_is_open(template: Path, tmp_path: Path) -> None:
    for n, trigger in enumerate(triggers(template)):
        path = tmp_path / f"{n}.ledger"
        shutil.copyfile(template, path)
        with closing(open_ledger(path)) as ledger:
            debit(ledger)
            sql(path, trigger)
            assert not is_granted(ledger), trigger
            with pytest.raises(LedgerError):  # for good
                ledger.balance("people")
        sql(path, "DROP TRIGGER undo")
        assert holds(path, 3 * Fraction(PRICE))


@pytest.mark.parametrize("what", OBJECTS)
def test_objects_that_are_there_before_it_is_opened(template: Path, what: str) -> None:
    sql(template, *OBJECTS[what])
    assert is_refused(template)


@pytest.mark.parametrize("what", [what for what, does in OBJECTS.items() if "writable_schema" not in does[0]])
def test_objects_that_come_while_it_is_open(template: Path, what: str) -> None:
    with closing(open_ledger(template)) as ledger:
        debit(ledger)
        sql(template, *OBJECTS[what])
        with pytest.raises(LedgerError):
            debit(ledger)


def test_a_trigger_that_hides_behind_an_old_number(template: Path) -> None:
    """The number of the schema is set back, so that nothing seems to be new; a fork makes the connection anew."""
    with closing(open_ledger(template)) as ledger:
        debit(ledger)
        before = Fraction(ledger.balance("people").spent.epsilon)
        with closing(sqlite3.connect(template, isolation_level=None)) as file:
            (number,) = file.execute("PRAGMA schema_version").fetchone()
            file.execute(
                "CREATE TRIGGER undo AFTER INSERT ON privet_answers BEGIN "
                "DELETE FROM privet_entries WHERE number > NEW.number - 1; "
                "UPDATE privet_ledger SET number = NEW.number - 1, "
                "hash = (SELECT hash FROM privet_entries WHERE number = NEW.number - 1); "
                "DELETE FROM privet_answers WHERE number = NEW.number; END"
            )
            file.execute(f"PRAGMA schema_version = {number}")
        if (pid := os.fork()) == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        answered = is_granted(ledger)
    sql(template, "DROP TRIGGER undo")
    assert holds(template, before + answered * Fraction(PRICE)), "an answer went out, and its debit was undone"


def test_an_analyst_is_told_in_words(tmp_path: Path, source: Path) -> None:
    path = tmp_path / "people.ledger"
    with closing(session(path, source)) as asking:
        ask(asking, PRICE)
        sql(path, f"CREATE TRIGGER undo AFTER INSERT ON privet_entries BEGIN {UNDO}; END")
        with pytest.raises(LedgerError, match="undo"):
            ask(asking, PRICE)
    with pytest.raises(LedgerError, match="undo"):
        session(path, source)


# --- Postgres -------------------------------------------------------------------------------------

FUNCTION = """
    CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN DELETE FROM privet_entries WHERE text LIKE ''%reserved%''; RETURN NEW; END'
"""
SERVED: dict[str, tuple[list[str], list[str]]] = {
    "a rule": (
        ["CREATE RULE nothing AS ON INSERT TO privet_leases WHERE NEW.number < 0 DO INSTEAD NOTHING"],
        ["DROP RULE nothing ON privet_leases"],
    ),
    "a rule for updates": (
        ["CREATE RULE nothing AS ON UPDATE TO privet_entries DO INSTEAD NOTHING"],
        ["DROP RULE nothing ON privet_entries"],
    ),
    "a policy for rows": (
        [
            "CREATE POLICY few ON privet_entries USING (text NOT LIKE '%reserved%')",
            "ALTER TABLE privet_entries ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE privet_entries FORCE ROW LEVEL SECURITY",
        ],
        [
            "ALTER TABLE privet_entries NO FORCE ROW LEVEL SECURITY",
            "ALTER TABLE privet_entries DISABLE ROW LEVEL SECURITY",
            "DROP POLICY few ON privet_entries",
        ],
    ),
    "a view in place of a table": (
        [
            "ALTER TABLE privet_leases RENAME TO hidden",
            "CREATE VIEW privet_leases AS SELECT * FROM hidden",
        ],
        ["DROP VIEW privet_leases", "ALTER TABLE hidden RENAME TO privet_leases"],
    ),
    "a child": (["CREATE TABLE child () INHERITS (privet_answers)"], ["DROP TABLE child"]),
    "a trigger at the commit": (
        [
            FUNCTION,
            (
                "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON privet_entries DEFERRABLE INITIALLY DEFERRED "
                "FOR EACH ROW EXECUTE FUNCTION undo()"
            ),
        ],
        ["DROP TRIGGER late ON privet_entries", "DROP FUNCTION undo"],
    ),
    "a trigger for statements": (
        [
            FUNCTION,
            "CREATE TRIGGER wide AFTER INSERT ON privet_leases FOR EACH STATEMENT EXECUTE FUNCTION undo()",
        ],
        ["DROP TRIGGER wide ON privet_leases", "DROP FUNCTION undo"],
    ),
    "tables that a crash empties": (
        [f"ALTER TABLE {name} SET UNLOGGED" for name in ("privet_entries", "privet_leases")],
        [f"ALTER TABLE {name} SET LOGGED" for name in ("privet_entries", "privet_leases")],
    ),
    "an index that is ours no more": (
        ["CREATE UNIQUE INDEX mine ON privet_entries (hash) WHERE hash = 'capped'"],
        ["DROP INDEX mine"],
    ),
    "a further column": (
        ["ALTER TABLE privet_leases ADD COLUMN note text DEFAULT 'x'"],
        ["ALTER TABLE privet_leases DROP COLUMN note"],
    ),
    "a check": (
        ["ALTER TABLE privet_leases ADD CONSTRAINT never CHECK (number < 1000000)"],
        ["ALTER TABLE privet_leases DROP CONSTRAINT never"],
    ),
    "a foreign key that deletes": (
        [
            "CREATE TABLE parent (number bigint PRIMARY KEY)",
            "INSERT INTO parent SELECT generate_series(1, 100)",
            "ALTER TABLE privet_leases ADD CONSTRAINT goes FOREIGN KEY (number) REFERENCES parent ON DELETE CASCADE",
        ],
        ["ALTER TABLE privet_leases DROP CONSTRAINT goes", "DROP TABLE parent"],
    ),
}


QUIET = ("an index that is ours no more", "a further column")
"""What can undo nothing by itself."""


def server(where: str, *statements: str) -> None:
    with psycopg.connect(where, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@contextmanager
def present(where: str, does: list[str], undoes: list[str]) -> Iterator[None]:
    server(where, *does)
    yield
    server(where, *undoes)


@pytest.mark.parametrize("what", SERVED)
def test_objects_in_postgres(postgres: str, what: str) -> None:
    made(postgres)
    with closing(open_ledger(postgres)) as ledger:
        debit(ledger)
        with present(postgres, *SERVED[what]):
            assert is_refused(postgres)
            if what not in QUIET:
                with pytest.raises(LedgerError):
                    debit(ledger)
    assert not is_refused(postgres), "afterwards it is a ledger again"
    assert holds(postgres, 3 * Fraction(PRICE))


WAYS = {
    "a default": ["ALTER TABLE privet_answers ADD COLUMN note text DEFAULT undo_all()"],
    "an index": [
        (
            "CREATE FUNCTION undo_quietly(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS "
            "'BEGIN PERFORM public.undo_all(); RETURN $1; END'"
        ),
        "CREATE INDEX mine ON privet_answers (undo_quietly(text))",
    ],
}


@pytest.mark.parametrize("way", WAYS)
def test_functions_that_postgres_calls_when_an_answer_is_stored(postgres: str, way: str) -> None:
    """Neither a trigger nor a rule: a default, or an index over an expression."""
    made(postgres)
    server(
        postgres,
        "CREATE TABLE armed (since bigint)",
        "CREATE FUNCTION undo_all() RETURNS text LANGUAGE plpgsql AS $$ BEGIN "
        "IF EXISTS (SELECT FROM public.armed) THEN "
        "DELETE FROM public.privet_entries WHERE number > (SELECT since FROM public.armed); "
        "UPDATE public.privet_ledger SET number = since, hash = e.hash "
        "FROM public.armed, public.privet_entries e WHERE e.number = since; "
        "END IF; RETURN ''; END $$",
    )
    with closing(open_ledger(postgres)) as ledger:
        debit(ledger)
        before = Fraction(ledger.balance("people").spent.epsilon)
        server(postgres, *WAYS[way], "INSERT INTO armed SELECT number FROM privet_ledger")
        answered = is_granted(ledger)
    with psycopg.connect(postgres) as connection:
        row = connection.execute("SELECT max(number) FROM privet_entries").fetchone()
        since = connection.execute("SELECT since FROM armed").fetchone()
    assert row is not None
    assert since is not None
    assert not answered or row[0] > since[0], "an answer went out, and its debit was undone"
    assert before == 3 * Fraction(PRICE)


@pytest.mark.slow
def test_triggers_of_every_kind_in_postgres(postgres: str) -> None:
    made(postgres)
    server(postgres, FUNCTION)
    with psycopg.connect(postgres) as connection:
        found = connection.execute("SELECT relname FROM pg_class WHERE relname ~ '^privet_' AND relkind = 'r'")
        names = [name for (name,) in found.fetchall()]
    assert len(names) >= 4
    for table, (time, event) in product(names, TIMES):
        with closing(open_ledger(postgres)) as ledger:
            trigger = f"CREATE TRIGGER undo {time} {event} ON {table} FOR EACH ROW EXECUTE FUNCTION undo()"
            with present(postgres, [trigger], [f"DROP TRIGGER undo ON {table}"]):
                assert is_refused(postgres), trigger
                assert not is_granted(ledger), trigger
    assert holds(postgres, 2 * Fraction(PRICE))


def on_a_path(where: str, path: str) -> Callable[[], None]:
    """Every new connection looks there first."""
    name = psycopg.conninfo.conninfo_to_dict(where)["dbname"]
    server(where, f'ALTER DATABASE "{name}" SET search_path = {path}')
    return lambda: server(where, f'ALTER DATABASE "{name}" RESET search_path')


def test_tables_of_the_same_name_that_are_found_first(postgres: str) -> None:
    """An empty copy in another schema, before ours on the way: no second budget."""
    made(postgres)
    with closing(open_ledger(postgres)) as ledger:
        debit(ledger)
        server(
            postgres,
            "CREATE SCHEMA evil",
            "DO $$ DECLARE each text; BEGIN FOR each IN SELECT relname FROM pg_class WHERE relname ~ '^privet_' "
            "AND relkind = 'r' LOOP EXECUTE format('CREATE TABLE evil.%I (LIKE public.%I INCLUDING ALL)', each, each); "
            "END LOOP; END $$",
            "INSERT INTO evil.privet_ledger SELECT version, 0, repeat('0', 64) FROM public.privet_ledger",
        )
        undo = on_a_path(postgres, "evil, public")
        try:
            assert is_refused(postgres)
        finally:
            undo()
        assert is_refused(postgres), "for another user the copy may be first"
        assert spent_in(f"{postgres}&options=-csearch_path%3Dpublic") == 3 * Fraction(PRICE)
    server(postgres, "DROP SCHEMA evil CASCADE")
    assert spent_in(postgres) == 3 * Fraction(PRICE)


def test_an_empty_schema_that_is_found_first(postgres: str) -> None:
    made(postgres)
    server(postgres, "CREATE SCHEMA evil")
    undo = on_a_path(postgres, "evil, public")
    try:
        found = spent_in(postgres)
        assert found is None or found == 2 * Fraction(PRICE)
    finally:
        undo()


def test_operators_that_are_found_before_those_of_postgres(postgres: str) -> None:
    made(postgres)
    server(
        postgres,
        "CREATE SCHEMA evil",
        "CREATE FUNCTION evil.never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
        "CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.never)",
    )
    undo = on_a_path(postgres, "evil, pg_catalog, public")
    try:
        found = spent_in(postgres)
        assert found is None or found == 2 * Fraction(PRICE)
        if found is not None:
            with closing(open_ledger(postgres)) as ledger:
                debit(ledger, "again")
                before = ledger.balance("people").spent
                debit_again(ledger)
                assert ledger.balance("people").spent == before, "one request was paid twice"
    finally:
        undo()


def debit_again(ledger: Ledger) -> Any:
    return ledger.reserve(dataset="people", analyst="ann", request_id="again", events=[cost(PRICE)])


def spent_in(where: str) -> Fraction | None:
    try:
        with closing(open_ledger(where)) as ledger:
            ledger.create(PEOPLE)
            return Fraction(ledger.balance("people").spent.epsilon)
    except REFUSALS:
        return None
