"""The rules of a ledger, entry by entry: what a dataset may do next, and whether what it did was lawful."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from privet.canonical import canonical
from privet.errors import BudgetError, DatasetClosed, LedgerError, PrivetError
from privet.events import Composed, PrivacyEvent, from_tree, leaves
from privet.events import Laplace as LaplaceEvent
from privet.exact import shorter_up
from privet.guarantees import ApproxDP, PureDP
from privet.identity import Identity
from privet.ledger import chain
from privet.ledger.entries import (
    NO_CAPS,
    Balance,
    Budget,
    Caps,
    Dataset,
    Entry,
    Outcome,
    Ration,
    Receipt,
    TableFacts,
    Totals,
    fits,
    nothing,
    words,
)


def charged(
    dataset: Dataset, totals: Totals, ration: Ration, analyst: str, cost: Budget, caps: Caps = NO_CAPS
) -> tuple[Totals, Ration]:
    """After a debit, which counts for the dataset and for the analyst; refused if a cap does not cover it."""
    if totals.failures >= dataset.closes_after or ration.failures >= dataset.closes_for:
        mine = totals.failures < dataset.closes_after
        failed = f"{ration.failures} questions of {analyst!r}" if mine else f"{totals.failures} questions"
        raise DatasetClosed(
            f"{failed} failed, so the dataset is closed{f' to {analyst!r}' if mine else ''}. Nothing was spent. "
            'The steward can open it again. Write: session.reopen("what was done about it")'
        )
    spent, own = _sum(totals.spent, cost), _sum(ration.spent, cost)
    allowed = caps.lower(Balance(totals.budget, totals.spent, ration, totals.per_query))
    limits = (spent, allowed.budget), (own, allowed.ration and allowed.ration.cap), (cost, allowed.per_query)
    if not all(cap is None or fits(amount, cap) for amount, cap in limits):
        raise _over_budget(allowed, analyst, cost)
    return totals._replace(spent=spent), ration._replace(spent=own)


def _over_budget(balance: Balance, analyst: str, cost: Budget) -> BudgetError:
    """What is left of the cap that is nearest. It is not a proposal: nobody should spend all of it at once."""
    limits = balance.limits(analyst)
    short = [limit for limit in limits if not limit.covers(cost)] or limits
    nearest = min(short, key=lambda limit: limit.left.epsilon)
    text = f"this costs {cost}, and at most {words(nearest.left)} is left of {nearest.what}. Nothing was spent."
    return BudgetError(text if nearest.left.epsilon else f"{text} Ask the steward for more.")


def serves(stored: Iterable[PrivacyEvent], asked: Iterable[PrivacyEvent]) -> bool:
    """Whether an answer to the same question has nowhere more noise than the one that is asked for.

    Example:
        >>> one, two = LaplaceEvent(sensitivity=1, scale=1), LaplaceEvent(sensitivity=1, scale=2)
        >>> serves([one], [two]), serves([two], [one])
        (True, False)
    """
    mine, theirs = (list(leaves(Composed(each))) for each in (stored, asked))
    if len(mine) != len(theirs):
        return False
    for (_, a, m), (_, b, n) in zip(mine, theirs, strict=True):
        if isinstance(a, LaplaceEvent) and isinstance(b, LaplaceEvent):
            if a.sensitivity != b.sensitivity or a.scale > b.scale or m != n:
                return False
        elif a != b or m != n:
            return False
    return True


Amount = tuple[int, ...]
"""A budget in whole numbers, as numerator and denominator: of epsilon, and of delta if there is one."""


@dataclass(slots=True)
class _Account:
    """What was spent, of which cap, and how an entry says so."""

    spent: Amount
    cap: Amount | None
    said: dict[str, Any]

    def add(self, price: Amount) -> bool:
        """Spend more; says whether the cap covers it."""
        spent = self.spent = _more(self.spent, price)
        self.said["spent"] = _text(spent)
        return self.cap is None or _within(spent, self.cap)


class Open(NamedTuple):
    """A reservation that is not settled yet."""

    dataset: str
    analyst: str
    question: str


class End(NamedTuple):
    """How a reservation ended."""

    dataset: str
    kind: Outcome
    number: int
    """Of the entry that says so."""
    answer: str
    """The hash of the answer, if there is one."""


@dataclass(slots=True)
class DatasetBook:
    """What follows from the entries of one dataset."""

    facts: Dataset
    salt: bytes
    account: _Account
    per_query: Amount | None = None
    analysts: dict[str, _Account] = field(default_factory=dict)
    requests: dict[tuple[str, str], int] = field(default_factory=dict)
    """The entry of each request, by analyst and id: nobody learns of another's."""
    answered: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """The reservations that were answered, and whose they are, by their question."""
    versions: set[str] = field(default_factory=set)
    persons: dict[str, str] = field(default_factory=dict)
    """The column of each table that says whose a row is."""
    protected: set[str] = field(default_factory=set)
    """The tables of which the steward said so."""
    sources: dict[str, list[Identity]] = field(default_factory=dict)
    """Where the rows of each table were."""
    allowed: list[tuple[str, Identity]] = field(default_factory=list)
    """Which other datasets may use which source."""
    entries: int = 0

    @property
    def totals(self) -> Totals:
        """What holds after the newest entry."""
        return chain.read_totals(self.account.said)

    def ration(self, analyst: str) -> Ration:
        """What holds for an analyst."""
        found = self.analysts.get(analyst)
        return Ration(nothing(self.facts.budget)) if found is None else chain.read_ration(found.said)

    def of(self, analyst: str) -> _Account:
        """The analyst's account, which is opened if there is none."""
        found = self.analysts.get(analyst)
        if found is None:
            none = nothing(self.facts.budget)
            found = self.analysts[analyst] = _Account(_amount(none), None, chain.ration_tree(Ration(none)))
        return found


