"""What a transaction can do with the tables: read entries, add one at the end, open and close leases."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar

import sqlalchemy as sa

from privet.errors import LedgerError
from privet.ledger import chain, tables
from privet.ledger.entries import Entry, Kind, Totals
from privet.ledger.receipts import Receipt
from privet.ledger.state import RESTORE, LedgerState

_LEAST = -(2**63)  # of all numbers that a database can keep
CHUNK = 2000  # so many entries are read in one transaction: nobody waits long for a ledger that is long

_entries, _answers, _leases, _ledger = tables.entries, tables.answers, tables.leases, tables.ledger
_N: sa.BindParameter[int] = sa.bindparam("n")
_K: sa.BindParameter[int] = sa.bindparam("k")
_HEAD = sa.select(_ledger.c.version, _ledger.c.number, _ledger.c.hash)
_LOCK = _HEAD.with_for_update()
_MOVE = sa.update(_ledger).values(number=sa.bindparam("h"), hash=sa.bindparam("x"))
_ENTRY = sa.select(_entries.c.text, _entries.c.hash).where(_entries.c.number == _N)
_FROM = sa.select(_entries).where(_entries.c.number >= _N).order_by(_entries.c.number).limit(_K)
_ANSWER = sa.select(_answers.c.text).where(_answers.c.number == _N)
_ANSWERS = sa.select(_answers).where(_answers.c.number > _N).order_by(_answers.c.number).limit(_K)
_ANSWERED = sa.select(_answers.c.number)
_OPEN = sa.select(_leases.c.number, _leases.c.beats)
_IS_OPEN = sa.select(_leases.c.number).where(_leases.c.number == _N)
_CLOSE = sa.delete(_leases).where(_leases.c.number == _N)
_RENEW = sa.update(_leases).where(_leases.c.number == _N).values(beats=_leases.c.beats + 1)
_INSERT_ENTRY, _INSERT_ANSWER, _INSERT_LEASE = sa.insert(_entries), sa.insert(_answers), sa.insert(_leases)


def _not_what_it_was(number: int) -> LedgerError:
    return LedgerError(
        f"entry {number} of the ledger is not what it was: debits were removed or changed", remedy=RESTORE
    )


class Journal:
    """The tables of a ledger within one transaction, and the state after all entries up to it.

    Statements are compiled once for each database, and run by its driver: SQLAlchemy's own way to run them would take
    longer than the disk.
    """

    _compiled: ClassVar[dict[tuple[str, sa.ClauseElement], tuple[str, dict[str, Any]]]] = {}
    """The text for a database, and the constants in it."""

    def __init__(self, connection: Any, dialect: sa.Dialect, state: LedgerState) -> None:
        self._connection = connection
        self._dialect = dialect
        self._head: Receipt | None = None
        self._appended: list[Any] = []
        self.state = state
        self.complete = False
        """Whether the state follows from all entries of the ledger."""

    def _run(self, statement: sa.ClauseElement, **values: Any) -> Any:
        place = self._dialect.name, statement
        known = self._compiled.get(place)
        if known is None:
            compiled = statement.compile(dialect=self._dialect)
            constants = {name: value for name, value in compiled.params.items() if value is not None}
            known = self._compiled[place] = str(compiled), constants
        text, constants = known
        return self._connection.execute(text, constants | values)

    def _first(self, statement: sa.ClauseElement, **values: Any) -> Any:
        row = self._run(statement, **values).fetchone()
        return None if row is None else row[0]

    # --- entries --------------------------------------------------------------------------------

    def follow(self, *, lock: bool) -> bool:
        """Read what was added since this process looked last, and check it; says whether that is all there is.

        Claim: the state follows from the ledger's entries, up to the one that its head names. The newest entry that
        this process knows is still there: debits can't be taken back under its eyes.
        """
        state = self.state
        head = self._run(_LOCK if lock else _HEAD)
        rows = self._run(_FROM, n=state.number or _LEAST, k=CHUNK)
        heads = head.fetchall()
        if len(heads) != 1:
            raise LedgerError("the ledger does not say exactly once where it ends: it was emptied or tampered with")
        version, number, hashed = heads[0]
        if version != tables.VERSION:
            raise LedgerError(
                f"the ledger has version {str(version)[:20]!r}, and this Privet reads version {tables.VERSION}"
            )
        texts = rows.fetchall()
        if state.number:
            newest = texts[0] if texts else (0, "", "")
            if newest != (state.number, newest[1], state.hash) or chain.digest(newest[1]) != state.digest:
                raise _not_what_it_was(state.number)
            del texts[0]
        for row in texts:
            state.append(row[1], row[2], row[0])
        if len(texts) >= CHUNK - 1 and state.number != number:
            return False
        if (state.number, state.hash) != (number, hashed):
            end = f"at entry {str(number)[:20]}" if state.number != number else "with another hash"
            raise LedgerError(
                f"the chain ends at entry {state.number}, and should end {end}: entries were removed, added or changed",
                remedy=RESTORE,
            )
        if state.must_contain is not None:
            if state.watched != state.must_contain.hash:
                raise _not_what_it_was(state.must_contain.number)
            state.must_contain = None
        self._head, self.complete = state.head, True
        return True

    def entry(self, number: int) -> Entry:
        """The entry of this number, which the state knows."""
        row = self._run(_ENTRY, n=number).fetchone()
        if row is None:
            raise LedgerError(f"entry {number} of the ledger is gone: it was tampered with")
        return chain.read(row[0], row[1])

    def rows(self, start: int) -> list[tuple[int, str, str]]:
        """Some entries from a number on, oldest first: number, text, hash."""
        rows: list[tuple[int, str, str]] = self._run(_FROM, n=start, k=CHUNK).fetchall()
        return rows

    def append(self, dataset: str, kind: Kind, totals: Totals, **fields: Any) -> Entry:
        """One more entry, at the end of the chain; the ledger is locked."""
        assert self._head is not None
        number, now = self._head.number + 1, datetime.now(UTC).isoformat(timespec="seconds")
        entry = Entry(number=number, dataset=dataset, kind=kind, time=now, totals=totals, **fields)
        text = chain.write(entry)
        hashed = chain.link(self._head.hash, dataset, chain.digest(text))
        self._appended += (
            self._run(_INSERT_ENTRY, number=number, text=text, hash=hashed),
            self._run(_MOVE, h=number, x=hashed),
        )
        self._head = Receipt(number, hashed)
        return entry._replace(hash=hashed)

    def confirm(self) -> None:
        """After the transaction: every entry that was added is there. A trigger can leave out a row without a word."""
        if any(each.rowcount != 1 for each in self._appended):
            raise LedgerError("the database did not store an entry. Look for triggers and rules on its tables")

    # --- answers --------------------------------------------------------------------------------

    def answer(self, number: int) -> str | None:
        """The answer of a reservation."""
        text: str | None = self._first(_ANSWER, n=number)
        return text

    def keep(self, number: int, text: str) -> None:
        """Store an answer."""
        self._run(_INSERT_ANSWER, number=number, text=text)

    def answers(self, after: int) -> list[tuple[int, str]]:
        """Some answers, of reservations after a number, in their order."""
        rows: list[tuple[int, str]] = self._run(_ANSWERS, n=after, k=max(CHUNK // 10, 1)).fetchall()
        return rows

    def answered(self) -> set[int]:
        """Which reservations have an answer."""
        return {row[0] for row in self._run(_ANSWERED).fetchall()}

    # --- leases ---------------------------------------------------------------------------------

    def lease(self, number: int) -> None:
        """A reservation is open."""
        self._run(_INSERT_LEASE, number=number, beats=0)

    def release(self, number: int) -> bool:
        """It is no longer; says whether it was."""
        if self._first(_IS_OPEN, n=number) is None:
            return False
        self._run(_CLOSE, n=number)
        return True

    def renew(self, numbers: Iterable[int]) -> None:
        """Count up."""
        for number in numbers:
            self._run(_RENEW, n=number)

    def beats(self) -> dict[int, int]:
        """What is open, and how often each was renewed."""
        return dict(self._run(_OPEN).fetchall())
