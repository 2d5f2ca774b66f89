"""The accountant of approximate differential privacy, by basic composition."""

from dataclasses import dataclass
from typing import Any, ClassVar

from privet.codec import ratio, read_amount
from privet.errors import AccountingError
from privet.exact import Exact, shorter_up
from privet.exact.rounding import add_up, at_most
from privet.privacy.accounting.base import Accountant
from privet.privacy.events import (
    BoundedRange,
    Free,
    GaussianNoise,
    JointGaussian,
    LaplaceNoise,
    PrivacyEvent,
    Stated,
    leaves,
)
from privet.privacy.gaussian import delta_of
from privet.privacy.guarantees import ApproxDP


@dataclass(frozen=True)
class ApproxAccountant(Accountant[ApproxDP]):
    """Prices in epsilon and delta, exactly.

    Claim: epsilon and delta are the sums over the leaves: (total move / scale, 0) for Laplace noise, (epsilon,
    delta) for Stated and for Gaussian noise with an epsilon, (epsilon, 0) for a choice of bounded range, (0, 0) for
    Free; delta is at most 1. Adaptive questions: basic composition, as a filter (Rogers, Roth, Ullman, Vadhan 2016,
    theorem 3.6): the sums of epsilons and of deltas stay within the budget on every path.

    Example:
        >>> from privet.privacy.events import Composed
        >>> from privet.privacy.moves import L1Move
        >>> ApproxAccountant().account(Composed([LaplaceNoise(move=L1Move(1), scale=2), Stated(epsilon=1, delta=1e-6)]))
        ApproxDP(1.5, 1e-6)

    Reference: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, theorem 1.
    """

    name: ClassVar[str] = "approx"
    promises: ClassVar[type] = ApproxDP
    zero: ClassVar[ApproxDP] = ApproxDP(0, 0)  # type: ignore[misc]

    def price(self, event: PrivacyEvent, /) -> ApproxDP:
        """The sums of the epsilons and of the deltas; ApproxDP(0, 0) if nothing was revealed."""
        prices = [(times, *self._price(leaf, path)) for path, leaf, times in leaves(event)]
        epsilon = sum((times * shorter_up(e) for times, e, _ in prices), Exact(0))
        return ApproxDP.capped(epsilon, sum((times * shorter_up(d) for times, _, d in prices), Exact(0)))

    def _price(self, leaf: PrivacyEvent, path: str) -> tuple[Exact, Exact]:
        if type(leaf) is LaplaceNoise:
            return leaf.move.total / leaf.scale, Exact(0)
        if type(leaf) is Stated:
            return leaf.epsilon, leaf.delta
        if type(leaf) is BoundedRange:
            return leaf.epsilon, Exact(0)
        if type(leaf) is GaussianNoise and leaf.move.squared == 0:
            return Exact(0), Exact(0)
        if type(leaf) is GaussianNoise and leaf.epsilon is not None:
            return leaf.epsilon, delta_of(leaf)
        if type(leaf) is JointGaussian:
            return (leaf.epsilon, delta_of(leaf)) if leaf.rho else (Exact(0), Exact(0))
        if type(leaf) is GaussianNoise:
            raise AccountingError(f"{path}: Gaussian noise without an epsilon has no price in epsilon and delta")
        if type(leaf) is Free:
            return Exact(0), Exact(0)
        raise self.unknown(path, leaf)

    def add(self, total: ApproxDP, price: ApproxDP, /) -> ApproxDP:
        """Epsilons and deltas add up."""
        return ApproxDP.capped(add_up(total.epsilon, price.epsilon), add_up(total.delta, price.delta))

    def at_most(self, one: ApproxDP, other: ApproxDP, /) -> bool:
        """Compares both epsilon and delta."""
        return one.epsilon <= other.epsilon and one.delta <= other.delta

    def fits(self, total: ApproxDP, budget: ApproxDP, /) -> bool:
        """Whether both sums are at most the budget's."""
        return at_most(total.epsilon, budget.epsilon) and at_most(total.delta, budget.delta)

    def spent(self, total: ApproxDP, budget: ApproxDP, /) -> ApproxDP:
        """The total itself."""
        return total

    def account(self, event: PrivacyEvent, /) -> ApproxDP:
        """The guarantee of everything in the tree together."""
        return self.price(event)

    def left(self, total: ApproxDP, budget: ApproxDP, /) -> ApproxDP:
        """The differences, exactly."""
        epsilon, delta = budget.epsilon - total.epsilon, budget.delta - total.delta
        return ApproxDP.capped(max(epsilon, Exact(0)), max(delta, Exact(0)))

    def share(self, total: ApproxDP, budget: ApproxDP, /) -> Exact:
        """The smaller fraction that is left of epsilon or of delta, exactly.

        A budget without delta is compared by epsilon alone.
        """
        left = self.left(total, budget)
        shares = [left.epsilon / budget.epsilon if budget.epsilon else Exact(0)]
        return min([*shares, left.delta / budget.delta] if budget.delta else shares)

    def to_json(self, total: ApproxDP, /) -> dict[str, str]:
        """Epsilon and delta, each as "p/q"."""
        return {"epsilon": ratio(total.epsilon), "delta": ratio(total.delta)}

    def from_json(self, tree: Any, /) -> ApproxDP:
        """Epsilon and delta, each from "p/q"."""
        if not isinstance(tree, dict) or tree.keys() != {"epsilon", "delta"}:
            raise ValueError("an approximate price must have an epsilon and a delta")
        delta = read_amount(tree["delta"])
        if delta > 1:
            raise ValueError("delta must be at most 1")
        return ApproxDP.capped(read_amount(tree["epsilon"]), delta)
