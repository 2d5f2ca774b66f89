"""Quantiles, minimum and maximum through a session: answers, prices, certificates, recall, and what is refused."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.effort import some

import privet as pv
from privet.errors import QueryError, UserError, VerificationError
from privet.planner import joining
from privet.planner.ranks import ChosenRanks
from privet.privacy import events
from privet.release import checker
from privet.tables.query import Query
from privet.tables.relation import Table

CHANCE = np.random.default_rng(5)
N = 1200
ROWS = pa.table(
    {
        "id": CHANCE.integers(0, 600, N),
        "region": CHANCE.choice(["north", "south", "nowhere"], N),
        "pay": np.where(CHANCE.random(N) < 0.05, np.nan, np.exp(CHANCE.normal(7, 0.5, N))),
        "age": CHANCE.integers(0, 111, N),
    }
)
COLUMNS = {"region": pv.keys("north", "south"), "pay": pv.number(0, 10_000), "age": pv.integer(0, 110)}
HUGE = 10**6
"""An epsilon at which there is no noise to speak of."""


def table(adjacency: str = "add/remove", rows: pa.Table = ROWS, **person: int) -> Table:
    protect = pv.person("id", **person) if person else pv.each_row()
    columns = rows.column_names if person else [name for name in rows.column_names if name != "id"]
    return pv.table("people", rows.select(columns), protect=protect, columns=COLUMNS, adjacency=adjacency)


def session(of: Table, budget: Any = None, **options: Any) -> pv.Session:
    return pv.Session([of], budget=budget or pv.PureDP(10 * HUGE), ledger=None, **options)


def everything(of: Table) -> dict[str, Query]:
    return {
        "median": of.agg(m=pv.median("pay")),
        "alone": of.agg(m=pv.median("pay", interval=False), n=pv.count()),
        "grouped": of.group_by("region").agg(q=pv.quantile("age", 0.9), m=pv.mean("age")),
        "several": of.where(pv.col("age") >= 18).agg(q=pv.quantiles("pay", [0.1, 0.5, 0.9])),
        "many": of.agg(q=pv.quantiles("pay", [i / 10 for i in range(1, 10)], interval=False)),
        "joined": of.agg(m=pv.median("pay"), high=pv.quantile("pay", 0.9), low=pv.min("pay")),
        "ends": of.agg(low=pv.min("pay"), high=pv.max(pv.col("age") * 2, interval=False)),
    }


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_without_noise_they_are_the_quantiles(engine: str) -> None:
    of = table()
    pay = np.sort(np.array([x for x in ROWS["pay"].to_pylist() if x == x]))
    age = np.array(ROWS["age"].to_pylist())
    region = np.array(ROWS["region"].to_pylist())
    with session(of, engine=engine) as asks:
        (median,) = asks.release(of.agg(m=pv.median("pay")), epsilon=HUGE).values("m")
        assert pay[len(pay) // 2 - 1] - 1e-3 <= median <= pay[len(pay) // 2] + 1e-3
        several = asks.release(of.agg(q=pv.quantiles("pay", [0.1, 0.9])), epsilon=HUGE)
        for name, q in (("q 0.1", 0.1), ("q 0.9", 0.9)):
            (value,), (low,), (high,) = several.values(name), *several.interval(name)
            assert np.quantile(pay, q - 0.01) <= low <= value <= high <= np.quantile(pay, q + 0.01)
        grouped = asks.release(of.group_by("region").agg(q=pv.quantile("age", 0.5)), epsilon=HUGE)
        assert grouped.values("q") == [int(np.median(age[region == name])) for name in ("north", "south")]
        ends = asks.release(of.agg(low=pv.min("age"), high=pv.max("age")), epsilon=HUGE)
        assert (ends.values("low"), ends.values("high")) == ([0], [110])
        per_person = table(max_rows=3)
    with session(per_person, engine=engine) as asks:
        oldest = per_person.per_person(oldest=pv.max("age"), first=pv.min("pay")).agg(m=pv.median("oldest"))
        ids = np.array(ROWS["id"].to_pylist())
        exactly = np.median([age[ids == one].max() for one in np.unique(ids)])
        assert abs(asks.release(oldest, epsilon=HUGE).values("m")[0] - exactly) <= 1


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("person", [{}, {"max_rows": 3}, {"max_groups": 2, "max_rows_per_group": 2}], ids=str)
def test_prices_certificates_and_recall(adjacency: str, person: dict[str, int]) -> None:
    of = table(adjacency, **person)
    prices: list[tuple[Any, dict[str, Any]]] = [
        (pv.PureDP(100), {"epsilon": "1/3"}),
        (pv.ZeroConcentratedDP(10), {"rho": 0.01}),
        (pv.ApproxDP(20, 1e-6), {"epsilon": 0.1, "delta": 1e-8}),
        (pv.ApproxDP(20, 1e-6), {"rho": 0.001}),
    ]
    turn = adjacency == "replace"
    for budget, price in some(prices, every=2, start=turn) if not person else prices[:1]:
        with session(of, budget) as asks:
            for name, query in everything(of).items():
                if isinstance(budget, pv.ApproxDP) and name not in ("median", "alone", "grouped"):
                    continue
                answer = asks.release(query, **price)
                assert pv.verify(answer.certificate).rules
                assert "\nChoice " in answer.plan.explain()
                again = asks.release(query, **price)
                assert again.paid_before
                assert again.noisy == answer.noisy
                other = asks.release(query, **price, confidence=0.8)
                assert other.paid_before, "the same choices, other intervals"


def test_quantiles_of_one_column_are_one_measurement() -> None:
    """Each output reads its own number, and a column that is not the same is measured on its own."""
    of = table()
    pay = np.sort(np.array([x for x in ROWS["pay"].to_pylist() if x == x]))
    select = "SELECT MEDIAN(pay) AS m, QUANTILE_CONT(pay, 0.9) AS h, MIN(pay) AS low, MAX(pay) AS top FROM people"
    with session(of) as asks:
        answer = asks.release(select, epsilon=HUGE)
        (part,) = answer.plan.noised
        assert part.measurement.quantity == "quantiles(pay, 0.5, 0.9), min(pay), max(pay)"
        for name, rank in (("m", len(pay) // 2), ("h", int(0.9 * len(pay))), ("low", 0), ("top", len(pay) - 1)):
            (value,), (low,), (high,) = answer.values(name), *answer.interval(name)
            assert pay[max(0, rank - 2)] - 1e-3 <= value <= pay[min(len(pay) - 1, rank + 2)] + 1e-3
            assert low <= value <= high
        assert pv.verify(answer.certificate).rules
        apart = {
            "another column": of.agg(m=pv.median("pay"), h=pv.quantile("age", 0.9)),
            "no interval": of.agg(m=pv.median("pay"), h=pv.quantile("pay", 0.9, interval=False)),
            "an expression": of.agg(m=pv.median("pay"), h=pv.max(pv.col("pay") * 2)),
            "no gain": of.agg(m=pv.median("pay", interval=False), h=pv.quantile("pay", 0.9, interval=False)),
            "too fine together": of.agg(m=pv.quantile("pay", "1/1009"), h=pv.quantile("pay", "1/1013")),
            "much heavier": of.agg(m=pv.median("pay"), h=pv.quantile("pay", 0.9)),
        }
        for name, query in apart.items():
            weights = {"m": 10} if name == "much heavier" else None
            assert len(asks.plan(query, epsilon=1, weights=weights).noised) == 2, name
        three = of.agg(a=pv.median("pay"), b=pv.quantile("pay", 0.9), c=pv.quantile("pay", 0.1), n=pv.count())
        ranks, count = asks.plan(three, epsilon=1).noised
        assert isinstance(ranks, ChosenRanks)
        assert ranks.price == pv.PureDP(Fraction(2, 3)), "two levels of choices against one count"
        assert count.price == pv.PureDP(Fraction(1, 3))


def test_together_they_are_more_accurate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known before data are read: distances fall with the rate, and edges are less far inside."""
    of = table()
    quartiles = of.agg(**{f"q{i}": pv.quantile("pay", i / 4) for i in (1, 2, 3)})
    ends = of.agg(m=pv.median("pay"), low=pv.min("pay"), high=pv.max("pay"))

    def planned(query: Query) -> tuple[float, int]:
        with session(of) as asks:  # a new one, which remembers no plan
            parts = [part for part in asks.plan(query, epsilon=1).noised if isinstance(part, ChosenRanks)]
        rates = [part.rate(step) for part in parts for step in part.measurement.steps if not step.side]
        return float(min(rates)), max(part.inside for part in parts)

    together = planned(quartiles), planned(ends)
    monkeypatch.setattr(joining, "_ways", lambda asked: iter([[(each,) for each in asked]]))
    alone = planned(quartiles), planned(ends)
    assert together[0][0] > 1.4 * alone[0][0]
    assert together[1][0] > 1.6 * alone[1][0]
    assert together[1][1] < 0.6 * alone[1][1]


