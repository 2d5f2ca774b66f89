"""The accountant of pure differential privacy."""

from dataclasses import dataclass
from typing import ClassVar

from privet.codec import ratio, read_amount
from privet.errors import AccountingError, write
from privet.exact import Exact, shorter_up
from privet.exact.rounding import add_up, at_most
from privet.privacy.accounting.base import Accountant
from privet.privacy.events import BoundedRange, Free, LaplaceNoise, PrivacyEvent, Stated, leaves
from privet.privacy.guarantees import PureDP


@dataclass(frozen=True)
class PureAccountant(Accountant[PureDP]):
    """Prices in epsilon alone, exactly.

    Claim: epsilon is the sum over the leaves: total move / scale for Laplace noise, epsilon for Stated if its delta is
    0 and for a choice of bounded range, and 0 for Free. Adaptive questions: basic composition (Dwork, Kenthapadi,
    McSherry, Mironov, Naor 2006, theorem 1, with delta 0) bounds the product of the conditional ratios on every path
    by e^budget, since the filter bounds the sum of epsilons on every path.

    Example:
        >>> from privet.privacy.events import Composed, Repeated
        >>> from privet.privacy.moves import L1Move
        >>> pure = PureAccountant()
        >>> pure.account(Repeated(LaplaceNoise(move=L1Move(1), scale=10), 10))
        PureDP(1)
        >>> pure.fits(pure.add(PureDP(1), PureDP(2)), PureDP(3)), pure.show(PureDP(1), PureDP(3)).left
        (True, 'epsilon 2')
        >>> pure.account(Composed([Free(), Stated(epsilon=1, delta=1e-6)]))
        Traceback (most recent call last):
        privet.errors.AccountingError: events[1]: Stated with delta > 0 has no pure price.
        Write, for example: ApproxAccountant().account(event)

    Reference: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009 for the discrete noise.
    """

    name: ClassVar[str] = "pure"
    promises: ClassVar[type] = PureDP
    zero: ClassVar[PureDP] = PureDP.ZERO  # type: ignore[misc]

    def price(self, event: PrivacyEvent, /) -> PureDP:
        """The sum of the epsilons; PureDP.ZERO if nothing was revealed."""
        prices = [times * shorter_up(self._epsilon(leaf, path)) for path, leaf, times in leaves(event)]
        return PureDP.derived(sum(prices, Exact(0)))

    def _epsilon(self, leaf: PrivacyEvent, path: str) -> Exact:
        if type(leaf) is LaplaceNoise:
            return leaf.move.total / leaf.scale
        if type(leaf) is BoundedRange or (type(leaf) is Stated and leaf.delta == 0):
            return leaf.epsilon
        if type(leaf) is Stated:
            raise AccountingError(
                f"{path}: Stated with delta > 0 has no pure price", remedy=write("ApproxAccountant().account(event)")
            )
        if type(leaf) is Free:
            return Exact(0)
        raise self.unknown(path, leaf)

    def add(self, total: PureDP, price: PureDP, /) -> PureDP:
        """Epsilons add up."""
        return PureDP.derived(add_up(total.epsilon, price.epsilon))

    def at_most(self, one: PureDP, other: PureDP, /) -> bool:
        """Compares epsilons."""
        return one.epsilon <= other.epsilon

    def fits(self, total: PureDP, budget: PureDP, /) -> bool:
        """Whether the sum of the epsilons is at most the budget's."""
        return at_most(total.epsilon, budget.epsilon)

    def spent(self, total: PureDP, budget: PureDP, /) -> PureDP:
        """The total itself."""
        return total

    def account(self, event: PrivacyEvent, /) -> PureDP:
        """The guarantee of everything in the tree together."""
        return self.price(event)

    def left(self, total: PureDP, budget: PureDP, /) -> PureDP:
        """The difference, exactly."""
        return PureDP.derived(max(budget.epsilon - total.epsilon, Exact(0)))

    def share(self, total: PureDP, budget: PureDP, /) -> Exact:
        """The difference over the budget, exactly."""
        return self.left(total, budget).epsilon / budget.epsilon if budget.epsilon else Exact(0)

    def to_json(self, total: PureDP, /) -> str:
        """Epsilon as "p/q"."""
        return ratio(total.epsilon)

    def from_json(self, tree: object, /) -> PureDP:
        """Epsilon from "p/q"."""
        return PureDP.derived(read_amount(tree))
