"""The guarantee of one release by itself, in the plainest terms that fit its events."""

from __future__ import annotations

from collections.abc import Iterable

from privet.errors import AccountingError
from privet.privacy.accounting.approx import ApproxAccountant
from privet.privacy.accounting.concentrated import ConcentratedAccountant
from privet.privacy.accounting.pure import PureAccountant
from privet.privacy.events import Composed, GaussianNoise, PrivacyEvent, Repeated, leaves
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP

_BASIC: dict[type[Guarantee], PureAccountant | ApproxAccountant | ConcentratedAccountant] = {
    PureDP: PureAccountant(),
    ApproxDP: ApproxAccountant(),
    ZeroConcentratedDP: ConcentratedAccountant(),
}
"""For each kind of guarantee, the accountant whose prices are guarantees of this kind; the plainest first."""


def guarantee_as(kind: type[Guarantee], event: PrivacyEvent) -> Guarantee:
    """The guarantee of an event, of this kind; an `AccountingError` if it has none.

    Example:
        >>> from privet.privacy.events import Stated
        >>> guarantee_as(ZeroConcentratedDP, Stated(epsilon=1, delta=0))
        ZeroConcentratedDP(0.5)
    """
    return _BASIC[kind].account(event)


def guarantee_of(events: Iterable[PrivacyEvent]) -> Guarantee:
    """Pure if all events are, or else approximate, or else zero-concentrated.

    Where some have a delta and Gaussian noise states no epsilon, the guarantee is approximate: the noise is converted
    at the delta of the rest, which is then counted twice (basic composition).

    Example:
        >>> from privet.privacy.events import Stated
        >>> from privet.privacy.moves import L2Move
        >>> noise = GaussianNoise(move=L2Move(1), sigma_squared=50, coordinates=1, epsilon=None)
        >>> guarantee_of([Stated(epsilon=1, delta=0)]), guarantee_of([Stated(epsilon=1, delta=1e-6)])
        (PureDP(1), ApproxDP(1, 1e-6))
        >>> guarantee_of([noise]), str(guarantee_of([noise, Stated(epsilon=1, delta=1e-6)]))
        (ZeroConcentratedDP(0.01), 'epsilon 1.6217, delta 2e-6')
    """
    event = Composed(events)
    for accountant in _BASIC.values():
        try:
            return accountant.account(event)
        except AccountingError:
            continue
    noise: list[PrivacyEvent] = []
    rest: list[PrivacyEvent] = []
    for _, leaf, times in leaves(event):
        if times:
            bare = type(leaf) is GaussianNoise and leaf.epsilon is None
            (noise if bare else rest).append(Repeated(leaf, times))
    stated = ApproxAccountant().account(Composed(rest))
    if not stated.delta:
        return ConcentratedAccountant().account(Composed([*noise, *rest]))
    return stated.compose(ConcentratedAccountant().account(Composed(noise)).to_approx(delta=stated.delta))