def test_a_question_can_choose_from_tenths_of_a_column_without_a_step() -> None:
    """Tenths are not floats: rounded, not cut, each stays what it is, and only tenths can be chosen."""
    tenths = [i / 10 for i in range(1, 100) for _ in range(1 + i % 3)]
    of = pv.table("t", pa.table({"x": tenths}), protect=pv.each_row(), columns={"x": pv.number(0, 10, required=True)})
    with pv.Session([of], budget=pv.PureDP(10**7), ledger=None) as session:
        for q in ("0.1", "1/3", "0.5", "0.9"):
            rounded = of.agg(m=pv.quantile((pv.col("x") * 10 + 0.5).floor() / 10, q, interval=False))
            made = session.plan(rounded, epsilon=10**5)
            (part,) = made.noised
            assert isinstance(part, ChosenRanks)
            assert (part.measurement.code.step, part.measurement.code.width) == (Fraction(1, 10), 100)
            answer = session.release(made)
            at, rows = Fraction(q) * len(tenths), sorted(tenths)
            assert answer.values("m")[0] in (rows[math.ceil(at) - 1], rows[math.floor(at)])
            pv.verify(answer.certificate)


def test_event_and_price() -> None:
    of = table("replace", max_rows=3)
    with session(of) as asks:
        alone = asks.plan(of.agg(m=pv.median("pay", interval=False)), epsilon=1)
        assert alone.event() == events.Composed([events.BoundedRange(epsilon=1)])
        (part,) = alone.noised
        assert isinstance(part, ChosenRanks)
        assert [part.moved(step) for step in part.measurement.steps] == [3]  # k rows, for one ungrouped choice
        with_interval = asks.plan(of.agg(m=pv.median("pay")), epsilon=1)
        assert with_interval.guarantee() == pv.PureDP(1)
        kinds = [type(event).__name__ for event in with_interval.event().events]  # type: ignore[union-attr]
        assert kinds == ["BoundedRange", "BoundedRange", "LaplaceNoise"]
        assert "The interval takes 60 % of epsilon" in " ".join(with_interval.explain().split())
    with session(of, pv.ZeroConcentratedDP(1)) as asks:
        in_rho = asks.plan(of.agg(m=pv.median("pay", interval=False)), rho="1/8")
        assert in_rho.event() == events.Composed([events.BoundedRange(epsilon=1)])  # rho = epsilon^2 / 8


