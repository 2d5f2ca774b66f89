"""A ledger's state, computed by replaying its entries in order. An invalid entry is refused.

Entries are parsed and compared as JSON, because every start replays the whole history. The accountant adds prices and
compares totals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from privet.codec import canonical
from privet.errors import LedgerError, PrivetError, Remedy
from privet.ledger.history import chain
from privet.ledger.history.datasets import Dataset, TableFacts
from privet.ledger.history.entries import Entry, Outcome, Ration, Totals
from privet.ledger.history.receipts import Receipt
from privet.privacy.accounting import Accountant
from privet.privacy.events import Composed, from_tree
from privet.privacy.guarantees import Budget
from privet.system.identity import Identity

RESTORE = Remedy(
    "Privet answers nothing with this ledger. Restore a copy that verifies, and check it against a receipt"
)


@dataclass(slots=True)
class Account:
    """A running total and its cap, as objects and as the JSON of an entry."""

    accountant: Accountant[Any]
    spent: Any
    cap: Budget | None
    tree: dict[str, Any]

    def add(self, price: Any) -> bool:
        """Add a price; returns whether the new total is within the cap."""
        spent = self.spent = self.accountant.add(self.spent, price)
        self.tree["spent"] = self.accountant.to_json(spent)
        return self.cap is None or self.accountant.fits(spent, self.cap)

    @property
    def failures(self) -> int:
        """Failures since the dataset was last reopened."""
        return int(self.tree["failures"])


class Reservation(NamedTuple):
    """A reservation that is not settled yet."""

    dataset: str
    analyst: str
    question: str


class Settlement(NamedTuple):
    """How a reservation ended."""

    dataset: str
    kind: Outcome
    number: int
    """The number of the settling entry."""
    answer: str
    """The hash of the answer, if there is one."""


@dataclass(slots=True)
class DatasetState:
    """The state of one dataset."""

    facts: Dataset
    salt: bytes
    account: Account
    per_query: Budget | None = None
    analysts: dict[str, Account] = field(default_factory=dict)
    requests: dict[tuple[str, str], int] = field(default_factory=dict)
    """The entry of each request, by analyst and request id, so that analysts don't see each other's requests."""
    answered: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """The answered reservations and their analysts, by question."""
    versions: set[str] = field(default_factory=set)
    persons: dict[str, str] = field(default_factory=dict)
    """For each table, the column that identifies people."""
    protected: set[str] = field(default_factory=set)
    """The tables for which the steward set that column."""
    sources: dict[str, list[Identity]] = field(default_factory=dict)
    """Where the rows of each table have been stored."""
    allowed: list[tuple[str, Identity]] = field(default_factory=list)
    """Which other datasets may use which sources."""
    entries: int = 0
    latest: list[Any] = field(default_factory=list)
    """The events of the newest reservation, as JSON."""

    @property
    def accountant(self) -> Accountant[Any]:
        """The dataset's accountant."""
        return self.account.accountant

    @property
    def totals(self) -> Totals:
        """The totals after the newest entry."""
        account = self.account
        assert account.cap is not None
        return Totals(account.accountant, account.cap, account.spent, account.failures, self.per_query)

    def ration(self, analyst: str) -> Ration:
        """An analyst's totals after the newest entry."""
        account = self.analysts.get(analyst)
        return Ration(self.accountant.zero) if account is None else Ration(account.spent, account.cap, account.failures)

    def account_of(self, analyst: str) -> Account:
        """The analyst's account, created if necessary."""
        account = self.analysts.get(analyst)
        if account is None:
            zero, accountant = self.accountant.zero, self.accountant
            account = Account(accountant, zero, None, chain.ration_tree(accountant, Ration(zero)))
            self.analysts[analyst] = account
        return account