@dataclass(slots=True)
class Book:
    """A ledger's state, kept by reading its entries one after the other; an unlawful one is an error that names it.

    Entries are read as JSON, added up in whole numbers and compared as texts: a long history is read at every start.
    The sums are computed anew here, and not with what wrote them.
    """

    strict: bool = True
    """Whether each entry must be written as entries are, to the byte; a start takes the hash for it."""
    number: int = 0
    hash: str = chain.GENESIS
    digest: str = ""
    """The hash of the newest entry's text."""
    datasets: dict[str, DatasetBook] = field(default_factory=dict)
    open: dict[int, Open] = field(default_factory=dict)
    """What is reserved and not settled."""
    ends: dict[int, End] = field(default_factory=dict)
    """How each reservation ended that did."""
    watch: int = 0
    """The number of an entry whose hash is remembered: that of a receipt."""
    watched: str = ""
    half: bool = False
    """Whether an entry is being taken in, or was when an interrupt came."""
    owed: Receipt | None = None
    """What was read before all was forgotten, and must be found again."""
    _prices: dict[tuple[str, str], tuple[Amount, str]] = field(default_factory=dict)

    @property
    def head(self) -> Receipt:
        """Where it ends."""
        return Receipt(self.number, self.hash)

    def add(self, text: str, found: str, stands: int | None = None) -> dict[str, Any]:
        """Check the next entry against the chain and the rules, and take it in."""
        number, self.half = self.number + 1, True
        try:
            digested = chain.digest(text)
            tree = chain.tree(text, strict=self.strict)
            if chain.link(self.hash, tree["dataset"], digested) != found:
                raise ValueError(_NO_LINK)
            if tree["number"] != number or stands not in (None, number):
                raise ValueError(f"it stands at place {number} and says {tree['number']}")
            self._follow(number, tree)
        except LookupError as error:
            raise self._bad(number, f"its field {error} is missing") from None
        except (ValueError, TypeError, AttributeError, RecursionError, PrivetError) as error:
            raise self._bad(number, str(error)) from None
        self._move(digested, found)
        return tree

    def skip(self, dataset: str, digested: str, found: str) -> None:
        """The same for an entry of which only the hash is told."""
        number = self.number + 1
        if chain.link(self.hash, dataset, digested) != found:
            raise self._bad(number, _NO_LINK)
        self._move(digested, found)

    def forget(self, known: Receipt) -> None:
        """Begin anew, with the first entry, if an interrupt came in the middle of one. What was known is owed."""
        if not self.half:
            return
        if known.number > (0 if self.owed is None else self.owed.number):
            self.owed = known
        if self.owed is not None:
            self.watch, self.watched = self.owed.number, ""
        self.number, self.hash, self.digest, self.half = 0, chain.GENESIS, "", False
        for state in (self.datasets, self.open, self.ends):
            state.clear()

    def _move(self, digested: str, found: str) -> None:
        self.number, self.hash, self.digest = self.number + 1, found, digested
        if self.number == self.watch:
            self.watched = found
        self.half = False

    def _follow(self, number: int, tree: dict[str, Any]) -> None:
        name, kind, analyst = tree["dataset"], tree["kind"], tree.get("analyst", "")
        of = self.datasets.get(name)
        if of is None:
            of = self.datasets[name] = _created(kind, chain.read(canonical(tree)))
        elif kind == "reserved":
            self._reserved(of, number, tree, analyst)
        elif kind in _OUTCOMES:
            self._settled(of, number, kind, tree, analyst)
        else:
            self._aside(of, number, kind, tree, analyst)
        expected = of.of(analyst).said if analyst else None
        if tree["totals"] != of.account.said or tree.get("ration") != expected:
            raise ValueError("its totals do not follow from what came before")
        of.entries += 1

    def _reserved(self, of: DatasetBook, number: int, tree: dict[str, Any], analyst: str) -> None:
        _used(of, number, tree, analyst)
        known = self._prices.get(key := (of.facts.accountant, repr(tree["events"])))
        if known is None:
            price = of.facts.price(map(from_tree, tree["events"]))
            known = self._prices[key] = _amount(price), chain.budget_text(price)
        amount, text = known
        if not analyst:
            raise ValueError("it does not say who asked")
        if tree["cost"] != text:
            raise ValueError(f"it was charged {tree['cost']}, and what was done costs {text}")
        mine = of.of(analyst)
        if of.account.said["failures"] >= of.facts.closes_after or mine.said["failures"] >= of.facts.closes_for:
            raise ValueError("the dataset was closed after failures")
        if not of.account.add(amount):
            raise ValueError("it costs more than was left of the budget")
        if not mine.add(amount):
            raise ValueError(f"it costs more than was left for {analyst!r}")
        if of.per_query is not None and not _within(amount, of.per_query):
            raise ValueError("it costs more than one question may")
        self.open[number] = Open(of.facts.name, analyst, tree.get("question", ""))

    def _settled(self, of: DatasetBook, at: int, kind: Outcome, tree: dict[str, Any], analyst: str) -> None:
        number = tree["refers"]
        was = self.open.get(number)
        if was is None or was.dataset != of.facts.name:
            raise ValueError(f"it settles entry {number}, which is not reserved")
        if analyst != (was.analyst if kind == "failed" else ""):
            raise ValueError("it names another analyst than the reservation, or one where none is named")
        del self.open[number]
        self.ends[number] = End(was.dataset, kind, at, tree["answer"] if kind == "answered" else "")
        if kind == "failed":
            of.account.said["failures"] += 1
            of.of(analyst).said["failures"] += 1
        elif kind == "answered" and was.question:
            of.answered.setdefault(was.question, []).append((number, was.analyst))

    def _aside(self, of: DatasetBook, number: int, kind: str, tree: dict[str, Any], analyst: str) -> None:
        """What spends nothing."""
        match kind:
            case "served":
                end = self.ends.get(tree["refers"])
                if end is None or end.kind != "answered" or end.dataset != of.facts.name:
                    raise ValueError("it serves an answer that is not there")
                _used(of, number, tree, analyst)
            case "declared":
                if tree["version"] in of.versions:
                    raise ValueError("this version was declared before")
                of.versions.add(tree["version"])
            case "attached":
                _attached(of, chain.read_table(tree["table"]))
            case "protected" if tree["note"]:
                _protected(of, chain.read_table(tree["table"]))
            case "allowed" if tree["note"] and tree["to"]:
                of.allowed += [(tree["to"], each) for each in chain.read_table(tree["table"]).sources]
            case "reopened" if tree["note"]:
                for account in (of.account, *of.analysts.values()):
                    account.said["failures"] = 0
            case "capped" if tree["note"]:
                _capped(of, chain.read(canonical(tree)), analyst)
            case _:
                raise ValueError("a dataset is created once, and the steward gives reasons")

    def _bad(self, number: int, why: str) -> LedgerError:
        return LedgerError(
            f"entry {number} of the ledger does not hold: {why[:300]}. Nothing is answered with this ledger. Put back "
            "a copy that verifies, and compare it with a receipt"
        )

    def expect(self, receipt: Receipt) -> None:
        """Refuse a chain that a receipt's entry, which was watched, is not in: an older copy, or another history."""
        if receipt.hash != (self.watched if receipt.number else chain.GENESIS):
            older = receipt.number > self.number
            raise LedgerError(
                f"the receipt for entry {receipt.number} does not fit: this ledger "
                + (f"ends at entry {self.number}, so it is an older copy" if older else "has another entry there")
            )


