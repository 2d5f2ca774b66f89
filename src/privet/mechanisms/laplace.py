"""Laplace noise on integers for any L1 move, used by tables and by `Laplace` on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privet.accuracy.laplace import LaplaceSums
from privet.errors import InternalError
from privet.exact import Exact, show
from privet.exact.lattice import Integers
from privet.noise import DiscreteLaplace
from privet.privacy.events import Composed, LaplaceNoise, PrivacyEvent
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP
from privet.privacy.moves import L1Move, Move, Norm


@dataclass(frozen=True, slots=True)
class LaplaceMechanism(LaplaceSums):
    """Discrete Laplace noise of scale (total L1 move) / epsilon.

    Claim: epsilon-differentially private, because one step changes the probability of the noise by at most e^(1/scale).

    Example:
        >>> LAPLACE.scale(L1Move(3, blocks=2), epsilon=Exact(1, 2)), LAPLACE.epsilon(L1Move(6), scale=Exact(12))
        (Fraction(12, 1), Fraction(1, 2))

    Reference: Dwork, McSherry, Nissim, Smith (2006); Ghosh, Roughgarden, Sundararajan (2009) for the discrete noise.
    """

    name: ClassVar[str] = "laplace/1"
    label: ClassVar[str] = "Discrete Laplace noise"
    norm: ClassVar[Norm] = "L1"
    prices: ClassVar[tuple[type[Guarantee], ...]] = (PureDP,)

    def scale(self, move: Move, *, epsilon: Exact) -> Exact:
        return _in_l1(move).total / epsilon

    def epsilon(self, move: Move, *, scale: Exact) -> Exact:
        return _in_l1(move).total / scale

    def additive(self, price: Guarantee) -> PureDP:
        return PureDP.derived(price.epsilon) if isinstance(price, ApproxDP) else _pure(price)

    def calibrate(self, move: Move, price: Guarantee, *, coordinates: int) -> Exact:
        return self.scale(move, epsilon=_pure(price).epsilon)

    def cost(self, move: Move, *, scale: Exact, coordinates: int, like: Guarantee) -> PureDP:
        _pure(like)
        return PureDP.derived(self.epsilon(move, scale=scale))

    def event(self, move: Move, *, scale: Exact, coordinates: int = 1, price: Guarantee | None = None) -> LaplaceNoise:
        return LaplaceNoise(move=_in_l1(move), scale=scale)

    def together(self, noises: Sequence[PrivacyEvent], *, epsilon: Exact | None) -> Composed:
        return Composed(noises)

    def stated(self, noises: Sequence[PrivacyEvent], *, delta: Exact) -> None:
        return None

    def distribution(self, scale: Exact) -> DiscreteLaplace:
        """The noise of one coordinate."""
        return DiscreteLaplace(scale)

    def draw(
        self, move: Move, *, scale: Exact, count: int, price: Guarantee | None = None
    ) -> tuple[Integers, LaplaceNoise]:
        noise = self.distribution(scale)
        return noise.sample(count), self.event(move, scale=noise.scale)

    def serves(self, stored: PrivacyEvent, asked: PrivacyEvent) -> bool:
        return (
            isinstance(stored, LaplaceNoise)
            and isinstance(asked, LaplaceNoise)
            and stored.move == asked.move
            and stored.scale <= asked.scale
        )

    def show(self, *, scale: Exact) -> str:
        return f"scale {show(scale)}"


def _pure(price: Guarantee) -> PureDP:
    if isinstance(price, PureDP):
        return price
    raise InternalError("the price of Laplace noise is an epsilon. This is a bug in Privet")


def _in_l1(move: Move) -> L1Move:
    if isinstance(move, L1Move):
        return move
    raise InternalError("Laplace noise can't hide a move in L2. This is a bug in Privet")


LAPLACE = LaplaceMechanism()
"""The only instance, because it has no parameters."""
