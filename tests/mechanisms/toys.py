"""Toy mechanisms, each written as a newcomer would write one: a class that keeps to the contract, and a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from flint import arb

from privet.accuracy.laplace import LaplaceSums
from privet.exact import Enclosure, Exact, ball, enclose
from privet.exact.lattice import Integers
from privet.noise import BernoulliExp, DiscreteLaplace, UniformInteger
from privet.privacy.events import Composed, LaplaceNoise, PrivacyEvent, Stated
from privet.privacy.guarantees import Guarantee, PureDP
from privet.privacy.moves import L1Move, L2Move, Move, Norm


@dataclass(frozen=True)
class Twice(LaplaceSums):
    """Laplace noise of twice the scale that is needed; accountants are told no more than its epsilon."""

    name: ClassVar[str] = "twice/1"
    label: ClassVar[str] = "Twice the noise"
    norm: ClassVar[Norm] = "L1"
    prices: ClassVar[tuple[type[Guarantee], ...]] = (PureDP,)

    def scale(self, move: Move, *, epsilon: Exact) -> Exact:
        return 2 * move.total / epsilon

    def epsilon(self, move: Move, *, scale: Exact) -> Exact:
        return 2 * move.total / scale

    def additive(self, price: Guarantee) -> PureDP:
        assert isinstance(price, PureDP)
        return price

    def together(self, noises: Sequence[PrivacyEvent], *, epsilon: Exact | None) -> Composed:
        return Composed(noises)

    def stated(self, noises: Sequence[PrivacyEvent], *, delta: Exact) -> None:
        return None

    def show(self, *, scale: Exact) -> str:
        return f"scale {scale}"

    def calibrate(self, move: Move, price: Guarantee, *, coordinates: int) -> Exact:
        assert isinstance(price, PureDP)
        return self.scale(move, epsilon=price.epsilon)

    def cost(self, move: Move, *, scale: Exact, coordinates: int, like: Guarantee) -> PureDP:
        return PureDP(self.epsilon(move, scale=scale))

    def event(self, move: Move, *, scale: Exact, coordinates: int, price: Guarantee | None = None) -> Stated:
        return Stated(epsilon=self.epsilon(move, scale=scale), delta=0)

    def draw(self, move: Move, *, scale: Exact, count: int, price: Guarantee | None = None) -> tuple[Integers, Stated]:
        return DiscreteLaplace(scale).sample(count), self.event(move, scale=scale, coordinates=count)

    def serves(self, stored: PrivacyEvent, asked: PrivacyEvent) -> bool:
        if not isinstance(stored, Stated) or not isinstance(asked, Stated):
            return False
        return stored.delta == asked.delta == 0 and stored.epsilon >= asked.epsilon


@dataclass(frozen=True)
class Squares(LaplaceSums):
    """Laplace noise for a move that is known in L2: the L1 norm of integers is at most the square of their L2 norm."""

    name: ClassVar[str] = "squares/1"
    label: ClassVar[str] = "Noise for squares"
    norm: ClassVar[Norm] = "L2"
    prices: ClassVar[tuple[type[Guarantee], ...]] = (PureDP,)

    def scale(self, move: Move, *, epsilon: Exact) -> Exact:
        assert isinstance(move, L2Move)
        return move.squared / epsilon

    def epsilon(self, move: Move, *, scale: Exact) -> Exact:
        return move.total / scale

    def additive(self, price: Guarantee) -> PureDP:
        assert isinstance(price, PureDP)
        return price

    def together(self, noises: Sequence[PrivacyEvent], *, epsilon: Exact | None) -> Composed:
        return Composed(noises)

    def stated(self, noises: Sequence[PrivacyEvent], *, delta: Exact) -> None:
        return None

    def show(self, *, scale: Exact) -> str:
        return f"scale {scale}"

    def calibrate(self, move: Move, price: Guarantee, *, coordinates: int) -> Exact:
        assert isinstance(price, PureDP)
        return self.scale(move, epsilon=price.epsilon)

    def cost(self, move: Move, *, scale: Exact, coordinates: int, like: Guarantee) -> PureDP:
        return PureDP(self.epsilon(move, scale=scale))

    def event(self, move: Move, *, scale: Exact, coordinates: int, price: Guarantee | None = None) -> LaplaceNoise:
        assert isinstance(move, L2Move)
        return LaplaceNoise(move=L1Move(move.squared), scale=scale)

    def draw(
        self, move: Move, *, scale: Exact, count: int, price: Guarantee | None = None
    ) -> tuple[Integers, LaplaceNoise]:
        return DiscreteLaplace(scale).sample(count), self.event(move, scale=scale, coordinates=count)

    def serves(self, stored: PrivacyEvent, asked: PrivacyEvent) -> bool:
        return False  # as the mechanism for L1 says, whose events these are


class Exponential:
    """The exponential mechanism: weights e^(score / scale), drawn by rejection."""

    name: ClassVar[str] = "exponential/1"

    def scale(self, move: int, *, epsilon: Exact) -> Exact:
        return 2 * move / epsilon

    def event(self, move: int, *, scale: Exact) -> Stated:
        return Stated(epsilon=2 * move / scale, delta=0)

    def weights(self, scores: Sequence[int], *, scale: Exact) -> list[Enclosure]:
        best = max(scores)

        def share(score: int) -> arb:
            parts = [(-ball((best - other) / scale)).exp() for other in scores]
            return (-ball((best - score) / scale)).exp() / sum(parts, arb(0))

        return [enclose(lambda score=score: share(score)) for score in scores]  # type: ignore[misc]

    def select(self, scores: Sequence[int], *, scale: Exact) -> int:
        best = max(scores)
        while True:
            place = UniformInteger(0, len(scores) - 1).sample()
            if BernoulliExp((best - scores[place]) / scale).sample():
                return place