def test_no_interval_is_told_as_none() -> None:
    of = table()
    with session(of) as asks:
        answer = asks.release(of.agg(m=pv.median("pay", interval=False)), epsilon=1)
    assert answer.interval("m") == ([-np.inf], [np.inf])
    assert "(no bound)" in str(answer)
    assert answer.certificate.document["answer"]["m"]["low"] == [None]
    assert "m" in answer.chart()
    assert answer.to_pandas().loc[0, "m"] == answer.values("m")[0]


def test_a_group_without_rows_has_an_answer() -> None:
    """Nothing about it tells that it is empty, but for the interval, which is the public range."""
    of = table(rows=ROWS.slice(0, 0))
    with session(of) as asks:
        for query in everything(of).values():
            answer = asks.release(query, epsilon=1)
            assert pv.verify(answer.certificate).rules
        answer = asks.release(of.agg(m=pv.median("age")), epsilon=1)
        assert answer.interval("m") == ([0], [110])
        assert answer.too_noisy("m") == [True]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda of: of.agg(m=pv.quantile("pay", 0)), "greater than 0 and less than 1"),
        (lambda of: of.agg(m=pv.quantiles("pay", [0.5, 0.5])), "ascending order"),
        (lambda of: of.agg(m=pv.quantiles("pay", [])), "1 to 199 quantiles"),
        (lambda of: of.agg(m=pv.quantiles("pay", 0.5)), "a list of numbers"),  # type: ignore[arg-type]
        (lambda of: of.agg(m=pv.quantile("pay", "1/1000003")), "multiples of one fraction"),
        (lambda of: of.agg(m=pv.median("region")), "needs a number"),
        (lambda of: of.agg(m=pv.median("pay", interval=0)), "interval must be True or False"),  # type: ignore[arg-type]
        (lambda of: of.agg(m=pv.max(pv.col("pay") / pv.col("age"))), "without limit"),
    ],
)  # fmt: skip
def test_what_is_refused_before_anything_is_read(make: Callable[[Table], Query], said: str) -> None:
    with pytest.raises(UserError, match=said):
        make(table())


