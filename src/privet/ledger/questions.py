"""Questions in a ledger: reserved before data are read, settled after; and answers that are stored already."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from privet.errors import InternalError, LedgerBusy, LedgerError, Remedy, Subject, UserError
from privet.ledger import chain, failpoints
from privet.ledger.balance import NO_CAPS, Caps
from privet.ledger.database import Database
from privet.ledger.entries import Charge, Entry, Outcome, Ration, Totals
from privet.ledger.journal import Journal
from privet.ledger.rules import debit, serves
from privet.ledger.state import DatasetState
from privet.ledger.transactions import Transactions
from privet.ledger.verification import check_leases
from privet.privacy.events import Composed, PrivacyEvent
from privet.tables.schema import check_name

_PRICES = 1000  # so many are remembered
_CANDIDATES = 100  # so many answers to the same question are looked at, the newest first
_SOON, _LATEST = 0.02, 0.25  # seconds between looks at a running request
WAITS = 600.0
"""Seconds to wait for a request that runs elsewhere."""


class Questions(Transactions):
    """Debits and their ends."""

    def __init__(self, database: Database, *, lease: float = 30.0) -> None:
        self._prices: dict[tuple[str, tuple[PrivacyEvent, ...]], Any] = {}
        super().__init__(database, lease=lease)

    def _price(self, dataset: DatasetState, events: tuple[PrivacyEvent, ...]) -> Any:
        """The accountant's price of events; analysts ask at few different prices."""
        place = dataset.facts.name, events
        if place not in self._prices:
            if len(self._prices) >= _PRICES:
                self._prices.clear()
            self._prices[place] = dataset.accountant.price(Composed(events))
        return self._prices[place]

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
        """Debit all events or none; or find the debit, and the answer, that an earlier request made for the same."""
        check_name(analyst, "analyst")
        check_name(version, "version")
        if request_id is not None:
            check_name(request_id, "request id")
        question = _question(question, version)
        request = {"request_id": request_id or uuid.uuid4().hex, "version": version, "statement": statement}
        request["asked"] = asked
        self._settle_late()
        self._sweep()
        with self._writing() as journal:
            state = self._dataset(dataset)
            price = self._price(state, tuple(events))
            known = None if request_id is None else state.requests.get((analyst, request_id))
            if known is not None:
                return self._again(journal, journal.entry(known), asked, version, tuple(events))
            totals, mine = state.totals, state.ration(analyst)
            stored = None if fresh else self._stored(journal, state, analyst, question, events, share=share)
            if stored is not None:
                if request_id is not None:  # so that a retry finds the same answer
                    refers = stored.number
                    journal.append(dataset, "served", totals, analyst=analyst, ration=mine, refers=refers, **request)
                return stored
            totals, mine = debit(state.facts, totals, mine, analyst, price, caps)
            paid = {"events": tuple(events), "cost": price, "question": question}
            entry = journal.append(dataset, "reserved", totals, analyst=analyst, ration=mine, **paid, **request)
            journal.lease(entry.number)
            failpoints.reached("reserve: written")
        cost = totals.accountant.guarantee(price)
        charge = Charge(entry.number, dataset, cost, request_id=request["request_id"], hash=entry.hash)
        self._leases.take(charge)
        failpoints.reached("reserve: on disk")
        return charge

    def _again(
        self, journal: Journal, known: Entry, asked: str, version: str, events: tuple[PrivacyEvent, ...]
    ) -> Charge:
        """What became of an earlier request with the same id."""
        same = (known.asked, known.version) == (asked, version)
        if not same or (known.kind == "reserved" and known.events != events):
            raise UserError(
                f"the request id {known.request_id!r} was used before, for another question or version",
                subject=Subject("argument", "request_id"),
                remedy=Remedy("Leave it out, or use a new one"),
            )
        return self._earlier(journal, known.dataset, known.number if known.refers is None else known.refers)

    def _earlier(self, journal: Journal, dataset: str, number: int) -> Charge:
        """How an earlier reservation stands."""
        accountant = self._dataset(dataset).accountant
        charge = Charge(number, dataset, accountant.guarantee(accountant.zero), "running")
        settlement = self._state.settled.get(number)
        if settlement is None or settlement.kind != "answered":
            return charge if settlement is None else replace(charge, state=settlement.kind)
        answer = journal.answer(number)
        if answer is None or chain.digest(answer) != settlement.answer:
            raise LedgerError(
                f"the answer of entry {number} of the ledger is not the one that was given: it was tampered with, and "
                "is not shown"
            )
        return replace(charge, state="answered", answer=answer)

    def _stored(
        self,
        journal: Journal,
        state: DatasetState,
        analyst: str,
        question: str,
        events: Sequence[PrivacyEvent],
        *,
        share: bool,
    ) -> Charge | None:
        """The answer with the least noise, if it has nowhere more than what is asked for; the newest among equals."""
        best: Entry | None = None
        known = sorted(number for number, who in state.answered.get(question, ()) if share or who == analyst)
        for number in reversed(known[-_CANDIDATES:]):
            entry = journal.entry(number)
            if serves(entry.events, events) and (best is None or not serves(best.events, entry.events)):
                best = entry
        return None if best is None else self._earlier(journal, state.facts.name, best.number)

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
        with self._reading() as journal:
            state = self._dataset(dataset)
            return self._stored(journal, state, analyst, _question(question, version), events, share=share)

    def wait(self, charge: Charge, *, seconds: float = WAITS) -> Charge:
        """How a running request ended: answered, failed or interrupted; `LedgerBusy` if it takes longer than this."""
        pause, until = _SOON, time.monotonic() + seconds
        while charge.state == "running":
            if time.monotonic() > until:
                raise LedgerBusy(
                    f"this request is still running elsewhere, after {seconds:g} seconds. Nothing more was paid",
                    remedy=Remedy("Ask again later with the same request id"),
                )
            time.sleep(pause)
            pause = min(2 * pause, _LATEST)
            with self._reading() as journal:
                charge = self._earlier(journal, charge.dataset, charge.number)
            if charge.state == "running":
                self._settle_late()
                self._sweep()
        return charge

    def settle(self, charge: Charge, outcome: Outcome, answer: str = "") -> None:
        """Say how a reserved question ended, and keep its answer; once.

        It was paid for, so a busy ledger is waited for.
        """
        if outcome not in get_args(Outcome):
            raise InternalError(f"a question ends as answered, failed or interrupted, not as {outcome}")
        until = time.monotonic() + self._leases.seconds
        while True:
            try:
                self._settle(charge.dataset, charge.number, outcome, answer)
            except LedgerBusy:
                if time.monotonic() < until:
                    continue
                raise
            break
        self._leases.drop(charge.number)
        failpoints.reached("settle: on disk")

    def abandon(self, charge: Charge, outcome: Outcome) -> None:
        """Settle a question without an answer as soon as the ledger can be written: nobody was shown one."""
        self._late.append((charge, outcome))

    def _settle_late(self) -> None:
        """Settle what could not be settled in time: an answer that was not shown is nobody's failure."""
        while self._late:
            charge, outcome = self._late.pop()
            try:
                self._settle(charge.dataset, charge.number, "failed" if outcome == "failed" else "interrupted", "")
            except InternalError:  # others took its owner for dead
                continue
            except LedgerBusy:
                self._late.append((charge, outcome))
                raise

    def _settle(self, dataset: str, number: int, outcome: Outcome, answer: str) -> None:
        with self._writing() as journal:
            state, reservation = self._dataset(dataset), self._state.reserved.get(number)
            if reservation is None or reservation.dataset != dataset or not journal.release(number):
                earlier = self._state.settled.get(number)
                how = "not reserved" if earlier is None else f"settled already: {earlier.kind}"
                raise InternalError(f"entry {number} can't be settled as {outcome}: it is {how}")
            if outcome == "failed":
                self._fail(journal, number, state.totals, state.ration(reservation.analyst))
            else:
                digest = chain.digest(answer) if outcome == "answered" else ""
                journal.append(dataset, outcome, state.totals, refers=number, answer=digest)
            if outcome == "answered":
                journal.keep(number, answer)
            failpoints.reached("settle: written")

    def _fail(
        self, journal: Journal, number: int, totals: Totals, mine: Ration, note: str = ""
    ) -> tuple[Totals, Ration]:
        dataset, analyst, _ = self._state.reserved[number]
        totals, mine = totals._replace(failures=totals.failures + 1), mine._replace(failures=mine.failures + 1)
        journal.append(dataset, "failed", totals, analyst=analyst, ration=mine, refers=number, note=note)
        return totals, mine

    def _sweep(self) -> None:
        """Mark reservations whose owner fell silent as failed: a step of its own, whatever comes of the next."""
        now = time.monotonic()
        if now - self._swept < self._leases.seconds / 10:
            return
        self._swept = now
        with self._reading() as journal:
            if not self._leases.dead(journal.beats()):
                return
        with self._writing() as journal:
            after: dict[str, Totals] = {}
            rations: dict[tuple[str, str], Ration] = {}
            dead = self._leases.dead(journal.beats())  # as they are renewed
            with self._trusting():
                check_leases(journal)
            for number in sorted(dead):
                name, who, _ = self._state.reserved[number]
                state = self._dataset(name)
                journal.release(number)
                after[name], rations[name, who] = self._fail(
                    journal,
                    number,
                    after.get(name, state.totals),
                    rations.get((name, who), state.ration(who)),
                    note="its process fell silent",
                )


def _question(question: str, version: str) -> str:
    """What stands in the ledger for a question about a version of the data."""
    return chain.digest(f"{version}\n{question}") if question else ""
