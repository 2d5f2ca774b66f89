"""The guarantee of one release by itself, in the plainest terms that fit its events."""

from __future__ import annotations

from collections.abc import Iterable

from privet.errors import AccountingError
from privet.privacy.accounting.approx import ApproxAccountant
from privet.privacy.accounting.concentrated import ConcentratedAccountant
from privet.privacy.accounting.pure import PureAccountant
from privet.privacy.events import Composed, PrivacyEvent
from privet.privacy.guarantees import Guarantee


def guarantee_of(events: Iterable[PrivacyEvent]) -> Guarantee:
    """Pure if all events are, or else approximate, or else zero-concentrated.

    Example:
        >>> from privet.privacy.events import GaussianNoise, Stated
        >>> from privet.privacy.moves import L2Move
        >>> guarantee_of([Stated(epsilon=1, delta=0)]), guarantee_of([Stated(epsilon=1, delta=1e-6)])
        (PureDP(1), ApproxDP(1, 1e-6))
        >>> guarantee_of([GaussianNoise(move=L2Move(1), sigma_squared=50, coordinates=1, epsilon=None)])
        ZeroConcentratedDP(0.01)
    """
    event = Composed(events)
    for accountant in (PureAccountant(), ApproxAccountant()):
        try:
            return accountant.account(event)
        except AccountingError:
            continue
    return ConcentratedAccountant().account(event)
