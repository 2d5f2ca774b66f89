"""The ledger in a database: every step is a transaction, and on disk before the next begins."""

from __future__ import annotations

import math
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from privet.accounting import Accountant
from privet.canonical import canonical
from privet.errors import InternalError, LedgerBusy, LedgerError, UserError
from privet.events import Composed, PrivacyEvent, Repeated
from privet.guarantees import Guarantee
from privet.identity import Identity
from privet.ledger import chain, failpoints, ownership
from privet.ledger.book import Book, DatasetBook, charged, serves
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
    TableFacts,
    Totals,
    Verified,
    nothing,
    reason_given,
)
from privet.ledger.journal import Journal
from privet.ledger.leases import Leases
from privet.ledger.verification import check_answers, check_beside, check_leases, receipt_of
from privet.noise.entropy import SystemBits
from privet.relation.schema import called

_PRICES = 1000  # so many are remembered
_CANDIDATES = 100  # so many answers to the same question are looked at, the newest first
_SOON, _LATEST = 0.02, 0.25  # seconds between looks at a running request
WAITS = 600.0
"""Seconds that a request which runs elsewhere is waited for."""


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
        self._book = Book(strict=False)
        self._leases = Leases(lease, self._renew)
        self._looked = -math.inf
        self._late: list[tuple[Charge, Outcome]] = []  # what could not be settled, since others held the lock
        self._prices: dict[tuple[str, tuple[PrivacyEvent, ...]], Budget] = {}
        try:
            self._read_through(self._book)
        except BaseException:
            self.close()
            raise

    @property
    def created(self) -> bool:
        """Whether there was no ledger, and one was made."""
        return self._database.created

    def close(self) -> None:
        """Let go of the storage."""
        self._database.close()

    @contextmanager
    def _writing(self) -> Iterator[Journal]:
        try:
            with self._database.writing(self._following(self._book, lock=True)) as journal:
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
        with self._database.reading(self._following(self._book, lock=False)) as journal:
            yield journal

    def _following(self, book: Book, *, lock: bool, once: bool = False) -> Callable[[Any], Journal]:
        """How a transaction begins: with what was written since the last one."""

        def start(connection: Any) -> Journal:
            journal, known = Journal(connection, self._database.engine.dialect, book), book.head
            try:
                with self._trusting():
                    while not journal.follow(lock=lock) and not once:
                        pass
            except BaseException:
                book.forget(known)  # Ctrl-C may have come in the middle of an entry
                raise
            self._database.known = book.hash
            return journal

        return start

    @contextmanager
    def _trusting(self) -> Iterator[None]:
        """Where a ledger turns out not to hold, nothing more is done with it."""
        try:
            yield
        except LedgerError as error:
            self._database.stop(str(error))
            raise
        except (TypeError, ValueError, AttributeError) as error:  # SQLite keeps values of any type in any column
            why = f"a column of the ledger holds what it can't hold ({str(error)[:200]}): it was tampered with"
            self._database.stop(why)
            raise LedgerError(why) from None

    def _read_through(self, book: Book, *, answers: bool = False) -> None:
        """Every entry, in steps: nobody who writes has to wait until all of it is read."""
        done, after = False, 0 if answers else None
        while not done or after is not None:
            with self._database.reading(self._following(book, lock=False, once=True)) as journal, self._trusting():
                done = journal.complete
                if done and after is not None:
                    after = check_answers(journal, after)
                if done and after is None:
                    check_beside(journal)
                    self._leases.dead(journal.beats())  # from now on they are watched

    def _of(self, name: str) -> DatasetBook:
        found = self._book.datasets.get(name)
        if found is None:
            raise UserError(f"there is no dataset {name!r}. There are: {', '.join(self._book.datasets) or 'none'}")
        return found

    def _price(self, facts: Dataset, events: tuple[PrivacyEvent, ...]) -> Budget:
        """What events cost; analysts ask at few different prices."""
        place = facts.name, events
        if place not in self._prices:
            if len(self._prices) >= _PRICES:
                self._prices.clear()
            self._prices[place] = facts.price(events)
        return self._prices[place]

    # --- datasets -------------------------------------------------------------------------------

    def create(self, dataset: Dataset, *, tables: Sequence[TableFacts] = (), same_budget: bool = True) -> bytes:
        """Make the dataset and its tables known, or check that they are what they were; gives the dataset's salt.

        A session by a policy keeps to the smaller of two budgets, so its budget may be another one.
        """
        name = called(dataset.name, "dataset")
        ownership.check_unit(dataset, tables)
        with self._reading():
            of = self._agreed(dataset, same_budget=same_budget)
            if of is not None and not ownership.arriving(self._book, name, tables):
                return of.salt
        with self._writing() as journal:
            of = self._agreed(dataset, same_budget=same_budget)
            arriving = ownership.arriving(self._book, name, tables)
            totals = Totals(dataset.budget, nothing(dataset.budget)) if of is None else of.totals
            salt = SystemBits().take(16).hex() if of is None else of.salt.hex()
            if of is None:
                ownership.check_name(self._book, name)
                journal.append(name, "created", totals, facts=dataset, salt=salt)
            for table in arriving:
                journal.append(name, "attached", totals, table=table)
        return bytes.fromhex(salt)

    def _agreed(self, dataset: Dataset, *, same_budget: bool) -> DatasetBook | None:
        """The dataset as it is known, if it is; refused if it is opened as another one."""
        of = self._book.datasets.get(dataset.name)
        if of is None:
            return None
        known, budget = of.facts, of.totals.budget
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
        return of

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
        share: bool = True,
        caps: Caps = NO_CAPS,
    ) -> Charge:
        """Debit all events or none; or find the debit, and the answer, that an earlier request made for the same."""
        called(analyst, "analyst")
        called(version, "version")
        if request_id is not None:
            called(request_id, "request id")
        question = _question(question, version)
        request = {"request_id": request_id or uuid.uuid4().hex, "version": version, "statement": statement}
        request["asked"] = asked
        self._settle_late()
        self._sweep()
        with self._writing() as journal:
            of = self._of(dataset)
            cost = self._price(of.facts, tuple(events))
            known = None if request_id is None else of.requests.get((analyst, request_id))
            if known is not None:
                return self._again(journal, journal.entry(known), asked, version, tuple(events))
            totals, mine = of.totals, of.ration(analyst)
            stored = None if fresh else self._stored(journal, of, analyst, question, events, share=share)
            if stored is not None:
                if request_id is not None:  # so that a retry finds the same answer
                    refers = stored.number
                    journal.append(dataset, "served", totals, analyst=analyst, ration=mine, refers=refers, **request)
                return stored
            totals, mine = charged(of.facts, totals, mine, analyst, cost, caps)
            paid = {"events": tuple(events), "cost": cost, "question": question}
            entry = journal.append(dataset, "reserved", totals, analyst=analyst, ration=mine, **paid, **request)
            journal.lease(entry.number)
            failpoints.reached("reserve: written")
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
                f"the request id {known.request_id!r} was used before, for another question or version. "
                "Leave it out, or take a new one"
            )
        return self._state(journal, known.dataset, known.number if known.refers is None else known.refers)

    def _state(self, journal: Journal, dataset: str, number: int) -> Charge:
        """How an earlier reservation stands."""
        charge = Charge(number, dataset, nothing(self._of(dataset).facts.budget), "running")
        end = self._book.ends.get(number)
        if end is None or end.kind != "answered":
            return charge if end is None else replace(charge, state=end.kind)
        answer = journal.answer(number)
        if answer is None or chain.digest(answer) != end.answer:
            raise LedgerError(
                f"the answer of entry {number} of the ledger is not the one that was given: it was tampered with, and "
                "is not shown"
            )
        return replace(charge, state="answered", answer=answer)

    def _stored(
        self,
        journal: Journal,
        of: DatasetBook,
        analyst: str,
        question: str,
        events: Sequence[PrivacyEvent],
        *,
        share: bool,
    ) -> Charge | None:
        """The answer with the least noise, if it has nowhere more than what is asked for; the newest among equals."""
        found: Entry | None = None
        known = sorted(number for number, who in of.answered.get(question, ()) if share or who == analyst)
        for number in reversed(known[-_CANDIDATES:]):
            entry = journal.entry(number)
            if serves(entry.events, events) and (found is None or not serves(found.events, entry.events)):
                found = entry
        return None if found is None else self._state(journal, of.facts.name, found.number)

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
            of = self._of(dataset)
            return self._stored(journal, of, analyst, _question(question, version), events, share=share)

    def wait(self, charge: Charge, *, seconds: float = WAITS) -> Charge:
        """How a running request ended: answered, failed or interrupted; `LedgerBusy` if it takes longer than this."""
        pause, until = _SOON, time.monotonic() + seconds
        while charge.state == "running":
            if time.monotonic() > until:
                raise LedgerBusy(
                    f"this request is still running elsewhere, after {seconds:g} seconds. Nothing more was paid. Ask "
                    "again later with the same request id"
                )
            time.sleep(pause)
            pause = min(2 * pause, _LATEST)
            with self._reading() as journal:
                charge = self._state(journal, charge.dataset, charge.number)
            if charge.state == "running":
                self._settle_late()
                self._sweep()
        return charge

    def settle(self, charge: Charge, outcome: Outcome, answer: str = "") -> None:
        """Say how a reserved question ended, and keep its answer; once.

        It was paid for, so a busy ledger is waited for.
        """
        if outcome not in get_args(Outcome):
            raise InternalError(f"a question is answered, failed or interrupted, not {outcome}")
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
            of, was = self._of(dataset), self._book.open.get(number)
            if was is None or was.dataset != dataset or not journal.release(number):
                end = self._book.ends.get(number)
                state = "not reserved" if end is None else f"settled already: {end.kind}"
                raise InternalError(f"entry {number} can't be settled as {outcome}: it is {state}")
            if outcome == "failed":
                self._fail(journal, number, of.totals, of.ration(was.analyst))
            else:
                digest = chain.digest(answer) if outcome == "answered" else ""
                journal.append(dataset, outcome, of.totals, refers=number, answer=digest)
            if outcome == "answered":
                journal.keep(number, answer)
            failpoints.reached("settle: written")

    def _fail(
        self, journal: Journal, number: int, totals: Totals, mine: Ration, note: str = ""
    ) -> tuple[Totals, Ration]:
        was = self._book.open[number]
        totals, mine = totals._replace(failures=totals.failures + 1), mine._replace(failures=mine.failures + 1)
        journal.append(was.dataset, "failed", totals, analyst=was.analyst, ration=mine, refers=number, note=note)
        return totals, mine

    def _sweep(self) -> None:
        """Mark reservations whose owner fell silent as failed: a step of its own, whatever comes of the next."""
        now = time.monotonic()
        if now - self._looked < self._leases.seconds / 10:
            return
        self._looked = now
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
                name, who, _ = self._book.open[number]
                of = self._of(name)
                journal.release(number)
                after[name], rations[name, who] = self._fail(
                    journal,
                    number,
                    after.get(name, of.totals),
                    rations.get((name, who), of.ration(who)),
                    note="its process fell silent",
                )

    def _renew(self, numbers: list[int]) -> None:
        def start(connection: Any) -> Journal:
            return Journal(connection, self._database.engine.dialect, self._book)

        with self._database.writing(start) as journal:
            journal.renew(numbers)

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
            of = self._of(dataset)
            totals = of.totals
            if cap is not None:
                of.facts.check_kind(cap)
            if analyst is not None:
                mine = of.ration(analyst)._replace(cap=cap)
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
        why = reason_given(reason, "declare") if reason else ""
        with self._reading():
            if version in self._of(dataset).versions:
                return
        with self._writing() as journal:
            of = self._of(dataset)
            if version not in of.versions:
                journal.append(dataset, "declared", of.totals, version=version, note=why)

    def reopen(self, dataset: str, reason: str) -> None:
        """Open a dataset again that was closed after failures, to all analysts."""
        why = reason_given(reason, "reopen")
        with self._writing() as journal:
            journal.append(dataset, "reopened", self._of(dataset).totals._replace(failures=0), note=why)

    def protect(self, dataset: str, table: str, person: str, *, reason: str) -> None:
        """Say anew which column of a table tells whose a row is: an act of the steward."""
        why = reason_given(reason, "protect")
        named = TableFacts(called(table, "table"), called(person, "column"))
        with self._writing() as journal:
            of = self._of(dataset)
            if of.facts.protect != "person":
                raise UserError(f"the dataset {dataset!r} protects each row, for ever: there is no column to name")
            journal.append(dataset, "protected", of.totals, table=named, note=why)

    def allow_source(self, to: str, source: Identity | str | Path, *, reason: str) -> None:
        """Let a dataset use a source that another dataset was opened with: an act of the steward.

        A source is a file, or for a table in a DuckDB file "people.duckdb:visits".
        """
        why = reason_given(reason, "allow_source")
        called(to, "dataset")
        found = source if isinstance(source, Identity) else ownership.named(str(source))
        with self._writing() as journal:
            owners = list(ownership.owners(self._book, to, [found]))
            if not owners:
                raise UserError(
                    f"no other dataset of this ledger was opened with {str(found)!r}, so there is nothing to allow. "
                    f"There are: {', '.join(ownership.known(self._book)) or 'none'}"
                )
            for owner, taken in owners:
                table = TableFacts("", "", tuple(taken))
                journal.append(owner, "allowed", self._of(owner).totals, table=table, to=to, note=why)

    # --- looking --------------------------------------------------------------------------------

    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets."""
        with self._reading():
            return tuple(sorted(self._book.datasets))

    def dataset(self, name: str) -> Dataset:
        """What is fixed about a dataset, with the budget that it was made with."""
        with self._reading():
            return self._of(name).facts

    def balance(self, dataset: str, analyst: str | None = None) -> Balance:
        """What was granted and what is spent; of an analyst's cap too, if one is named."""
        with self._reading():
            of = self._of(dataset)
            totals = of.totals
            mine = None if analyst is None else of.ration(analyst)
        return Balance(totals.budget, totals.spent, mine, totals.per_query)

    def analysts(self, dataset: str) -> dict[str, Ration]:
        """What each analyst has spent, and may."""
        with self._reading():
            of = self._of(dataset)
            return {name: of.ration(name) for name in sorted(of.analysts)}

    def history(self, dataset: str) -> tuple[Entry, ...]:
        """Every entry of a dataset, oldest first."""
        with self._reading():
            self._of(dataset)
        found = (chain.read(text, hashed) for _, text, hashed in self._rows())
        return tuple(entry for entry in found if entry.dataset == dataset)

    def _rows(self) -> Iterator[tuple[int, str, str]]:
        """Every entry up to now, some at a time."""
        start = 1
        while True:
            with self._reading() as journal:
                rows = journal.rows(start)
            if not rows:
                return
            yield from rows
            start = rows[-1][0] + 1

    def reservation(self, dataset: str, number: int) -> tuple[Entry, Entry | None]:
        """A reservation, and how it ended, if it did."""
        with self._reading() as journal:
            self._of(dataset)
            end = self._book.ends.get(number)
            known = end or self._book.open.get(number)
            if known is None or known.dataset != dataset:
                raise UserError(f"there is no reservation {number} in the dataset {dataset!r}")
            return journal.entry(number), None if end is None else journal.entry(end.number)

    def head(self) -> Receipt:
        """Where the chain ends now."""
        with self._reading():
            return self._book.head

    def verify(self, expect: Receipt | str | None = None, *, answers: bool = True) -> Verified:
        """Check the whole chain, and that a receipt's entry is in it; `LedgerError` names the first bad entry."""
        receipt = receipt_of(expect)
        book = Book(strict=answers, watch=0 if receipt is None else receipt.number)
        self._read_through(book, answers=answers)
        with self._reading():  # and this process knows no other history than the one that is there
            pass
        if receipt is not None:
            book.expect(receipt)
        return Verified(book.head, {name: of.entries for name, of in sorted(book.datasets.items())})

    def replay(self, dataset: str, accountant: Accountant) -> Guarantee:
        """What the whole history would have cost under another accountant."""
        often = Counter(event for entry in self.history(dataset) for event in entry.events)
        return accountant.account(Composed([Repeated(event, times) for event, times in often.items()]))

    def export(self, dataset: str | None = None) -> Iterator[str]:
        """The chain as lines of JSON, without the answers; `verify_export` checks them.

        For one dataset, entries of the others are there by their dataset's name and their hash only.
        """
        if dataset is not None:
            with self._reading():
                self._of(dataset)
        for _, text, found in self._rows():
            name = chain.read(text).dataset
            told = {"entry": text} if dataset in (None, name) else {"dataset": name, "digest": chain.digest(text)}
            yield canonical({**told, "hash": found})


def _question(question: str, version: str) -> str:
    """What stands in the ledger for a question about a version of the data."""
    return chain.digest(f"{version}\n{question}") if question else ""