def test_within_is_refused_in_words() -> None:
    of = table()
    with session(of) as asks, pytest.raises(QueryError, match=r"within can't be used here: the error of 'm' depends"):
        asks.release(of.agg(m=pv.median("pay")), within={"m": 10})
    with session(of, pv.ApproxDP(1, 1e-6)) as asks, pytest.raises(QueryError, match="paid for in rho"):
        asks.release(of.agg(m=pv.median("pay")), epsilon=0.1, delta=1e-8, mechanism="gaussian")


def test_forged_claims_are_found_without_the_planner() -> None:
    of = table("replace", max_rows=2)
    with session(of) as asks:
        answer = asks.release(of.group_by("region").agg(q=pv.quantiles("pay", [0.25, 0.5, 0.75])), epsilon=1)
    document = json.loads(json.dumps(answer.certificate.document))

    def found(change: Callable[[Any, Any], None]) -> str:
        derived, noisy = copy.deepcopy((document["derived"], document["noisy"]))
        change(derived["measurements"][0], noisy)
        with pytest.raises(VerificationError) as caught:
            checker.check(derived, noisy)
        return str(caught.value)

    checker.check(document["derived"], document["noisy"])

    def less_moved(part: Any, noisy: Any) -> None:
        part["steps"][0]["moved"] = "1/1"  # the rule of add/remove: 2 rows x 1/2

    def twice(part: Any, noisy: Any) -> None:
        """A level in which two choices look at the same rows."""
        part["steps"][2].update(left=part["steps"][1]["left"], right=part["steps"][1]["right"])

    def all_rows(part: Any, noisy: Any) -> None:
        part["steps"][1].update(right=None)

    def epsilons(part: Any, noisy: Any) -> None:
        part["scale"]["epsilons"][0] = "2/1"

    def a_level_less(part: Any, noisy: Any) -> None:
        part["scale"]["epsilons"].pop()

    def outside(part: Any, noisy: Any) -> None:
        noisy[0][0][0] = -1

    def out_of_order(part: Any, noisy: Any) -> None:
        step = next(step for step in part["steps"] if step["left"] is not None)
        vector = noisy[0][0]
        vector[step["left"]] = vector[step["place"]] + 1

    def loud(part: Any, noisy: Any) -> None:
        part["scale"]["counts"] = "1/100"

    def short(part: Any, noisy: Any) -> None:
        part["move"] = {"blocks": 1, "l1": 2}

    assert "steps.moved: is 1, but the statement implies 2" in found(less_moved)
    assert "must look at different rows" in found(twice)
    assert "must look at different rows" in found(all_rows)
    assert "price: is" in found(epsilons)
    assert "every level must have an epsilon" in found(a_level_less)
    assert "must be one of 0.." in found(outside)
    assert "must be in the order of their ranks" in found(out_of_order)
    assert "price: is" in found(loud)
    assert "the statement implies" in found(short)
    whole = {**document, "noisy": copy.deepcopy(document["noisy"])}
    whole["noisy"][0][0][0] += 1
    with pytest.raises(VerificationError):
        pv.verify(pv.Certificate(whole))


def test_intervals_cover_on_any_data() -> None:
    """Ties, few rows, two far values: the share of misses, with room for chance (p below 1e-9)."""
    for values in ([7] * 40, [0, 110] * 30, list(range(12)), [1] * 300 + [100]):
        few = len(values)
        rows = pa.table({"id": [0] * few, "region": ["north"] * few, "pay": [0.0] * few, "age": values})
        of = table(rows=rows)
        ordered, missed = sorted(values), 0
        with session(of) as asks:
            for _ in range(12):
                (low,), (high,) = asks.release(of.agg(m=pv.median("age")), epsilon=2, fresh=True).interval("m")
                both = ordered[(len(values) - 1) // 2], ordered[len(values) // 2]
                missed += not (low <= both[0] and both[1] <= high)
        assert missed <= 8