@dataclass(slots=True)
class LedgerState:
    """The state of a whole ledger; an invalid entry raises an error that names it."""

    strict: bool = True
    """Whether each entry must be canonical JSON, byte for byte; at a start the hash suffices."""
    number: int = 0
    hash: str = chain.GENESIS
    digest: str = ""
    """The hash of the newest entry's text."""
    datasets: dict[str, DatasetState] = field(default_factory=dict)
    reserved: dict[int, Reservation] = field(default_factory=dict)
    """The unsettled reservations, by number."""
    settled: dict[int, Settlement] = field(default_factory=dict)
    """The settled reservations, by number."""
    watch: int = 0
    """The number of the entry whose hash is remembered, because a receipt names it."""
    watched: str = ""
    applying: bool = False
    """Whether an entry is being applied, or was when an interrupt arrived."""
    must_contain: Receipt | None = None
    """The last entry before the state was reset; replaying must reach it again."""
    _prices: dict[tuple[Accountant[Any], str], tuple[Any, Any]] = field(default_factory=dict)
    """By accountant and events: the price, and its JSON."""

    @property
    def head(self) -> Receipt:
        """The end of the chain."""
        return Receipt(self.number, self.hash)

    def append(self, text: str, hash_: str, position: int | None = None) -> None:
        """Check the next entry against the chain and the rules, and apply it."""
        number, self.applying = self.number + 1, True
        try:
            digest = chain.digest(text)
            tree = chain.tree(text, strict=self.strict)
            if chain.link(self.hash, tree["dataset"], digest) != hash_:
                raise ValueError(_NO_LINK)
            for claimed in (tree["number"], number if position is None else position):
                if claimed != number:
                    raise ValueError(f"it is at position {number} but has number {claimed}")
            self._apply(number, tree)
        except LookupError as error:
            raise self._invalid(number, f"its field {error} is missing") from None
        except (ValueError, TypeError, AttributeError, RecursionError, PrivetError) as error:
            raise self._invalid(number, str(error)) from None
        self._advance(digest, hash_)

    def append_hidden(self, dataset: str, digest: str, hash_: str) -> None:
        """Check the next entry if only its hash is known."""
        if chain.link(self.hash, dataset, digest) != hash_:
            raise self._invalid(self.number + 1, _NO_LINK)
        self._advance(digest, hash_)

    def reset_if_interrupted(self, newest: Receipt) -> None:
        """Start again from the first entry if an interrupt left one half applied; `newest` must be reached again."""
        if not self.applying:
            return
        if newest.number > (0 if self.must_contain is None else self.must_contain.number):
            self.must_contain = newest
        if self.must_contain is not None:
            self.watch, self.watched = self.must_contain.number, ""
        self.number, self.hash, self.digest, self.applying = 0, chain.GENESIS, "", False
        for mapping in (self.datasets, self.reserved, self.settled):
            mapping.clear()

    def _advance(self, digest: str, hash_: str) -> None:
        self.number, self.hash, self.digest = self.number + 1, hash_, digest
        if self.number == self.watch:
            self.watched = hash_
        self.applying = False

    def _apply(self, number: int, tree: dict[str, Any]) -> None:
        name, kind, analyst = tree["dataset"], tree["kind"], tree.get("analyst", "")
        dataset = self.datasets.get(name)
        if dataset is None:
            dataset = self.datasets[name] = _created(kind, chain.read(canonical(tree)))
        elif kind == "reserved":
            self._reserve(dataset, number, tree, analyst)
        elif kind in _OUTCOMES:
            self._settle(dataset, number, kind, tree, analyst)
        else:
            self._act(dataset, number, kind, tree, analyst)
        expected = dataset.account_of(analyst).tree if analyst else None
        if tree["totals"] != dataset.account.tree or tree.get("ration") != expected:
            raise ValueError("its totals do not follow from the earlier entries")
        dataset.entries += 1

    def _reserve(self, dataset: DatasetState, number: int, tree: dict[str, Any], analyst: str) -> None:
        _use_request(dataset, number, tree, analyst)
        priced = self._prices.get(key := (dataset.accountant, repr(tree["events"])))
        if priced is None:
            price = dataset.accountant.price(Composed(map(from_tree, tree["events"])))
            priced = self._prices[key] = price, dataset.accountant.to_json(price)
        price, price_json = priced
        if not analyst:
            raise ValueError("it does not name the analyst")
        if tree["cost"] != price_json:
            raise ValueError(f"it was charged {tree['cost']}, but its events cost {price_json}")
        account = dataset.account_of(analyst)
        if dataset.account.failures >= dataset.facts.closes_after or account.failures >= dataset.facts.closes_for:
            raise ValueError("the dataset was closed after failures")
        if not dataset.account.add(price):
            raise ValueError("it costs more than was left of the budget")
        if not account.add(price):
            raise ValueError(f"it costs more than was left for {analyst!r}")
        if dataset.per_query is not None and not dataset.accountant.covers(price, dataset.per_query):
            raise ValueError("it costs more than one question may")
        dataset.latest = tree["events"]
        self.reserved[number] = Reservation(dataset.facts.name, analyst, tree.get("question", ""))

    def _settle(self, dataset: DatasetState, at: int, kind: Outcome, tree: dict[str, Any], analyst: str) -> None:
        number = tree["refers"]
        reservation = self.reserved.get(number)
        if reservation is None or reservation.dataset != dataset.facts.name:
            raise ValueError(f"it settles entry {number}, which is not reserved")
        if analyst != (reservation.analyst if kind == "failed" else ""):
            raise ValueError("its analyst does not match the reservation")
        del self.reserved[number]
        answer = tree["answer"] if kind == "answered" else ""
        self.settled[number] = Settlement(reservation.dataset, kind, at, answer)
        if kind == "failed":
            dataset.account.tree["failures"] += 1
            dataset.account_of(analyst).tree["failures"] += 1
        elif kind == "answered" and reservation.question:
            dataset.answered.setdefault(reservation.question, []).append((number, reservation.analyst))

    def _act(self, dataset: DatasetState, number: int, kind: str, tree: dict[str, Any], analyst: str) -> None:
        """Apply an entry that spends nothing."""
        match kind:
            case "served":
                settlement = self.settled.get(tree["refers"])
                if settlement is None or settlement.kind != "answered" or settlement.dataset != dataset.facts.name:
                    raise ValueError("it serves an answer that does not exist")
                _use_request(dataset, number, tree, analyst)
            case "declared":
                if tree["version"] in dataset.versions:
                    raise ValueError("this version was declared before")
                dataset.versions.add(tree["version"])
            case "attached":
                _attach(dataset, chain.read_table(tree["table"]))
            case "protected" if tree["note"]:
                _protect(dataset, chain.read_table(tree["table"]))
            case "allowed" if tree["note"] and tree["to"]:
                dataset.allowed += [(tree["to"], source) for source in chain.read_table(tree["table"]).sources]
            case "administered" if tree["note"] and tree["by"]:
                pass  # for human readers
            case "reopened" if tree["note"]:
                for account in (dataset.account, *dataset.analysts.values()):
                    account.tree["failures"] = 0
            case "capped" if tree["note"]:
                _cap(dataset, chain.read(canonical(tree)), analyst)
            case _:
                raise ValueError("its kind is not allowed here, or the steward's reason is missing")

    def _invalid(self, number: int, why: str) -> LedgerError:
        return LedgerError(f"entry {number} of the ledger is invalid: {why[:300]}", remedy=RESTORE)

    def expect(self, receipt: Receipt) -> None:
        """Refuse a chain that lacks a receipt's entry: an older copy, or a different history."""
        if receipt.hash != (self.watched if receipt.number else chain.GENESIS):
            older = receipt.number > self.number
            raise LedgerError(
                f"the receipt for entry {receipt.number} does not match: this ledger "
                + (f"ends at entry {self.number}, so it is an older copy" if older else "has a different entry there")
            )


