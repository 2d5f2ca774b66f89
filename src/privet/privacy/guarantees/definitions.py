"""The three guarantees, and the guarantees that follow from them.

Their values are exact rationals. What follows from a guarantee (for more runs, for groups of people, as another kind of
guarantee) is again a guarantee; irrational values are rounded toward *less* privacy, never more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from privet.errors import NumberError, Subject, UserError, write
from privet.exact import Exact, Number, ball, enclose, nearest, nonnegative, positive, show, show_up, whole
from privet.privacy.guarantees import conversion, meaning

_EPSILON = write("PureDP(0.5)", terminal="--epsilon 0.5", policy="{ epsilon = 0.5 }")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PureDP:
    """Pure differential privacy.

    Claim: Pr[M(D) in O] <= e^epsilon * Pr[M(D') in O] for all neighbours D, D' and all events O.

    Example:
        >>> PureDP(0.1).compose(PureDP(0.2)), PureDP("1/3").group(3)
        (PureDP(0.3), PureDP(1))

    Reference: Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity", TCC 2006.
    """

    epsilon: Exact
    ZERO: ClassVar[PureDP]
    """The guarantee of revealing nothing."""

    def __init__(self, epsilon: Number) -> None:
        number = nonnegative(epsilon, name="epsilon", example=_EPSILON)
        if number == 0:
            raise NumberError(
                "epsilon must be a number greater than 0, not 0",
                subject=Subject("argument", "epsilon"),
                remedy=write(
                    "PureDP(0.5); for total-variation privacy ApproxDP(0, 0.01); for revealing nothing PureDP.ZERO",
                    terminal="--epsilon 0.5",
                    policy="epsilon = 0.5",
                ),
            )
        object.__setattr__(self, "epsilon", number)

    @classmethod
    def derived(cls, epsilon: Exact) -> PureDP:
        """A derived guarantee, whose epsilon may be 0."""
        guarantee = object.__new__(cls)
        object.__setattr__(guarantee, "epsilon", epsilon)
        return guarantee

    def __repr__(self) -> str:
        return f"PureDP({_literal(self.epsilon)})" if self.epsilon else "PureDP.ZERO"

    def __str__(self) -> str:
        return f"epsilon {show_up(self.epsilon)}"

    def compose(self, *others: Guarantee) -> PureDP | ApproxDP:
        """The guarantee of all together, exactly: epsilons add up; with an ApproxDP among them, deltas too."""
        if any(isinstance(other, ZeroConcentratedDP) for other in _all_guarantees(*others)):
            raise _mixed(self, ZeroConcentratedDP.ZERO, "pure.to_zcdp().compose(other)")
        pure = [other for other in others if isinstance(other, PureDP)]
        if len(pure) < len(others):
            return self.to_approx().compose(*others)
        return PureDP.derived(sum((other.epsilon for other in pure), self.epsilon))

    def group(self, k: int) -> PureDP:
        """The guarantee for k people together, exactly: k * epsilon.

        Replacing a person is a removal and an addition, so add/remove with this guarantee is replace with group(2).
        """
        return PureDP.derived(self.epsilon * _size(k))

    def implies(self, other: Guarantee) -> bool:
        """Whether every mechanism with this guarantee is proved to have the other.

        Example:
            >>> PureDP(1).implies(PureDP(2)), PureDP(1).implies(ZeroConcentratedDP(0.5)), PureDP(1).implies(PureDP(0.9))
            (True, True, False)
        """
        _all_guarantees(other)
        if isinstance(other, ZeroConcentratedDP):
            return self.to_zcdp().rho <= other.rho
        return self.to_approx().implies(other)

    def to_approx(self) -> ApproxDP:
        """The same as (epsilon, 0), exactly."""
        return ApproxDP.capped(self.epsilon, Exact(0))

    def to_zcdp(self) -> ZeroConcentratedDP:
        """epsilon^2 / 2, exactly (Bun and Steinke 2016, proposition 1.4)."""
        return ZeroConcentratedDP.derived(self.epsilon**2 / 2)

    def posterior(self, prior: Number) -> Exact:
        """The largest posterior probability of somebody with this prior; rounded up by less than 2^-64.

        Claim: p e^epsilon / (1 - p + p e^epsilon), for every answer, even if all others' data are known.

        Example:
            >>> round(float(PureDP(1).posterior(0.5)), 4)
            0.7311
        """
        return meaning.posterior(self.epsilon, prior)

    def true_positive_rate(self, false_positive_rate: Number) -> Exact:
        """The best true-positive rate of any test with this false-positive rate; rounded up."""
        return self.to_approx().true_positive_rate(false_positive_rate)

    def meaning(self, adjacency: str) -> str:
        """What it means for one person, under "add/remove" or "replace".

        Example:
            >>> print(PureDP(1).meaning("add/remove"))
            Even knowing all others' data, someone 50 % sure that a person is in the data can become at most 73 % sure.
            At a 5 % false-positive rate, a test can detect the person at most 14 % of the time. Percentages are
            rounded.
        """
        return meaning.in_words(self.epsilon, Exact(0), adjacency)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproxDP:
    """Approximate differential privacy; with epsilon 0, total-variation privacy.

    Claim: Pr[M(D) in O] <= e^epsilon * Pr[M(D') in O] + delta for all neighbours D, D' and all events O.

    Example:
        >>> ApproxDP(1, 1e-6).compose(PureDP(0.5)), ApproxDP(0, 0.01).group(3)
        (ApproxDP(1.5, 1e-6), ApproxDP(0, 0.03))

    Reference: Dwork, Kenthapadi, McSherry, Mironov, Naor, "Our data, ourselves", EUROCRYPT 2006.
    """

    epsilon: Exact
    delta: Exact

    def __init__(self, epsilon: Number, delta: Number) -> None:
        line = "ApproxDP(1, 1e-6)"
        both = write(line, terminal="--epsilon 1 --delta 1e-6", policy="{ epsilon = 1, delta = 1e-6 }")
        object.__setattr__(self, "epsilon", nonnegative(epsilon, name="epsilon", example=both))
        object.__setattr__(self, "delta", nonnegative(delta, name="delta", example=both))
        if self.delta >= 1:
            raise NumberError(
                f"delta must be less than 1, not {show(self.delta)}: 1 promises nothing",
                subject=Subject("argument", "delta"),
                remedy=write(line, terminal="--delta 1e-6", policy="delta = 1e-6"),
            )

    @classmethod
    def capped(cls, epsilon: Exact, delta: Exact) -> ApproxDP:
        """A derived guarantee; a delta above 1 becomes 1, which promises nothing."""
        guarantee = object.__new__(cls)
        object.__setattr__(guarantee, "epsilon", epsilon)
        object.__setattr__(guarantee, "delta", min(delta, Exact(1)))
        return guarantee

    def __repr__(self) -> str:
        return f"ApproxDP({_literal(self.epsilon)}, {_literal(self.delta)})"

    def __str__(self) -> str:
        return f"epsilon {show_up(self.epsilon)}, delta {show_up(self.delta)}"

    def compose(self, *others: Guarantee) -> ApproxDP:
        """The guarantee of all together, by basic composition, exactly: epsilons and deltas add up."""
        epsilon, delta = self.epsilon, self.delta
        for other in _all_guarantees(*others):
            if isinstance(other, ZeroConcentratedDP):
                raise _mixed(self, other, "other.to_approx(delta=1e-6)")
            part = other.to_approx() if isinstance(other, PureDP) else other
            epsilon, delta = epsilon + part.epsilon, delta + part.delta
        return ApproxDP.capped(epsilon, delta)

    def group(self, k: int) -> ApproxDP:
        """The guarantee for k people together; delta is rounded up, by less than 2^-64 of itself.

        Claim: (k epsilon, delta * (1 + e^epsilon + ... + e^((k-1) epsilon))), exactly k * delta for epsilon 0.
        Replacing a person is a removal and an addition, so add/remove with this guarantee is replace with
        group(2) = (2 epsilon, delta (1 + e^epsilon)).
        """
        k, epsilon = _size(k), self.epsilon
        if k <= 1 or epsilon == 0 or self.delta == 0:
            return ApproxDP.capped(k * epsilon, k * self.delta)
        if k * epsilon > meaning.HUGE:
            return ApproxDP.capped(k * epsilon, Exact(1))
        factor = enclose(lambda: ball(k * epsilon).expm1() / ball(epsilon).expm1()).upper
        return ApproxDP.capped(k * epsilon, self.delta * factor)

    def implies(self, other: Guarantee) -> bool:
        """Whether every mechanism with this guarantee has the other; False otherwise.

        Claim: (e, d) implies (e', d') for e' < e if and only if d' >= d + (1 - d)(e^e - e^e')/(1 + e^e), since
        the worst (e, d) mechanism reveals everything with probability d and otherwise is randomized response.

        Example:
            >>> ApproxDP(1, 0).implies(ApproxDP(0, 0.47)), ApproxDP(1, 0).implies(ApproxDP(0, 0.46))
            (True, False)

        Reference: Kairouz, Oh, Viswanath, "The composition theorem for differential privacy", ICML 2015.
        """
        _all_guarantees(other)
        if isinstance(other, ZeroConcentratedDP):
            return self.delta == 0 and PureDP.derived(self.epsilon).implies(other)
        e, d, target = self.epsilon, self.delta, other.to_approx() if isinstance(other, PureDP) else other
        if e <= target.epsilon or target.delta == 1:
            return d <= target.delta

        def slack() -> Any:
            lost = (1 - (-ball(e - target.epsilon)).exp()) / (1 + (-ball(e)).exp())
            return ball(target.delta - d) - ball(1 - d) * lost

        return d < target.delta and conversion.certainly_nonnegative(slack)

    def to_approx(self) -> ApproxDP:
        """Itself."""
        return self

    def posterior(self, prior: Number) -> Exact:
        """As for PureDP if delta is 0; otherwise refused, because some answers may reveal everything."""
        if self.delta:
            raise UserError(
                "with delta > 0 there is no bound for every answer: some may reveal everything",
                remedy=write("guarantee.true_positive_rate(0.05)"),
            )
        return PureDP.derived(self.epsilon).posterior(prior)

    def true_positive_rate(self, false_positive_rate: Number) -> Exact:
        """The best true-positive rate of any test with this false-positive rate; rounded up.

        Claim: min(1, e^epsilon f + delta, 1 - e^-epsilon (1 - delta - f)).

        Example:
            >>> round(float(ApproxDP(1, 0.01).true_positive_rate(0.05)), 4)
            0.1459

        Reference: Kairouz, Oh, Viswanath 2015, theorem 2.1.
        """
        return meaning.true_positive_rate(self.epsilon, self.delta, false_positive_rate)

    def meaning(self, adjacency: str) -> str:
        """What it means for one person, under "add/remove" or "replace"."""
        return meaning.in_words(self.epsilon, self.delta, adjacency)

    def advice(self, *, population: int) -> str:
        """Compare delta with 1/n^2 and 1/n for a declared population of n people.

        The population is public knowledge, such as a census figure: never the number of rows in the data.

        Example:
            >>> print(ApproxDP(1, 1e-6).advice(population=10_000))
            delta 1e-6 is above 1/n^2 = 1e-8: if each failure exposes one person, expect 0.01 of 10000 to be exposed.
        """
        n = whole(population, name="population", example="advice(population=1_000_000)")
        small = meaning.delta_for_population(n)
        if self.delta <= small:
            return f"delta {show(self.delta)} is at most 1/n^2 = {show(small)}: small enough for {n} people."
        where = f"1/n^2 = {show(small)}" if self.delta < Exact(1, n) else f"1/n = {show(Exact(1, n))}, far too large"
        return (
            f"delta {show(self.delta)} is {'' if self.delta == Exact(1, n) else 'above '}{where}: if each failure "
            f"exposes one person, expect {show(n * self.delta)} of {n} to be exposed."
        )


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ZeroConcentratedDP:
    """Zero-concentrated differential privacy.

    Claim: the Renyi divergence D_alpha(M(D) || M(D')) <= rho * alpha for all neighbours and all alpha > 1.

    Example:
        >>> ZeroConcentratedDP(0.1).compose(ZeroConcentratedDP(0.2)), ZeroConcentratedDP(0.1).group(3)
        (ZeroConcentratedDP(0.3), ZeroConcentratedDP(0.9))

    Reference: Bun, Steinke, "Concentrated differential privacy", TCC 2016.
    """

    rho: Exact
    ZERO: ClassVar[ZeroConcentratedDP]
    """The guarantee of revealing nothing."""

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", positive(rho, name="rho", example="ZeroConcentratedDP(0.1)"))

    @classmethod
    def derived(cls, rho: Exact) -> ZeroConcentratedDP:
        """A derived guarantee, whose rho may be 0."""
        guarantee = object.__new__(cls)
        object.__setattr__(guarantee, "rho", rho)
        return guarantee

    def __repr__(self) -> str:
        return f"ZeroConcentratedDP({_literal(self.rho)})" if self.rho else "ZeroConcentratedDP.ZERO"

    def __str__(self) -> str:
        return f"rho {show_up(self.rho)}"

    def compose(self, *others: Guarantee) -> ZeroConcentratedDP:
        """The guarantee of all together, exactly: rhos add up."""
        rho = self.rho
        for other in _all_guarantees(*others):
            if isinstance(other, PureDP):
                raise _mixed(self, other, "other.to_zcdp()")
            if isinstance(other, ApproxDP):
                raise _mixed(self, other, "rho.to_approx(delta=1e-6).compose(other)")
            rho += other.rho
        return ZeroConcentratedDP.derived(rho)

    def group(self, k: int) -> ZeroConcentratedDP:
        """The guarantee for k people together, exactly: k^2 * rho (replace is k = 2)."""
        return ZeroConcentratedDP.derived(self.rho * _size(k) ** 2)

    def implies(self, other: Guarantee) -> bool:
        """Whether every mechanism with this guarantee is proved to have the other.

        Toward (e, d) the proof goes through `to_approx(delta=d1)` for the best d1 <= d.

        Example:
            >>> ZeroConcentratedDP(0.1).implies(ApproxDP(2, 1e-3)), ZeroConcentratedDP(0.1).implies(PureDP(9))
            (True, False)
        """
        _all_guarantees(other)
        if isinstance(other, ZeroConcentratedDP):
            return self.rho <= other.rho
        if self.rho == 0 or other.to_approx().delta == 1:
            return True
        if isinstance(other, PureDP) or other.delta == 0:
            return False
        if self.to_approx(delta=other.delta).epsilon <= other.epsilon:
            return True
        share = conversion.best_share(self.rho, other.epsilon, other.delta)
        return self.to_approx(delta=other.delta * share).implies(other)

    def to_approx(self, *, delta: Number) -> ApproxDP:
        """(epsilon, delta), with the epsilon of the best order alpha, rounded up.

        Claim: for each alpha > 1, epsilon = alpha rho + log(1 - 1/alpha) - (log delta + log alpha)/(alpha - 1).

        Example:
            >>> round(float(ZeroConcentratedDP("1/32").to_approx(delta=1e-3).epsilon), 12)
            0.688002455488

        Reference: Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, corollary 13.
        """
        d = positive(delta, name="delta", example="to_approx(delta=1e-6)")
        if self.rho == 0 or d >= 1:
            return ApproxDP.capped(Exact(0), Exact(0) if self.rho == 0 else d)
        above = Exact(
            conversion.epsilon_and_order(nearest(self.rho), conversion.log(d))[1]
        )  # alpha - 1: any value > 0 is valid

        def epsilon() -> Any:
            alpha = ball(1 + above)
            gain = (ball(above) / alpha).log() - (ball(d).log() + alpha.log()) / ball(above)
            return alpha * ball(self.rho) + gain

        return ApproxDP.capped(max(enclose(epsilon).upper, Exact(0)), d)

    def meaning(self, adjacency: str, *, delta: Number) -> str:
        """What it means for one person, as (epsilon, delta) with this delta."""
        approx = self.to_approx(delta=delta)
        words = meaning.in_words(approx.epsilon, approx.delta, adjacency)
        return f"rho {show(self.rho)} is epsilon {show_up(approx.epsilon, 4)} at delta {show(approx.delta)}. {words}"


PureDP.ZERO = PureDP.derived(Exact(0))
ZeroConcentratedDP.ZERO = ZeroConcentratedDP.derived(Exact(0))

Guarantee = PureDP | ApproxDP | ZeroConcentratedDP
"""Every kind of guarantee."""
Budget = Guarantee
"""The kinds of guarantee that an accountant promises; at run time the registry decides."""


def _size(k: object) -> int:
    return whole(k, name="k", least=0, example="group(2)")


def _all_guarantees(*values: Guarantee) -> tuple[Guarantee, ...]:
    for value in values:
        if not isinstance(value, Guarantee):
            raise UserError(f"this must be a guarantee, not {value!r}", remedy=write("PureDP(0.5)"))
    return values


def _mixed(one: Guarantee, other: Guarantee, line: str) -> UserError:
    kinds = f"{type(one).__name__} and {type(other).__name__}"
    return UserError(f"{kinds} can't be composed directly", remedy=write(line))


def _literal(number: Exact) -> str:
    """The number as it can be written in a call, or an approximation if that is too long."""
    if Exact(show(number)) == number:
        return show(number)
    ratio = f"'{number.numerator}/{number.denominator}'" if number.denominator < 10**9 else ""
    return ratio if 0 < len(ratio) <= 24 else f"~{show(number)}"
