"""A ledger's transactions: each begins with what others wrote since the last one, checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from privet.errors import LedgerBusy, LedgerError, Subject, UserError
from privet.ledger.database import Database
from privet.ledger.entries import Charge, Outcome
from privet.ledger.journal import Journal
from privet.ledger.leases import Leases
from privet.ledger.state import DatasetState, LedgerState
from privet.ledger.verification import check_answers, check_beside


class Transactions:
    """A database, the state that follows from its entries, and the leases of this process."""

    def __init__(self, database: Database, *, lease: float = 30.0) -> None:
        self._database = database
        self._state = LedgerState(strict=False)
        self._leases = Leases(lease, self._renew)
        self._swept = -math.inf
        self._late: list[tuple[Charge, Outcome]] = []  # what could not be settled, since others held the lock
        try:
            self._read_through(self._state)
        except BaseException:
            self.close()
            raise

    @property
    def created(self) -> bool:
        """Whether this call created the ledger."""
        return self._database.created

    def close(self) -> None:
        """Close the storage."""
        self._database.close()

    @contextmanager
    def _writing(self) -> Iterator[Journal]:
        try:
            with self._database.writing(self._following(self._state, lock=True)) as journal:
                yield journal
        except LedgerBusy:
            self._leases.forgive()
            raise
        try:
            journal.confirm()
        except LedgerError as error:
            self._database.stop(str(error))
            raise

    @contextmanager
    def _reading(self) -> Iterator[Journal]:
        with self._database.reading(self._following(self._state, lock=False)) as journal:
            yield journal

    def _following(self, state: LedgerState, *, lock: bool, once: bool = False) -> Callable[[Any], Journal]:
        """How a transaction begins: with what was written since the last one."""

        def start(connection: Any) -> Journal:
            journal, known = Journal(connection, self._database.engine.dialect, state), state.head
            try:
                with self._trusting():
                    while not journal.follow(lock=lock) and not once:
                        pass
            except BaseException:
                state.reset_if_interrupted(known)  # Ctrl-C may have come in the middle of an entry
                raise
            self._database.known = state.hash
            return journal

        return start

    @contextmanager
    def _trusting(self) -> Iterator[None]:
        """If a ledger turns out not to verify, nothing more is done with it."""
        try:
            yield
        except LedgerError as error:
            self._database.stop(str(error))
            raise
        except (TypeError, ValueError, AttributeError) as error:  # SQLite keeps values of any type in any column
            why = f"a column of the ledger contains an invalid value ({str(error)[:200]}): it was tampered with"
            self._database.stop(why)
            raise LedgerError(why) from None

    def _read_through(self, state: LedgerState, *, answers: bool = False) -> None:
        """Every entry, in steps: nobody who writes has to wait until all of it is read."""
        done, after = False, 0 if answers else None
        while not done or after is not None:
            with self._database.reading(self._following(state, lock=False, once=True)) as journal, self._trusting():
                done = journal.complete
                if done and after is not None:
                    after = check_answers(journal, after)
                if done and after is None:
                    check_beside(journal)
                    self._leases.dead(journal.beats())  # from now on they are watched

    def _renew(self, numbers: list[int]) -> None:
        def start(connection: Any) -> Journal:
            return Journal(connection, self._database.engine.dialect, self._state)

        with self._database.writing(start) as journal:
            journal.renew(numbers)

    def _dataset(self, name: str) -> DatasetState:
        dataset = self._state.datasets.get(name)
        if dataset is None:
            raise UserError(
                f"there is no dataset {name!r}",
                allowed=f"There are: {', '.join(self._state.datasets) or 'none'}",
                subject=Subject("dataset", name),
            )
        return dataset
