"""What a certificate claims of keys that were found: the mechanism that chose them, and how many a person holds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privet.errors import VerificationError
from privet.mechanisms.thresholds import GaussianThreshold, LaplaceThreshold, OptimalSelection
from privet.privacy.events import Composed, PrivacyEvent

_MECHANISMS = {kind.__name__: kind for kind in (OptimalSelection, LaplaceThreshold, GaussianThreshold)}


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """The event of a choice of keys, by a mechanism that is built anew from the numbers of a certificate."""

    event: PrivacyEvent

    @classmethod
    def claimed(cls, tree: Any, *, held: int, adjacency: set[str]) -> FoundKeys:
        """What a certificate says; `held` is how many keys of a person the statement counts, at most."""
        kind = _MECHANISMS.get(tree["mechanism"])
        if kind is None:
            raise VerificationError(f"derived.discovery: there is no mechanism {str(tree['mechanism'])[:40]!r}")
        if type(tree["max_keys"]) is not int or tree["max_keys"] < held:
            raise VerificationError(f"derived.discovery.max_keys: a person can hold {held} keys here")
        if {tree["adjacency"]} != adjacency:
            raise VerificationError("derived.discovery.adjacency: is not that of the tables")
        numbers = {name: Fraction(tree[name]) for name in ("epsilon", "delta")}
        return cls(kind(**numbers, max_keys=tree["max_keys"], adjacency=tree["adjacency"]).event())

    def composed(self, noise: PrivacyEvent) -> PrivacyEvent:
        """The event of the keys and of the noise in their groups."""
        return Composed([self.event, noise])


def groups(claimed: Any, found: int) -> int:
    """The number of groups that was paid for: how many were found is not known before."""
    if type(claimed) is not int or claimed < found:
        raise VerificationError("measurements.groups: fewer groups were paid for than were found")
    return claimed
