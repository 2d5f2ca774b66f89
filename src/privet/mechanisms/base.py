"""The two contracts of mechanisms: all that the rest of the system knows about them.

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
    """Independent noise on each coordinate of a vector of integers, and the error of sums of this noise.

    Claim: adding draws of this scale to a vector that neighbours move by at most `move` is what `event(move, scale)`
    describes to accountants. The noise is symmetric around 0, log-concave, and drawn exactly.
    """

    @property
    def name(self) -> str:
        """The name and version, as certificates write it: laplace/1."""

    @property
    def label(self) -> str:
        """The name of its noise, for people."""

    @property
    def norm(self) -> Norm:
        """The norm in which it measures moves."""

    def scale(self, move: Move, *, epsilon: Exact) -> Exact:
        """The scale of the noise that hides this move at this price; never less than exact."""

    def epsilon(self, move: Move, *, scale: Exact) -> Exact:
        """The price of hiding this move with noise of this scale: the inverse of `scale`."""

    def event(self, move: Move, *, scale: Exact) -> PrivacyEvent:
        """The event of adding this noise, for accountants."""

    def draw(self, move: Move, *, scale: Exact, count: int) -> tuple[Integers, PrivacyEvent]:
        """`count` independent draws, and their event."""

    def serves(self, stored: PrivacyEvent, asked: PrivacyEvent) -> bool:
        """Whether a draw of the first event can replace one of the second: the same move, with no more noise."""


class SelectionMechanism(Protocol):
    """The choice of one of several public candidates by integer scores, each of which one unit moves by at most `move`.

    Claim: candidate i is chosen with probability `weights(scores, scale)[i]`, exactly; a higher score is never less
    likely. `event(move, scale)` describes the choice to accountants.
    """

    @property
    def name(self) -> str:
        """The name and version, as certificates write it."""

    def scale(self, move: int, *, epsilon: Exact) -> Exact:
        """The scale at which a choice costs epsilon."""

    def event(self, move: int, *, scale: Exact) -> PrivacyEvent:
        """The event of a choice, for accountants."""

    def weights(self, scores: Sequence[int] | Integers, *, scale: Exact) -> Sequence[Enclosure]:
        """The probability of each candidate, enclosed."""

    def select(self, scores: Sequence[int] | Integers, *, scale: Exact) -> int:
        """The index of the chosen candidate."""
