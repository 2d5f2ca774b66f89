"""The book: a ledger's tables within a transaction. It reads and appends entries, and stores answers and leases."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar

import sqlalchemy as sa

from privet.errors import LedgerError
from privet.ledger.history import chain
from privet.ledger.history.entries import Entry, Kind, Totals
from privet.ledger.history.receipts import Receipt
from privet.ledger.history.state import RESTORE, LedgerState
from privet.ledger.storage import tables

_LEAST = -(2**63)  # the smallest number that a database can store
CHUNK = 2000  # entries per transaction, so that reading a long ledger blocks nobody for long

_entries, _answers, _leases, _ledger = tables.entries, tables.answers, tables.leases, tables.ledger
_N: sa.BindParameter[int] = sa.bindparam("n")
_K: sa.BindParameter[int] = sa.bindparam("k")
_HEAD = sa.select(_ledger.c.version, _ledger.c.number, _ledger.c.hash)
_LOCK = _HEAD.with_for_update()
_MOVE = sa.update(_ledger).values(number=sa.bindparam("h"), hash=sa.bindparam("x"))
_ENTRY = sa.select(_entries.c.text, _entries.c.hash).where(_entries.c.number == _N)
_FROM = sa.select(_entries).where(_entries.c.number >= _N).order_by(_entries.c.number).limit(_K)
_BEFORE = sa.select(_entries).where(_entries.c.number < _N).order_by(_entries.c.number.desc()).limit(_K)
_ANSWER = sa.select(_answers.c.text).where(_answers.c.number == _N)
_ANSWERS = sa.select(_answers).where(_answers.c.number > _N).order_by(_answers.c.number).limit(_K)
_ANSWERED = sa.select(_answers.c.number)
_OPEN = sa.select(_leases.c.number, _leases.c.beats)
_IS_OPEN = sa.select(_leases.c.number).where(_leases.c.number == _N)
_CLOSE = sa.delete(_leases).where(_leases.c.number == _N)
_RENEW = sa.update(_leases).where(_leases.c.number == _N).values(beats=_leases.c.beats + 1)
_INSERT_ENTRY, _INSERT_ANSWER, _INSERT_LEASE = sa.insert(_entries), sa.insert(_answers), sa.insert(_leases)


def _changed(number: int) -> LedgerError:
    return LedgerError(
        f"entry {number} of the ledger has changed since it was read: debits were removed or altered", remedy=RESTORE
    )


def _bad_answer(number: int) -> LedgerError:
    return LedgerError(
        f"the stored answer to entry {str(number)[:20]} of the ledger does not match the chain: it was tampered with"
    )


class Book:
    """The tables of a ledger within one transaction, and the state after all earlier entries.

    Statements are compiled once per database and run by its driver: SQLAlchemy's own execution would take longer than
    the disk.
    """

    _compiled: ClassVar[dict[tuple[str, sa.ClauseElement], tuple[str, dict[str, Any]]]] = {}
    """By database and statement: the SQL text, and its constants."""

    def __init__(self, connection: Any, dialect: sa.Dialect, state: LedgerState) -> None:
        self._connection = connection
        self._dialect = dialect
        self._head: Receipt | None = None
        self._appended: list[Any] = []
        self.state = state
        self.complete = False
        """Whether the state includes all entries of the ledger."""

    def _run(self, statement: sa.ClauseElement, **values: Any) -> Any:
        key = self._dialect.name, statement
        if key not in self._compiled:
            compiled = statement.compile(dialect=self._dialect)
            constants = {name: value for name, value in compiled.params.items() if value is not None}
            self._compiled[key] = str(compiled), constants
        text, constants = self._compiled[key]
        return self._connection.execute(text, constants | values)

    def _first(self, statement: sa.ClauseElement, **values: Any) -> Any:
        row = self._run(statement, **values).fetchone()
        return None if row is None else row[0]

    # --- entries --------------------------------------------------------------------------------

    def follow(self, *, lock: bool) -> bool:
        """Read and check the entries added since the last transaction; returns whether these are all.

        Claim: the state includes every entry up to the recorded end of the chain. The newest entry that this process
        had read is still there, so nobody can take back debits while it runs.
        """
        state = self.state
        head = self._run(_LOCK if lock else _HEAD)
        rows = self._run(_FROM, n=state.number or _LEAST, k=CHUNK)
        heads = head.fetchall()
        if len(heads) != 1:
            raise LedgerError(
                "the ledger must record its end in exactly one row, but does not: it was emptied or tampered with"
            )
        version, number, hash_ = heads[0]
        if version != tables.VERSION:
            raise LedgerError(
                f"the ledger has format version {str(version)[:20]!r}, but this version of Privet reads only "
                f"{tables.VERSION}"
            )
        added = rows.fetchall()
        if state.number:
            newest = added[0] if added else (0, "", "")
            if newest != (state.number, newest[1], state.hash) or chain.digest(newest[1]) != state.digest:
                raise _changed(state.number)
            del added[0]
        for row in added:
            state.append(row[1], row[2], row[0])
        if len(added) >= CHUNK - 1 and state.number != number:
            return False
        if (state.number, state.hash) != (number, hash_):
            end = f"at entry {str(number)[:20]}" if state.number != number else "with a different hash"
            raise LedgerError(
                f"the chain ends at entry {state.number}, but should end {end}: entries were removed, added or changed",
                remedy=RESTORE,
            )
        if state.must_contain is not None:
            if state.watched != state.must_contain.hash:
                raise _changed(state.must_contain.number)
            state.must_contain = None
        self._head, self.complete = state.head, True
        return True

    def entry(self, number: int) -> Entry:
        """The entry with this number, which must exist."""
        row = self._run(_ENTRY, n=number).fetchone()
        if row is None:
            raise LedgerError(f"entry {number} of the ledger is missing: it was tampered with")
        return chain.read(row[0], row[1])

    def rows(self, start: int) -> list[tuple[int, str, str]]:
        """The next entries from a number on, oldest first: number, text, hash."""
        rows: list[tuple[int, str, str]] = self._run(_FROM, n=start, k=CHUNK).fetchall()
        return rows

    def rows_before(self, number: int) -> list[tuple[int, str, str]]:
        """The entries before a number, newest first: number, text, hash."""
        rows: list[tuple[int, str, str]] = self._run(_BEFORE, n=number, k=CHUNK).fetchall()
        return rows

    def append(self, dataset: str, kind: Kind, totals: Totals, **fields: Any) -> Entry:
        """Append an entry to the chain. The ledger must be locked."""
        assert self._head is not None
        number, now = self._head.number + 1, datetime.now(UTC).isoformat(timespec="seconds")
        entry = Entry(number=number, dataset=dataset, kind=kind, time=now, totals=totals, **fields)
        text = chain.write_checked(entry)
        hash_ = chain.link(self._head.hash, dataset, chain.digest(text))
        self._appended += (
            self._run(_INSERT_ENTRY, number=number, text=text, hash=hash_),
            self._run(_MOVE, h=number, x=hash_),
        )
        self._head = Receipt(number, hash_)
        return entry._replace(hash=hash_)

    def confirm(self) -> None:
        """After the transaction, check that every entry was stored. A trigger can silently drop a row."""
        if any(cursor.rowcount != 1 for cursor in self._appended):
            raise LedgerError("the database did not store an entry. Check its tables for triggers and rules")

    # --- answers --------------------------------------------------------------------------------

    def answer(self, number: int) -> str | None:
        """The stored answer to a reservation."""
        text: str | None = self._first(_ANSWER, n=number)
        return text

    def keep(self, number: int, text: str) -> None:
        """Store an answer."""
        self._run(_INSERT_ANSWER, number=number, text=text)

    def answers(self, after: int) -> list[tuple[int, str]]:
        """The next answers to reservations after a number, in order."""
        rows: list[tuple[int, str]] = self._run(_ANSWERS, n=after, k=max(CHUNK // 10, 1)).fetchall()
        return rows

    def check_answers(self, after: int) -> int | None:
        """Check the next answers to reservations after a number; returns the last number, or None at the end."""
        answers = self.answers(after)
        for number, text in answers:
            settlement = self.state.settled.get(number)
            if settlement is None or settlement.answer != chain.digest(text):
                raise _bad_answer(number)
        return answers[-1][0] if answers else None

    def check_answered(self) -> None:
        """Check that exactly the answered reservations have a stored answer."""
        settled = self.state.settled.items()
        answered = {number for number, settlement in settled if settlement.kind == "answered"}
        for number in sorted(answered ^ {row[0] for row in self._run(_ANSWERED).fetchall()}):
            raise _bad_answer(number)

    # --- leases ---------------------------------------------------------------------------------

    def lease(self, number: int) -> None:
        """Open a lease for a reservation."""
        self._run(_INSERT_LEASE, number=number, beats=0)

    def release(self, number: int) -> bool:
        """Close a lease; returns whether it was open."""
        if self._first(_IS_OPEN, n=number) is None:
            return False
        self._run(_CLOSE, n=number)
        return True

    def renew(self, numbers: Iterable[int]) -> None:
        """Show that the owner of these leases is alive."""
        for number in numbers:
            self._run(_RENEW, n=number)

    def beats(self) -> dict[int, int]:
        """The open leases, and how often each was renewed."""
        return dict(self._run(_OPEN).fetchall())

    def check_leases(self) -> None:
        """Check that exactly the unsettled reservations have leases."""
        if self.beats().keys() != self.state.reserved.keys():
            raise LedgerError("the leases of the ledger do not match its unsettled reservations: it was tampered with")
