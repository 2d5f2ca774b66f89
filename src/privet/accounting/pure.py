"""The accountant of pure differential privacy."""

from dataclasses import dataclass
from typing import ClassVar

from privet.errors import AccountingError
from privet.events import Free, Laplace, PrivacyEvent, Stated, leaves
from privet.exact import Exact, shorter_up
from privet.guarantees import PureDP


@dataclass(frozen=True, slots=True)
class PureAccountant:
    """Prices in epsilon alone, exactly.

    Claim: epsilon is the sum over the leaves: sensitivity / scale for Laplace noise, what is stated if its
    delta is 0, nothing for what is free. Anything else is refused, before anything is priced. (A price with a
    denominator of over 256 bits is rounded up, by less than 2^-320, so that odd parameters can't make sums slow.)

    Example:
        >>> from privet.events import Composed, Repeated
        >>> PureAccountant().account(Repeated(Laplace(sensitivity=1, scale=10), 10))
        PureDP(1)
        >>> PureAccountant().account(Composed([Free(), Stated(epsilon=1, delta=1e-6)]))
        Traceback (most recent call last):
        privet.errors.AccountingError: events[1]: Stated with delta > 0 has no pure price.
        Write, for example: ApproxAccountant().account(event)

    Reference: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009 for the discrete noise.
    """

    name: ClassVar[str] = "pure"

    def account(self, event: PrivacyEvent, /) -> PureDP:
        """The price of the whole tree; PureDP.ZERO if nothing was revealed."""
        epsilon = sum([times * shorter_up(_epsilon(leaf, path)) for path, leaf, times in leaves(event)], Exact(0))
        return PureDP(epsilon) if epsilon else PureDP.ZERO


def _epsilon(leaf: PrivacyEvent, path: str) -> Exact:
    if type(leaf) is Laplace:
        return leaf.sensitivity / leaf.scale
    if type(leaf) is Stated and leaf.delta == 0:
        return leaf.epsilon
    if type(leaf) is Stated:
        raise AccountingError(
            f"{path}: Stated with delta > 0 has no pure price. Write, for example: ApproxAccountant().account(event)"
        )
    if type(leaf) is Free:
        return Exact(0)
    raise AccountingError(f"{path}: the pure accountant has no price for {type(leaf).__name__}.")
