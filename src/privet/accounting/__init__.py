"""From what happened to what is promised: accountants price a tree of events.

An accountant knows events, not mechanisms, so an old ledger can be replayed by a better accountant. It checks
the whole tree before it prices anything, and refuses kinds that it does not know.
"""

from typing import Protocol

from privet.accounting.approx import ApproxAccountant
from privet.accounting.pure import PureAccountant
from privet.events import PrivacyEvent
from privet.guarantees import Guarantee

__all__ = ["ACCOUNTANTS", "Accountant", "ApproxAccountant", "PureAccountant"]


class Accountant(Protocol):
    """What prices events.

    Claim: `account(event)` is a guarantee of everything in the tree together, even if each part was chosen
    after the answers of those before it. Repeated(e, n) costs what Composed([e] * n) costs; order does not
    matter; more never costs less; zero distance and post-processing cost nothing.

    Example:
        >>> from privet.events import Composed, Laplace
        >>> half = Laplace(sensitivity=1, scale=2)
        >>> for accountant in (PureAccountant(), ApproxAccountant()):
        ...     print(accountant.name, accountant.account(Composed([half, half])))
        pure epsilon 1
        approx epsilon 1, delta 0
    """

    @property
    def name(self) -> str: ...

    def account(self, event: PrivacyEvent, /) -> Guarantee: ...


ACCOUNTANTS: dict[str, Accountant] = {each.name: each for each in (PureAccountant(), ApproxAccountant())}
"""All accountants, by name."""
