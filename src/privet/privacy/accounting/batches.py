"""The accountant of batches that are fixed in advance, by their privacy loss distribution: for replay only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from privet.codec import canonical
from privet.errors import AccountingError, UserError
from privet.exact import Exact
from privet.privacy import pld
from privet.privacy.accounting.base import Accountant
from privet.privacy.accounting.pure import PureAccountant
from privet.privacy.events import (
    BoundedRange,
    Composed,
    FixedBatch,
    Free,
    GaussianNoise,
    JointGaussian,
    LaplaceNoise,
    PrivacyEvent,
    Repeated,
    Stated,
    from_tree,
    leaves,
    opened,
    to_tree,
)
from privet.privacy.guarantees import ApproxDP

Leaves = tuple[tuple[PrivacyEvent, int], ...]
"""Leaves and how often they happened, in the order of their texts."""

_NO_FILTER = (
    "the pld accountant can't keep a budget: filters that compose privacy loss distributions are not valid for "
    "adaptive questions (arXiv 2602.06756)"
)


@dataclass(frozen=True)
class BatchAccountant(Accountant[Leaves]):
    """Everything as if it had been one batch that was fixed in advance. This says nothing about adaptive questions.

    Claim: `spent` is an (epsilon, delta) of all leaves together, if none was chosen after seeing the answer of another
    (`privet.privacy.pld`). As a filter for adaptive questions it would be wrong: natural filters for privacy loss
    distributions are not valid (arXiv 2602.06756). So `adaptive` is False, and no budget can be kept by it.

    Example:
        >>> from privet.privacy.events import Stated
        >>> batches = BatchAccountant()
        >>> one = Stated(epsilon=0.1, delta=0)
        >>> batches.price(Repeated(one, 2)) == batches.price(Composed([one, one])) == ((one, 2),)
        True

    Reference: Koskela, Jalko, Honkela, "Computing tight differential privacy guarantees using FFT", AISTATS 2020.
    """

    name: ClassVar[str] = "pld"
    promises: ClassVar[type] = ApproxDP
    adaptive: ClassVar[bool] = False
    zero: ClassVar[Leaves] = ()  # type: ignore[misc]

    def price(self, event: PrivacyEvent, /) -> Leaves:
        """The leaves themselves; batches are opened."""
        for path, leaf, _ in leaves(event):  # before anything is opened: it may be too deep, or unknown
            self._is_nothing(path, leaf)
        parts = [(leaf, times) for path, leaf, times in leaves(opened(event)) if not self._is_nothing(path, leaf)]
        return _sorted(parts)

    def _is_nothing(self, path: str, leaf: PrivacyEvent) -> bool:
        if type(leaf) is LaplaceNoise or type(leaf) is GaussianNoise:
            return leaf.move.total == 0
        if type(leaf) is JointGaussian:
            return leaf.rho == 0
        if type(leaf) is BoundedRange or type(leaf) is Stated:
            return leaf.epsilon == 0 and (type(leaf) is BoundedRange or leaf == Stated(epsilon=0, delta=0))
        if type(leaf) is Free:
            return True
        raise self.unknown(path, leaf)

    def add(self, total: Leaves, price: Leaves, /) -> Leaves:
        """All leaves of both."""
        return _sorted([*total, *price])

    def at_most(self, one: Leaves, other: Leaves, /) -> bool:
        """Whether the other has every leaf, at least as often."""
        return Counter(dict(one)) <= Counter(dict(other))

    def spent(self, total: Leaves, budget: ApproxDP, /) -> ApproxDP:
        """The epsilon at the budget's delta."""
        epsilon = pld.batch_epsilon(_whole(total), budget.delta)
        if epsilon is None:
            raise AccountingError(f"as a batch it has no epsilon at delta {float(budget.delta):g}")
        return ApproxDP.capped(epsilon, budget.delta)

    def fits(self, total: Leaves, budget: ApproxDP, /) -> bool:
        """Refused, as is everything else that a filter needs."""
        raise AccountingError(_NO_FILTER)

    def left(self, total: Leaves, budget: ApproxDP, /) -> ApproxDP:
        """Refused."""
        raise AccountingError(_NO_FILTER)

    def share(self, total: Leaves, budget: ApproxDP, /) -> Exact:
        """Refused."""
        raise AccountingError(_NO_FILTER)

    def to_json(self, total: Leaves, /) -> dict[str, Any]:
        """Pairs of a leaf and its count."""
        return {"leaves": [[to_tree(leaf), times] for leaf, times in total]}

    def from_json(self, tree: Any, /) -> Leaves:
        """The inverse."""
        pairs = tree["leaves"] if isinstance(tree, dict) and tree.keys() == {"leaves"} else None
        if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ValueError("leaves must be pairs of an event and a count")
        if not all(type(times) is int and times > 0 for _, times in pairs):
            raise ValueError("a count must be a whole number, 1 or greater")
        try:
            total = tuple((from_tree(leaf), times) for leaf, times in pairs)
        except UserError as error:
            raise ValueError(str(error)) from None
        if total != self.price(_whole(total)):
            raise ValueError("leaves must be in the order of their texts, each once")
        return total


def fixed_batch(events: Iterable[PrivacyEvent], delta: Exact) -> FixedBatch | Composed:
    """Events that are fixed before the first of them happens, as one event; the plain sum if it is hardly larger.

    Only where a batch saves more than a hundredth of epsilon is a delta spent on it.

    Example:
        >>> half = Stated(epsilon=0.5, delta=0)
        >>> fixed_batch([half] * 2, Exact(1, 10**6)) == Composed([half] * 2)
        True
        >>> float(fixed_batch([Stated(epsilon=0.1, delta=0)] * 50, Exact(1, 10**6)).epsilon)
        3.17...
    """
    whole = Composed(events)
    epsilon = pld.batch_epsilon(whole, delta)
    try:
        plain = PureAccountant().account(whole).epsilon
    except AccountingError:
        plain = None
    if epsilon is None or (plain is not None and 99 * plain <= 100 * epsilon):
        return whole
    return FixedBatch(events=whole.events, epsilon=epsilon, delta=delta, method=pld.METHOD)


def _sorted(parts: Iterable[tuple[PrivacyEvent, int]]) -> Leaves:
    counts: Counter[PrivacyEvent] = Counter()
    for leaf, times in parts:
        counts[leaf] += times
    return tuple(sorted(((leaf, n) for leaf, n in counts.items() if n), key=lambda pair: canonical(to_tree(pair[0]))))


def _whole(total: Leaves) -> PrivacyEvent:
    return Composed([Repeated(leaf, times) for leaf, times in total])
