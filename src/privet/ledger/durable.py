"""The ledger in a database: every step is a transaction, and on disk before the next begins."""

from __future__ import annotations

import math
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import get_args

from privet.accounting import Accountant
from privet.canonical import canonical
from privet.errors import InternalError, LedgerError, UserError
from privet.events import Composed, PrivacyEvent, Repeated
from privet.guarantees import Guarantee
from privet.ledger import chain, failpoints
from privet.ledger.book import charged, serves
from privet.ledger.database import Database
from privet.ledger.entries import (
    NO_CAPS,
    Balance,
    Budget,
    Caps,
    Charge,
    Dataset,
    Entry,
    Outcome,
    Ration,
    Receipt,
    Totals,
    nothing,
    reason_given,
)
from privet.ledger.journal import Journal, State
from privet.ledger.leases import Leases, Place
from privet.ledger.verification import beside, receipt_of, verified
from privet.relation.schema import called

_PRICES = 1000  # so many are remembered
_SOON, _LATEST = 0.02, 0.25  # seconds between looks at a running request


class DurableLedger:
    """Debits in a database.

    Example:
        >>> from privet.distances import Adjacency
        >>> from privet.events import Laplace
        >>> from privet.guarantees import PureDP
        >>> from privet.ledger import MemoryLedger
        >>> ledger = MemoryLedger()
        >>> salt = ledger.create(Dataset("people", "row", Adjacency.ADD_REMOVE, PureDP(1)))
        >>> half = Laplace(sensitivity=1, scale=2)
        >>> charge = ledger.reserve(dataset="people", analyst="me", request_id="1", events=[half])
        >>> ledger.settle(charge, "answered", "42")
        >>> ledger.balance("people").remaining
        PureDP(0.5)
    """

    def __init__(self, database: Database, *, lease: float = 30.0) -> None:
        self._database = database
        self._facts: dict[str, Dataset] = {}
        self._known: dict[str, State] = {}
        self._leases = Leases(lease, self._renew)
        self._looked: dict[str, float] = {}
        self._prices: dict[tuple[str, tuple[PrivacyEvent, ...]], Budget] = {}
        try:
            with beside(database.check):
                self.verify(answers=False)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the storage."""
        self._database.close()

    @contextmanager
    def _writing(self) -> Iterator[Journal]:
        with self._database.writing() as connection:
            journal = Journal(connection, self._database.engine.dialect, self._known)
            yield journal
        try:
            journal.confirm()
        except LedgerError as error:
            self._database.stop(str(error))
            raise

    @contextmanager
    def _reading(self) -> Iterator[Journal]:
        with self._database.reading() as connection:
            yield Journal(connection, self._database.engine.dialect, self._known)

    def _dataset(self, journal: Journal, name: str) -> Dataset:
        if name not in self._facts:
            self._facts[name] = journal.facts(name)
        return self._facts[name]

    def _price(self, facts: Dataset, events: tuple[PrivacyEvent, ...]) -> Budget:
        """What events cost; analysts ask at few different prices."""
        place = facts.name, events
        if place not in self._prices:
            if len(self._prices) >= _PRICES:
                self._prices.clear()
            self._prices[place] = facts.price(events)
        return self._prices[place]

    def create(self, dataset: Dataset, *, same_budget: bool = True) -> bytes:
        """Make the dataset known, or check that it is what it was; gives the salt that is drawn once for it."""
        called(dataset.name, "dataset")
        with self._writing() as journal:
            salt = journal.first(dataset)
            known = journal.facts(dataset.name)  # not to be remembered yet: this may be rolled back
            budget = journal.totals(dataset.name).budget
        for what in ("protect", "adjacency", "accountant"):
            was, is_now = getattr(known, what), getattr(dataset, what)
            if was != is_now:
                raise UserError(
                    f"the dataset {known.name!r} was made with {what} {was}, and is opened with {is_now}. "
                    "These facts are fixed for its whole life. Open it as it was made"
                )
        if same_budget and budget != dataset.budget:
            raise UserError(
                f"the dataset {known.name!r} has a budget of {budget}, and is opened with {dataset.budget}. "
                f"Open it with budget=pv.{budget!r}, or let the steward change it. Write, for example: "
                f'pv.open_ledger("people.ledger").cap({known.name!r}, pv.{dataset.budget!r}, reason="new consent")'
            )
        return salt

    # --- questions ------------------------------------------------------------------------------

    def reserve(
        self,
        *,
        dataset: str,
        analyst: str,
        request_id: str | None,
        events: Sequence[PrivacyEvent],
        asked: str = "",
        question: str = "",
        statement: str = "",
        version: str = "1",
        fresh: bool = False,
        caps: Caps = NO_CAPS,
        share: bool = True,
    ) -> Charge:
        """Debit all events or none; or find the debit, and the answer, that an earlier request made for the same."""
        called(analyst, "analyst")
        called(version, "version")
        if request_id is not None:
            called(request_id, "request id")
        question = _question(question, version)
        request = {"request_id": request_id or uuid.uuid4().hex, "version": version, "statement": statement}
        request["asked"] = asked
        self._sweep(dataset)
        with self._writing() as journal:
            facts = self._dataset(journal, dataset)
            cost = self._price(facts, tuple(events))
            totals = journal.totals(dataset, lock=True)
            known = None if request_id is None else journal.of_request(dataset, request_id)
            if known is not None:
                return self._again(journal, known, analyst, asked, version, tuple(events))
            mine = journal.ration(dataset, analyst)
            whose = None if share else analyst
            stored = self._stored(journal, dataset, question, events, whose) if question and not fresh else None
            if stored is not None:
                if request_id is not None:  # so that a retry finds the same answer
                    refers = stored.number
                    journal.append(dataset, "served", totals, analyst=analyst, ration=mine, refers=refers, **request)
                return stored
            totals, mine = charged(facts, totals, mine, analyst, cost, caps)
            paid = {"events": tuple(events), "cost": cost, "question": question}
            entry = journal.append(dataset, "reserved", totals, analyst=analyst, ration=mine, **paid, **request)
            journal.lease(dataset, entry.number)
            failpoints.reached("reserve: written")
        charge = Charge(entry.number, dataset, cost, request_id=request["request_id"], hash=entry.hash)
        self._leases.take(charge)
        failpoints.reached("reserve: on disk")
        return charge

    def _again(
        self,
        journal: Journal,
        known: Entry,
        analyst: str,
        asked: str,
        version: str,
        events: tuple[PrivacyEvent, ...],
    ) -> Charge:
        """What became of an earlier request with the same id."""
        same = (known.analyst, known.asked, known.version) == (analyst, asked, version)
        if not same or (known.kind == "reserved" and known.events != events):
            raise UserError(
                f"the request id {known.request_id!r} was used before, for another question or version. "
                "Leave it out, or take a new one"
            )
        return self._state(journal, known.dataset, known.number if known.refers is None else known.refers)

    def _state(self, journal: Journal, dataset: str, number: int) -> Charge:
        """How an earlier reservation stands."""
        charge = Charge(number, dataset, nothing(self._dataset(journal, dataset).budget), "running")
        end = journal.settling(dataset, number)
        if end is None:
            return charge
        if end.kind == "failed" or end.kind == "interrupted":
            return replace(charge, state=end.kind)
        answer = journal.answer(dataset, number)
        if answer is None or chain.digest(answer) != end.answer:
            raise LedgerError(
                f"the answer of entry {number} of the dataset {dataset!r} is not the one that was given: it was "
                "tampered with, and is not shown"
            )
        return replace(charge, state="answered", answer=answer)

    def _stored(
        self, journal: Journal, dataset: str, question: str, events: Sequence[PrivacyEvent], analyst: str | None
    ) -> Charge | None:
        """The answer with the least noise, if it has nowhere more than what is asked for; the newest among equals.

        With an analyst, of those that this analyst paid for.
        """
        found: Entry | None = None
        for entry in journal.same_question(dataset, question, analyst):
            if serves(entry.events, events) and (found is None or not serves(found.events, entry.events)):
                found = entry
        return None if found is None else self._state(journal, dataset, found.number)

    def stored(
        self,
        *,
        dataset: str,
        events: Sequence[PrivacyEvent],
        question: str,
        analyst: str,
        version: str = "1",
        share: bool = True,
    ) -> Charge | None:
        """The answer that `reserve` would return without a debit, if there is one; nothing is written."""
        with self._reading() as journal:
            self._dataset(journal, dataset)
            return self._stored(journal, dataset, _question(question, version), events, None if share else analyst)

    def wait(self, charge: Charge) -> Charge:
        """How a running request ended: answered, failed or interrupted."""
        pause = _SOON
        while charge.state == "running":
            time.sleep(pause)
            pause = min(2 * pause, _LATEST)
            with self._reading() as journal:
                charge = self._state(journal, charge.dataset, charge.number)
            if charge.state == "running":
                self._sweep(charge.dataset)
        return charge

    def settle(self, charge: Charge, outcome: Outcome, answer: str = "") -> None:
        """Say how a reserved question ended, and keep its answer; once."""
        dataset, number = charge.dataset, charge.number
        if outcome not in get_args(Outcome):
            raise InternalError(f"a question is answered, failed or interrupted, not {outcome}")
        self._leases.drop((dataset, number))
        with self._writing() as journal:
            self._dataset(journal, dataset)
            totals = journal.totals(dataset, lock=True)
            if not journal.release(dataset, number):
                end = journal.settling(dataset, number)
                state = "not reserved" if end is None else f"settled already: {end.kind}"
                raise InternalError(f"entry {number} can't be settled as {outcome}: it is {state}")
            if outcome == "failed":
                self._fail(journal, dataset, number, totals)
            else:
                digest = chain.digest(answer) if outcome == "answered" else ""
                journal.append(dataset, outcome, totals, refers=number, answer=digest)
            if outcome == "answered":
                journal.keep(dataset, number, answer)
            failpoints.reached("settle: written")
        failpoints.reached("settle: on disk")

    def _fail(self, journal: Journal, dataset: str, number: int, totals: Totals, note: str = "") -> Totals:
        after = totals._replace(failures=totals.failures + 1)
        journal.append(dataset, "failed", after, refers=number, note=note)
        return after

    def _sweep(self, dataset: str) -> None:
        """Mark reservations whose owner fell silent as failed: a step of its own, whatever comes of the next."""
        now = time.monotonic()
        if now - self._looked.get(dataset, -math.inf) < self._leases.seconds / 10:
            return
        self._looked[dataset] = now
        with self._reading() as journal:
            if not self._leases.dead(dataset, journal.beats(dataset)):
                return
        with self._writing() as journal:
            totals = journal.totals(dataset, lock=True)
            for number in sorted(self._leases.dead(dataset, journal.beats(dataset))):  # as they are renewed
                journal.release(dataset, number)
                totals = self._fail(journal, dataset, number, totals, note="its process fell silent")

    def _renew(self, places: list[Place]) -> None:
        with self._writing() as journal:
            journal.renew(places)

    # --- the steward ----------------------------------------------------------------------------

    def cap(
        self, dataset: str, cap: Budget | None, *, reason: str, analyst: str | None = None, query: bool = False
    ) -> None:
        """Set the dataset's budget, an analyst's cap, or the cap of each question; None takes one of the latter off."""
        why = reason_given(reason, "cap")
        if analyst is not None:
            called(analyst, "analyst")
        if query and analyst is not None:
            raise UserError("a cap is for the dataset, for an analyst, or for each question: name one of them")
        with self._writing() as journal:
            facts = self._dataset(journal, dataset)
            totals = journal.totals(dataset, lock=True)
            if cap is not None:
                facts.check_kind(cap)
            if analyst is not None:
                mine = journal.ration(dataset, analyst)._replace(cap=cap)
                journal.append(dataset, "capped", totals, analyst=analyst, ration=mine, note=why)
            elif query:
                journal.append(dataset, "capped", totals._replace(per_query=cap), note=why)
            elif cap is not None:
                journal.append(dataset, "capped", totals._replace(budget=cap), note=why)
            else:
                raise UserError("a dataset has a budget. Write, for example: cap('people', pv.PureDP(3), reason=...)")

    def declare(self, dataset: str, version: str, reason: str = "") -> None:
        """Name a version of the data, once. It does not renew the budget."""
        called(version, "version")
        with self._writing() as journal:
            self._dataset(journal, dataset)
            totals = journal.totals(dataset, lock=True)
            if all(entry.version != version for entry in journal.of_kind(dataset, "declared")):
                journal.append(dataset, "declared", totals, version=version, note=reason)

    def reopen(self, dataset: str, reason: str) -> None:
        """Open a dataset again that was closed after failures."""
        why = reason_given(reason, "reopen")
        with self._writing() as journal:
            self._dataset(journal, dataset)
            totals = journal.totals(dataset, lock=True)._replace(failures=0)
            journal.append(dataset, "reopened", totals, note=why)

    # --- looking --------------------------------------------------------------------------------

    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets."""
        with self._reading() as journal:
            return journal.names()

    def dataset(self, name: str) -> Dataset:
        """What is fixed about a dataset, with the budget that it was made with."""
        with self._reading() as journal:
            return self._dataset(journal, name)

    def balance(self, dataset: str, analyst: str | None = None) -> Balance:
        """What was granted and what is spent; of an analyst's cap too, if one is named."""
        with self._reading() as journal:
            self._dataset(journal, dataset)
            totals = journal.totals(dataset)
            mine = None if analyst is None else journal.ration(dataset, analyst)
        return Balance(totals.budget, totals.spent, mine, totals.per_query)

    def analysts(self, dataset: str) -> dict[str, Ration]:
        """What each analyst has spent, and may."""
        with self._reading() as journal:
            self._dataset(journal, dataset)
            return journal.rations(dataset)

    def history(self, dataset: str) -> tuple[Entry, ...]:
        """Every entry, oldest first."""
        with self._reading() as journal:
            self._dataset(journal, dataset)
            return tuple(chain.read(text, found) for *_, text, found in journal.rows(dataset))

    def reservation(self, dataset: str, number: int) -> tuple[Entry, Entry | None]:
        """A reservation, and how it ended, if it did."""
        with self._reading() as journal:
            self._dataset(journal, dataset)
            found = journal.entry(dataset, number)
            if found is None or found.kind != "reserved":
                raise UserError(f"there is no reservation {number} in the dataset {dataset!r}")
            return found, journal.settling(dataset, number)

    def head(self, dataset: str) -> Receipt:
        """Where the chain ends now."""
        with self._reading() as journal:
            self._dataset(journal, dataset)
            return journal.head(dataset)

    def verify(self, expect: Receipt | str | None = None, *, answers: bool = True) -> tuple[Receipt, ...]:
        """Check every chain, and that a receipt's entry is in it; `LedgerError` names the first bad entry."""
        receipt = receipt_of(expect)
        with self._reading() as journal:
            try:
                books = verified(journal, receipt, answers=answers)
            except LedgerError as error:
                if receipt is None:  # the ledger itself does not hold, whatever receipt is asked for
                    self._database.stop(str(error))
                raise
            for book in books:
                self._leases.dead(book.name, journal.beats(book.name))  # from now on they are watched
        return tuple(book.head for book in books)

    def replay(self, dataset: str, accountant: Accountant) -> Guarantee:
        """What the whole history would have cost under another accountant."""
        often = Counter(event for entry in self.history(dataset) for event in entry.events)
        return accountant.account(Composed([Repeated(event, times) for event, times in often.items()]))

    def export(self, dataset: str) -> Iterator[str]:
        """The chain as lines of JSON, without the answers; `verify_export` checks them."""
        with self._reading() as journal:
            self._dataset(journal, dataset)
            lines = [canonical({"entry": text, "hash": found}) for *_, text, found in journal.rows(dataset)]
        yield from lines


def _question(question: str, version: str) -> str:
    """What stands in the ledger for a question about a version of the data."""
    return chain.digest(f"{version}\n{question}") if question else ""
