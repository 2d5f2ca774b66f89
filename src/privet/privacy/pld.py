"""The privacy loss of a batch of events that was fixed in advance, through Google's dp-accounting (the extra `pld`).

Never for adaptive questions: filters that compose privacy loss distributions as questions come are not valid (arXiv
2602.06756). A batch is therefore planned as a whole, and enters a ledger as one (epsilon, delta) event.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np

from privet.errors import AccountingError, install
from privet.exact import Exact, ball, precision
from privet.exact.rounding import quotient_up
from privet.privacy import dominating
from privet.privacy.dominating import Curve
from privet.privacy.events import (
    BoundedRange,
    Composed,
    FixedBatch,
    Free,
    GaussianNoise,
    LaplaceNoise,
    PrivacyEvent,
    Stated,
    leaves,
    opened,
)
from privet.privacy.guarantees import ZeroConcentratedDP
from privet.system.remembered import remembered

METHOD = "pld/1"
"""The computation of this module; a change of its results is a new version."""

_POINTS = 2**16  # of the grid, about
_STEPS = 2**12  # of the grid up to the epsilon of one event, at most
_FINE = 64  # parts of a step, for the epsilon of all events together
_TAIL = 2.0**-50  # cut off at each composition, half of it at each end
_LARGEST = 64  # epsilon of one event
_KINDS = 1000  # the number of different events
_BITS = 128  # of deltas, before they become masses
_OFF = 32  # the most that a mass can be off, in units of 2^-_BITS, before it is divided by e^step - 1
_UNIT = 2.0**-53  # the relative error of one operation on floats
_PASS = 16  # of a transform, for each bit of its length, in units
_SLACK = 1 + 2.0**-20  # for products of errors, and for the sums of norms


def installed() -> bool:
    """Whether dp-accounting is there."""
    return _pmfs() is not None


def batch_delta(batch: FixedBatch) -> Exact:
    """The delta of a batch at its epsilon, computed anew, with its bound for rounding."""
    if batch.method != METHOD:
        raise AccountingError(f"this version computes batches by {METHOD}, not by {batch.method}")
    return _loss(Composed(batch.events), batch.delta).delta(batch.epsilon)


def batch_epsilon(event: PrivacyEvent, delta: Exact) -> Exact | None:
    """An epsilon at which all of it together is (epsilon, delta)-DP; None if there is none.

    Claim: it is found with a margin, so that `batch_delta` is at most delta on every machine.

    Example:
        >>> from privet.privacy.events import Repeated
        >>> from privet.privacy.moves import L1Move
        >>> round(float(batch_epsilon(Repeated(LaplaceNoise(move=L1Move(1), scale=100), 400), Exact(1, 10**6))), 3)
        0.831
    """
    return _loss(event, delta).epsilon(delta)


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """A privacy loss distribution on a grid that is never better than what it stands for, and how far it can be off.

    Claim: the true delta, at any epsilon of the grid, is at most `delta(epsilon)`.
    (1) A curve is replaced by its values on the grid, connected by lines in e^epsilon: the curve is convex, so none is
    below it (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, "Connect the dots", PETS 2022). They are the curve of masses
    on the grid, which are computed in Arb and rounded up to floats, so that the masses err upwards alone.
    (2) Composition convolves the masses. All weights of delta are within 0..1, so delta is off by at most the L1 norm
    of what the masses are off, `error`. A convolution of a and b carries |a| error_b + |b| error_a + error_a error_b
    over, in L1 norms or 1 if that is more, and adds what follows.
    (3) A transform of length L is off by at most f = 16 u log2(2 L) of its L2 norm, u = 2^-53 (Higham, "Accuracy and
    stability of numerical algorithms", theorem 24.2, 7 u for each pass of radix 2; in the same way 20 u for one of
    radix 5, the largest for lengths with no other factors than 2, 3 and 5, as scipy takes them). So the convolution is
    off by (2 f + 4 u) |a|_2 |b|_1 + f |a|_1 |b|_2 in L2, and by sqrt(its length) times that in L1.
    (4) The ends that are cut off become infinite loss, or the smallest loss that is left: never better. Their sums are
    off by their length times u; the cut masses are counted as an error too, so that two machines that cut at
    different places differ by less than their errors.
    (5) The last sum, of n terms, is off by (n + 16) u of the masses beyond epsilon.
    The functions of libm that numpy calls are taken to be correct to 8 u.
    """

    pmf: Any
    """A `DensePLDPmf` of dp-accounting."""
    step: Exact
    error: float

    @property
    def masses(self) -> Any:
        masses: Any = self.pmf._probs
        return masses

    def compose(self, other: PrivacyLoss) -> PrivacyLoss:
        """The loss of both together, independent of each other."""
        a, b = (_norms(each.masses) for each in (self, other))
        size = len(self.masses) + len(other.masses) - 1
        transform = _PASS * _UNIT * (math.log2(size) + 3)  # the length is rounded up, to less than four times as much
        off = (2 * transform + 4 * _UNIT) * a.two * b.one + transform * a.one * b.two
        added = math.sqrt(size) * off
        carried = max(a.one, 1) * other.error + max(b.one, 1) * self.error + self.error * other.error
        cut = _TAIL + size * _UNIT * (_TAIL + added) + 8 * _UNIT
        pmf = self.pmf.compose(other.pmf, tail_mass_truncation=_TAIL)
        return PrivacyLoss(pmf, self.step, (carried + added + cut) * _SLACK)

    def times(self, count: int) -> PrivacyLoss:
        """The loss of so many of it, by squaring."""
        if count == 1:
            return self
        half = self.times(count // 2)
        both = half.compose(half)
        return both.compose(self) if count % 2 else both

    def delta(self, epsilon: Exact) -> Exact:
        """Delta at an epsilon, or at a slightly smaller one, with all that it can be off."""
        return Exact(self._delta(math.floor(epsilon * _FINE / self.step)))

    def epsilon(self, delta: Exact) -> Exact | None:
        """The smallest epsilon for a delta, of some, with a margin within which another machine may differ."""
        low, high = -1, _FINE * max(int(self.pmf._lower_loss) + len(self.masses), 0)
        if Exact(self._delta(high, margin=4)) > delta:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if Exact(self._delta(middle, margin=4)) <= delta else (middle, high)
        return high * self.step / _FINE

    def _delta(self, place: int, margin: int = 1) -> float:
        """Delta at a place, in parts of a step, and so many times what it can be off."""
        epsilon = place * float(self.step / _FINE)  # exactly, and so is its difference from a loss: powers of 2
        beyond = np.abs(self.masses[max(0, place // _FINE - self.pmf._lower_loss) :])
        infinite = float(self.pmf._infinity_mass)
        off = (len(beyond) + 16) * _UNIT * (float(beyond.sum()) + infinite)
        return float(self.pmf.get_delta_for_epsilon(epsilon)) + margin * (self.error + off) * _SLACK


@dataclass(frozen=True, slots=True)
class _Norms:
    one: float
    two: float


def _norms(masses: Any) -> _Norms:
    return _Norms(float(np.abs(masses).sum()) * _SLACK, math.sqrt(float(np.square(masses).sum())) * _SLACK)


# --- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pair:
    """A dominating pair, ready to be put on a grid."""

    make: Callable[[], Curve]
    reach: Exact
    """An epsilon from which on delta is what goes to infinity."""
    wide: Exact
    """About the square of its loss."""


@remembered(64)  # a batch with a delta takes some seven
def _loss(event: PrivacyEvent, delta: Exact) -> PrivacyLoss:
    """The loss of everything in the tree, each fixed in advance."""
    if _pmfs() is None:
        raise AccountingError("the privacy loss of a batch needs dp-accounting", remedy=install("pld"))
    pairs = _pairs(event, delta)
    step = _step(pairs)
    parts = [_on_grid(pair, step).times(count) for pair, count in pairs.items()]
    together = parts[0] if parts else _on_grid(_response(Exact(0), Exact(0)), step)
    for part in parts[1:]:
        together = together.compose(part)
    return together


def _pairs(event: PrivacyEvent, delta: Exact) -> dict[_Pair, int]:
    """The dominating pairs of the leaves; what has none but its rho is one (epsilon, delta / 2) event together."""
    counts: Counter[tuple[Any, ...]] = Counter()
    rho = Exact(0)
    for path, leaf, times in leaves(opened(event)):
        if type(leaf) is LaplaceNoise:
            counts[dominating.laplace, leaf.scale, leaf.move.l1] += times * leaf.move.blocks
        elif type(leaf) is BoundedRange:
            counts[dominating.bounded_range, leaf.epsilon] += times
        elif type(leaf) is Stated:
            counts[dominating.randomized_response, leaf.epsilon, leaf.delta] += times
        elif type(leaf) is GaussianNoise:
            shift = math.isqrt(leaf.move.squared)
            alone = leaf.coordinates == 1 or leaf.move.squared == 1
            if shift and alone and dominating.gaussian_fits(leaf.sigma_squared, shift):
                counts[dominating.gaussian, leaf.sigma_squared, shift] += times
            else:
                rho += times * leaf.rho
        elif type(leaf) is not Free:
            raise AccountingError(f"{path}: there is no privacy loss for {type(leaf).__name__}")
    if rho:
        both = ZeroConcentratedDP.derived(rho).to_approx(delta=delta / 2)
        counts[dominating.randomized_response, both.epsilon, both.delta] += 1
    if len(counts) > _KINDS:
        raise AccountingError(f"the privacy loss of a batch is computed for up to {_KINDS:,} different events")
    return {_pair(*key): count for key, count in sorted(counts.items(), key=str) if count}


def _pair(make: Callable[..., Curve], *numbers: Any) -> _Pair:
    if make is dominating.gaussian:
        squared, shift = numbers
        return _Pair(partial(make, *numbers), dominating.gaussian_reach(squared, shift), Exact(shift * shift) / squared)
    reach = numbers[1] / numbers[0] if make is dominating.laplace else numbers[0]
    if reach > _LARGEST:
        raise AccountingError(f"the privacy loss of an event is computed for epsilon up to {_LARGEST}")
    return _Pair(partial(make, *numbers), reach, reach * reach)


def _response(epsilon: Exact, delta: Exact) -> _Pair:
    return _pair(dominating.randomized_response, epsilon, delta)


def _step(pairs: dict[_Pair, int]) -> Exact:
    """A power of 2, so that the losses that matter are on some 2^16 points: within the sum of the reaches, or within
    8.5 standard deviations. Any step is valid; this one depends on the events alone.
    """
    total = sum((count * pair.reach for pair, count in pairs.items()), Exact(0))
    squares = sum((count * pair.wide for pair, count in pairs.items()), Exact(0))
    wide = min(4 * total * total, 4 * 72 * squares + squares * squares)
    longest = max((pair.reach for pair in pairs), default=Exact(0))
    places = 30
    while places > 0 and (wide * 4**places > _POINTS**2 or longest * 2**places > _STEPS):
        places -= 1
    return Exact(1, 2**places)


def _on_grid(pair: _Pair, step: Exact) -> PrivacyLoss:
    """The masses of a pair on the grid: never better, and rounded up."""
    most = math.ceil(pair.reach / step)
    with precision(_BITS + 64):
        curve = pair.make()
        deltas = [_fixed(curve(place * step)) for place in range(-most - 1, most + 1)]
        growth = ball(step).exp()
        grown, share = _fixed(growth) + 2, _fixed(1 / (growth - 1)) + 2
    one = 1 << _BITS
    masses = []
    for before, here, after in zip([deltas[0], *deltas], deltas, [*deltas[1:], deltas[-1]], strict=False):
        # ((after - here) + e^step (before - here))/(e^step - 1)
        scaled = ((after - here) << _BITS) + grown * (before - here) + (_OFF << _BITS)
        masses.append((scaled * share >> 2 * _BITS) + 2)
    masses[0] += one - deltas[0]
    floats = np.array([quotient_up(max(mass, 0), one) for mass in masses])
    infinite = quotient_up(max(deltas[-1], 0) + 2, one)
    pmf = _pmfs().DensePLDPmf(float(step), -most - 1, floats, infinite, True)  # type: ignore[union-attr]
    return PrivacyLoss(pmf, step, 0.0)


def _fixed(real: Any) -> int:
    """A number in units of 2^-_BITS, to two of them."""
    scaled = real * 2**_BITS
    if not scaled.is_finite() or not scaled.rad() < 1:
        raise AccountingError("the privacy loss of an event could not be enclosed")
    mantissa, exponent = map(int, scaled.mid().man_exp())
    return mantissa << exponent if exponent >= 0 else mantissa >> -exponent


@cache
def _pmfs() -> ModuleType | None:
    try:
        from dp_accounting.pld import pld_pmf
    except ImportError:
        return None
    module: ModuleType = pld_pmf
    return module
