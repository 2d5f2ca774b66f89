"""The rules of a ledger, entry by entry: what a dataset may do next, and whether what it did was lawful."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from privet.canonical import canonical
from privet.errors import BudgetError, DatasetClosed, LedgerError, PrivetError
from privet.events import Composed, PrivacyEvent, from_tree, leaves
from privet.events import Laplace as LaplaceEvent
from privet.exact import Exact, literal, shorter_up
from privet.guarantees import ApproxDP, PureDP
from privet.ledger import chain
from privet.ledger.entries import Balance, Budget, Dataset, Entry, Ration, Receipt, Totals, fits, nothing, words


def charged(dataset: Dataset, totals: Totals, ration: Ration, analyst: str, cost: Budget) -> tuple[Totals, Ration]:
    """After a debit, which counts for the dataset and for the analyst; refused if a cap does not cover it."""
    if totals.failures >= dataset.closes_after:
        raise DatasetClosed(
            f"{totals.failures} questions failed, so the dataset is closed. Nothing was spent. "
            'The steward can open it again. Write: session.reopen("what was done about it")'
        )
    spent, mine = _sum(totals.spent, cost), _sum(ration.spent, cost)
    if not (
        fits(spent, totals.budget)
        and (ration.cap is None or fits(mine, ration.cap))
        and (totals.per_query is None or fits(cost, totals.per_query))
    ):
        raise _over_budget(Balance(totals.budget, totals.spent, ration, totals.per_query), analyst, cost)
    return Totals(totals.budget, spent, totals.failures, totals.per_query), Ration(mine, ration.cap)


def _over_budget(balance: Balance, analyst: str, cost: Budget) -> BudgetError:
    """What is left of the cap that is nearest, and what would fit all of them."""
    limits = balance.limits(analyst)
    short = [limit for limit in limits if not limit.covers(cost)] or limits
    nearest = min(short, key=lambda limit: limit.left.epsilon)
    text = f"this costs {cost}, and {words(nearest.left)} is left of {nearest.what}. Nothing was spent."
    fits = min(limit.left.epsilon for limit in balance.limits(analyst))
    if isinstance(cost, ApproxDP) and any(cost.delta > limit.left.to_approx().delta for limit in short):
        return BudgetError(text)
    return BudgetError(
        f"{text} {f'Write, for example: epsilon={literal(fits)}' if fits else 'Ask the steward for more'}"
    )


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


@dataclass(slots=True)
class Book:
    """A dataset's state, kept by reading its entries one after the other; an unlawful one is an error that names it.

    Entries are read as JSON and compared as texts: a long history is read at every start.
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
    _totals: Totals | None = None
    _said: Any = None
    """The totals as they stand in an entry."""
    _rations: dict[str, tuple[Ration, Any]] = field(default_factory=dict)
    _requests: set[str] = field(default_factory=set)
    _versions: set[str] = field(default_factory=set)
    _prices: dict[str, tuple[Budget, str]] = field(default_factory=dict)

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
        before = self._said["spent"] if self._totals is not None else None
        if self._totals is None:
            self._created(kind, chain.read(canonical(tree)))
        elif kind == "reserved":
            self._reserved(number, tree, analyst)
        elif kind == "answered":
            self.answers[self._settled(tree["refers"])] = tree["answer"]
        elif kind == "failed":
            self._settled(tree["refers"])
            self._turn(self._totals._replace(failures=self._totals.failures + 1))
        else:
            self._aside(kind, tree)
        expected = None
        if analyst:
            if analyst not in self._rations:
                self._ration(analyst, self._none())
            expected = self._rations[analyst][1]
        if tree["totals"] != self._said or tree.get("ration") != expected:
            raise ValueError(f"its totals do not follow from what came before: {before} was spent")

    def _created(self, kind: str, first: Entry) -> None:
        if kind != "created" or first.facts is None:
            raise ValueError("the first entry does not say what the dataset is")
        self._dataset = first.facts
        self._turn(Totals(first.totals.budget, nothing(first.totals.budget)))

    def _aside(self, kind: str, tree: dict[str, Any]) -> None:
        """What spends nothing."""
        assert self._totals is not None
        if kind == "served":
            if tree["refers"] not in self.answers:
                raise ValueError("it serves an answer that is not there")
            self._used(tree)
        elif kind == "declared":
            if tree["version"] in self._versions:
                raise ValueError("this version was declared before")
            self._versions.add(tree["version"])
        elif kind == "reopened" and tree["note"]:
            self._turn(self._totals._replace(failures=0))
        elif kind == "capped" and tree["note"]:
            self._capped(chain.read(canonical(tree)))
        else:
            raise ValueError("a dataset is created once, and the steward gives reasons")

    def _reserved(self, number: int, tree: dict[str, Any], analyst: str) -> None:
        assert self._dataset is not None and self._totals is not None  # noqa: PT018
        self._used(tree)
        known = self._prices.get(key := repr(tree["events"]))
        if known is None:
            price = self._dataset.price(map(from_tree, tree["events"]))
            known = self._prices[key] = price, chain.budget_text(price)
        price, text = known
        if tree["cost"] != text or not analyst:
            raise ValueError(f"it was charged {tree['cost']}, and what was done costs {text}")
        mine = self._rations[analyst][0] if analyst in self._rations else self._none()
        self._totals, mine = charged(self._dataset, self._totals, mine, analyst, price)
        self._said["spent"] = chain.budget_text(self._totals.spent)
        self._ration(analyst, mine)
        self.open.add(number)

    def _settled(self, number: int) -> int:
        if number not in self.open:
            raise ValueError(f"it settles entry {number}, which is not reserved")
        self.open.remove(number)
        return number

    def _used(self, tree: dict[str, Any]) -> None:
        if not tree["request_id"] or tree["request_id"] in self._requests:
            raise ValueError("its request id was used before")
        self._requests.add(tree["request_id"])

    def _capped(self, entry: Entry) -> None:
        assert self._dataset is not None and self._totals is not None  # noqa: PT018
        if entry.analyst and entry.ration is not None:
            mine = self._rations.get(entry.analyst, (self._none(), None))[0]
            self._ration(entry.analyst, mine._replace(cap=entry.ration.cap))
            caps = [entry.ration.cap]
        else:
            self._turn(self._totals._replace(budget=entry.totals.budget, per_query=entry.totals.per_query))
            caps = [entry.totals.budget, entry.totals.per_query]
        for cap in caps:
            if cap is not None:
                self._dataset.check_kind(cap)

    def _turn(self, totals: Totals) -> None:
        self._totals, self._said = totals, chain.totals_tree(totals)

    def _ration(self, analyst: str, ration: Ration) -> None:
        self._rations[analyst] = ration, chain.ration_tree(ration)

    def _none(self) -> Ration:
        assert self._totals is not None
        return Ration(nothing(self._totals.budget))

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
    epsilon = shorter_up(_plus(spent.epsilon, cost.epsilon))
    if isinstance(spent, PureDP):
        return PureDP._of(epsilon)  # not checked again: a long history is added up at every start
    return ApproxDP.capped(epsilon, shorter_up(_plus(spent.delta, cost.to_approx().delta)))


def _plus(a: Exact, b: Exact) -> Exact:
    """The sum, in half the time that a fraction takes for it."""
    n, d = a.as_integer_ratio()
    m, e = b.as_integer_ratio()
    return Exact(n * e + m * d, d * e)