_NO_LINK = "its hash does not match its text and the earlier entries"
_OUTCOMES = get_args(Outcome)
_SALT = re.compile("[0-9a-f]{32}")


def _created(kind: str, first: Entry) -> DatasetState:
    if kind != "created" or first.facts is None:
        raise ValueError("the first entry of a dataset does not create it")
    if _SALT.fullmatch(first.salt) is None:
        raise ValueError("its salt is not 32 hexadecimal digits")
    accountant, budget = first.totals.accountant, first.totals.budget
    tree = chain.totals_tree(Totals(accountant, budget, accountant.zero))
    return DatasetState(first.facts, bytes.fromhex(first.salt), Account(accountant, accountant.zero, budget, tree))


def _attach(dataset: DatasetState, table: TableFacts) -> None:
    if bool(table.person) != (dataset.facts.protect == "person"):
        raise ValueError("its privacy unit differs from the dataset's")
    if dataset.persons.setdefault(table.table, table.person) != table.person:
        raise ValueError("the column that identifies people differs from the recorded one")
    dataset.sources.setdefault(table.table, []).extend(table.sources)


def _protect(dataset: DatasetState, table: TableFacts) -> None:
    if not table.person or dataset.facts.protect != "person" or table.sources:
        raise ValueError("it does not name a valid column that identifies people")
    dataset.persons[table.table] = table.person
    dataset.protected.add(table.table)


def _cap(dataset: DatasetState, entry: Entry, analyst: str) -> None:
    totals, ration = entry.totals, entry.ration
    if analyst and ration is not None:
        caps, account = [ration.cap], dataset.account_of(analyst)
        account.cap, tree = ration.cap, chain.ration_tree(account.accountant, ration)
    else:
        caps, account = [totals.budget, totals.per_query], dataset.account
        account.cap, dataset.per_query = totals.budget, totals.per_query
        tree = chain.totals_tree(totals) | {"accountant": account.tree["accountant"]}
    for cap in caps:
        if cap is not None:
            dataset.facts.check_budget(cap)
    account.tree = tree | {name: account.tree[name] for name in ("spent", "failures")}


def _use_request(dataset: DatasetState, number: int, tree: dict[str, Any], analyst: str) -> None:
    request_id = tree["request_id"]
    if not request_id or dataset.requests.setdefault((analyst, request_id), number) != number:
        raise ValueError("its request id was used before")
