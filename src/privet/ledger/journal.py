"""What a transaction can do with the tables: read entries, add one at the end, open and close leases."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar

import sqlalchemy as sa

from privet.errors import LedgerError
from privet.ledger import chain, tables
from privet.ledger.book import Book
from privet.ledger.entries import Entry, Kind, Receipt, Totals

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
        f"entry {number} of the ledger is not what it was: debits were removed or changed. Nothing is answered with "
        "this ledger. Put back a copy that verifies, and compare it with a receipt"
    )


class Journal:
    """The tables of a ledger within one transaction, and the book of all entries up to it.

    Statements are compiled once for each database, and run by its driver: SQLAlchemy's own way to run them would take
    longer than the disk.
    """

    _compiled: ClassVar[dict[tuple[str, sa.ClauseElement], tuple[str, dict[str, Any]]]] = {}
    """The text for a database, and the constants in it."""

    def __init__(self, connection: Any, dialect: sa.Dialect, book: Book) -> None:
        self._connection = connection
        self._dialect = dialect
        self._head: Receipt | None = None
        self._appended: list[Any] = []
        self.book = book
        self.complete = False
        """Whether the book holds all that the ledger holds."""

    def _run(self, statement: sa.ClauseElement, **values: Any) -> Any:
        place = self._dialect.name, statement
        found = self._compiled.get(place)
        if found is None:
            made = statement.compile(dialect=self._dialect)
            constants = {name: value for name, value in made.params.items() if value is not None}
            found = self._compiled[place] = str(made), constants
        return self._connection.execute(found[0], found[1] | values)

    def _first(self, statement: sa.ClauseElement, **values: Any) -> Any:
        row = self._run(statement, **values).fetchone()
        return None if row is None else row[0]

    # --- entries --------------------------------------------------------------------------------

    def follow(self, *, lock: bool) -> bool:
        """Read what was added since this process looked last, and check it; says whether that is all there is.

        Claim: what the book holds is what the ledger holds, up to the entry that its head names. The newest entry that
        this process knows is still there: debits can't be taken back under its eyes.
        """
        book = self.book
        head = self._run(_LOCK if lock else _HEAD)
        rows = self._run(_FROM, n=book.number or _LEAST, k=CHUNK)
        heads = head.fetchall()
        if len(heads) != 1:
            raise LedgerError("the ledger does not say once where it ends: it was emptied or tampered with")
        version, number, found = heads[0]
        if version != tables.VERSION:
            raise LedgerError(
                f"the ledger is of version {str(version)[:20]!r}, and this Privet reads version {tables.VERSION}"
            )
        texts = rows.fetchall()
        if book.number:
            newest = texts[0] if texts else (0, "", "")
            if newest != (book.number, newest[1], book.hash) or chain.digest(newest[1]) != book.digest:
                raise _not_what_it_was(book.number)
            del texts[0]
        for row in texts:
            book.add(row[1], row[2], row[0])
        if len(texts) >= CHUNK - 1 and book.number != number:
            return False
        if (book.number, book.hash) != (number, found):
            end = f"at entry {str(number)[:20]}" if book.number != number else "with another hash"
            raise LedgerError(
                f"the chain ends at entry {book.number}, and should end {end}: entries were removed, added or changed. "
                "Nothing is answered with this ledger"
            )
        if book.owed is not None:
            if book.watched != book.owed.hash:
                raise _not_what_it_was(book.owed.number)
            book.owed = None
        self._head, self.complete = book.head, True
        return True

    def entry(self, number: int) -> Entry:
        """The entry of this number, which the book knows."""
        row = self._run(_ENTRY, n=number).fetchone()
        if row is None:
            raise LedgerError(f"entry {number} of the ledger is gone: it was tampered with")
        return chain.read(row[0], row[1])

    def rows(self, start: int) -> list[tuple[int, str, str]]:
        """Some entries from a number on, oldest first: number, text, hash."""
        found: list[tuple[int, str, str]] = self._run(_FROM, n=start, k=CHUNK).fetchall()
        return found

    def append(self, dataset: str, kind: Kind, totals: Totals, **fields: Any) -> Entry:
        """One more entry, at the end of the chain; the ledger is locked."""
        assert self._head is not None
        number, now = self._head.number + 1, datetime.now(UTC).isoformat(timespec="seconds")
        entry = Entry(number=number, dataset=dataset, kind=kind, time=now, totals=totals, **fields)
        text = chain.write(entry)
        found = chain.link(self._head.hash, chain.digest(text))
        self._appended += (
            self._run(_INSERT_ENTRY, number=number, text=text, hash=found),
            self._run(_MOVE, h=number, x=found),
        )
        self._head = Receipt(number, found)
        return entry._replace(hash=found)

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
        found: list[tuple[int, str]] = self._run(_ANSWERS, n=after, k=max(CHUNK // 10, 1)).fetchall()
        return found

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
