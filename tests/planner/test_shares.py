"""How the budget is shared: exactly, and so that no other way makes the worst error smaller."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.planner.tables import table
from tests.prices import loss

import privet as pv
from privet.errors import QueryError, UserError
from privet.planner import ReleasePlan, plan
from privet.planner.linear import Linear
from privet.planner.noise import Noise
from privet.planner.outputs import Quotient, Spread, Straight
from privet.tables.query import Query
from privet.tables.relation import Relation

COLUMNS: dict[str, Any] = {
    "x": pv.integer(0, 10, required=True),
    "y": pv.integer(0, 1000, required=True),
    "far": pv.integer(100, 110, required=True),
    "gone": pv.integer(0, 10),
    "g": pv.keys("a", "b"),
}
PARTS: dict[str, Any] = {
    "n": pv.count(), "k": pv.count_people(), "x": pv.sum("x"), "mx": pv.mean("x"), "vx": pv.variance("x"),
    "my": pv.mean("y"), "far": pv.sum("far"), "mf": pv.mean("far"), "ng": pv.count("gone"), "mg": pv.mean("gone"),
    "vg": pv.variance("gone"), "h": pv.histogram("x", [0, 5, 10]), "r": pv.sum("x") / pv.sum("y"),
}  # fmt: skip
epsilons = st.one_of(st.fractions(Fraction(1, 10**6), 50, max_denominator=10**6), st.sampled_from([0.1, "1/3", 1, 2.5]))


@settings(max_examples=75)
@given(st.sets(st.sampled_from(sorted(PARTS)), min_size=1, max_size=5), epsilons, st.booleans(), st.data())
def test_shares_add_up_exactly(names: set[str], epsilon: Any, grouped: bool, data: st.DataObject) -> None:
    base: Any = table(**COLUMNS)
    of = base.group_by("g") if grouped else base
    weights = data.draw(
        st.dictionaries(st.sampled_from(sorted(names)), st.fractions(Fraction(1, 9), 9, max_denominator=9))
    )
    made = plan(of.agg(**{name: PARTS[name] for name in sorted(names)}), epsilon=epsilon, weights=weights)
    whole = Fraction(str(epsilon)) if not isinstance(epsilon, Fraction) else epsilon
    assert sum(loss(part.price) for part in made.noised) == whole == made.epsilon == loss(made.guarantee())
    assert all(loss(part.price) > 0 for part in made.noised)


# --- the errors of a plan, computed anew ------------------------------------------------------------


def spread_of(form: Linear, scales: Sequence[float]) -> float:
    """The size of the noise of a linear form, in scales of one Laplace variable."""
    return math.sqrt(sum((float(w) * scales[m]) ** 2 for m, _, w in form.terms))


OWN: dict[str, float] = {"n": 1, "k": 1, "x": 10, "mx": 10, "my": 1000, "far": 110, "mf": 10, "ng": 1, "mg": 10, "h": 1}
"""One row's largest effect on each statistic, so the noise of a measurement of its own at epsilon 1."""


def relative(made: ReleasePlan, scales: Sequence[float]) -> dict[str, float]:
    """The worst error of each column, in units of a measurement of its own at full epsilon 1."""
    found = {}
    for name, output in made.columns:
        short = name.split(" ")[0]
        match output:
            case Straight(form):
                found[name] = spread_of(form, scales) / OWN[short]
            case Quotient(numerator, denominator, most=Fraction() as most, unit=unit):
                grid = [numerator.plus(denominator.times(-most * Fraction(i, 20))) for i in range(21)]
                found[name] = max(spread_of(form, scales) for form in grid) * float(unit) / OWN[short]
            case Spread(place, width):
                found[name] = scales[place] / width**2
    return found


def worst(made: ReleasePlan, shares: Iterable[float], weights: dict[str, float]) -> float:
    scales = [part.move.total / share for part, share in zip(made.noised, shares, strict=True)]
    return max(error * weights.get(name.split(" ")[0], 1) for name, error in relative(made, scales).items())


