"""The contract of accountants: price events, add prices, and compare the total with a budget."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from privet.errors import AccountingError
from privet.exact import Exact, show
from privet.privacy.events import PrivacyEvent
from privet.privacy.guarantees import Budget, Guarantee, show_down

S = TypeVar("S")


class Share(NamedTuple):
    """The part of a budget that is used, where no smaller guarantee than the budget's is promised.

    Example:
        >>> from privet.privacy.guarantees import PureDP
        >>> print(Share(Exact(1, 3), PureDP(1)))
        33.4 % of epsilon 1
    """

    used: Exact
    """From 0 to 1; above 1 only for a history that the budget would not have allowed."""
    budget: Budget

    def __str__(self) -> str:
        return f"{percent_up(self.used)} of {self.budget}"


def percent_up(share: Exact) -> str:
    """A share in percent, rounded up to a tenth.

    Example:
        >>> percent_up(Exact(1, 3)), percent_up(Exact(1))
        ('33.4 %', '100 %')
    """
    return f"{show(Exact(-(-1000 * share // 1), 10))} %"


def percent_down(share: Exact) -> str:
    """A share in percent, rounded down to a tenth; 0 for less than nothing."""
    return f"{show(Exact(max(1000 * share // 1, 0), 10))} %"


class Shown(NamedTuple):
    """A total and what is left of its budget, as text."""

    spent: str
    """Rounded up."""
    left: str
    """Rounded down."""


class Accountant(Protocol[S]):
    """Prices events as elements of an exact, ordered, commutative monoid S, and filters totals by a budget.

    Claim: if every total along the way fits the budget, all granted releases together have the budget's guarantee. The
    docstring of each accountant names the theorem that makes this hold for adaptive questions, where each is chosen
    after the earlier answers; if `adaptive` is False it holds for fixed batches only, and can't enforce a budget.

    Repeated(e, n) is priced like Composed([e] * n). Order does not matter. More events never have a smaller price, and
    a total that does not fit does not fit with more added. Zero distance and post-processing have the price `zero`. An
    event of an unknown kind is refused before anything is priced, with its path in the tree.
    (Totals with denominators of more than 256 bits are rounded up by less than 2^-320, so that sums stay short.)
    """

    name: ClassVar[str]
    promises: ClassVar[type]
    """The kind of guarantee that it promises; its budgets have this kind."""
    adaptive: ClassVar[bool] = True
    zero: S
    """The price of revealing nothing."""

    def price(self, event: PrivacyEvent, /) -> S:
        """The price of the whole tree of events."""

    def add(self, total: S, price: S, /) -> S:
        """The sum of a total and a price."""

    def at_most(self, one: S, other: S, /) -> bool:
        """The order of prices: whether no part of the first is larger than that of the second."""

    def fits(self, total: S, budget: Any, /) -> bool:
        """Whether a total is within a budget, exactly."""

    def covers(self, price: S, cap: Any, /) -> bool:
        """Whether one question of this price, by itself, has the guarantee of the cap."""
        return self.fits(price, cap)

    def stated_delta(self, budget: Any, /) -> Exact:
        """The delta at which a question in rho states an epsilon, for a meter that counts epsilons; 0 for none.

        Without it, one cheap question in rho would put an end to that meter for everybody.
        """
        return Exact(0)

    def spent(self, total: S, budget: Any, /) -> Guarantee | Share:
        """The guarantee of a total, or the share of the budget that it uses if only the budget is promised."""

    def left(self, total: S, budget: Any, /) -> Budget:
        """The largest guarantee that one more release may use and still fit; rounded down."""

    def share(self, total: S, budget: Any, /) -> Exact:
        """The fraction of the budget that is left, from 0 to 1; rounded down."""

    def to_json(self, total: S, /) -> Any:
        """An exact tree for JSON; equal totals have equal trees."""

    def from_json(self, tree: Any, /) -> S:
        """The inverse of `to_json`; a `ValueError` for anything else."""

    # --- settings that are fixed when a dataset is made -------------------------------------------

    def for_budget(self, budget: Any, /) -> Accountant[S]:
        """The accountant for a new dataset with this budget. What it chooses is stored, and never chosen again."""
        return self

    def settings(self) -> dict[str, Any]:
        """What `for_budget` chose, for JSON."""
        return {}

    def with_settings(self, tree: dict[str, Any], /) -> Accountant[S]:
        """The inverse of `settings`; a `ValueError` for anything else."""
        if tree:
            raise ValueError(f"the {self.name} accountant has no settings")
        return self

    # --- derived --------------------------------------------------------------------------------

    def show(self, total: S, budget: Any, /) -> Shown:
        """What is spent and what is left, as text."""
        return Shown(str(self.spent(total, budget)), show_down(self.left(total, budget)))

    def show_price(self, price: S, budget: Any, /) -> str:
        """A price on each meter, beside its limit, as text; empty if there is one meter."""
        return ""

    def unknown(self, path: str, leaf: object, /) -> AccountingError:
        """The error for a kind of event that this accountant can't price."""
        return AccountingError(f"{path}: the {self.name} accountant has no price for {type(leaf).__name__}")
