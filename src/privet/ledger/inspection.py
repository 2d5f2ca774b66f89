"""Inspecting a ledger: balances, history, verification, replay and export. Nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from privet.codec import canonical
from privet.errors import AccountingError, UserError
from privet.ledger.balance import Balance, balance_of
from privet.ledger.history import chain
from privet.ledger.history.datasets import Dataset
from privet.ledger.history.entries import Entry, Ration
from privet.ledger.history.export import exported
from privet.ledger.history.receipts import Receipt, Verified, as_receipt
from privet.ledger.history.state import LedgerState
from privet.ledger.transactions import Transactions
from privet.privacy.accounting import Accountant, Share
from privet.privacy.events import Composed, PrivacyEvent, Repeated, from_tree
from privet.privacy.guarantees import Guarantee
from privet.privacy.guarantees.budgets import FIELDS

_PAGES = 10  # chunks of entries that are read for a page of the history


class Inspection(Transactions):
    """The operations that only read a ledger."""

    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets."""
        with self._reading():
            return tuple(sorted(self._state.datasets))

    def dataset(self, name: str) -> Dataset:
        """The permanent facts of a dataset, with its original budget."""
        with self._reading():
            return self._dataset(name).facts

    def balance(self, dataset: str, analyst: str | None = None) -> Balance:
        """The budget and what is spent; for a named analyst, also that analyst's cap and spending."""
        with self._reading():
            state = self._dataset(dataset)
            return balance_of(state.totals, None if analyst is None else state.ration(analyst))

    def latest(self, dataset: str, analyst: str | None = None) -> PrivacyEvent | None:
        """The event of the newest question, or of an analyst's newest among recent entries; None if there is none."""
        if analyst is not None:
            entries, _ = self.recent(dataset, analyst=analyst, limit=20)
            return next((Composed(each.events) for each in entries if each.kind == "reserved" and each.events), None)
        with self._reading():
            trees = self._dataset(dataset).latest
            return Composed(map(from_tree, trees)) if trees else None

    def analysts(self, dataset: str) -> dict[str, Ration]:
        """Each analyst's spending and cap."""
        with self._reading():
            state = self._dataset(dataset)
            return {name: state.ration(name) for name in sorted(state.analysts)}

    def history(self, dataset: str) -> tuple[Entry, ...]:
        """Every entry of a dataset, oldest first."""
        with self._reading():
            self._dataset(dataset)
        entries = (chain.read(text, hash_) for _, text, hash_ in self._rows())
        return tuple(entry for entry in entries if entry.dataset == dataset)

    def recent(
        self, dataset: str, *, analyst: str | None = None, before: int | None = None, limit: int = 100
    ) -> tuple[list[Entry], int | None]:
        """The latest entries of a dataset, newest first, and the number to continue `before`; None at the end.

        With an analyst, only entries that name them. A page can be shorter than the limit: few entries are read for it.
        """
        wanted = [f'"dataset":{canonical(dataset)}'] + ([] if analyst is None else [f'"analyst":{canonical(analyst)}'])
        found: list[Entry] = []
        with self._reading() as book:
            self._dataset(dataset)
            start = self._state.number + 1 if before is None else before
            for _ in range(_PAGES):
                rows = book.rows_before(start)
                for number, text, hash_ in rows:
                    start = number
                    if all(part in text for part in wanted):  # before it is read, which takes its time
                        entry = chain.read(text, hash_)
                        if entry.dataset == dataset and analyst in (None, entry.analyst):
                            found.append(entry)
                            if len(found) == limit:
                                return found, start if start > 1 else None
                if not rows or start <= 1:
                    return found, None
        return found, start

    def failures(self, dataset: str) -> tuple[int, bool]:
        """How many questions failed since the dataset was last reopened, and whether it is closed for that."""
        with self._reading():
            state = self._dataset(dataset)
            return state.totals.failures, state.totals.failures >= state.facts.closes_after

    def was_served(self, dataset: str, analyst: str, number: int) -> bool:
        """Whether the answer to a reservation was also given to this analyst, under a request id of theirs."""
        with self._reading() as book:
            theirs = [
                at for (name, _), at in self._dataset(dataset).requests.items() if name == analyst and at > number
            ]
            return any(book.entry(at).refers == number for at in theirs)

    def states(self, numbers: Iterable[int]) -> dict[int, str]:
        """For each of these reservations, how it ended, or that it is running."""
        with self._reading():
            settled = self._state.settled
            return {each: settled[each].kind if each in settled else "running" for each in numbers}

    def receipts(self, limit: int = 100) -> list[tuple[Receipt, Entry]]:
        """The receipts of the latest entries of all datasets, newest first, and the entries."""
        with self._reading() as book:
            rows = book.rows_before(self._state.number + 1)[:limit]
        return [(Receipt(number, hash_), chain.read(text, hash_)) for number, text, hash_ in rows]

    def _rows(self) -> Iterator[tuple[int, str, str]]:
        """Every entry, read in chunks."""
        start = 1
        while True:
            with self._reading() as book:
                rows = book.rows(start)
            if not rows:
                return
            yield from rows
            start = rows[-1][0] + 1

    def reservation(self, dataset: str, number: int) -> tuple[Entry, Entry | None]:
        """A reservation, and the entry that settled it, if there is one."""
        with self._reading() as book:
            self._dataset(dataset)
            settlement = self._state.settled.get(number)
            reservation = settlement or self._state.reserved.get(number)
            if reservation is None or reservation.dataset != dataset:
                raise UserError(f"there is no reservation {number} in the dataset {dataset!r}")
            return book.entry(number), None if settlement is None else book.entry(settlement.number)

    def answer(self, dataset: str, number: int) -> str | None:
        """The stored answer to a reservation, as it is in the database; None if there is none."""
        self.reservation(dataset, number)
        with self._reading() as book:
            return book.answer(number)

    def head(self) -> Receipt:
        """The receipt of the newest entry."""
        with self._reading():
            return self._state.head

    def verify(self, expect: Receipt | str | None = None, *, answers: bool = True) -> Verified:
        """Check the whole chain, and that it contains a receipt's entry; a `LedgerError` names the first bad entry."""
        receipt = as_receipt(expect)
        state = LedgerState(strict=answers, watch=0 if receipt is None else receipt.number)
        self._read_through(state, answers=answers)
        with self._reading():  # check that this process has seen the same history
            pass
        if receipt is not None:
            state.expect(receipt)
        return Verified(state.head, {name: dataset.entries for name, dataset in sorted(state.datasets.items())})

    def contains(self, receipt: Receipt | str) -> bool:
        """Whether the entry of a receipt is in the ledger. Only this entry is read; `verify` checks the chain."""
        given = Receipt.read(receipt) if isinstance(receipt, str) else receipt
        with self._reading() as book:
            if not 0 < given.number <= self._state.number:
                return given == Receipt(0, chain.GENESIS)
            return book.entry(given.number).hash == given.hash

    def replay(self, dataset: str, accountant: Accountant[Any]) -> Guarantee | Share:
        """What the whole history would have cost under another accountant, and the dataset's original budget."""
        budget = self.dataset(dataset).budget
        counts = Counter(event for entry in self.history(dataset) for event in entry.events)
        whole = Composed([Repeated(event, times) for event, times in counts.items()])
        price = accountant.price(whole)
        if isinstance(price, Guarantee):
            return price
        if type(budget) is not accountant.promises:
            names = " and ".join(FIELDS[accountant.promises])
            raise AccountingError(f"the {accountant.name} accountant needs a budget in {names}")
        own = self.balance(dataset).accountant
        accountant = own if own.name == accountant.name else accountant.for_budget(budget)
        return accountant.spent(accountant.price(whole), budget)

    def export(self, dataset: str | None = None) -> Iterator[str]:
        """The chain as lines of JSON, without the answers; `verify_export` checks them.

        With `dataset`, entries of other datasets show only the dataset's name and a hash.
        """
        if dataset is not None:
            with self._reading():
                self._dataset(dataset)
        for _, text, hash_ in self._rows():
            name = chain.read(text).dataset
            yield exported(name, text, hash_, visible=dataset in (None, name))