_NO_LINK = "its hash is not that of its text and of the entries before it"
_OUTCOMES = get_args(Outcome)
_SALT = re.compile("[0-9a-f]{32}")


def _created(kind: str, first: Entry) -> DatasetBook:
    if kind != "created" or first.facts is None:
        raise ValueError("the first entry of a dataset does not say what the dataset is")
    if _SALT.fullmatch(first.salt) is None:
        raise ValueError("its salt is not 32 hexadecimal digits")
    budget = first.totals.budget
    said = chain.totals_tree(Totals(budget, nothing(budget)))
    account = _Account(_amount(nothing(budget)), _amount(budget), said)
    return DatasetBook(first.facts, bytes.fromhex(first.salt), account)


def _attached(of: DatasetBook, table: TableFacts) -> None:
    if bool(table.person) != (of.facts.protect == "person"):
        raise ValueError("it protects another kind of unit than the dataset does")
    if of.persons.setdefault(table.table, table.person) != table.person:
        raise ValueError("the column that says whose a row is was another one before")
    of.sources.setdefault(table.table, []).extend(table.sources)


def _protected(of: DatasetBook, table: TableFacts) -> None:
    if not table.person or of.facts.protect != "person" or table.sources:
        raise ValueError("it names no column that could say whose a row is")
    of.persons[table.table] = table.person
    of.protected.add(table.table)


