"""Which noise a question gets, and at which price: chosen by public facts, paid for, and right in its intervals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from scipy.stats import binomtest
from tests.planner.tables import table

import privet as pv
from privet.errors import QueryError
from privet.mechanisms import GAUSSIAN
from privet.mechanisms.laplace import LAPLACE
from privet.planner import ReleasePlan, choice, plan
from privet.planner.choice import Accounting
from privet.planner.noise import add_noise
from privet.planner.plan import NoisyMeasurement
from privet.planner.pricing import amount
from privet.privacy.accounting import accountant_for
from privet.privacy.events import Composed, GaussianNoise, JointGaussian
from privet.privacy.guarantees import ApproxDP, Budget, PureDP, ZeroConcentratedDP
from privet.tables.query import Query


def of(budget: Budget, accountant: str = "") -> Accounting:
    return Accounting(accountant_for(budget, accountant), budget)


METERS, RHO, PURE = of(ApproxDP(1, 1e-6)), of(ZeroConcentratedDP(0.1)), of(PureDP(3))


def by_month(groups: int = 0, rows: int = 0, **how: Any) -> Query:
    """Counts in 24 groups; a person has rows in so many of them, or so many rows."""
    protect = pv.person("id", max_groups=groups, max_rows_per_group=1) if groups else pv.person("id", max_rows=rows)
    return table(protect=protect, month=pv.integer(1, 24), **how).group_by("month").agg(n=pv.count())


# --- the choice -----------------------------------------------------------------------------------


def test_a_single_release_changes_to_gaussian_noise_between_7_and_11_groups() -> None:
    """The published range: Gaussian noise pays where one person is in many groups."""
    chosen = [plan(by_month(groups), epsilon=1, delta=1e-6, accounting=METERS).mechanism for groups in range(1, 15)]
    first = 1 + chosen.index(GAUSSIAN)
    assert chosen == [LAPLACE] * (first - 1) + [GAUSSIAN] * (15 - first)
    assert 7 <= first <= 12


@pytest.mark.parametrize("groups", [4, 20])
def test_the_choice_has_the_smaller_error_and_says_so(groups: int) -> None:
    query = by_month(groups)
    both = {
        name: plan(query, epsilon=1, delta=1e-6, mechanism=name, accounting=METERS) for name in ("laplace", "gaussian")
    }
    chosen = plan(query, epsilon=1, delta=1e-6, accounting=METERS)
    best = min(both.values(), key=lambda made: made.expected("n") or 0)
    assert chosen == best
    other = next(made for made in both.values() if made != best)
    ratio = float((other.expected("n") or 0) / (best.expected("n") or 1))
    assert f"would be {ratio:.2f} times as large" in chosen.choice
    assert "It costs " in chosen.choice
    assert chosen.choice in " ".join(chosen.explain().split())


def test_under_meters_small_errors_of_many_are_cheaper_with_gaussian_noise() -> None:
    """Below an epsilon of 0.15 or so, even if only the number of rows is capped."""
    query, gaussian = by_month(rows=3), {}
    for error in (20, 50, 100, 200, 500, 1000, 5000):
        chosen = plan(query, within={"n": error}, accounting=METERS)
        plain = plan(query, within={"n": error}, mechanism="laplace")
        assert (chosen.expected("n") or 0) <= error
        gaussian[plain.epsilon] = chosen.mechanism is GAUSSIAN
        used = METERS.used(chosen)
        assert used == min(used or 1, METERS.used(plain) or 1)
    small = [epsilon for epsilon, is_gaussian in gaussian.items() if is_gaussian]
    large = [epsilon for epsilon, is_gaussian in gaussian.items() if not is_gaussian]
    assert small
    assert large
    assert max(small) < min(large)
    assert Fraction(1, 20) < min(large)
    assert max(small) < Fraction(1, 5)


def test_the_choice_does_not_depend_on_what_was_assumed() -> None:
    protect = pv.person("id", max_groups=9, max_rows_per_group=1)
    rows = table(protect=protect, m=pv.integer(1, 9), pay=pv.number(0, 100, step=1))
    query = rows.group_by("m").agg(n=pv.count(), pay=pv.mean("pay"))
    prices: list[dict[str, Any]] = [{"epsilon": 1, "delta": 1e-6}, {"epsilon": 0.1, "delta": 1e-9}]
    for price in prices:
        chosen = {plan(query, **price, accounting=METERS, assuming=n).mechanism for n in (None, 1, 50, 10**6)}
        assert len(chosen) == 1


@pytest.mark.parametrize("epsilon", [20, 100, 1000, 10**7])
def test_noise_that_is_almost_always_0_can_be_compared(epsilon: int) -> None:
    made = plan(by_month(20), epsilon=epsilon, delta=1e-6, accounting=of(ApproxDP(10**8, 1e-3)))
    assert made.guarantee().implies(made.price)
    assert choice.alternative(plan(by_month(20), epsilon=epsilon), of(ApproxDP(10**8, 1e-3))) is not None


def test_an_epsilon_alone_is_pure_whatever_the_budget() -> None:
    for accounting in (METERS, RHO, PURE, None):
        made = plan(by_month(20), epsilon=1, accounting=accounting)
        assert (made.mechanism, made.price, made.guarantee()) == (LAPLACE, PureDP(1), PureDP(1))


def test_a_rho_is_gaussian() -> None:
    for accounting in (METERS, RHO, None):
        made = plan(by_month(20), rho="1/50", accounting=accounting)
        assert (made.mechanism, made.price, made.guarantee()) == (GAUSSIAN,) + (ZeroConcentratedDP("1/50"),) * 2


def test_a_pure_budget_pays_for_no_gaussian_noise() -> None:
    with pytest.raises(QueryError, match=r"rho 0\.02 can't be paid from this budget, which is epsilon 3"):
        plan(by_month(20), rho="1/50", accounting=PURE)
    for named in ("gaussian", None):
        with pytest.raises(QueryError, match="delta is set, and this budget has none: epsilon 3"):
            plan(by_month(20), epsilon=1, delta=1e-6, mechanism=named, accounting=PURE)


def test_a_plain_sum_of_epsilons_needs_a_delta() -> None:
    plain = of(ApproxDP(1, 1e-6), "approx")
    with pytest.raises(QueryError, match=r"rho 0\.02 can't be paid from this budget"):
        plan(by_month(20), rho="1/50", accounting=plain)
    assert plan(by_month(20), within={"n": 100}, accounting=plain).mechanism is LAPLACE
    assert plan(by_month(20), epsilon=1, delta=1e-7, accounting=plain).price == ApproxDP(1, 1e-7)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"mechanism": "gaussian", "epsilon": 1}, "an epsilon alone can't pay for it.*rho=0.01"),
        ({"mechanism": "laplace", "rho": 1}, "paid for in epsilon, not in rho.*epsilon=0.5"),
        ({"epsilon": 1, "rho": 1}, "both epsilon and rho are set.*epsilon=0.5, or rho=0.01"),
        ({"rho": 1, "within": {"n": 1}}, "both rho and within are set.*rho=0.01, or within="),
        ({"epsilon": 1, "mechanism": "gauss"}, "no mechanism 'gauss'.*Write, for example: mechanism=\"gaussian\""),
        ({"epsilon": 1, "mechanism": pv.Gaussian}, "mechanism must be a name, not type"),
        ({"delta": 1e-6}, "delta is set without an epsilon.*epsilon=0.5, delta=1e-6"),
        ({"rho": 1, "delta": 1e-6}, "a price in rho has no delta"),
        ({"epsilon": 1, "delta": 1}, "delta must be less than 1"),
        ({"epsilon": 1, "delta": 0}, "delta must be a number greater than 0"),
        ({"epsilon": 1, "delta": float("nan")}, "delta"),
        ({"rho": 0}, "rho must be a number greater than 0"),
        ({"rho": -1}, "rho must be a number greater than 0"),
        ({"rho": True}, "rho"),
        ({"rho": "1e7"}, "rho 10000000 is above 1,000,000, which promises nothing"),
        ({"rho": "1e-30"}, "below 5e-19, so the answer would be only noise"),
        ({"rho": "1/1000000000", "min_epsilon": "1/1000"}, "rho 1e-9 is below the minimum.*0.0000005"),
        ({"epsilon": "1/10000", "delta": "1/1000", "min_epsilon": "1/1000"}, "epsilon 0.0001 is below the minimum"),
        ({"within": {"n": 1}, "delta": 2}, "delta must be less than 1"),
        ({}, "the price is missing. Set one of epsilon, rho and within"),
    ],
)
def test_refusals(how: dict[str, Any], message: str) -> None:
    with pytest.raises(pv.errors.UserError, match=f"(?s){message}"):
        plan(by_month(3), **how)


def test_errors_that_cost_less_than_the_minimum_are_raised_to_it_in_rho_too() -> None:
    made = plan(by_month(20), within={"n": 10**7}, min_epsilon="1/100", mechanism="gaussian")
    assert (made.price, made.raised_to) == (ZeroConcentratedDP("1/20000"), Fraction(1, 100))
    assert "minimum price of epsilon 0.01, which is rho 5e-5" in " ".join(made.explain().split())


# --- the price ------------------------------------------------------------------------------------


def several(**how: Any) -> Query:
    return (
        table(
            protect=pv.person("id", max_groups=2, max_rows_per_group=3),
            m=pv.integer(1, 9),
            pay=pv.number(-7, 100, step=1),
            age=pv.integer(0, 110),
            **how,
        )
        .group_by("m")
        .agg(n=pv.count(), pay=pv.mean("pay"), people=pv.count_people(), spread=pv.std("age"), s=pv.sum("pay"))
    )


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize(
    "how", [{"rho": "1/7"}, {"epsilon": "1/3", "delta": 1e-7}, {"within": dict.fromkeys(("n", "people", "s"), 9000)}]
)
@pytest.mark.parametrize("accounting", [METERS, RHO], ids=["meters", "rho"])
def test_the_price_is_what_accountants_make_of_the_noise(
    how: dict[str, Any], accounting: Accounting, adjacency: str
) -> None:
    more = {"within": {**how["within"], "pay": 50, "spread": 50}} if "within" in how else how
    made = plan(several(adjacency=adjacency), **more, mechanism="gaussian", assuming=1000, accounting=accounting)
    assert len(made.noised) >= 3
    assert sum(made.design.shares) == 1
    rho = sum((amount(part.price) for part in made.noised), Fraction(0))
    for part in made.noised:
        assert part.price == ZeroConcentratedDP(part.move.total / (2 * part.scale))
    assert made.guarantee().implies(made.price)
    event = made.event()
    assert isinstance(event, Composed)
    if made.stated_at is None:
        assert [type(each) for each in event.events] == [GaussianNoise] * len(made.noised)
    else:
        (joint,) = event.events
        assert isinstance(joint, JointGaussian)
        assert joint.rho == rho
    price = accounting.accountant.price(event)
    if accounting is METERS:
        order = accounting.accountant.orders[0]  # type: ignore[attr-defined]
        assert price.renyi[0] >= order * rho
        assert float(price.renyi[0]) == pytest.approx(float(order * rho), rel=1e-9)
        assert price.epsilon == made.stated_at
        assert price.delta <= (Fraction(1, 10**7) if "delta" in how else METERS.stated_delta)
    else:
        assert price == ZeroConcentratedDP(rho)


def test_several_measurements_together_need_less_noise_than_each_by_itself() -> None:
    """A twin that gives each an equal part of epsilon and of delta adds far more noise."""
    price = ApproxDP(1, 1e-6)
    made = plan(several(), epsilon=1, delta=1e-6, mechanism="gaussian")
    count = len(made.noised)
    for part in made.noised:
        alone = GAUSSIAN.calibrate(part.move, ApproxDP(price.epsilon / count, price.delta / count),
                                   coordinates=part.coordinates)  # fmt: skip
        assert alone > part.scale


def test_one_measurement_needs_no_more_noise_than_a_scalar() -> None:
    """The exact delta of one number, also for counts in groups of which one row moves one."""
    for query in (by_month(1), table(x=pv.integer(0, 9)).agg(n=pv.count())):
        made = plan(query, epsilon=1, delta=1e-6, mechanism="gaussian")
        assert 17.8 < float(made.noised[0].scale) < 17.9, "REFERENCES: the discrete condition"
    many = plan(by_month(3), epsilon=1, delta=1e-6, mechanism="gaussian")
    assert float(many.noised[0].scale) / 3 > 20, "a vector goes by way of rho"


def test_a_plan_with_less_noise_tells() -> None:
    made = plan(several(), rho=1)
    parts = tuple(p.scaled(p.scale / 2) for p in made.noised if isinstance(p, NoisyMeasurement))
    assert not replace(made, noised=parts).guarantee().implies(made.price)


# --- one cheap question in rho --------------------------------------------------------------------


def test_a_cheap_question_in_rho_does_not_end_the_meter_of_epsilons() -> None:
    """Otherwise one analyst could take 4 of 10 questions from everybody for next to nothing (docs/theory.md)."""
    budget = of(ApproxDP(3, 1e-6))
    large, cheap = plan(by_month(1), epsilon="3/10"), {"rho": "1/2000000", "min_epsilon": "1/1000"}

    def allowed(accounting: Accounting, *first: Any) -> int:
        accountant = accounting.accountant
        total = accountant.price(Composed(first))
        price, count = accountant.price(large.event()), 0
        while accountant.fits(total := accountant.add(total, price), accounting.budget):
            count += 1
        return count

    class Unstated(Accounting):
        """A twin: no epsilon is stated, so that the meter of epsilons has no reading any more."""

        stated_delta = Fraction(0)

    def asked(accounting: Accounting) -> Any:
        return plan(by_month(1), **cheap, accounting=accounting).event()  # type: ignore[arg-type]

    twin = Unstated(budget.accountant, budget.budget)
    assert (allowed(budget), allowed(budget, asked(budget)), allowed(twin, asked(twin))) == (10, 9, 6)


# --- the intervals --------------------------------------------------------------------------------


def held(
    made: ReleasePlan, exact: list[list[tuple[int, ...]]], truth: dict[str, float], noise: ReleasePlan
) -> dict[str, list[int]]:
    """For each column, how many cells hold the truth, of how many, with the noise of another plan."""
    counts = {name: [0, 0] for name in truth}
    for _ in range(40):
        noisy, event = add_noise(noise, exact)
        assert event == noise.event()
        for name, cells in made.cells(noisy).items():
            for low, high in zip(cells.low, cells.high, strict=True):
                counts[name][0] += low <= truth[name] <= high
                counts[name][1] += 1
    return counts


@pytest.mark.parametrize("rho", ["1/50", "2"])
def test_intervals_hold_as_often_as_they_say_and_tell_larger_noise(rho: str) -> None:
    query = (
        table(protect=pv.person("id", max_rows=2), m=pv.integer(1, 60), v=pv.integer(0, 10, required=True))
        .group_by("m")
        .agg(n=pv.count(), s=pv.sum("v"), mean=pv.mean("v"), spread=pv.variance("v"))
    )
    made = plan(query, rho=rho, confidence=0.9)
    values = [3, 4, 5, 6, 7] * 400
    tallied = {"rows": len(values), "present": len(values), "total": sum(values), "squares": sum(v * v for v in values)}
    answers = []
    for statement in made.statements():
        row = [tallied[type(tally).__name__.lower()] for tally in statement.tallies]
        answers.append([row] * made.groups)
    exact = made.coordinates(answers)
    truth = {"n": 2000.0, "s": 10_000.0, "mean": 5.0, "spread": 2.0}
    for count, total in held(made, exact, truth, made).values():
        assert binomtest(count, total, 0.9, "less").pvalue > 1e-9
    louder = plan(query, rho=Fraction(rho) / 4, confidence=0.9)
    for name, (count, total) in held(made, exact, truth, louder).items():
        assert binomtest(count, total, 0.9, "less").pvalue < 1e-9, name
