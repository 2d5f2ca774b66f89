"""Reservations: a question is reserved before data are read and settled afterwards, or served from a stored answer."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from privet.errors import InternalError, LedgerBusy, LedgerError, Remedy, ReusedRequest, Subject
from privet.ledger import failpoints
from privet.ledger.balance import NO_CAPS, Balance, Caps, balance_of
from privet.ledger.debits import debit, serves
from privet.ledger.history import chain
from privet.ledger.history.entries import Charge, Entry, Outcome, Ration, Totals
from privet.ledger.history.state import DatasetState
from privet.ledger.storage.book import Book
from privet.ledger.storage.database import Database
from privet.ledger.transactions import Transactions
from privet.privacy.accounting import guarantee_of
from privet.privacy.events import Composed, PrivacyEvent
from privet.tables.schema import check_name

_PRICES = 1000  # the number of prices in the cache
_KNOWN = 10_000  # the number of reservations whose events are cached
_CANDIDATES = 100  # the number of stored answers that are considered, the newest first
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.25  # seconds between checks of a running request
MAX_WAIT = 600.0
"""Seconds to wait for a request that runs in another process."""


class Reservations(Transactions):
    """Debits and how they end."""

    def __init__(self, database: Database, *, lease: float = 30.0) -> None:
        self._prices: dict[tuple[str, tuple[PrivacyEvent, ...]], Any] = {}
        self._paid: dict[int, tuple[PrivacyEvent, ...]] = {}
        self._same: dict[tuple[PrivacyEvent, ...], tuple[PrivacyEvent, ...]] = {}  # equal ones are kept once
        super().__init__(database, lease=lease)

    def _price(self, dataset: DatasetState, events: tuple[PrivacyEvent, ...]) -> Any:
        """The accountant's price of events, cached: analysts ask for the same few prices."""
        key = dataset.facts.name, events
        if key not in self._prices:
            if len(self._prices) >= _PRICES:
                self._prices.clear()
            self._prices[key] = dataset.accountant.price(Composed(events))
        return self._prices[key]

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
        share: bool = True,
        caps: Caps = NO_CAPS,
    ) -> Charge:
        """Debit all events or none, or return the debit and answer of an earlier request for the same question."""
        check_name(analyst, "analyst")
        check_name(version, "version")
        if request_id is not None:
            check_name(request_id, "request id")
        question, cost = _question(question, version), guarantee_of(events)
        request = {"request_id": request_id or uuid.uuid4().hex, "version": version, "statement": statement}
        request["asked"] = asked
        self._settle_late()
        self._sweep()
        with self._writing() as book:
            state = self._dataset(dataset)
            price = self._price(state, tuple(events))
            earlier = None if request_id is None else state.requests.get((analyst, request_id))
            if earlier is not None:
                return self._repeated(book, book.entry(earlier), asked, version, tuple(events))
            totals, ration = state.totals, state.ration(analyst)
            stored = None if fresh else self._stored(book, state, analyst, question, events, share=share)
            if stored is not None:
                if request_id is not None:  # so that a retry gets the same answer
                    refers = stored.number
                    book.append(dataset, "served", totals, analyst=analyst, ration=ration, refers=refers, **request)
                return stored
            totals, ration = debit(state.facts, totals, ration, analyst, events, price, caps)
            paid = {"events": tuple(events), "cost": price, "question": question}
            entry = book.append(dataset, "reserved", totals, analyst=analyst, ration=ration, **paid, **request)
            book.lease(entry.number)
            failpoints.reached("reserve: written")
        charge = Charge(entry.number, dataset, cost, request_id=request["request_id"], hash=entry.hash)
        self._leases.take(charge)
        failpoints.reached("reserve: on disk")
        return charge

    def _repeated(self, book: Book, entry: Entry, asked: str, version: str, events: tuple[PrivacyEvent, ...]) -> Charge:
        """The charge of an earlier request with the same id."""
        same = (entry.asked, entry.version) == (asked, version)
        if not same or (entry.kind == "reserved" and entry.events != events):
            raise ReusedRequest(
                f"the request id {entry.request_id!r} was already used for a different question or version",
                subject=Subject("argument", "request_id"),
                remedy=Remedy("Use a new request id, or none"),
            )
        return self._earlier(book, entry.dataset, entry.number if entry.refers is None else entry.refers)

    def _earlier(self, book: Book, dataset: str, number: int) -> Charge:
        """An earlier reservation as a charge, with its current state."""
        charge = Charge(number, dataset, guarantee_of(()), "running")
        settlement = self._state.settled.get(number)
        if settlement is None or settlement.kind != "answered":
            return charge if settlement is None else replace(charge, state=settlement.kind)
        answer = book.answer(number)
        if answer is None or chain.digest(answer) != settlement.answer:
            raise LedgerError(
                f"the stored answer to entry {number} of the ledger does not match its hash: it was tampered with, and "
                "is not shown"
            )
        return replace(charge, state="answered", answer=answer)

    def _stored(
        self,
        book: Book,
        state: DatasetState,
        analyst: str,
        question: str,
        events: Sequence[PrivacyEvent],
        *,
        share: bool,
    ) -> Charge | None:
        """The stored answer with the least noise that serves the request; the newest of equals."""
        answers = state.answered.get(question, ())
        numbers = sorted(number for number, owner in answers if share or owner == analyst)
        newest: dict[tuple[PrivacyEvent, ...], int] = {}
        for number in reversed(numbers[-_CANDIDATES:]):
            newest.setdefault(self._events(book, number), number)
        best: tuple[PrivacyEvent, ...] | None = None
        for stored in newest:
            if serves(stored, events) and (best is None or not serves(best, stored)):
                best = stored
        return None if best is None else self._earlier(book, state.facts.name, newest[best])

    def _events(self, book: Book, number: int) -> tuple[PrivacyEvent, ...]:
        """The events of a reservation, cached: an entry never changes, and many stored answers may be candidates."""
        if number not in self._paid:
            if len(self._paid) >= _KNOWN:
                self._paid.clear()
                self._same.clear()
            events = book.entry(number).events
            self._paid[number] = self._same.setdefault(events, events)
        return self._paid[number]

    def stored(
        self,
        *,
        dataset: str,
        analyst: str,
        events: Sequence[PrivacyEvent],
        question: str,
        version: str = "1",
        share: bool = True,
    ) -> Charge | None:
        """The answer that `reserve` would return without a debit, if there is one; nothing is written."""
        with self._reading() as book:
            state = self._dataset(dataset)
            return self._stored(book, state, analyst, _question(question, version), events, share=share)

    def standing(
        self,
        *,
        dataset: str,
        analyst: str,
        events: Sequence[PrivacyEvent],
        question: str,
        version: str = "1",
        share: bool = True,
    ) -> tuple[Balance, Charge | None]:
        """An analyst's balance, and what `stored` returns, in one state of the ledger."""
        with self._reading() as book:
            state = self._dataset(dataset)
            stored = self._stored(book, state, analyst, _question(question, version), events, share=share)
            return balance_of(state.totals, state.ration(analyst)), stored

    def repeated(
        self,
        *,
        dataset: str,
        analyst: str,
        request_id: str,
        events: Sequence[PrivacyEvent],
        asked: str,
        version: str = "1",
    ) -> Charge | None:
        """What `reserve` would return for a request id that was used before, or None; nothing is written."""
        with self._reading() as book:
            earlier = self._dataset(dataset).requests.get((analyst, request_id))
            return None if earlier is None else self._repeated(book, book.entry(earlier), asked, version, tuple(events))

    def request(self, *, dataset: str, analyst: str, request_id: str) -> Charge | None:
        """The debit of an analyst's request, with its answer if there is one; None if there is no such request."""
        with self._reading() as book:
            number = self._dataset(dataset).requests.get((analyst, request_id))
            if number is None:
                return None
            entry = book.entry(number)
            return self._earlier(book, dataset, number if entry.refers is None else entry.refers)

    def wait(self, charge: Charge, *, seconds: float = MAX_WAIT) -> Charge:
        """Wait until a running request is answered, failed or interrupted; raises `LedgerBusy` after `seconds`."""
        pause, deadline = _FIRST_PAUSE, time.monotonic() + seconds
        while charge.state == "running":
            if time.monotonic() > deadline:
                raise LedgerBusy(
                    f"this request is still running in another process after {seconds:g} seconds. Nothing more was "
                    "spent",
                    remedy=Remedy("Ask again later with the same request id"),
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            charge = self.look(charge)
        return charge

    def look(self, charge: Charge) -> Charge:
        """A charge of an earlier request as it is now."""
        with self._reading() as book:
            charge = self._earlier(book, charge.dataset, charge.number)
        if charge.state == "running":
            self._settle_late()
            self._sweep()
        return charge

    def settle(self, charge: Charge, outcome: Outcome, answer: str = "") -> Balance:
        """Record how a reserved question ended, and store its answer. A reservation is settled once.

        The question is already paid for, so this waits for a busy ledger. Returns the balance of the one who asked.
        """
        if outcome not in get_args(Outcome):
            raise InternalError(f"a question is settled as answered, failed or interrupted, not as {outcome}")
        if not isinstance(answer, str):
            raise InternalError(f"an answer is stored as text, not as {type(answer).__name__}")
        deadline = time.monotonic() + self._leases.seconds
        while True:
            try:
                balance = self._settle(charge.dataset, charge.number, outcome, answer)
            except LedgerBusy:
                if time.monotonic() < deadline:
                    continue
                raise
            break
        self._leases.drop(charge.number)
        failpoints.reached("settle: on disk")
        return balance

    def abandon(self, charge: Charge, outcome: Outcome) -> None:
        """Settle a question whose answer was not shown, as soon as the ledger can be written."""
        self._late.append((charge, outcome))

    def _settle_late(self) -> None:
        """Settle questions that could not be settled in time. An answer that was not shown is not a failure."""
        while self._late:
            charge, outcome = self._late.pop()
            try:
                self._settle(charge.dataset, charge.number, "failed" if outcome == "failed" else "interrupted", "")
            except InternalError:  # another process has already given it up as dead
                continue
            except LedgerBusy:
                self._late.append((charge, outcome))
                raise

    def _settle(self, dataset: str, number: int, outcome: Outcome, answer: str) -> Balance:
        with self._writing() as book:
            state, reservation = self._dataset(dataset), self._state.reserved.get(number)
            if reservation is None or reservation.dataset != dataset or not book.release(number):
                settlement = self._state.settled.get(number)
                status = "not reserved" if settlement is None else f"already settled as {settlement.kind}"
                raise InternalError(f"entry {number} can't be settled as {outcome}: it is {status}")
            if outcome == "failed":
                self._fail(book, number, state.totals, state.ration(reservation.analyst))
            else:
                digest = chain.digest(answer) if outcome == "answered" else ""
                book.append(dataset, outcome, state.totals, refers=number, answer=digest)
            if outcome == "answered":
                book.keep(number, answer)
            balance = balance_of(state.totals, state.ration(reservation.analyst))
            failpoints.reached("settle: written")
        return balance

    def _fail(self, book: Book, number: int, totals: Totals, ration: Ration, note: str = "") -> tuple[Totals, Ration]:
        dataset, analyst, _ = self._state.reserved[number]
        totals, ration = totals._replace(failures=totals.failures + 1), ration._replace(failures=ration.failures + 1)
        book.append(dataset, "failed", totals, analyst=analyst, ration=ration, refers=number, note=note)
        return totals, ration

    def _sweep(self) -> None:
        """Mark reservations of dead processes as failed, in a transaction of their own."""
        now = time.monotonic()
        if now - self._swept < self._leases.seconds / 10:
            return
        self._swept = now
        with self._reading() as book:
            if not self._leases.silent(book.beats()):
                return
        with self._writing() as book:
            after: dict[str, Totals] = {}
            rations: dict[tuple[str, str], Ration] = {}
            dead = self._leases.dead(book.beats())
            with self._trusting():
                book.check_leases()
            for number in sorted(dead):
                name, analyst, _ = self._state.reserved[number]
                state = self._dataset(name)
                book.release(number)
                after[name], rations[name, analyst] = self._fail(
                    book,
                    number,
                    after.get(name, state.totals),
                    rations.get((name, analyst), state.ration(analyst)),
                    note="its process stopped responding",
                )


def _question(question: str, version: str) -> str:
    """The digest that identifies a question about one version of the data."""
    return chain.digest(f"{version}\n{question}") if question else ""
