"""Discrete Laplace noise of bounded support, with which a threshold shows the most private keys; its exact sampler."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import overload

import numpy as np
from flint import arb

from privet.errors import NumberError, write
from privet.exact import Enclosure, Exact, Number, ball, enclose, exact, floor, less, positive, probability
from privet.exact.lattice import Integers
from privet.exact.search import first
from privet.noise.digits import CACHED, LARGEST, Digits, size_of
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.geometric import geometric_digits
from privet.noise.inversion import Inversion, UniformReal, enclosed_prefixes, exp_minus

_EXAMPLE = "TruncatedLaplace(epsilon=1, delta=1e-6)"
NOTHING, ALL = Enclosure(Fraction(0), Fraction(0)), Enclosure(Fraction(1), Fraction(1))


@dataclass(frozen=True, slots=True)
class TruncatedLaplace:
    """Noise X with median 0 and P(X >= T - n) = pi(n), the largest probability of showing a key that n people hold.

    With e = epsilon and d = delta, the optimal rule is

        pi(0) = 0,  pi(n + 1) = min(e^e pi(n) + d,  1 - e^-e (1 - pi(n) - d),  1);

    pi(N) = 1 from some N on, and T is the smallest n with pi(n) >= 1/2. So P(X = T - n) = pi(n) - pi(n - 1) for
    n = 1 ... N: it rises with e^e from one integer to the next, and then falls with e^-e.

    Claim: n + X, shown only if it is at least T, and never for n = 0, is (e, d)-differentially private for one person
    more or less; so is n + X without a threshold. Let g(n) = pi(n) - pi(n - 1), q = 1 - pi, and let t be the last n for
    which the first of the three terms is the smallest. Then g(n + 1) = e^e g(n) for n < t, g(n + 1) = e^-e g(n) for
    t < n < N - 1, and e^-e <= g(t + 1)/g(t) <= e^e, since pi(t + 1) is at most the first term and pi(t) at most the
    second. From n + 1 to n people only the value n + T is new, with mass g(1) = d. From n to n + 1, the value
    n + T - N is lost, with mass g(N) = q(N - 1) <= d, and the next one exceeds e^e times its likelihood by g(N - 1) -
    e^e g(N) = d - q(N - 1): together d. What is below T is one outcome, which only helps.

    It is log-concave: the ratio of neighbours never rises, since g(N) <= e^-e g(N - 1).

    Example:
        >>> X = TruncatedLaplace(epsilon=1, delta=1e-6)
        >>> X.threshold, X.lowest, X.highest, X.quantile(0.975)
        (14, -14, 13, 3)
        >>> -14 <= X.sample() <= 13, X.sample(3).shape
        (True, (3,))

    Reference: Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection", 2022, theorem 1 for
    pi, and section 3 for the noise where N = 2 T - 1, which makes it symmetric.
    """

    epsilon: Exact
    delta: Exact
    turn: int = field(compare=False, repr=False)
    """Up to here the first of the three terms is the smallest."""
    full: int = field(compare=False, repr=False)
    """From here on pi is 1."""
    threshold: int = field(compare=False, repr=False)
    """The smallest n with pi(n) >= 1/2."""

    def __init__(self, epsilon: Number, delta: Number) -> None:
        e, d = positive(epsilon, name="epsilon", example=_EXAMPLE), probability(delta, name="delta", example=_EXAMPLE)
        if not 0 < d < 1:
            raise NumberError("delta must be above 0 and below 1", remedy=write(_EXAMPLE))
        if e * LARGEST < 1:
            raise NumberError("epsilon must be at least 2^-2048, about 1e-616", remedy=write(_EXAMPLE))
        object.__setattr__(self, "epsilon", e)
        object.__setattr__(self, "delta", d)
        # pi(n) = d (e^(n e) - 1)/(e^e - 1) while it is at most (1 - d)/(e^e + 1); the next one is the turn
        steps = floor(lambda: (1 + ball((1 - d) / d) * ball(e).expm1() / (1 + ball(e).exp())).log() / ball(e))
        object.__setattr__(self, "turn", steps + 1)
        half = Fraction(1, 2)
        if d == half:  # pi(1) = 1/2 and pi(2) = 1, exactly
            object.__setattr__(self, "full", 2)
            object.__setattr__(self, "threshold", 1)
            return
        # with c = d/(e^e - 1), what is missing at turn + m is e^(-m e) (rest + c) - c. It is 0 for a whole m only if
        # 2 - 1/d + E/d = E^turn + E^m for E = e^e, which is transcendental: then d = 1/2
        more = floor(lambda: (1 + self._rest() * ball(e).expm1() / ball(d)).log() / ball(e))
        object.__setattr__(self, "full", self.turn + more + 1)
        object.__setattr__(self, "threshold", first(lambda n: not less(lambda: self.shown_ball(n), half), 1, self.full))

    @property
    def lowest(self) -> int:
        """The smallest value."""
        return self.threshold - self.full

    @property
    def highest(self) -> int:
        """The largest value."""
        return self.threshold - 1

    # --- the law ----------------------------------------------------------------------------------

    def _rising(self, n: int) -> arb:
        return ball(self.delta) * ball(n * self.epsilon).expm1() / ball(self.epsilon).expm1()

    def _rest(self) -> arb:
        return 1 - self._rising(self.turn)

    def shown_ball(self, n: int) -> arb:
        """Pi(n), at the precision of the block."""
        if n <= 0:
            return arb(0)
        if n >= self.full:
            return arb(1)
        if n <= self.turn:
            return ball(self.delta) if n == 1 else self._rising(n)
        c = ball(self.delta) / ball(self.epsilon).expm1()
        return 1 + c - exp_minus((n - self.turn) * self.epsilon) * (self._rest() + c)

    def shown(self, n: int) -> Enclosure:
        """Pi(n): the probability that n + X is at least the threshold; 0 for n = 0."""
        if n <= 0 or n >= self.full:
            return NOTHING if n <= 0 else ALL
        if n == 1:
            return Enclosure(self.delta, self.delta)
        return enclose(lambda: self.shown_ball(n))

    def pmf(self, k: int) -> Enclosure:
        """P(X = k)."""
        at = exact(k, name="k", example="pmf(3)")
        if at.denominator != 1 or not self.lowest <= at <= self.highest:
            return NOTHING
        n = self.threshold - int(at)
        return enclose(lambda: self.shown_ball(n) - self.shown_ball(n - 1))

    def cdf(self, k: int) -> Enclosure:
        """P(X <= k)."""
        at = math.floor(exact(k, name="k", example="cdf(3)"))
        if at < self.lowest or at >= self.highest:
            return NOTHING if at < self.lowest else ALL
        return enclose(lambda: self.cdf_ball(at))

    def cdf_ball(self, k: int) -> arb:
        """P(X <= k), at the precision of the block."""
        return 1 - self.shown_ball(self.threshold - k - 1)

    def quantile(self, p: Number) -> int:
        """The smallest k with P(X <= k) >= p."""
        level = probability(p, name="p", example="quantile(0.975)")
        return first(lambda k: self.cdf(k).lower >= level, self.lowest, self.highest)

    # --- draws ------------------------------------------------------------------------------------

    @overload
    def sample(self) -> int: ...
    @overload
    def sample(self, size: int) -> Integers: ...
    def sample(self, size: int | None = None) -> int | Integers:
        """One draw, or an array of `size` independent draws."""
        if size is None:
            return int(self.draws(1, SYSTEM)[0])
        return self.draws(size_of(size), SYSTEM)

    def draws(self, count: int, bits: Bits) -> Integers:
        """`count` draws from these bits.

        Claim: each value has its exact probability. The support has three parts: T - t and above, T - t - 1 and below,
        and the lowest value. One uniform real chooses the part; the steps within the first and the second are
        geometric, drawn again if they lead out of it. If delta is so large that they often would, a uniform real is
        compared with the CDF itself.
        """
        if 4 * self.delta > self.epsilon or self.full == 2:
            return np.array([self._inverted(UniformReal(bits)) for _ in range(count)], dtype=self._kind)
        which = _parts(self).array(count, bits)
        sizes = np.array([self.turn, self.full - self.turn - 1, math.inf], dtype=object)[which.astype(np.intp)]
        sampler = geometric_digits(1 / self.epsilon)
        steps = sampler.array(count, bits)
        while len(out := np.flatnonzero(steps >= sizes)):
            again = sampler.array(len(out), bits)
            steps = steps.astype(object) if again.dtype == object else steps
            steps[out] = again
        turn, steps = self.threshold - self.turn, steps.astype(self._kind)
        return np.where(which == 0, turn + steps, np.where(which == 1, turn - 1 - steps, self.lowest))

    @property
    def _kind(self) -> type:
        return object if self.full >= 1 << 62 else np.int64

    def _inverted(self, uniform: UniformReal) -> int:
        return first(lambda k: uniform.below(lambda: self.cdf_ball(k)), self.lowest, self.highest)


@lru_cache(maxsize=CACHED)
def _parts(of: TruncatedLaplace) -> Digits:
    """The choice among the three parts of the support."""

    def cdf(part: int) -> arb:
        return arb(part > 1) if not 0 <= part < 2 else of.shown_ball(of.turn if part == 0 else of.full - 1)

    return Digits([Inversion(0, enclosed_prefixes(lambda: [cdf(0), cdf(1)], 192), cdf)])
