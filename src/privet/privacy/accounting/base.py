"""What every accountant can do: price events, add prices up, and compare the total with a budget."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from privet.errors import AccountingError
from privet.exact import Exact
from privet.privacy.events import PrivacyEvent
from privet.privacy.guarantees import Budget, show_down

S = TypeVar("S")


class Shown(NamedTuple):
    """A total beside its budget, for people to read."""

    spent: str
    """Rounded up."""
    left: str
    """Rounded down."""


class Accountant(Protocol[S]):
    """Prices events as elements of an exact, ordered, commutative monoid S, and filters totals by a budget.

    Claim: if every total along the way fits the budget, all that was granted together has the budget's guarantee. The
    docstring of each accountant names the theorem that makes this hold for adaptive questions, each chosen after the
    answers to those before it; where `adaptive` is False it holds for fixed batches only, and no budget is kept by it.

    Repeated(e, n) is priced like Composed([e] * n). Order does not matter. More events never have a smaller price, and
    what does not fit does not fit with more added. Zero distance and post-processing have the price `zero`. An event of
    an unknown kind is refused before anything is priced, and the refusal names its place in the tree.
    (Where a denominator has more than 256 bits, totals are rounded up by less than 2^-320: sums stay short.)
    """

    name: ClassVar[str]
    promises: ClassVar[type]
    """The kind of guarantee that it promises; budgets are of this kind."""
    adaptive: ClassVar[bool] = True
    zero: S
    """The price of what reveals nothing."""

    def price(self, event: PrivacyEvent, /) -> S:
        """The price of the whole tree of events."""

    def add(self, total: S, price: S, /) -> S:
        """Both together."""

    def at_most(self, one: S, other: S, /) -> bool:
        """The order: whether the first is nowhere larger than the second."""

    def fits(self, total: S, budget: Any, /) -> bool:
        """Whether a budget covers a total, exactly."""

    def guarantee(self, total: S, /) -> Budget:
        """What is promised for a total."""

    def left(self, total: S, budget: Any, /) -> Budget:
        """The largest guarantee that one more release may have and still fit; rounded down."""

    def share(self, total: S, budget: Any, /) -> Exact:
        """How much of the budget is left, from 0 to 1; rounded down."""

    def to_json(self, total: S, /) -> Any:
        """An exact tree for JSON; equal totals have equal trees."""

    def from_json(self, tree: Any, /) -> S:
        """The total that a tree stands for; a `ValueError` if it stands for none."""

    # --- what follows ---------------------------------------------------------------------------

    def account(self, event: PrivacyEvent, /) -> Budget:
        """The guarantee of everything in the tree together."""
        return self.guarantee(self.price(event))

    def show(self, total: S, budget: Any, /) -> Shown:
        """What is spent and what is left, in words."""
        return Shown(str(self.guarantee(total)), show_down(self.left(total, budget)))

    def unknown(self, path: str, leaf: object, /) -> AccountingError:
        """The refusal of a kind of event that has no price here."""
        return AccountingError(f"{path}: the {self.name} accountant has no price for {type(leaf).__name__}")
