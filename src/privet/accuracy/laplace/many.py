"""Sums of many Laplace variables of different weights: their tail, from the characteristic function."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privet.accuracy.sums import Floats
from privet.exact import Exact, down, up

LEAST_LEVEL = 1e-8
"""Below this probability floats are not enough for the series, and the looser bound of Chernoff is used."""

_KERNELS = 8  # uniform variables that smooth the sum
_BLUR = 1 / 128  # how far they move it at most, in its standard deviations
_CARE = 1e-4  # the share of the level that is lost to each of two bounds on the error of the series
_LONGEST = 2**12  # blurs in the quantile: with more of them, the series takes too long
_SMALLEST = 1e-3  # discrete noise of a smaller scale is taken for this; it is 0 all the same
_ROUNDING = 1e-12  # more than what floats lose in the series

Term = tuple[Exact, Exact, int]
"""|weight|, scale, and how many such terms there are."""


class ManyTerms:
    """The sum of independent Laplace variables, each multiplied by a weight.

    Claim: `quantile(level)` is a t with P(|S| > t) <= level. Let V be a sum of uniform variables, at most d in size,
    X = S + V, and u = t - d. |S| > t implies |X| > u, and 1 - P(|X| > u) is the expectation of the sign of u - X. A
    square wave of period 2 pi / h is this sign wherever |u - X| < pi / h, and its Fourier series has the expectation
    (4 / pi) sum over odd k of sin(k h u) f(k h) / k, where f is the characteristic function of X, which is real. So

        P(|S| > t) <= 1 - (4 / pi) sum + (what is left out of the sum) + 2 P(|X| >= pi / h - u).

    Chernoff bounds the last term. V makes f fall fast enough to bound the rest of the sum.

    With `continuous`, the variables have densities e^(-|x| / scale) / (2 scale); else they are discrete.

    Example:
        >>> ManyTerms([(Exact(1), Exact(2), 1), (Exact(1, 10), Exact(2), 100)]).quantile(Exact("0.05"))
        7.92...
    """

    def __init__(self, terms: Sequence[Term], *, continuous: bool = False) -> None:
        weights = np.array([up(weight) for weight, _, _ in terms])
        scales = np.array([up(scale) for _, scale, _ in terms])
        self._counts = np.array([count for _, _, count in terms], dtype=np.float64)
        self._continuous = continuous
        if continuous:
            self._unit, self._spread = weights * scales, np.ones_like(scales)
        else:
            scales = np.maximum(scales, _SMALLEST)
            self._unit, self._spread = weights, 4 * np.exp(-1 / scales) / np.expm1(-1 / scales) ** 2
        self._largest = float(np.max(weights * scales))  # e^(-x / largest) is the tail of the heaviest term
        variance = self._unit**2 * (2 if continuous else self._spread / 2)
        self.deviation = math.sqrt(float((self._counts * variance).sum()))

    def _log(self, at: Floats, *, real: bool) -> Floats:
        """The logarithm of the characteristic function at `at`, or (`real`) of E e^(at S)."""
        total = np.zeros_like(at)
        for unit, spread, count in zip(self._unit, self._spread, self._counts, strict=True):
            x = unit * at
            half = x if self._continuous else np.sinh(x / 2) if real else np.sin(x / 2)
            total -= count * np.log1p((-1 if real else 1) * half * half * spread)
        return total

    def _tilted(self) -> tuple[Floats, Floats]:
        """Some tilts c > 0, and ln E e^(c S) at each: P(|S| >= t) <= 2 E e^(c S) e^(-c t), as Chernoff showed."""
        most = (1 - 1e-6) / self._largest
        tilts = most * np.concatenate([np.geomspace(1e-4, 0.5, 100), 1 - np.geomspace(0.5, 1e-3, 60)[1:]])
        with np.errstate(all="ignore"):
            logs = self._log(tilts, real=True)
        fine = np.isfinite(logs)
        return tilts[fine], logs[fine]

    def quantile(self, level: Exact) -> float:
        """A t with P(|S| > t) <= level, rounded up."""
        limit = down(level)
        tilts, logs = self._tilted()
        rough = float(np.min((math.log(2) + logs - math.log(limit)) / tilts)) * (1 + 1e-9)
        blur = _BLUR * self.deviation
        if limit < LEAST_LEVEL or blur * _LONGEST < rough:  # or noise that is 0 almost always
            return rough
        reach = float(np.min((math.log(4) + logs - math.log(_CARE * limit)) / tilts)) + blur  # P(|X| >= reach)
        step = math.pi / (rough + reach)
        sharp = (_CARE * limit) ** (-1 / _KERNELS)  # how many times 1 the last kernel is beyond its first lobe
        count = math.ceil(sharp * _KERNELS / (blur * step) / 2) + 1
        odd = 2 * np.arange(count, dtype=np.float64) + 1
        weights = np.concatenate([self._weights(part * step, blur) for part in np.array_split(odd, 1 + count // 2**17)])
        weights *= 4 / math.pi / odd
        lost = 4 / math.pi * _CARE * limit + _CARE * limit + _ROUNDING
        useful = np.abs(weights) > 1e-20  # the others add up to less than the rounding
        weights, rates = weights[useful], odd[useful] * step

        def missed(t: float) -> bool:
            inside = float(weights @ np.sin(rates * (t - blur))) if t > blur else 0.0
            return 1 - inside + lost > limit

        low, high = 0.0, rough
        while high - low > 1e-6 * high:  # the tail falls with t, and the bound with it up to `lost`
            middle = (low + high) / 2
            low, high = (middle, high) if missed(middle) else (low, middle)
        return high

    def _weights(self, at: Floats, blur: float) -> Floats:
        with np.errstate(under="ignore"):
            return np.asarray(np.exp(self._log(at, real=False)) * np.sinc(at * blur / _KERNELS / math.pi) ** _KERNELS)
