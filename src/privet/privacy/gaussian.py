"""The delta of discrete Gaussian noise at a given epsilon, and the noise that a given delta needs."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from flint import arb

from privet.errors import NumberError, write
from privet.exact import Exact, Number, ball, enclose, nearest, nonnegative, positive, precision, whole
from privet.noise import DiscreteGaussian
from privet.privacy.divergences import hockey_stick
from privet.privacy.events import GaussianNoise
from privet.privacy.guarantees import conversion
from privet.privacy.moves import L2Move

DIGITS = 12
"""The number of digits of `smallest_sigma_squared`."""

_EXAMPLE = "gaussian_delta(L2Move(1), sigma_squared=50, coordinates=1, epsilon=0.5)"
_BITS = 30
_HUGE = 10**6  # of an epsilon, or of a rho
_PARTS, _FIRST, _ORDERS = 64, 64, 64 * 256  # orders from 1 + 2^-64 to 1 + 2^192
_MOST = Fraction(10) ** 280  # beyond, floats can't say where to search


def gaussian_delta(move: L2Move, sigma_squared: Number, coordinates: int, epsilon: Number) -> Exact:
    """The delta at which discrete Gaussian noise hides a move at this epsilon, rounded up.

    Claim: adding this noise to each of `coordinates` integers, which neighbours move by at most `move`, is
    (epsilon, delta)-differentially private. For one coordinate, delta is the hockey-stick divergence between the noise
    and its copy shifted by floor(sqrt(move^2)), the largest integer move. It grows with the shift, since the noise is
    log-concave. A vector that moves by at most 1 moves in one coordinate, so that is the same. Otherwise, for vectors,
    delta is the least e^((a-1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1) over many orders a > 1; rho is
    move^2/(2 sigma^2). It is rounded up to 30 bits.
    The formula for one coordinate would be wrong: on integers the noise is not symmetric under rotations.

    Example:
        >>> float(gaussian_delta(L2Move(1), sigma_squared=2.4, coordinates=1, epsilon=3))
        1.29745...e-06
        >>> float(gaussian_delta(L2Move(4), sigma_squared=10, coordinates=4, epsilon=3))
        2.66...e-06

    Reference: Canonne, Kamath, Steinke (2020), the discrete Gaussian for differential privacy, theorem 7 and
    corollary 13.
    """
    squared = positive(sigma_squared, name="sigma_squared", example=_EXAMPLE)
    level = nonnegative(epsilon, name="epsilon", example=_EXAMPLE)
    count = whole(coordinates, name="coordinates", example=_EXAMPLE)
    if move.squared == 0:
        return Fraction(0)
    rho = move.squared / (2 * squared)
    if rho > _HUGE:
        return Fraction(1)
    if (count == 1 or move.squared == 1) and level <= _HUGE:
        return _scalar_delta(squared, math.isqrt(move.squared), level)
    return _vector_delta(rho, level)


def delta_of(event: GaussianNoise) -> Exact:
    """The delta of an event at the epsilon that it states, for accountants."""
    assert event.epsilon is not None
    return gaussian_delta(event.move, event.sigma_squared, event.coordinates, event.epsilon)


@lru_cache(maxsize=1024)
def _scalar_delta(sigma_squared: Exact, shift: int, epsilon: Exact) -> Exact:
    noise = DiscreteGaussian(sigma_squared)
    return _rounded(hockey_stick(noise, noise.at(shift), epsilon).upper)


@lru_cache(maxsize=1024)
def _vector_delta(rho: Exact, epsilon: Exact) -> Exact:
    """Over the orders of `_order`: log delta is convex in the order, so it falls and then rises."""

    def log_delta(place: int) -> arb:
        above = _order(place) - 1
        order = ball(1 + above)
        return ball(above * ((1 + above) * rho - epsilon)) + order * (ball(above) / order).log() - ball(above).log()

    low, high = 0, _ORDERS
    with precision(256):
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if log_delta(middle) <= log_delta(middle + 1) else (middle + 1, high)
    return _rounded(enclose(lambda: log_delta(low).exp()).upper)


def _order(place: int) -> Exact:
    """One of many orders above 1, each about 1.5 % further from 1 than the one before."""
    power, part = divmod(place, _PARTS)
    return 1 + Fraction(2) ** (power - _FIRST) * Fraction(_PARTS + part, _PARTS)


def _rounded(delta: Exact) -> Exact:
    """Rounded up to 30 bits, and at most 1: coarser than any enclosure, so that all machines find the same."""
    if delta >= 1:
        return Fraction(1)
    numerator, denominator = delta.as_integer_ratio()
    unit = Fraction(2) ** (numerator.bit_length() - denominator.bit_length() - _BITS)
    return min(math.ceil(delta / unit) * unit, Fraction(1))


def smallest_sigma_squared(move: L2Move, coordinates: int, *, epsilon: Number, delta: Number) -> Exact:
    """The smallest sigma^2 whose `gaussian_delta` is at most delta, to 12 digits, rounded up.

    Claim: gaussian_delta(move, smallest_sigma_squared(...), coordinates, epsilon) <= delta.

    Example:
        >>> float(smallest_sigma_squared(L2Move(1), 1, epsilon=1, delta=1e-6))
        17.899...

    Reference: Balle, Wang (2018), improving the Gaussian mechanism, for continuous noise.
    """
    level = nonnegative(epsilon, name="epsilon", example="epsilon=1")
    target = positive(delta, name="delta", example="delta=1e-6")
    if target >= 1:
        raise NumberError("delta must be less than 1", remedy=write("delta=1e-6"))
    if level > _HUGE:
        raise NumberError(f"epsilon must be at most {_HUGE:,}", remedy=write("epsilon=1"))
    count = whole(coordinates, name="coordinates", example="coordinates=1")
    if not 0 < move.squared < _MOST:
        raise NumberError("the move must be greater than 0, and less than 1e140", remedy=write("L2Move(1)"))
    return _smallest(move, count, level, target)


@lru_cache(maxsize=256)
def _smallest(move: L2Move, count: int, epsilon: Exact, delta: Exact) -> Exact:
    def enough(candidate: Exact) -> bool:
        return gaussian_delta(move, candidate, count, epsilon) <= delta

    start = _short(move.squared * Exact(_continuous(nearest(epsilon), conversion.log(delta))))
    low, high = start, start
    factor = Fraction(1001, 1000)
    while enough(low):
        low, high, factor = _short(low / factor), low, factor * factor
    while not enough(high):
        low, high, factor = high, _short(high * factor), factor * factor
    while high - low > high / 10**DIGITS:
        middle = _short((low + high) / 2)
        if not low < middle < high:
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _continuous(epsilon: float, log_delta: float) -> float:
    """(sigma/move)^2 of about the right size, from rho = e + d - sqrt((e + d)^2 - e^2) with d = ln(1/delta)."""
    room = epsilon - log_delta
    root = math.sqrt(room * room - epsilon * epsilon) if epsilon < 1e150 else 0.0
    rho = epsilon * epsilon / (room + root) if epsilon else math.exp(2 * log_delta)
    return min(max(1 / (4 * rho), 1e-20), 1e300)


def _short(number: Exact) -> Exact:
    """The number with 14 significant digits, rounded up, so that ledgers store few digits."""
    unit = Fraction(10) ** (len(str(number.numerator)) - len(str(number.denominator)) - 14)
    return math.ceil(number / unit) * unit
