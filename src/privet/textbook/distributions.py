"""The continuous Laplace distribution of the textbooks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from privet.exact import Enclosure, Exact, Number, ball, enclose, exact, nearest, positive, probability, show


@dataclass(frozen=True, slots=True)
class Laplace:
    """The continuous Laplace distribution, for theory, charts and tests; never used for releases.

    Claim: the density at x is e^(-|x - loc|/scale) / (2 scale), and the variance is 2 scale^2.

    Example:
        >>> X = Laplace(0, 1)
        >>> float(X.pdf(0)), float(X.tail(3)), X.variance
        (0.5, 0.049787068367863944, Fraction(2, 1))
        >>> float(X.quantile(0.975))
        2.995732273553991
    """

    loc: Exact
    scale: Exact

    def __init__(self, loc: Number, scale: Number) -> None:
        object.__setattr__(self, "loc", exact(loc, name="loc", example="Laplace(loc=0, scale=2)"))
        object.__setattr__(self, "scale", positive(scale, name="scale", example="Laplace(loc=0, scale=2)"))

    def __repr__(self) -> str:
        return f"Laplace(loc={show(self.loc)}, scale={show(self.scale)})"

    def at(self, loc: Number) -> Laplace:
        """The same distribution, centred elsewhere."""
        return Laplace(loc, self.scale)

    def pdf(self, x: Number) -> Enclosure:
        """The density at x."""
        away = abs(exact(x, name="x") - self.loc) / self.scale
        return enclose(lambda: ball(-away).exp() / ball(2 * self.scale))

    def cdf(self, x: Number) -> Enclosure:
        """P(X <= x)."""
        at = exact(x, name="x")
        return enclose(lambda: self.cdf_ball(at))

    def cdf_ball(self, x: Exact) -> arb:
        """P(X <= x), at the precision of the block."""
        half = ball(-abs(x - self.loc) / self.scale).exp() / 2
        return half if x < self.loc else 1 - half

    def tail(self, t: Number) -> Enclosure:
        """P(|X - loc| >= t) = e^(-t/scale), for t >= 0."""
        away = max(Fraction(0), exact(t, name="t")) / self.scale
        return enclose(lambda: ball(-away).exp())

    def quantile(self, p: Number) -> Enclosure:
        """The x with P(X <= x) = p."""
        level = probability(p, name="p", example="quantile(0.975)")
        if level == Fraction(1, 2):
            return Enclosure(self.loc, self.loc)
        side = -1 if level < Fraction(1, 2) else 1
        mass = 2 * min(level, 1 - level)
        return enclose(lambda: ball(self.loc) - side * ball(self.scale) * ball(mass).log())

    def interval(self, confidence: Number) -> tuple[float, float]:
        """The central interval that contains X with this probability.

        Example:
            >>> Laplace(13, 27.33333333333).interval(0.95)
            (-68.8833488104..., 94.8833488104...)
        """
        level = probability(confidence, name="confidence", example="interval(0.95)")
        half = self.at(0).quantile((1 + level) / 2)
        return nearest(self.loc - half.upper), nearest(self.loc + half.upper)

    @property
    def variance(self) -> Exact:
        """2 scale^2."""
        return 2 * self.scale**2

    def sliding(self, shift: Number, x: Number | None = None) -> Exact:
        """The sliding property: the log ratio of the densities at loc and at loc + shift.

        Claim: it is (|x - loc - shift| - |x - loc|)/scale at x, and at most |shift|/scale for every x.

        Example:
            >>> Laplace(0, 2).sliding(1), Laplace(0, 2).sliding(1, x="0.75")
            (Fraction(1, 2), Fraction(-1, 4))
        """
        by = exact(shift, name="shift")
        if x is None:
            return abs(by) / self.scale
        away = exact(x, name="x") - self.loc
        return (abs(away - by) - abs(away)) / self.scale

    def log_ratio(self, other: Laplace) -> Exact:
        """The largest log(p/q) against a shifted copy: |shift| / scale."""
        return self.sliding(other.loc - self.loc)

    def likelier_below(self, other: Laplace, epsilon: Exact) -> Exact | None:
        """The point up to which p(x) > e^epsilon q(x), for a copy shifted to the right."""
        shift = other.loc - self.loc
        return None if epsilon >= shift / self.scale else self.loc + (shift - epsilon * self.scale) / 2