CASES: list[tuple[list[str], dict[str, float], float]] = [
    # what is asked, weights, and the least worst error by hand
    (["n"], {}, 1),
    (["mx"], {}, 1),
    (["n", "mx"], {}, math.sqrt(2)),
    (["n", "x"], {}, math.sqrt(2)),
    (["n", "mg"], {}, math.sqrt(3)),
    (["ng", "mg"], {}, math.sqrt(2)),
    (["n", "vx"], {}, math.sqrt(3)),
    (["n", "vg"], {}, 2),
    (["mx", "vx"], {}, 1.12),
    (["mx", "my"], {}, 2),
    (["n", "mx", "my"], {}, 1 + math.sqrt(2)),
    (["n", "k"], {}, 2),
    (["n", "h"], {}, 2),
    (["n", "mx"], {"n": 3}, 4),
    (["n", "mx"], {"mx": 3}, 3),
    (["n", "mx", "h"], {"h": 2}, 2 + math.sqrt(2)),
    (["far", "mf"], {}, math.sqrt(11**2 + 10**2) / 11),
]


@pytest.mark.parametrize(("names", "weights", "best"), CASES, ids=lambda x: str(x))
def test_no_other_shares_are_better(names: list[str], weights: dict[str, float], best: float) -> None:
    query = table(**COLUMNS).agg(**{name: PARTS[name] for name in names})
    made = plan(query, epsilon=1, weights=weights or None)
    chosen = worst(made, [float(loss(part.price)) for part in made.noised], weights)
    assert chosen == pytest.approx(best, rel=3e-3)
    grid = [i / 40 for i in range(1, 40)]
    for shares in product(grid, repeat=len(made.noised) - 1):
        if sum(shares) < 0.999:
            assert worst(made, [*shares, 1 - sum(shares)], weights) >= chosen * (1 - 3e-3)


def test_a_count_by_itself_or_from_a_vector() -> None:
    """Both ways, by hand: the smaller one is chosen, and the explanation names both."""
    for weight in (Fraction(1, 2), 1, 2, Fraction(24, 10), Fraction(25, 10), 5):
        query = table(**COLUMNS).agg(n=pv.count(), mx=pv.mean("x"))
        made = plan(query, epsilon=1, weights={"n": weight})
        own, vector = float(weight) + 1, max(float(weight) * math.sqrt(2), 1)
        assert (len(made.noised) == 1) == (vector < own)
        assert f"{own:.2f}" in made.design.reason
        assert float(made.design.worst) == pytest.approx(min(own, vector), rel=2e-3)


@pytest.mark.parametrize("names", [["n", "mx"], ["n", "x"], ["n", "mg"], ["n", "vx"], ["x"], ["n", "mx", "my"]])
def test_under_replace_no_design_is_worse_than_splitting(names: list[str]) -> None:
    """In units of one row's effect: a measurement for each aggregate, with the best shares, is not better."""
    base = table(adjacency="replace", **COLUMNS)
    made = plan(base.agg(**{name: PARTS[name] for name in names}), epsilon=1)
    alone = {name: plan(base.agg(**{name: PARTS[name]}), epsilon=1) for name in names}
    own = {name: relative(one, [float(s) for s in one.scales])[name] for name, one in alone.items()}
    together = relative(made, [float(s) for s in made.scales])
    assert max(together.values()) <= sum(own.values()) * 1.003


# --- what joint vectors are worth, computed independently -------------------------------------------


@pytest.mark.parametrize("g", [0, 0.1, 0.25, 0.5, 0.8, 1])
def test_a_mean_from_one_vector_is_root_two_better_than_a_split(g: float) -> None:
    """Against half of epsilon for the count and half for the sum of v - W/2 (which moves by W/2): at every mean."""
    split = math.hypot(2 * 0.5, 2 * (g - 0.5))
    made = plan(table(**COLUMNS).agg(mx=pv.mean("x")), epsilon=1)
    output = dict(made.columns)["mx"]
    assert isinstance(output, Quotient)
    form = output.numerator.plus(output.denominator.times(-Fraction(str(g)) * 10))
    assert split / (spread_of(form, [float(s) for s in made.scales]) / 10) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    ("g", "tau", "better"),
    [(0.5, 1 / 12, 1.94), (0.5, 1 / 4, 2.12), (0.5, 1 / 16, 1.88), (0, 0, 1.84), (0.2, 0.05, 1.88)],
)
def test_a_variance_from_one_vector_is_about_twice_as_good_as_a_split(g: float, tau: float, better: float) -> None:
    """Against a third of epsilon each for count, sum of u = v - W/2 and sum of u^2, at mean g W and variance tau W^2.

    The statistic is S2 - 2 m S1 + (m^2 - tau) N with m = g - 1/2, and the three move by 1/4, 1/2 and 1.
    """
    m = g - 0.5
    split = 3 * math.sqrt((1 / 4) ** 2 + (2 * m / 2) ** 2 + (m**2 - tau) ** 2)
    joint = math.sqrt((g**2 - tau) ** 2 + (g * (1 - g) + tau) ** 2 + ((1 - g) ** 2 - tau) ** 2)
    assert split / joint == pytest.approx(better, abs=0.01)
    made = plan(table(**COLUMNS).agg(vx=pv.variance("x")), epsilon=1)
    assert list(map(int, made.scales)) == [100], "the scale is W^2 / epsilon, so `joint` is in the same units"


