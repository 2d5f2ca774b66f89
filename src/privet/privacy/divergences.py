"""Divergences between two distributions, which define privacy.

Distributions are finite, a mapping from outcomes to exact probabilities, or two shifted copies of one distribution
(`Laplace(0, b)` and `Laplace(1, b)`, continuous or discrete). `indistinguishable` is decided exactly for finite
distributions; numbers that involve e^epsilon are returned as an `Enclosure`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

from flint import arb

from privet.errors import DataError, NumberError, write
from privet.exact import INFINITY, Enclosure, Exact, Number, ball, enclose, less, nonnegative


class Located(Protocol):
    """A symmetric distribution with a location: what divergences need to know about it."""

    @property
    def loc(self) -> Any:
        """Its centre."""

    @property
    def scale(self) -> Exact:
        """Its width."""

    def at(self, loc: Any) -> Self:
        """The same distribution, centred elsewhere."""

    def cdf_ball(self, x: Any) -> arb:
        """P(X <= x), at the precision of the block."""

    def log_ratio(self, other: Any) -> Exact | float:
        """The largest log(p/q) against a shifted copy; it may be infinite."""

    def likelier_below(self, other: Any, epsilon: Exact) -> Any:
        """The point up to which p(x) > e^epsilon q(x), for a copy shifted to the right; None if there is none."""


Finite = Mapping[Any, Number]
"""Outcomes and their probabilities."""

Distribution = Finite | Located


def hockey_stick(p: Distribution, q: Distribution, epsilon: Number) -> Enclosure:
    """The largest P(S) - e^epsilon Q(S) over events S: the delta that p against q needs at epsilon.

    Claim: it is the sum (or integral) of max(0, p - e^epsilon q), reached by S = {x : p(x) > e^epsilon q(x)}.

    Example:
        >>> hockey_stick({"a": "3/4", "b": "1/4"}, {"a": "1/2", "b": "1/2"}, 0)
        Enclosure(0.25, width 0)
    """
    best = _best_event(p, q, _epsilon(epsilon))
    return best.exact_value() or enclose(best.ball)


def total_variation(p: Distribution, q: Distribution) -> Enclosure:
    """The largest difference of probability of one event: the hockey stick at epsilon = 0.

    Claim: a mechanism is (0, delta)-DP exactly if all its neighbouring output pairs have total variation at most delta.

    Example:
        >>> total_variation({0: 1}, {0: "0.9", 1: "0.1"})
        Enclosure(0.1, width 0)
    """
    return hockey_stick(p, q, 0)


def max_divergence(p: Distribution, q: Distribution) -> Enclosure | float:
    """The largest log(p(x)/q(x)), the smallest epsilon of pure privacy in one direction.

    It is infinite if q excludes an outcome of p, or if the tails of q are too light.

    Example:
        >>> float(max_divergence({0: "3/4", 1: "1/4"}, {0: "1/4", 1: "3/4"}))
        1.0986122886681098
    """
    if isinstance(p, Mapping) or isinstance(q, Mapping):
        masses = _finite(q)
        ratios = [(mass, masses.get(x, Fraction(0))) for x, mass in _finite(p).items() if mass]
        if any(other == 0 for _, other in ratios):
            return INFINITY
        largest = max(mass / other for mass, other in ratios)
        return enclose(lambda: ball(largest).log()) if largest != 1 else Enclosure(Fraction(0), Fraction(0))
    _same_shape(p, q)
    bound = p.log_ratio(q)
    return INFINITY if bound == INFINITY else Enclosure(Fraction(bound), Fraction(bound))


def indistinguishable(p: Distribution, q: Distribution, epsilon: Number, delta: Number = 0) -> bool:
    """Whether P(S) <= e^epsilon Q(S) + delta and Q(S) <= e^epsilon P(S) + delta for every event S.

    Claim: decided exactly. Sums of rationals times e^epsilon equal a rational delta only where e^epsilon drops
    out (its factor is zero, or epsilon is), and there rationals are compared.

    Example:
        >>> yes, no = {0: "0.6", 1: "0.4"}, {0: "0.4", 1: "0.6"}
        >>> indistinguishable(yes, no, 0.5), indistinguishable(yes, no, 0.4), indistinguishable(yes, no, 0, delta=0.2)
        (True, False, True)
    """
    level, slack = _epsilon(epsilon), nonnegative(delta, name="delta", example="delta=1e-6")
    return all(_best_event(a, b, level).at_most(slack) for a, b in ((p, q), (q, p)))


@dataclass(frozen=True, slots=True)
class PrivacyProfile:
    """The function epsilon -> delta of a pair of distributions: all their (epsilon, delta) guarantees at once.

    Claim: the pair is (epsilon, delta)-indistinguishable exactly if delta(epsilon) <= delta.

    Example:
        >>> from privet.textbook.distributions import Laplace
        >>> profile = privacy_profile(Laplace(0, 1), Laplace(1, 1))
        >>> float(profile(0)), float(profile(0.5)), float(profile(1))
        (0.3934693402873666, 0.22119921692859512, 0.0)
    """

    p: Distribution
    q: Distribution

    def __call__(self, epsilon: Number) -> Enclosure:
        deltas = [hockey_stick(a, b, epsilon) for a, b in ((self.p, self.q), (self.q, self.p))]
        return Enclosure(max(delta.lower for delta in deltas), max(delta.upper for delta in deltas))


def privacy_profile(p: Distribution, q: Distribution) -> PrivacyProfile:
    """The privacy profile of a pair of distributions, in both directions."""
    return PrivacyProfile(p, q)


class _Masses:
    """P(S) - e^epsilon Q(S) of the best event S of two finite distributions."""

    def __init__(self, p: Mapping[Any, Exact], q: Mapping[Any, Exact], epsilon: Exact) -> None:
        self.epsilon = epsilon
        event = [x for x, mass in p.items() if _exceeds(mass, q.get(x, Fraction(0)), epsilon)]
        self.p = sum((p[x] for x in event), Fraction(0))
        self.q = sum((q.get(x, Fraction(0)) for x in event), Fraction(0))

    def exact_value(self) -> Enclosure | None:
        if self.epsilon and self.q:
            return None
        return Enclosure(self.p - self.q, self.p - self.q)

    def ball(self) -> arb:
        return ball(self.p) - ball(self.epsilon).exp() * ball(self.q)

    def at_most(self, delta: Exact) -> bool:
        value = self.exact_value()
        return value.upper <= delta if value else less(self.ball, delta)


class _Halfline:
    """The same for two shifted copies of a distribution, where the best event is a half-line."""

    def __init__(self, p: Located, q: Located, epsilon: Exact) -> None:
        _same_shape(p, q)
        if q.loc < p.loc:  # mirror both: the distribution is symmetric
            p, q = p.at(q.loc), q.at(p.loc)
        self.p, self.q, self.epsilon = p, q, epsilon
        self.end = p.likelier_below(q, epsilon)

    def exact_value(self) -> Enclosure | None:
        return Enclosure(Fraction(0), Fraction(0)) if self.end is None else None

    def ball(self) -> arb:
        return self.p.cdf_ball(self.end) - ball(self.epsilon).exp() * self.q.cdf_ball(self.end)

    def at_most(self, delta: Exact) -> bool:
        return self.end is None or less(self.ball, delta)


def _best_event(p: Distribution, q: Distribution, epsilon: Exact) -> _Masses | _Halfline:
    if isinstance(p, Mapping) or isinstance(q, Mapping):
        return _Masses(_finite(p), _finite(q), epsilon)
    return _Halfline(p, q, epsilon)


def _exceeds(p: Exact, q: Exact, epsilon: Exact) -> bool:
    """P > e^epsilon q; equality with q > 0 is possible only at epsilon = 0, since e^epsilon is irrational."""
    if q == 0 or epsilon == 0:
        return p > q
    return p > q and less(lambda: ball(epsilon).exp(), p / q)


def _epsilon(value: Number) -> Exact:
    return nonnegative(value, name="epsilon", example="epsilon=0.5")


def _finite(distribution: Distribution) -> dict[Any, Exact]:
    if not isinstance(distribution, Mapping):
        raise DataError(
            f"pass two finite distributions, or two copies of one distribution; {distribution!r} is not a mapping"
        )
    masses = {x: nonnegative(mass, name=f"the probability of {x!r}") for x, mass in distribution.items()}
    if (total := sum(masses.values())) != 1:
        raise NumberError(f"probabilities must sum to 1, not {total}", remedy=write('{"a": "1/3", "b": "2/3"}'))
    return masses


def _same_shape(p: Located, q: Located) -> None:
    if type(p) is not type(q) or p.scale != q.scale:
        raise DataError(f"{p!r} and {q!r} are not two copies of one distribution: kind and scale must be the same")
