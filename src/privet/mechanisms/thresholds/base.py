"""What the mechanisms for private keys have in common."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privet.errors import DataError, write
from privet.exact import Enclosure, Exact, Number, positive, probability, whole
from privet.exact.lattice import Integers
from privet.exact.search import first
from privet.mechanisms.scores import integers_of
from privet.mechanisms.values import read
from privet.privacy.accounting import guarantee_of
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import PrivacyEvent, Stated
from privet.privacy.guarantees import Guarantee

EXAMPLE = "epsilon=1, delta=1e-6, max_keys=1, adjacency='add/remove'"
NEVER = Enclosure(Fraction(0), Fraction(0))


@dataclass(frozen=True, slots=True, init=False)
class KeySelection:
    """What decides which keys appear: delta in total, keys per person, and what neighbours are."""

    delta: Exact
    max_keys: int
    adjacency: Adjacency

    def __init__(self, *, delta: Number, max_keys: int, adjacency: Adjacency | str) -> None:
        object.__setattr__(self, "delta", probability(delta, name="delta", example=EXAMPLE))
        object.__setattr__(self, "max_keys", whole(max_keys, name="max_keys", example=EXAMPLE))
        object.__setattr__(self, "adjacency", Adjacency(adjacency))

    @property
    def changed(self) -> int:
        """How many keys differ between neighbours, at most: twice as many if a person is replaced."""
        return self.max_keys * (2 if self.adjacency is Adjacency.REPLACE else 1)

    def event(self) -> PrivacyEvent:
        """The event of one answer, for accountants."""
        raise NotImplementedError

    def guarantee(self) -> Guarantee:
        """The guarantee of one answer."""
        return guarantee_of([self.event()])

    def weight(self, keys: int) -> int:
        """What a person who holds this many keys adds to each."""
        raise NotImplementedError

    def probability(self, people: int) -> Enclosure:
        """The probability that a key that this many people hold appears."""
        raise NotImplementedError

    def people_for(self, chance: Number, **keys: int) -> int:
        """The smallest number of people with which a key appears with at least this probability.

        Where people with few keys count more, `keys=1` is for people who hold no other key; the default is max_keys.
        """
        level = probability(chance, name="chance", example="people_for(0.5)")
        return first(lambda people: self.probability(people, **keys).lower >= level, 1)


@dataclass(frozen=True, slots=True, init=False)
class EpsilonSelection(KeySelection):
    """The same at an epsilon in total."""

    epsilon: Exact

    def __init__(self, *, epsilon: Number, delta: Number, max_keys: int, adjacency: Adjacency | str) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, name="epsilon", example=EXAMPLE))
        KeySelection.__init__(self, delta=delta, max_keys=max_keys, adjacency=adjacency)
        self.event()  # refuses what a ledger could not store, before any data are read

    def event(self) -> PrivacyEvent:
        """The event of one answer, for accountants."""
        return Stated(epsilon=self.epsilon, delta=self.delta)


def counts_of(counts: Any, *, name: str) -> tuple[Integers, Integers]:
    """The positions of the keys that somebody holds, and their counts; only their type can be wrong."""
    try:
        content = read(counts)
    except DataError:
        content = None
    if content is None or content.array.ndim != 1 or content.real:
        raise DataError(f"{name} must be a list of integers, one for each key", remedy=write("[12, 40]"))
    numbers = integers_of(content.array)
    held = np.flatnonzero(numbers > 0)
    return held, numbers[held]
