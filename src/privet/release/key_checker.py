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
    """A choice of keys, by a mechanism that is built anew from the numbers of a certificate."""

    mechanism: OptimalSelection | LaplaceThreshold | GaussianThreshold

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
        return cls(kind(**numbers, max_keys=tree["max_keys"], adjacency=tree["adjacency"]))

    def composed(self, noise: PrivacyEvent) -> PrivacyEvent:
        """The event of the keys and of the noise in their groups; one noise, if counts decide which keys appear."""
        keys = self.mechanism.event()
        return Composed([keys] if isinstance(self.mechanism, LaplaceThreshold) else [keys, noise])

    def check_counts(self, measurements: Any, noisy: Any) -> None:
        """If counts decide which keys appear: they are counts with that noise, and reach the threshold."""
        if not isinstance(self.mechanism, LaplaceThreshold):
            return
        (measured,), (counts,) = measurements, noisy
        if [tally["kind"] for tally in measured["tallies"]] != ["rows"] or measured["matrix"] != [[1]]:
            raise VerificationError("derived.measurements: only counts decide which keys appear")
        if Fraction(measured["scale"]) != self.mechanism.noise.scale:
            raise VerificationError("derived.measurements.scale: is not that of the noise that chooses keys")
        if any(count < self.mechanism.threshold for (count,) in counts):
            raise VerificationError("noisy: a key appears whose count is below the threshold")


def groups(claimed: Any, found: int) -> int:
    """The number of groups that was paid for: how many were found is not known before."""
    if type(claimed) is not int or claimed < found:
        raise VerificationError("measurements.groups: fewer groups were paid for than were found")
    return claimed
