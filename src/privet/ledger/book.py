"""The rules of a ledger, entry by entry: what a dataset may do next, and whether what it did was lawful."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from privet.canonical import canonical
from privet.errors import BudgetError, DatasetClosed, LedgerError, PrivetError
from privet.events import Composed, PrivacyEvent, from_tree, leaves
from privet.events import Laplace as LaplaceEvent
from privet.exact import shorter_up
from privet.guarantees import ApproxDP, PureDP
from privet.ledger import chain
from privet.ledger.entries import (
    NO_CAPS,
    Balance,
    Budget,
    Caps,
    Dataset,
    Entry,
    Ration,
    Receipt,
    Totals,
    fits,
    nothing,
    words,
)


def charged(
    dataset: Dataset, totals: Totals, ration: Ration, analyst: str, cost: Budget, caps: Caps = NO_CAPS
) -> tuple[Totals, Ration]:
    """After a debit, which counts for the dataset and for the analyst; refused if a cap does not cover it."""
    if totals.failures >= dataset.closes_after:
        raise DatasetClosed(
            f"{totals.failures} questions failed, so the dataset is closed. Nothing was spent. "
            'The steward can open it again. Write: session.reopen("what was done about it")'
        )
    spent, mine = _sum(totals.spent, cost), _sum(ration.spent, cost)
    allowed = caps.lower(Balance(totals.budget, totals.spent, ration, totals.per_query))
    limits = (spent, allowed.budget), (mine, allowed.ration and allowed.ration.cap), (cost, allowed.per_query)
    if not all(cap is None or fits(amount, cap) for amount, cap in limits):
        raise _over_budget(allowed, analyst, cost)
    return Totals(totals.budget, spent, totals.failures, totals.per_query), Ration(mine, ration.cap)


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


@dataclass(slots=True)
class Book:
    """A dataset's state, kept by reading its entries one after the other; an unlawful one is an error that names it.

    Entries are read as JSON, added up in whole numbers and compared as texts: a long history is read at every start.
    The sums are computed anew here, and not with what wrote them.
    """

    name: str
    strict: bool = True
    """Whether each entry must be written as entries are, to the byte; a start takes the hash for it."""
    number: int = 0
    hash: str = chain.GENESIS
    open: set[int] = field(default_factory=set)
    answers: dict[int, str] = field(default_factory=dict)
    """The hash of each answer, by its reservation."""
    _dataset: Dataset | None = None
    _all: _Account | None = None
    _per_query: Amount | None = None
    _analysts: dict[str, _Account] = field(default_factory=dict)
    _requests: set[str] = field(default_factory=set)
    _versions: set[str] = field(default_factory=set)
    _prices: dict[str, tuple[Amount, str]] = field(default_factory=dict)

    @property
    def head(self) -> Receipt:
        """Where it ends."""
        return Receipt(self.name, self.number, self.hash)

    def add(self, text: str, found: str) -> dict[str, Any]:
        """Check the next entry against the chain and the rules, and take it in."""
        number = self.number + 1
        if chain.link(self.hash, text) != found:
            raise self._bad(number, "its hash is not that of its text and of the entries before it")
        try:
            tree = chain.tree(text, strict=self.strict)
            if tree["number"] != number or tree["dataset"] != self.name:
                raise ValueError(f"it stands at place {number} and says {tree['number']} of {tree['dataset']!r}")
            self._follow(number, tree)
        except LookupError as error:
            raise self._bad(number, f"it has no {error}, or that is not there to refer to") from None
        except (ValueError, TypeError, AttributeError, RecursionError, PrivetError) as error:
            raise self._bad(number, str(error)) from None
        self.number, self.hash = number, found
        return tree

    def _follow(self, number: int, tree: dict[str, Any]) -> None:
        kind, analyst = tree["kind"], tree.get("analyst", "")
        if self._all is None:
            self._created(kind, chain.read(canonical(tree)))
        elif kind == "reserved":
            self._reserved(number, tree, analyst)
        elif kind == "answered":
            self.answers[self._settled(tree["refers"])] = tree["answer"]
        elif kind == "failed":
            self._settled(tree["refers"])
            self._all.said["failures"] += 1
        elif kind == "interrupted":
            self._settled(tree["refers"])
        else:
            self._aside(kind, tree, analyst)
        expected = self._of(analyst).said if analyst else None
        if self._all is None or tree["totals"] != self._all.said or tree.get("ration") != expected:
            raise ValueError("its totals do not follow from what came before")

    def _created(self, kind: str, first: Entry) -> None:
        if kind != "created" or first.facts is None:
            raise ValueError("the first entry does not say what the dataset is")
        self._dataset, budget = first.facts, first.totals.budget
        self._all = _Account(
            _amount(nothing(budget)), _amount(budget), chain.totals_tree(Totals(budget, nothing(budget)))
        )

    def _of(self, analyst: str) -> _Account:
        found = self._analysts.get(analyst)
        if found is None:
            assert self._dataset is not None
            none = nothing(self._dataset.budget)
            found = self._analysts[analyst] = _Account(_amount(none), None, chain.ration_tree(Ration(none)))
        return found

    def _reserved(self, number: int, tree: dict[str, Any], analyst: str) -> None:
        assert self._dataset is not None and self._all is not None  # noqa: PT018
        self._used(tree)
        known = self._prices.get(key := repr(tree["events"]))
        if known is None:
            price = self._dataset.price(map(from_tree, tree["events"]))
            known = self._prices[key] = _amount(price), chain.budget_text(price)
        amount, text = known
        if tree["cost"] != text or not analyst:
            raise ValueError(f"it was charged {tree['cost']}, and what was done costs {text}")
        if self._all.said["failures"] >= self._dataset.closes_after:
            raise ValueError("the dataset was closed after failures")
        if not self._all.add(amount):
            raise ValueError("it costs more than was left of the budget")
        if not self._of(analyst).add(amount):
            raise ValueError(f"it costs more than was left for {analyst!r}")
        if self._per_query is not None and not _within(amount, self._per_query):
            raise ValueError("it costs more than one question may")
        self.open.add(number)

    def _aside(self, kind: str, tree: dict[str, Any], analyst: str) -> None:
        """What spends nothing."""
        assert self._all is not None
        if kind == "served":
            if tree["refers"] not in self.answers:
                raise ValueError("it serves an answer that is not there")
            self._used(tree)
        elif kind == "declared":
            if tree["version"] in self._versions:
                raise ValueError("this version was declared before")
            self._versions.add(tree["version"])
        elif kind == "reopened" and tree["note"]:
            self._all.said["failures"] = 0
        elif kind == "capped" and tree["note"]:
            self._capped(chain.read(canonical(tree)), analyst)
        else:
            raise ValueError("a dataset is created once, and the steward gives reasons")

    def _capped(self, entry: Entry, analyst: str) -> None:
        assert self._dataset is not None and self._all is not None  # noqa: PT018
        budget, _, _, per_query = entry.totals
        caps = [budget, per_query]
        if analyst and entry.ration is not None:
            mine, caps = self._of(analyst), [entry.ration.cap]
            mine.cap = None if entry.ration.cap is None else _amount(entry.ration.cap)
            mine.said = chain.ration_tree(entry.ration) | {"spent": mine.said["spent"]}
        else:
            self._all.cap, self._per_query = _amount(budget), None if per_query is None else _amount(per_query)
            stays = {name: self._all.said[name] for name in ("spent", "failures")}
            self._all.said = chain.totals_tree(entry.totals) | stays
        for cap in caps:
            if cap is not None:
                self._dataset.check_kind(cap)

    def _settled(self, number: int) -> int:
        if number not in self.open:
            raise ValueError(f"it settles entry {number}, which is not reserved")
        self.open.remove(number)
        return number

    def _used(self, tree: dict[str, Any]) -> None:
        if not tree["request_id"] or tree["request_id"] in self._requests:
            raise ValueError("its request id was used before")
        self._requests.add(tree["request_id"])

    def _bad(self, number: int, why: str) -> LedgerError:
        return LedgerError(
            f"entry {number} of the dataset {self.name!r} does not hold: {why[:300]}. Nothing is answered with this "
            "ledger. Put back a copy that verifies, and compare it with a receipt"
        )

    def expect(self, receipt: Receipt, found: str | None) -> None:
        """Refuse a chain that a receipt's entry is not in: an older copy, or another history."""
        if (receipt.dataset, receipt.hash) != (self.name, found):
            older = receipt.number > self.number
            raise LedgerError(
                f"the receipt for entry {receipt.number} of the dataset {receipt.dataset!r} does not fit: this ledger "
                + (f"ends at entry {self.number}, so it is an older copy" if older else "has another entry there")
            )


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
