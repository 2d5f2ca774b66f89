"""The accountant of zero-concentrated differential privacy."""

from dataclasses import dataclass
from typing import ClassVar

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
from privet.privacy.guarantees import ZeroConcentratedDP


@dataclass(frozen=True)
class ConcentratedAccountant(Accountant[ZeroConcentratedDP]):
    """Prices in rho, exactly.

    Claim: rho is the sum over the leaves: move^2 / (2 sigma^2) for Gaussian noise, blocks * (l1 / scale)^2 / 2 for
    Laplace noise, epsilon^2 / 2 for Stated if its delta is 0, epsilon^2 / 8 for a choice of bounded range, and 0 for
    Free. Adaptive questions: rho adds up as a filter (Whitehouse, Ramdas, Rogers, Wu, "Fully-adaptive composition in
    differential privacy", ICML 2023, theorem 1).

    Example:
        >>> from privet.privacy.events import Repeated
        >>> from privet.privacy.moves import L1Move, L2Move
        >>> rho = ConcentratedAccountant()
        >>> rho.account(GaussianNoise(move=L2Move(1), sigma_squared=50, coordinates=1, epsilon=None))
        ZeroConcentratedDP(0.01)
        >>> rho.account(Repeated(LaplaceNoise(move=L1Move(1), scale=10), 4))
        ZeroConcentratedDP(0.02)

    Reference: Bun, Steinke 2016, propositions 1.4 and 1.7; Cesar, Rogers 2021, for bounded range.
    """

    name: ClassVar[str] = "concentrated"
    promises: ClassVar[type] = ZeroConcentratedDP
    zero: ClassVar[ZeroConcentratedDP] = ZeroConcentratedDP.ZERO  # type: ignore[misc]

    def price(self, event: PrivacyEvent, /) -> ZeroConcentratedDP:
        """The sum of the rhos; ZeroConcentratedDP.ZERO if nothing was revealed."""
        prices = [times * shorter_up(self._rho(leaf, path)) for path, leaf, times in leaves(event)]
        return ZeroConcentratedDP.derived(sum(prices, Exact(0)))

    def _rho(self, leaf: PrivacyEvent, path: str) -> Exact:
        if type(leaf) is GaussianNoise or type(leaf) is JointGaussian:
            return leaf.rho
        if type(leaf) is LaplaceNoise:
            return leaf.move.blocks * (leaf.move.l1 / leaf.scale) ** 2 / 2
        if type(leaf) is BoundedRange:
            return leaf.epsilon**2 / 8
        if type(leaf) is Stated and leaf.delta == 0:
            return leaf.epsilon**2 / 2
        if type(leaf) is Stated:
            raise AccountingError(f"{path}: Stated with delta > 0 has no price in rho")
        if type(leaf) is Free:
            return Exact(0)
        raise self.unknown(path, leaf)

    def add(self, total: ZeroConcentratedDP, price: ZeroConcentratedDP, /) -> ZeroConcentratedDP:
        """Rhos add up."""
        return ZeroConcentratedDP.derived(add_up(total.rho, price.rho))

    def at_most(self, one: ZeroConcentratedDP, other: ZeroConcentratedDP, /) -> bool:
        """Compares rhos."""
        return one.rho <= other.rho

    def fits(self, total: ZeroConcentratedDP, budget: ZeroConcentratedDP, /) -> bool:
        """Whether the sum of the rhos is at most the budget's."""
        return at_most(total.rho, budget.rho)

    def spent(self, total: ZeroConcentratedDP, budget: ZeroConcentratedDP, /) -> ZeroConcentratedDP:
        """The total itself."""
        return total

    def account(self, event: PrivacyEvent, /) -> ZeroConcentratedDP:
        """The guarantee of everything in the tree together."""
        return self.price(event)

    def left(self, total: ZeroConcentratedDP, budget: ZeroConcentratedDP, /) -> ZeroConcentratedDP:
        """The difference, exactly."""
        return ZeroConcentratedDP.derived(max(budget.rho - total.rho, Exact(0)))

    def share(self, total: ZeroConcentratedDP, budget: ZeroConcentratedDP, /) -> Exact:
        """The difference over the budget, exactly."""
        return self.left(total, budget).rho / budget.rho if budget.rho else Exact(0)

    def to_json(self, total: ZeroConcentratedDP, /) -> str:
        """Rho as "p/q"."""
        return ratio(total.rho)

    def from_json(self, tree: object, /) -> ZeroConcentratedDP:
        """Rho from "p/q"."""
        return ZeroConcentratedDP.derived(read_amount(tree))
