"""What the rest of the system knows of a mechanism: two small contracts.

A noise mechanism hides how far one unit moves a vector of integers. A selection mechanism chooses a candidate by scores
that one unit moves. `tests/mechanisms/` has a contract suite for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from privet.accuracy import NoiseSums
from privet.exact import Enclosure, Exact
from privet.exact.lattice import Integers
from privet.privacy.events import PrivacyEvent
from privet.privacy.moves import Move, Norm


class NoiseMechanism(NoiseSums, Protocol):
    """Independent noise on each coordinate of a vector of integers; with it, what is known of sums of this noise.

    Claim: adding draws of this scale to a vector that neighbours move by at most `move` is what `event(move, scale)`
    describes to accountants. The noise is symmetric around 0, log-concave, and drawn exactly.
    """

    @property
    def name(self) -> str:
        """The name and version, as certificates write it: laplace/1."""

    @property
    def label(self) -> str:
        """What people call its noise."""

    @property
    def norm(self) -> Norm:
        """The norm in which it needs to know a move."""

    def scale(self, move: Move, *, epsilon: Exact) -> Exact:
        """The scale of the noise that hides this move at this price; never less than exact."""

    def epsilon(self, move: Move, *, scale: Exact) -> Exact:
        """The price of hiding this move with noise of this scale: the inverse of `scale`."""

    def event(self, move: Move, *, scale: Exact) -> PrivacyEvent:
        """What adding this noise does, as accountants see it."""

    def draw(self, move: Move, *, scale: Exact, count: int) -> tuple[Integers, PrivacyEvent]:
        """So many independent draws, and the event of the noise that was drawn."""

    def serves(self, stored: PrivacyEvent, asked: PrivacyEvent) -> bool:
        """Whether a draw of the first event may stand for one of the second: the same move, with no more noise."""


class SelectionMechanism(Protocol):
    """The choice of one of some public candidates, by integer scores of which each unit moves each by at most `move`.

    Claim: candidate i comes out with probability `weights(scores, scale)[i]`, exactly; a higher score is never less
    likely. What that reveals is described by `event(move, scale)`.
    """

    @property
    def name(self) -> str:
        """The name and version, as certificates write it."""

    def scale(self, move: int, *, epsilon: Exact) -> Exact:
        """The scale at which a choice costs epsilon."""

    def event(self, move: int, *, scale: Exact) -> PrivacyEvent:
        """What choosing does, as accountants see it."""

    def weights(self, scores: Sequence[int], *, scale: Exact) -> Sequence[Enclosure]:
        """The probability of each candidate, enclosed."""

    def select(self, scores: Sequence[int], *, scale: Exact) -> int:
        """The index of the candidate that is chosen."""