# --- within -----------------------------------------------------------------------------------------

WITHIN: list[tuple[Callable[[Relation], Query], dict[str, Any], dict[str, Any]]] = [
    (lambda t: t.agg(n=pv.count()), {"n": 50}, {}),
    (lambda t: t.agg(n=pv.count()), {"n": 3}, {"confidence": 0.99}),
    (lambda t: t.agg(n=pv.count()), {"n": 0.7}, {}),
    (lambda t: t.agg(n=pv.count(), k=pv.count_people()), {"n": 50, "k": 20}, {}),
    (lambda t: t.agg(s=pv.sum("x")), {"s": 1000}, {}),
    (lambda t: t.agg(s=pv.sum("x"), m=pv.mean("x")), {"s": 1000}, {}),
    (lambda t: t.agg(s=pv.sum("x"), m=pv.mean("x")), {"m": 0.1}, {"assuming": 500}),
    (lambda t: t.agg(m=pv.mean("x"), v=pv.variance("x")), {"m": 0.1, "v": 1}, {"assuming": 500}),
    (lambda t: t.agg(v=pv.variance("x")), {"v": 1}, {"assuming": 500}),
    (lambda t: t.agg(v=pv.std("x")), {"v": 0.25}, {"assuming": 500}),
    (lambda t: t.agg(h=pv.histogram("x", [0, 5, 10])), {"h [0, 5)": 12}, {}),
    (lambda t: t.agg(r=pv.sum("x") / pv.sum("y")), {"r": 0.01}, {"assuming": 500}),
    (lambda t: t.agg(r=pv.count_people() / pv.count()), {"r": 0.1}, {"assuming": 500}),
    (lambda t: t.group_by("g").agg(n=pv.count(), m=pv.mean("y")), {"n": 20, "m": 40}, {"assuming": 300}),
    (lambda t: t.group_by("g").agg(n=pv.count(), m=pv.mean("y")), {"n": 20, "m": 40},
     {"assuming": 300, "simultaneous": True}),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "errors", "options"), WITHIN)
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_within_keeps_to_the_errors_and_costs_no_more(
    ask: Callable[[Relation], Query], errors: dict[str, Any], options: dict[str, Any], adjacency: str
) -> None:
    query = ask(table(adjacency=adjacency, **COLUMNS))
    made = plan(query, within=errors, **options)
    for name, error in errors.items():
        found = made.expected(name)
        assert found is not None
        assert found <= Fraction(str(error))
    assert loss(made.guarantee()) == made.epsilon == sum(loss(part.price) for part in made.noised)
    for place, part in enumerate(made.noised):  # with 1 % less for one of them, an error is not kept to
        scales = tuple(other.scale * (Fraction(100, 99) if i == place else 1) for i, other in enumerate(made.noised))
        noise = Noise(made.mechanism, scales)
        broken = [
            name
            for name, error in errors.items()
            if (off := dict(made.columns)[name].expected(noise, made.level, made.assuming)) is None
            or off > Fraction(str(error))
        ]
        assert broken or errors == {"n": 0.7}, (part.measurement.quantity, float(loss(part.price)))


