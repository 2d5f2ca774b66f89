"""The delta of discrete Gaussian noise at a given epsilon, and the noise that a given delta needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from privet.errors import NumberError, write
from privet.exact import Exact, Number, ball, enclose, nearest, nonnegative, positive, precision, six_digits_up, whole
from privet.exact.search import first
from privet.noise import DiscreteGaussian
from privet.privacy.divergences import hockey_stick
from privet.privacy.events import GaussianNoise, JointGaussian
from privet.privacy.guarantees import ZeroConcentratedDP, conversion
from privet.privacy.moves import L2Move
from privet.system.remembered import remembered

DIGITS = 12
"""The number of digits of `smallest_sigma_squared`."""

_EXAMPLE = "gaussian_delta(L2Move(1), sigma_squared=50, coordinates=1, epsilon=0.5)"
_BITS = 30
_HUGE = 10**6  # of an epsilon, or of a rho
_LEAST = Fraction(1, 10**12)  # the smallest epsilon above 0 that is tried
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
    if _in_one_coordinate(move, count) and level <= _HUGE:
        return _scalar_delta(squared, math.isqrt(move.squared), level)
    return _vector_delta(rho, level)


def delta_of(event: GaussianNoise | JointGaussian) -> Exact:
    """The delta of an event at the epsilon that it states, for accountants.

    Claim: noises of several scales together are a vector whose rho is the sum of theirs, and only that enters the delta
    of a vector.
    """
    if isinstance(event, JointGaussian):
        return Fraction(0) if not event.rho else _vector_delta(event.rho, event.epsilon)
    assert event.epsilon is not None
    return gaussian_delta(event.move, event.sigma_squared, event.coordinates, event.epsilon)


def largest_rho(*, epsilon: Number, delta: Number) -> Exact:
    """The largest rho, to 12 digits and rounded down, at which Gaussian noise on any vectors is (epsilon, delta)-DP.

    Example:
        >>> float(largest_rho(epsilon=1, delta=1e-6))
        0.0243...
    """
    return 2 / smallest_sigma_squared(L2Move(4), 2, epsilon=epsilon, delta=delta)


def stated(noises: Sequence[GaussianNoise], *, delta: Exact) -> GaussianNoise | JointGaussian:
    """Noises together, at the smallest epsilon where their delta is at most this, to three digits and rounded up.

    Example:
        >>> noise = GaussianNoise(move=L2Move(1), sigma_squared=50, coordinates=1, epsilon=None)
        >>> [float(stated(noises, delta=Exact(1, 10**9)).epsilon) for noises in ([noise], [noise, noise])]
        [0.76..., 1.16...]
    """
    rho = sum((noise.rho for noise in noises), Exact(0))
    if rho > _HUGE:
        raise NumberError(f"rho must be at most {_HUGE:,}", remedy=write("rho=0.01"))
    level = ZeroConcentratedDP.derived(rho).to_approx(delta=delta).epsilon if rho else Exact(0)
    if len(noises) == 1 and level and _in_one_coordinate(noises[0].move, noises[0].coordinates):  # it needs less
        parts = 2**12
        level *= Fraction(
            first(lambda part: delta_of(together(noises, epsilon=level * part / parts)) <= delta, 1, parts), parts
        )
    step = Fraction(1, 10**6)
    while True:
        level = six_digits_up(level) if level else level
        event = together(noises, epsilon=level)
        if delta_of(event) <= delta:
            return event
        level, step = max(level * (1 + step), _LEAST), 2 * step


def _in_one_coordinate(move: L2Move, coordinates: int) -> bool:
    """Whether neighbours differ in one coordinate at most, where the delta is exact."""
    return coordinates == 1 or move.squared == 1


def together(noises: Sequence[GaussianNoise], *, epsilon: Exact) -> GaussianNoise | JointGaussian:
    """Noises that state one epsilon together."""
    if len(noises) == 1:
        (noise,) = noises
        return GaussianNoise(
            move=noise.move, sigma_squared=noise.sigma_squared, coordinates=noise.coordinates, epsilon=epsilon
        )
    return JointGaussian(noises=noises, epsilon=epsilon)


@remembered(1024)
def _scalar_delta(sigma_squared: Exact, shift: int, epsilon: Exact) -> Exact:
    noise = DiscreteGaussian(sigma_squared)
    return _rounded(hockey_stick(noise, noise.at(shift), epsilon).upper)


@remembered(1024)
def _vector_delta(rho: Exact, epsilon: Exact) -> Exact:
    """Over the orders of `_above`: log delta is convex in the order, so it falls and then rises."""
    if rho > _HUGE:
        return Fraction(1)

    def log_delta(place: int) -> arb:
        above = _above(place)
        order = 1 + above
        return above * (order * ball(rho) - ball(epsilon)) + order * (above / order).log() - above.log()

    def rises(place: int) -> bool:
        return bool(log_delta(place) <= log_delta(place + 1))

    with precision(256):
        best = first(rises, 0, _ORDERS, guess=_about(nearest(rho), nearest(epsilon)))
    return _rounded(enclose(lambda: log_delta(best).exp()).upper)


def _about(rho: float, epsilon: float) -> int:
    """About the best order: where the derivative of log delta is 0."""

    def rises(place: int) -> bool:
        power, part = divmod(place, _PARTS)
        above = math.ldexp(_PARTS + part + 0.5, power - _FIRST) / _PARTS
        return (1 + 2 * above) * rho - epsilon + math.log(above) - math.log1p(above) >= 0

    return first(rises, 0, _ORDERS)


def _above(place: int) -> arb:
    """One of many orders, less 1, exactly: each is about 1.5 % further from 1 than the one before."""
    power, part = divmod(place, _PARTS)
    return arb(_PARTS + part) * arb(2) ** (power - _FIRST) / _PARTS


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


@remembered(256)
def _smallest(move: L2Move, count: int, epsilon: Exact, delta: Exact) -> Exact:
    def enough(candidate: Exact) -> bool:
        return gaussian_delta(move, candidate, count, epsilon) <= delta

    start = _short(move.squared * Exact(_continuous(nearest(epsilon), conversion.log(delta))))
    low, high = start, start
    factor = Fraction(1001, 1000)
    while enough(low):
        low, high, factor = _short(low / factor), low, _short(factor * factor)
    while not enough(high):
        low, high, factor = high, _short(high * factor), _short(factor * factor)
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
    return min(max(1 / (4 * max(rho, 1e-300)), 1e-20), 1e300)


def _short(number: Exact) -> Exact:
    """The number with 14 significant digits, rounded up, so that ledgers store few digits."""
    unit = Fraction(10) ** (len(str(number.numerator)) - len(str(number.denominator)) - 14)
    return math.ceil(number / unit) * unit
