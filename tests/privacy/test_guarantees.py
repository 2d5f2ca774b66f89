"""Guarantees: what follows from what, checked on mechanisms small enough to compute with exactly."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privet.errors import NumberError, UserError
from privet.exact import exp
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP, delta_for_population

Law = tuple[Fraction, ...]

epsilons = st.fractions(min_value=Fraction(1, 50), max_value=4, max_denominator=50)
deltas = st.fractions(min_value=0, max_value=Fraction(9, 10), max_denominator=200)
pures = st.builds(PureDP, epsilons)
approxes = st.builds(ApproxDP, epsilons | st.just(Fraction(0)), deltas)
zcdps = st.builds(ZeroConcentratedDP, epsilons)
guarantees: st.SearchStrategy[Guarantee] = st.one_of(pures | st.just(PureDP.ZERO), approxes, zcdps)


def laws(size: int, count: int) -> st.SearchStrategy[list[Law]]:
    """Distributions on `size` outcomes with exact rational probabilities."""
    weights = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    law = weights.map(lambda ws: tuple(Fraction(w, sum(ws)) for w in ws))
    return st.lists(law, min_size=count, max_size=count)


def hockey(p: Law, q: Law, factor: Fraction) -> Fraction:
    """The least delta with P(O) <= factor * Q(O) + delta for every event O."""
    return sum((max(a - factor * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


def delta_up(p: Law, q: Law, epsilon: Fraction) -> Fraction:
    """Not smaller than the delta that P and Q have at epsilon, both ways."""
    factor = exp(epsilon).lower
    return max(hockey(p, q, factor), hockey(q, p, factor))


def delta_down(p: Law, q: Law, epsilon: Fraction) -> Fraction:
    factor = exp(epsilon).upper
    return max(hockey(p, q, factor), hockey(q, p, factor))


# --- what may be written ----------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), True, None, "abc", "1e400", [1]])
def test_bad_numbers_are_refused_with_the_line_to_write(bad: Any) -> None:
    with pytest.raises(NumberError, match=r"epsilon must be.*PureDP\(0\.5\)"):
        PureDP(bad)
    with pytest.raises(NumberError, match=r"epsilon must be.*ApproxDP\(1, 1e-6\)"):
        ApproxDP(bad, 0.1)
    with pytest.raises(NumberError, match=r"delta must be.*ApproxDP\(1, 1e-6\)"):
        ApproxDP(1, bad)
    with pytest.raises(NumberError, match=r"rho must be.*ZeroConcentratedDP\(0\.1\)"):
        ZeroConcentratedDP(bad)


def test_zero_epsilon_is_refused_and_leads_to_what_was_meant() -> None:
    with pytest.raises(NumberError, match=r"greater than 0, not 0.*PureDP\(0\.5\).*ApproxDP\(0, 0\.01\).*PureDP\.ZERO"):
        PureDP(0)
    with pytest.raises(NumberError, match="rho must be"):
        ZeroConcentratedDP(0)
    for delta in (1, 1.5):
        with pytest.raises(NumberError, match="delta must be less than 1"):
            ApproxDP(1, delta)
    assert ApproxDP(0, 0.01).epsilon == 0
    assert PureDP.ZERO.epsilon == 0
    assert ZeroConcentratedDP.ZERO.rho == 0


@given(guarantees)
def test_guarantees_are_values(g: Guarantee) -> None:
    assert copy.deepcopy(g) == g == pickle.loads(pickle.dumps(g))
    assert hash(copy.copy(g)) == hash(g)
    if "~" not in repr(g):
        assert eval(repr(g)) == g
    with pytest.raises(AttributeError):
        setattr(g, "rho" if isinstance(g, ZeroConcentratedDP) else "epsilon", 1)


def test_texts() -> None:
    assert repr(PureDP("1/3")) == "PureDP('1/3')"
    assert repr(PureDP.ZERO) == "PureDP.ZERO"
    assert repr(ApproxDP(1, 1e-6).group(2)) == "ApproxDP(2, ~3.71828e-6)"
    assert str(ApproxDP(1, 1e-6)) == "epsilon 1, delta 1e-6"
    assert str(ZeroConcentratedDP(0.125)) == "rho 0.125"


# --- composition ------------------------------------------------------------------------------


def test_composition_as_google_publishes_it() -> None:
    """dp_accounting: (1, 0.1) and (2, 0.2) have delta(3) = 0.28, tight; the basic sum gives 0.3, never less."""
    together = ApproxDP(1, 0.1).compose(ApproxDP(2, 0.2))
    assert together == ApproxDP(3, 0.3)
    assert Fraction("0.28") == 1 - (1 - Fraction("0.1")) * (1 - Fraction("0.2")) <= together.delta


def test_composition_adds_up_exactly() -> None:
    assert PureDP(0.1).compose(*[PureDP(0.1)] * 9) == PureDP(1)
    assert PureDP(0.1).compose() == PureDP(0.1)
    assert PureDP(1).compose(ApproxDP(1, 0.1), PureDP(1)) == ApproxDP(3, 0.1)
    assert ApproxDP(1, 0.1).compose(PureDP(1), ApproxDP(0, 0.2)) == ApproxDP(2, "3/10")
    assert ApproxDP(1, 0.6).compose(ApproxDP(1, 0.6)) == ApproxDP.capped(Fraction(2), Fraction(1))
    assert ZeroConcentratedDP(0.1).compose(ZeroConcentratedDP(0.2)) == ZeroConcentratedDP("3/10")
    assert PureDP.ZERO.compose(PureDP(1)) == PureDP(1)


@pytest.mark.parametrize(
    ("one", "other", "line"),
    [
        (PureDP(1), ZeroConcentratedDP(1), "pure.to_zcdp().compose(other)"),
        (ApproxDP(1, 0.1), ZeroConcentratedDP(1), "to_approx(delta=1e-6)"),
        (ZeroConcentratedDP(1), PureDP(1), "other.to_zcdp()"),
        (ZeroConcentratedDP(1), ApproxDP(1, 0.1), "to_approx(delta=1e-6)"),
        (PureDP(1), 0.5, "PureDP(0.5)"),
        (ApproxDP(1, 0.1), None, "PureDP(0.5)"),
        (ZeroConcentratedDP(1), "x", "PureDP(0.5)"),
    ],
)
def test_other_mixes_are_refused_with_the_line_to_write(one: Guarantee, other: Any, line: str) -> None:
    with pytest.raises(UserError) as caught:
        one.compose(other)
    assert f"Write, for example: {line}" in str(caught.value) or line in str(caught.value)


@settings(max_examples=40)
@given(laws(3, 2), laws(3, 2), epsilons, epsilons)
def test_composition_holds_on_real_mechanisms(one: list[Law], two: list[Law], e1: Fraction, e2: Fraction) -> None:
    """Run both, independently: the pair of answers has the composed guarantee."""
    d1, d2 = delta_up(one[0], one[1], e1), delta_up(two[0], two[1], e2)
    assume(d1 < 1 and d2 < 1)
    both = [tuple(a * b for a, b in product(one[i], two[i])) for i in (0, 1)]
    composed = ApproxDP(e1, d1).compose(ApproxDP(e2, d2))
    assert delta_down(both[0], both[1], composed.epsilon) <= composed.delta


# --- groups -----------------------------------------------------------------------------------


@given(epsilons, deltas, st.integers(0, 12))
def test_group_delta_is_the_sum_of_the_powers(epsilon: Fraction, delta: Fraction, k: int) -> None:
    low = sum((delta * exp(i * epsilon).lower for i in range(k)), Fraction(0))
    high = sum((delta * exp(i * epsilon).upper for i in range(k)), Fraction(0))
    found = ApproxDP(epsilon, delta).group(k)
    assert found.epsilon == k * epsilon
    one = Fraction(1)
    assert min(low, one) <= found.delta <= min(high * (1 + Fraction(1, 2**60)), one)


@given(deltas, st.integers(0, 30))
def test_group_is_exact_for_total_variation(delta: Fraction, k: int) -> None:
    assert ApproxDP(0, delta).group(k) == ApproxDP.capped(Fraction(0), k * delta)


@given(guarantees, st.integers(1, 3), st.integers(1, 3))
def test_groups_of_groups(g: Guarantee, j: int, k: int) -> None:
    assert g.group(1) == g
    if isinstance(g, ApproxDP):
        one, two = g.group(j).group(k), g.group(j * k)
        assert one.epsilon == two.epsilon
        assert math.isclose(one.delta, two.delta, rel_tol=1e-15, abs_tol=0) or one.delta == two.delta
    else:
        assert g.group(j).group(k) == g.group(j * k)


@given(laws(3, 3), epsilons | st.just(Fraction(0)))
def test_transitivity_on_real_distributions(three: list[Law], epsilon: Fraction) -> None:
    """P ~ Q ~ R: a removal and then an addition, which is a replacement, has group(2)."""
    p, q, r = three
    delta = max(delta_up(p, q, epsilon), delta_up(q, r, epsilon))
    assume(delta < 1)
    replace = ApproxDP(epsilon, delta).group(2)
    assert delta_down(p, r, replace.epsilon) <= replace.delta


def test_the_group_bound_is_reached() -> None:
    """P, Q, R with delta (1 + e^epsilon) exactly, up to the rounding of e^epsilon: a smaller formula would fail."""
    factor, delta = exp(Fraction(1)).upper, Fraction(1, 100)
    r = (Fraction(0), Fraction(1))
    q = (delta, 1 - delta)
    p = (delta * (1 + factor), 1 - delta * (1 + factor))
    assert delta_down(p, q, Fraction(1)) <= delta
    bound = ApproxDP(1, delta).group(2).delta
    assert bound * (1 - Fraction(1, 2**50)) <= hockey(p, r, exp(Fraction(2)).upper) <= bound * (1 + Fraction(1, 2**50))


def test_groups_of_the_other_kinds() -> None:
    assert PureDP(0.1).group(3) == PureDP(0.3)
    assert PureDP(1).group(0) == PureDP.ZERO
    assert ZeroConcentratedDP(0.1).group(3) == ZeroConcentratedDP(0.9)
    assert ApproxDP(1, 0.1).group(0) == ApproxDP(0, 0)
    assert ApproxDP(10**6, 1e-6).group(2).delta == 1
    for bad in (-1, 1.5, True, None):
        with pytest.raises(NumberError, match=r"k must be.*group\(2\)"):
            PureDP(1).group(bad)  # type: ignore[arg-type]


# --- what implies what ------------------------------------------------------------------------


@given(guarantees)
def test_implies_is_reflexive(g: Guarantee) -> None:
    assert g.implies(g)


@settings(max_examples=120)
@given(guarantees, guarantees, guarantees)
def test_implies_is_transitive(a: Guarantee, b: Guarantee, c: Guarantee) -> None:
    if a.implies(b) and b.implies(c):
        assert a.implies(c)


@given(guarantees, guarantees)
def test_implies_is_antisymmetric_up_to_meaning(a: Guarantee, b: Guarantee) -> None:
    if a.implies(b) and b.implies(a):
        plain = [g.to_approx() if isinstance(g, PureDP) else g for g in (a, b)]
        nothing = (ApproxDP(0, 0), ZeroConcentratedDP.ZERO)
        assert plain[0] == plain[1] or (plain[0] in nothing and plain[1] in nothing)


@given(approxes, epsilons)
def test_the_rule_for_less_epsilon_is_tight(g: ApproxDP, less: Fraction) -> None:
    """The worst mechanism, built outcome by outcome: it tells all with probability delta, else lies now and then."""
    assume(less < g.epsilon)
    bits = Fraction(1, 2**40)
    for factor, other in ((exp(g.epsilon).lower, exp(less).upper), (exp(g.epsilon).upper, exp(less).lower)):
        truth, rest = factor / (1 + factor), 1 - g.delta
        p = (g.delta, rest * truth, rest * (1 - truth), Fraction(0))
        q = (Fraction(0), rest * (1 - truth), rest * truth, g.delta)
        delta = hockey(p, q, other)
        assert g.implies(ApproxDP.capped(less, delta + bits))
        assert not g.implies(ApproxDP.capped(less, delta - bits))


@given(laws(4, 2), epsilons, epsilons | st.just(Fraction(0)), deltas)
def test_what_is_implied_holds_on_real_distributions(two: list[Law], e: Fraction, e2: Fraction, d2: Fraction) -> None:
    delta = delta_up(two[0], two[1], e)
    assume(delta < 1)
    if ApproxDP(e, delta).implies(ApproxDP(e2, d2)):
        assert delta_down(two[0], two[1], e2) <= d2


def test_implications_by_hand() -> None:
    assert PureDP(1).implies(ApproxDP(1, 0))
    assert ApproxDP(1, 0).implies(PureDP(1))
    assert not ApproxDP(1, 1e-9).implies(PureDP(100))
    assert PureDP(1).implies(ZeroConcentratedDP(0.5))
    assert ApproxDP(1, 0).implies(ZeroConcentratedDP(0.5))
    assert not PureDP(1).implies(ZeroConcentratedDP(0.4999))
    assert not ApproxDP(1, 1e-9).implies(ZeroConcentratedDP(100))
    assert not ZeroConcentratedDP(1e-9).implies(PureDP(100))
    assert not ZeroConcentratedDP(1e-9).implies(ApproxDP(100, 0))
    assert ZeroConcentratedDP.ZERO.implies(PureDP.ZERO)
    assert PureDP.ZERO.implies(ApproxDP(0, 0))
    assert ApproxDP(5, 0.5).implies(ApproxDP.capped(Fraction(0), Fraction(1)))
    assert not PureDP(1e30).implies(ApproxDP(1e29, 0.5))
    # tanh(1/2) is the total variation of randomized response
    assert PureDP(1).implies(ApproxDP(0, math.tanh(0.5) + 1e-12))
    assert not PureDP(1).implies(ApproxDP(0, math.tanh(0.5) - 1e-12))
    with pytest.raises(UserError, match="must be a guarantee"):
        PureDP(1).implies(1)  # type: ignore[arg-type]


@pytest.mark.parametrize("rho", [0.0001, 0.01, 0.1])
def test_zcdp_implies_what_it_implies_in_two_steps(rho: float) -> None:
    """To total variation the way over some epsilon > 0 proves more than the conversion alone."""
    g, detours = ZeroConcentratedDP(rho), 0
    for share in range(1, 20):
        first = g.to_approx(delta=0.05 * share * math.sqrt(rho))
        d = float(first.delta)
        second = ApproxDP(0, d + (1 - d) * math.tanh(float(first.epsilon) / 2) + 1e-9)
        assert first.implies(second)
        assert g.implies(second)
        detours += g.to_approx(delta=second.delta).epsilon > 0
    assert detours > 0


@given(laws(3, 2), epsilons)
def test_pure_to_zcdp_holds_on_real_distributions(two: list[Law], epsilon: Fraction) -> None:
    p, q = two
    assume(delta_up(p, q, epsilon) == 0)
    rho = float(PureDP(epsilon).to_zcdp().rho)
    for alpha in (1.01, 1.5, 2.0, 5.0, 30.0):
        moment = sum(float(a) ** alpha * float(b) ** (1 - alpha) for a, b in zip(p, q, strict=True) if a)
        assert math.log(moment) / (alpha - 1) <= rho * alpha + 1e-9


# --- conversion of zCDP -----------------------------------------------------------------------


def test_zcdp_to_approx_has_the_published_value() -> None:
    """OpenDP: rho = 1/32 at delta = 1e-3."""
    found = ZeroConcentratedDP("1/32").to_approx(delta=1e-3)
    assert found.delta == Fraction(1, 1000)
    assert abs(found.epsilon - Fraction("0.6880024554878085")) < Fraction(1, 10**14)


def gaussian_delta(rho: float, epsilon: float) -> float:
    """The exact delta of the Gaussian mechanism, which has this rho: no valid conversion lies below it."""

    def cdf(z: float) -> float:
        return math.erfc(-z / math.sqrt(2)) / 2

    mu = math.sqrt(2 * rho)
    return cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)


@given(st.floats(1e-6, 50), st.floats(1e-12, 0.5))
def test_zcdp_to_approx_is_sound_and_no_worse_than_the_simple_formula(rho: float, delta: float) -> None:
    found = ZeroConcentratedDP(rho).to_approx(delta=delta)
    assert found.epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-12
    assert gaussian_delta(rho, float(found.epsilon)) <= delta * (1 + 1e-6)


@given(st.floats(1e-6, 5), st.floats(0, 3), st.floats(1e-9, 0.9))
def test_what_zcdp_implies_the_gaussian_has(rho: float, epsilon: float, delta: float) -> None:
    if ZeroConcentratedDP(rho).implies(ApproxDP(epsilon, delta)):
        assert gaussian_delta(rho, epsilon) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("rho", ["1e-300", 1e-9, 1, 1e9, "1e300"])
@pytest.mark.parametrize("delta", ["1e-399", 1e-9, 0.5])
def test_zcdp_to_approx_at_the_ends(rho: Any, delta: Any) -> None:
    found = ZeroConcentratedDP(rho).to_approx(delta=delta)
    assert found.epsilon >= 0
    assert ZeroConcentratedDP(rho).implies(found)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), True, None])
def test_zcdp_to_approx_needs_a_delta(bad: Any) -> None:
    with pytest.raises(NumberError, match=r"delta must be.*to_approx\(delta=1e-6\)"):
        ZeroConcentratedDP(1).to_approx(delta=bad)


def test_exact_conversions() -> None:
    assert PureDP(0.5).to_approx() == ApproxDP(0.5, 0)
    assert PureDP(0.5).to_zcdp() == ZeroConcentratedDP("1/8")
    assert PureDP.ZERO.to_zcdp() == ZeroConcentratedDP.ZERO
    assert ZeroConcentratedDP.ZERO.to_approx(delta=0.1) == ApproxDP(0, 0)


# --- what it means ----------------------------------------------------------------------------


@given(laws(3, 2), epsilons, st.fractions(0, 1, max_denominator=20))
def test_nobody_becomes_surer_than_the_posterior(two: list[Law], epsilon: Fraction, prior: Fraction) -> None:
    pairs = list(zip(*two, strict=True))
    p, q = tuple((3 * a + b) / 4 for a, b in pairs), tuple((a + 3 * b) / 4 for a, b in pairs)  # at most 3 times apart
    assume(delta_up(p, q, epsilon) == 0)
    for a, b in zip(p, q, strict=True):
        if prior * a + (1 - prior) * b > 0:
            assert prior * a / (prior * a + (1 - prior) * b) <= PureDP(epsilon).posterior(prior)


@pytest.mark.parametrize("prior", [0.01, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", [0.1, 1, 5, 30])
def test_the_posterior_is_certified_and_tight(epsilon: float, prior: float) -> None:
    odds = math.exp(epsilon) * prior / (1 - prior)
    found = PureDP(epsilon).posterior(prior)
    assert math.isclose(float(found), odds / (1 + odds), rel_tol=1e-12)
    p = Fraction(str(prior))
    assert found >= p / (p + (1 - p) * exp(-Fraction(str(epsilon))).upper)
    assert found < 1


def test_the_posterior_at_the_ends() -> None:
    assert PureDP(1).posterior(0) == 0
    assert PureDP(1).posterior(1) == 1
    assert PureDP.ZERO.posterior(0.3) == Fraction(3, 10)
    assert PureDP("1e300").posterior(0.5) == 1
    assert ApproxDP(1, 0).posterior(0.5) == PureDP(1).posterior(0.5)
    with pytest.raises(UserError, match="may reveal everything"):
        ApproxDP(1, 1e-9).posterior(0.5)
    for bad in (-0.1, 1.1):
        with pytest.raises(NumberError, match=r"between 0 and 1.*posterior\(0\.5\)"):
            PureDP(1).posterior(bad)


@given(laws(4, 2), epsilons | st.just(Fraction(0)))
def test_no_test_beats_the_true_positive_rate(two: list[Law], epsilon: Fraction) -> None:
    p, q = two
    delta = delta_up(p, q, epsilon)
    assume(delta < 1)
    for event in product((0, 1), repeat=4):
        hit = sum((a for a, o in zip(p, event, strict=True) if o), Fraction(0))
        alarm = sum((b for b, o in zip(q, event, strict=True) if o), Fraction(0))
        assert hit <= ApproxDP(epsilon, delta).true_positive_rate(alarm)


@given(approxes, st.fractions(0, 1, max_denominator=50))
def test_the_true_positive_rate_is_its_formula(g: ApproxDP, f: Fraction) -> None:
    e, d, x = float(g.epsilon), float(g.delta), float(f)
    expected = min(1, math.exp(e) * x + d, 1 - math.exp(-e) * (1 - d - x))
    assert math.isclose(float(g.true_positive_rate(f)), expected, rel_tol=1e-12, abs_tol=1e-15)
    assert f <= g.true_positive_rate(f) <= 1


def test_meaning() -> None:
    text = PureDP(1).meaning(Adjacency.ADD_REMOVE)
    assert "someone 50 % sure that a person is in the data can become at most 73 % sure" in text
    assert "5 % false-positive rate, a test can detect the person at most 14 % of the time" in text
    assert text == PureDP(1).meaning("add/remove")
    assert "considers two versions of a person's data equally likely" in PureDP(1).meaning(Adjacency.REPLACE)
    assert "in the data" not in PureDP(1).meaning("replace")
    assert "probability" not in text
    approx = ApproxDP(1, 1e-6).meaning("add/remove")
    assert "reveals everything with probability 1e-6, and otherwise guarantees the following" in approx
    zcdp = ZeroConcentratedDP(0.1).meaning("replace", delta=1e-6)
    assert zcdp.startswith("rho 0.1 is epsilon 2.142 at delta 1e-6. ")
    assert ApproxDP.capped(Fraction(1), Fraction(1)).meaning("replace") == "A delta of 1 promises nothing."
    for bad in ("both", None):
        with pytest.raises(UserError, match="'add/remove' or 'replace'"):
            PureDP(1).meaning(bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ZeroConcentratedDP(0.1).meaning("replace")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("epsilon", "now"),
    [
        (0.001, "at most 50.02 % sure"),
        (0.1, "at most 52 % sure"),
        (3, "at most 95 % sure"),
        (7, "at most 99.9 % sure"),
        (10, "at most 99.995 % sure"),
        (50, "all but certain"),
        (1e6, "all but certain"),
    ],
)
def test_meaning_neither_hides_a_change_nor_claims_certainty(epsilon: float, now: str) -> None:
    text = PureDP(epsilon).meaning("add/remove")
    assert f"can become {now}." in text
    assert "at most 100 %" not in text


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=60))
def test_meaning_never_says_at_most_100(epsilon: Fraction) -> None:
    for kind in ("add/remove", "replace"):
        assert "at most 100" not in PureDP(epsilon).meaning(kind)
        assert "at most 50 %" not in PureDP(epsilon).meaning(kind)


def test_delta_and_the_population() -> None:
    assert delta_for_population(1000) == Fraction(1, 10**6)
    advise: Callable[[Any], str] = lambda delta: ApproxDP(1, delta).advice(population=100)  # noqa: E731
    assert "small enough for 100 people" in advise(1e-4)
    assert "above 1/n^2 = 0.0001" in advise(0.001)
    assert "above 1/n = 0.01, far too large" in advise(0.5)
    assert "50 of 100" in advise(0.5)
    for bad in (0, -1, 1.5, True, None):
        with pytest.raises(NumberError, match="n must be"):
            delta_for_population(bad)  # type: ignore[arg-type]
        with pytest.raises(NumberError, match="population must be"):
            ApproxDP(1, 0.1).advice(population=bad)  # type: ignore[arg-type]
