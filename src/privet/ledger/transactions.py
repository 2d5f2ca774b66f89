"""A ledger's transactions: each first reads and checks the entries that others added since the last one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from privet.errors import LedgerError, Subject, UserError
from privet.ledger.history.entries import Charge, Outcome
from privet.ledger.history.state import DatasetState, LedgerState
from privet.ledger.leases import Leases
from privet.ledger.storage.book import Book
from privet.ledger.storage.database import Database


class Transactions:
    """A database, the state after its entries, and the leases of this process."""

    def __init__(self, database: Database, *, lease: float = 30.0) -> None:
        self._database = database
        self._state = LedgerState(strict=False)
        self._leases = Leases(lease, self._renew)
        database.when_busy = self._leases.forgive
        self._swept = -math.inf
        self._late: list[tuple[Charge, Outcome]] = []  # not settled yet, because others held the lock
        try:
            self._read_through(self._state)
        except BaseException:
            self.close()
            raise

    @property
    def created(self) -> bool:
        """Whether this call created the ledger."""
        return self._database.created

    @property
    def lost(self) -> bool:
        """Whether all work is refused because the storage failed; not if the ledger does not verify."""
        return self._database.lost

    def freeze(self) -> None:
        """Refuse to write from now on."""
        self._database.freeze()

    def close(self) -> None:
        """Close the storage."""
        self._database.close()

    def _writing(self) -> AbstractContextManager[Book]:
        return self._database.writing(self._following(self._state, lock=True), Book.confirm)

    def _reading(self) -> AbstractContextManager[Book]:
        return self._database.reading(self._following(self._state, lock=False))

    def _following(self, state: LedgerState, *, lock: bool, once: bool = False) -> Callable[[Any], Book]:
        """The start of a transaction: read the entries added since the last one."""

        def start(connection: Any) -> Book:
            book, head = Book(connection, self._database.engine.dialect, state), state.head
            try:
                with self._trusting():
                    while not book.follow(lock=lock) and not once:
                        pass
            except BaseException:
                state.reset_if_interrupted(head)  # Ctrl-C may have left an entry half applied
                raise
            self._database.newest = state.hash
            return book

        return start

    @contextmanager
    def _trusting(self) -> Iterator[None]:
        """If the ledger does not verify, refuse all further work with it."""
        try:
            yield
        except LedgerError as error:
            self._database.stop(str(error))
            raise
        except (TypeError, ValueError, AttributeError) as error:  # SQLite stores values of any type in any column
            reason = f"a column of the ledger contains an invalid value ({str(error)[:200]}): it was tampered with"
            self._database.stop(reason)
            raise LedgerError(reason) from None

    def _read_through(self, state: LedgerState, *, answers: bool = False) -> None:
        """Read and check every entry, in chunks, so that writers don't have to wait until all are read."""
        done, after = False, 0 if answers else None
        while not done or after is not None:
            with self._database.reading(self._following(state, lock=False, once=True)) as book, self._trusting():
                done = book.complete
                if done and after is not None:
                    after = book.check_answers(after)
                if done and after is None:
                    book.check_leases()
                    book.check_answered()
                    self._leases.silent(book.beats())  # start to observe them

    def _renew(self, numbers: list[int]) -> None:
        def start(connection: Any) -> Book:
            return Book(connection, self._database.engine.dialect, self._state)

        with self._database.writing(start) as book:
            book.renew(numbers)

    def _dataset(self, name: str) -> DatasetState:
        dataset = self._state.datasets.get(name)
        if dataset is None:
            raise UserError(
                f"there is no dataset {name!r}",
                allowed=f"The ledger has these datasets: {', '.join(self._state.datasets) or 'none'}",
                subject=Subject("dataset", name),
            )
        return dataset
