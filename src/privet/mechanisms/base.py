"""The contracts of mechanisms: all that the rest of the system knows about them.

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
from privet.privacy.guarantees import Guarantee, PureDP, ZeroConcentratedDP
from privet.privacy.moves import Move, Norm


class NoiseMechanism(NoiseSums, Protocol):
    """Independent noise on each coordinate of a vector of integers, and the error of sums of this noise.

    Claim: adding draws of this scale to a vector that neighbours move by at most `move` is what `event(move, scale)`
    describes to accountants. The noise is symmetric around 0, log-concave, and drawn exactly.

    A price is a guarantee: PureDP for Laplace noise, ZeroConcentratedDP or ApproxDP for Gaussian noise. What the scale
    is, each mechanism says: for Gaussian noise it is sigma^2.
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

    @property
    def prices(self) -> tuple[type[Guarantee], ...]:
        """The kinds of guarantee that it can be calibrated for; prices of the first kind add up over measurements."""

    def additive(self, price: Guarantee) -> PureDP | ZeroConcentratedDP:
        """A price of the first kind, to be divided between measurements that together have the guarantee `price`.

        Claim: noise at prices that add up to it, stated `together` at the epsilon of `price`, costs no more than it.
        """

    def calibrate(self, move: Move, price: Guarantee, *, coordinates: int) -> Exact:
        """The scale of the noise that hides this move of a vector at this price; never less than exact."""

    def cost(self, move: Move, *, scale: Exact, coordinates: int, like: Guarantee) -> Guarantee:
        """The price, of the kind of `like`, of this scale: the inverse of `calibrate`. Of (epsilon, delta), delta."""

    def event(self, move: Move, *, scale: Exact, coordinates: int, price: Guarantee | None = None) -> PrivacyEvent:
        """The event of adding this noise, for accountants; the price may name the epsilon at which it is stated."""

    def together(self, noises: Sequence[PrivacyEvent], *, epsilon: Exact | None) -> PrivacyEvent:
        """The event of several noises at once; they may be stated at one epsilon."""

    def stated(self, noises: Sequence[PrivacyEvent], *, delta: Exact) -> Exact | None:
        """An epsilon at which these noises together have at most this delta; None if they need no delta."""

    def draw(
        self, move: Move, *, scale: Exact, count: int, price: Guarantee | None = None
    ) -> tuple[Integers, PrivacyEvent]:
        """`count` independent draws, one for each coordinate, and their event."""

    def serves(self, stored: PrivacyEvent, asked: PrivacyEvent) -> bool:
        """Whether a draw of the first event can replace one of the second: the same move, with no more noise."""

    def show(self, *, scale: Exact) -> str:
        """The scale, for people: scale 12."""


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