def test_within_keeps_to_errors_of_every_size(effort: int) -> None:
    """Any aggregates, errors, confidence and assumed size: what is planned keeps to what was asked."""
    stream = random.Random(5)
    planned = 0
    for _ in range(80 * effort):
        names = stream.sample(sorted(PARTS), stream.randint(1, 4))
        protect = stream.choice([pv.each_row(), pv.person("id", max_rows=3)])
        base: Any = table(adjacency=stream.choice(["add/remove", "replace"]), protect=protect, **COLUMNS)
        of = base.group_by("g") if stream.random() < 0.4 else base
        query = of.agg(**{name: PARTS[name] for name in names})
        columns = [name for name, _ in plan(query, epsilon=1).columns]
        errors = {name: Fraction(stream.randint(1, 10**6), stream.choice([1, 10, 1000, 10**5])) for name in columns}
        how: dict[str, Any] = {
            "assuming": stream.choice([1, 10, 1000, 10**6]),
            "confidence": stream.choice([0.5, 0.9, 0.95, 0.999]),
            "simultaneous": stream.random() < 0.3,
        }
        try:
            made = plan(query, within=errors, **how)
        except QueryError as error:
            refused = str(error)
        else:
            refused = ""
            planned += 1
            assert all((made.expected(name) or 0) <= error for name, error in errors.items())
        assert not refused or "below 10^-9" in refused or "Allow a larger error" in refused
    assert planned > 40


def test_a_price_has_six_digits() -> None:
    made = plan(table(**COLUMNS).agg(n=pv.count()), within={"n": 50})
    assert len(str(float(made.epsilon)).strip("0.").replace(".", "")) <= 6


def test_a_smaller_error_of_one_side_of_a_ratio_keeps_the_ratio_within() -> None:
    """Where the two sides cost differently their noise differs too, and is bounded otherwise."""
    query = table(**COLUMNS).agg(r=pv.count_people() / pv.count(), n=pv.count())
    for n in (50, 20, 18, 15, 10, 5, 2):
        errors = {"r": "0.1", "n": n}
        made = plan(query, within=errors, assuming=300)
        for name, error in errors.items():
            found = made.expected(name)
            assert found is not None
            assert found <= Fraction(str(error)), (n, name, float(found))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the price is missing. Set one of epsilon, rho and within"),
        ({"epsilon": 1, "within": {"n": 5}}, r"both epsilon and within are set"),
        ({"within": {"k": 5}}, r"within: there is no column 'k'. The columns are: n, m"),
        ({"within": {"n": 0}}, r"within of n must be"),
        ({"within": {"n": float("nan")}}, r"within of n must be a number"),
        ({"within": 5}, r"within must map columns to numbers. Write, for example: within=\{\"n\": 2\}"),
        ({"within": {"m": 5}}, r"the error of 'm' depends on the number of rows in a group, .*assuming=500"),
        ({"within": {"n": 5}, "assuming": 0}, r"assuming must be"),
        ({"within": {"n": 5}, "assuming": 2**41}, r"assuming must be at most 2\^40"),
        ({"epsilon": 0}, r"epsilon must be a number greater than 0"),
        ({"epsilon": -1}, r"epsilon must be"),
        ({"epsilon": True}, r"epsilon must be"),
        ({"epsilon": "half"}, r"epsilon must be"),
        ({"epsilon": float("inf")}, r"epsilon must be"),
        ({"epsilon": "1e-10"}, r"epsilon 1e-10 is below 10\^-9"),
        ({"epsilon": 1, "confidence": 0}, r"confidence must be"),
        ({"epsilon": 1, "confidence": 1}, r"confidence must be .*both excluded"),
        ({"epsilon": 1, "confidence": 95}, r"confidence must be"),
        ({"epsilon": 1, "weights": {"z": 1}}, r"weights: there is no column 'z'"),
        ({"epsilon": 1, "weights": {"n": -1}}, r"weights of n must be"),
        ({"epsilon": 1, "weights": [1]}, r"weights must map columns to numbers"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    query = table(**COLUMNS).agg(n=pv.count(), m=pv.mean("x"))
    with pytest.raises(UserError, match=message):
        plan(query, **options)


def test_within_must_say_something_about_every_measurement() -> None:
    with pytest.raises(
        QueryError, match=r'within needs an error for .k.\. Write, for example: within=\{"k": 50, \.\.\.\}'
    ):
        plan(table(**COLUMNS).agg(n=pv.count(), k=pv.count_people()), within={"n": 5})


def test_a_query_is_needed() -> None:
    with pytest.raises(QueryError, match="str is not a query"):
        plan("SELECT 1", epsilon=1)  # type: ignore[arg-type]


def test_what_is_public_costs_nothing() -> None:
    made = plan(table(adjacency="replace", rows=50, **COLUMNS).agg(n=pv.count()), epsilon=1)
    assert made.noised == ()
    assert loss(made.guarantee()) == 0
    assert made.expected("n") == 0