def _capped(of: DatasetBook, entry: Entry, analyst: str) -> None:
    budget, _, _, per_query = entry.totals
    caps = [budget, per_query]
    if analyst and entry.ration is not None:
        mine, caps = of.of(analyst), [entry.ration.cap]
        mine.cap = None if entry.ration.cap is None else _amount(entry.ration.cap)
        mine.said = chain.ration_tree(entry.ration) | {name: mine.said[name] for name in ("spent", "failures")}
    else:
        of.account.cap, of.per_query = _amount(budget), None if per_query is None else _amount(per_query)
        stays = {name: of.account.said[name] for name in ("spent", "failures")}
        of.account.said = chain.totals_tree(entry.totals) | stays
    for cap in caps:
        if cap is not None:
            of.facts.check_kind(cap)


def _used(of: DatasetBook, number: int, tree: dict[str, Any], analyst: str) -> None:
    request = tree["request_id"]
    if not request or of.requests.setdefault((analyst, request), number) != number:
        raise ValueError("its request id was used before")


def _sum(spent: Budget, cost: Budget) -> Budget:
    """Both together; rounded up, by less than 2^-320, where odd parameters would make the number long."""
    epsilon = shorter_up(spent.epsilon + cost.epsilon)
    if isinstance(spent, PureDP):
        return PureDP._of(epsilon)
    return ApproxDP.capped(epsilon, shorter_up(spent.delta + cost.to_approx().delta))


# --- the same in whole numbers ----------------------------------------------------------------------


def _amount(budget: Budget) -> Amount:
    epsilon = budget.epsilon.as_integer_ratio()
    return epsilon if isinstance(budget, PureDP) else epsilon + budget.delta.as_integer_ratio()


def _text(amount: Amount) -> str:
    return f"{amount[0]}/{amount[1]}" if len(amount) == 2 else f"{_text(amount[:2])} {_text(amount[2:])}"


def _within(amount: Amount, cap: Amount) -> bool:
    if len(amount) == 2:
        return amount[0] * cap[1] <= cap[0] * amount[1]
    return _within(amount[:2], cap[:2]) and _within(amount[2:], cap[2:])


def _more(spent: Amount, price: Amount) -> Amount:
    """The sum, in lowest terms; rounded up as `_sum` does."""
    if len(spent) != 2:
        delta = _more(spent[2:], price[2:])
        return _more(spent[:2], price[:2]) + (delta if _within(delta, (1, 1)) else (1, 1))
    n, d = spent[0] * price[1] + price[0] * spent[1], spent[1] * price[1]
    common = math.gcd(n, d)
    n, d = n // common, d // common
    if d.bit_length() > 256:
        n, d = -((-n << 320) // d), 1 << 320
        common = math.gcd(n, d)
        n, d = n // common, d // common
    return n, d
