"""The epsilon of a price that must be pure."""

from __future__ import annotations

from fractions import Fraction

from privet.privacy.guarantees import Guarantee, PureDP


def loss(price: Guarantee) -> Fraction:
    assert isinstance(price, PureDP), price
    return price.epsilon
