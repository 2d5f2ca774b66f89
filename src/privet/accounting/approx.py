"""The accountant of approximate differential privacy, by basic composition."""

from dataclasses import dataclass
from typing import ClassVar

from privet.errors import AccountingError
from privet.events import Free, Laplace, PrivacyEvent, Stated, leaves
from privet.exact import Exact, shorter_up
from privet.guarantees import ApproxDP


@dataclass(frozen=True, slots=True)
class ApproxAccountant:
    """Prices in epsilon and delta, exactly.

    Claim: epsilon and delta are the sums over the leaves: (sensitivity / scale, 0) for Laplace noise, what is
    stated, nothing for what is free; delta is at most 1. Anything else is refused, before anything is priced.
    (Denominators of over 256 bits are rounded up, by less than 2^-320, so that odd parameters can't make sums slow.)

    Example:
        >>> from privet.events import Composed
        >>> ApproxAccountant().account(Composed([Laplace(sensitivity=1, scale=2), Stated(epsilon=1, delta=1e-6)]))
        ApproxDP(1.5, 1e-6)

    Reference: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, theorem 1.
    """

    name: ClassVar[str] = "approx"

    def account(self, event: PrivacyEvent, /) -> ApproxDP:
        """The price of the whole tree; ApproxDP(0, 0) if nothing was revealed."""
        prices = [(times, *_price(leaf, path)) for path, leaf, times in leaves(event)]
        epsilon = sum((times * shorter_up(e) for times, e, _ in prices), Exact(0))
        return ApproxDP.capped(epsilon, sum((times * shorter_up(d) for times, _, d in prices), Exact(0)))


def _price(leaf: PrivacyEvent, path: str) -> tuple[Exact, Exact]:
    if type(leaf) is Laplace:
        return leaf.sensitivity / leaf.scale, Exact(0)
    if type(leaf) is Stated:
        return leaf.epsilon, leaf.delta
    if type(leaf) is Free:
        return Exact(0), Exact(0)
    raise AccountingError(f"{path}: the approx accountant has no price for {type(leaf).__name__}.")
