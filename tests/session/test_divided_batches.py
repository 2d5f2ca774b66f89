"""The price of a batch, divided by weights, by question and by errors; and measurements that questions share."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from tests.session.test_session import COLUMNS, PEOPLE, a_session, people

import privet as pv
from privet.errors import InternalError, QueryError, UserError
from privet.mechanisms import NOISE
from privet.planner import ReleasePlan
from privet.planner.batch import BatchPlan
from privet.privacy.events import Composed, FixedBatch, Free, leaves
from privet.privacy.events import to_tree as event_tree
from privet.privacy.guarantees import budgets
from privet.requests import batches

GROUPS = people().group_by("region")
ADULTS = people().where(pv.col("age") >= 18)
APART = {"all": people().agg(n=pv.count()), "adults": ADULTS.agg(n=pv.count()), "regions": GROUPS.agg(n=pv.count())}
TOGETHER = {
    "counts": GROUPS.agg(n=pv.count()),
    "pay": GROUPS.agg(n=pv.mean("income")).order_by("n", descending=True),
    "spread": GROUPS.agg(sd=pv.std("income")),
    "adults": ADULTS.agg(n=pv.count()),
}


@pytest.fixture
def session() -> Iterator[pv.Session]:
    with a_session() as opened:
        yield opened


def reserved(session: pv.Session) -> list[Any]:
    return [entry for entry in session.ledger.history(session.name) if entry.kind == "reserved"]


def error(plan: ReleasePlan) -> Fraction:
    expected = plan.expected("n")
    assert expected is not None
    return expected


# --- prices ----------------------------------------------------------------------------------------------


def test_one_price_is_divided_by_weights_exactly(session: pv.Session) -> None:
    plan = session.plan_all(APART, epsilon=1)
    assert [each.epsilon for each in plan.values()] == [Fraction(1, 3)] * 3
    assert plan.guarantee() == pv.PureDP(1)
    plan = session.plan_all(APART, epsilon="0.1", weights={"adults": "1/3", "all": 2})
    assert [each.epsilon for each in plan.values()] == [Fraction(6, 100), Fraction(1, 100), Fraction(3, 100)]
    assert plan.guarantee() == pv.PureDP("0.1")
    batch = session.release_all(APART, epsilon="0.1", weights={"adults": "1/3", "all": 2})
    assert batch.guarantee == pv.PureDP("0.1")
    assert session.spent == pv.PureDP("0.1")
    with a_session(budget=pv.ZeroConcentratedDP(1)) as concentrated:
        assert concentrated.release_all(APART, rho=0.3).guarantee == pv.ZeroConcentratedDP("0.3")


def test_questions_may_have_prices_of_their_own(session: pv.Session) -> None:
    each = session.plan_all(APART, epsilon={"all": 0.1, "adults": 0.2, "regions": 0.3})
    assert [plan.epsilon for plan in each.values()] == [Fraction(i, 10) for i in (1, 2, 3)]
    errors = session.plan_all(APART, epsilon=0.2, within={"all": {"n": 50}}, weights={"regions": 3})
    assert error(errors["all"]) <= 50
    assert [errors[name].epsilon for name in ("adults", "regions")] == [Fraction(5, 100), Fraction(15, 100)]
    assert errors.guarantee() == pv.PureDP(Fraction(2, 10) + errors["all"].epsilon)
    alone = session.plan(APART["all"], epsilon=0.5)
    assert session.plan_all({**APART, "all": alone}, epsilon=0.2).guarantee() == pv.PureDP("0.7")
    only = session.plan_all(APART, within={name: {"n": 100} for name in APART})
    assert all(error(plan) <= 100 for plan in only.values())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "the price of 'all' is missing"),
        ({"epsilon": 1, "rho": 1}, "both epsilon and rho are set"),
        ({"epsilon": 1, "weights": {"al": 2}}, "there is no question 'al'.*Did you mean 'all'"),
        ({"epsilon": 1, "weights": {"all": 0}}, "the weight of all"),
        ({"epsilon": 1, "weights": 2}, "weights must be given by the names of questions"),
        ({"epsilon": {"all": 1, "adults": 1}}, "the price of 'regions' is missing"),
        ({"epsilon": {"all": 1, "adults": 1, "regions": -1}}, "epsilon of regions"),
        ({"epsilon": dict.fromkeys(APART, 1), "weights": {"all": 2}}, "weights divide one epsilon or rho"),
        ({"epsilon": 1, "within": {"n": 50}}, "within: there is no question 'n'"),
        ({"epsilon": 1, "within": {name: {"n": 50} for name in APART}}, "every question already has its price"),
        ({"epsilon": 1, "within": {"all": {"n": 50}}, "weights": {"all": 2}}, "'all' already has its price"),
        ({"epsilon": 1, "within": {"all": {"m": 50}}}, "within: there is no column 'm'"),
        ({"epsilon": 1, "wieghts": {"all": 2}}, "Did you mean weights"),
        ({"epsilon": "0.001"}, "below the minimum price"),
    ],
)
def test_wrong_prices_are_refused_before_anything_is_paid(session: pv.Session, how: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        session.release_all(APART, **how)
    assert reserved(session) == []


MANY = {f"from {age}": people().where(pv.col("age") >= age).agg(n=pv.count()) for age in range(20, 50)}
OTHERS = {f"up to {age}": people().where(pv.col("age") <= age).agg(n=pv.count()) for age in range(20, 50)}


@pytest.mark.parametrize("accountant", ["approx", "meters"])
def test_with_a_delta_one_epsilon_holds_for_all_together(accountant: str) -> None:
    """Whatever a budget pays for with less: prices that a delta raised are not its price one by one."""
    with a_session(budget=pv.ApproxDP(3, 1e-5), accountant=accountant) as session:
        plan = session.plan_all(MANY, epsilon=1, delta="4e-6")
        assert isinstance(plan.whole, FixedBatch)
        assert plan.guarantee().implies(pv.ApproxDP(1, "4e-6"))
        assert float(plan.guarantee().epsilon) > 0.95  # type: ignore[union-attr]
        assert 1.2 < float(sum(each.epsilon for each in plan.values())) < 1.6, "one by one they would cost more"
        few = session.plan_all({"one": MANY["from 20"]}, epsilon=1, delta="4e-6")
        assert few.guarantee() == pv.PureDP(1), "there is nothing to gain"


def test_a_delta_that_does_not_fit_raises_no_price() -> None:
    with a_session(budget=pv.ApproxDP(3, 1e-5), accountant="meters") as session:  # half of its delta is for such
        first = session.release_all(MANY, epsilon=1, delta="4e-6", request_id="monday")
        assert isinstance(first.guarantee, pv.ApproxDP)
        pv.verify(first["from 20"].certificate, ledger=session.ledger)
        plan = session.plan_all(OTHERS, epsilon=1, delta="4e-6")
        assert plan.guarantee() == pv.PureDP(1)
        assert {each.epsilon for each in plan.values()} == {Fraction(1, 30)}
        again = session.release_all(MANY, epsilon=1, delta="4e-6", request_id="monday")
        assert again.paid_before, "a retry is the same batch, whatever is left"
        assert again.guarantee == first.guarantee


TOWNS = pv.table(
    "people",
    pa.table({"id": range(900), "town": ["Rome", "Oslo", "Köln"] * 300, "age": [i % 90 for i in range(900)]}),
    protect=pv.person("id", max_rows=1),
    columns={"town": pv.text(), "age": pv.integer(0, 110)},
)
FINDING = {
    "towns": TOWNS.group_by("town").agg(n=pv.count_people()),
    "ages": TOWNS.group_by("town").agg(a=pv.mean("age")),
    "all": TOWNS.agg(n=pv.count()),
}


@pytest.mark.parametrize("accountant", ["approx", "meters"])
def test_a_delta_is_divided_between_the_questions_that_need_one(accountant: str) -> None:
    """By their epsilons; one that gets the whole delta would be too much."""
    with pv.Session([TOWNS], budget=pv.ApproxDP(9, 1e-5), ledger=None, accountant=accountant) as session:
        plan = session.plan_all(FINDING, epsilon=8, delta=1e-6, weights={"ages": 2})
        assert [each.epsilon for each in plan.values()] == [2, 4, 2]
        deltas = [budgets.numbers(each.price).get("delta") for each in plan.values()]
        assert deltas == [Fraction(1, 3 * 10**6), Fraction(2, 3 * 10**6), None]
        assert plan.guarantee() == pv.ApproxDP(8, "1e-6")
        batch = session.release_all(FINDING, epsilon=8, delta=1e-6, weights={"ages": 2})
        assert batch.guarantee == pv.ApproxDP(8, "1e-6")
        assert (
            dict(batch["towns"].shown_keys()) == dict(batch["ages"].shown_keys()) == {"town": ["Köln", "Oslo", "Rome"]}
        )
        for release in batch.values():
            pv.verify(release.certificate, ledger=session.ledger)
        own = session.plan_all(FINDING, epsilon={"towns": 1, "ages": 3, "all": 2}, delta=1e-6)
        assert own.guarantee() == pv.ApproxDP(6, "1e-6")
        alone = session.plan(FINDING["towns"], epsilon=1, delta="1e-7")
        assert session.plan_all({**FINDING, "towns": alone}, epsilon=1, delta="1e-6").guarantee() == pv.ApproxDP(
            2, "1.1e-6"
        )


# --- shared measurements ---------------------------------------------------------------------------------


def test_what_several_questions_need_is_drawn_once_and_is_what_was_paid_for(
    session: pv.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    laplace = next(iter(NOISE.values()))
    drawn: list[Any] = []
    real = type(laplace).draw

    def draw(self: Any, *args: Any, **more: Any) -> Any:
        array, event = real(self, *args, **more)
        drawn.append(event)
        return array, event

    monkeypatch.setattr(type(laplace), "draw", draw)
    batch = session.release_all(TOGETHER, epsilon=1, weights={"counts": 2})
    (entry,) = reserved(session)
    (event,) = entry.events
    assert isinstance(event, Composed)
    assert len(event.events) == 2, "one part for what is about regions, one for adults"
    paid = [leaf for _, leaf, times in leaves(event) for _ in range(times)]
    assert sorted(map(str, map(event_tree, paid))) == sorted(map(str, map(event_tree, drawn)))
    assert batch["counts"].noisy == batch["pay"].noisy == batch["spread"].noisy != batch["adults"].noisy
    assert batch.guarantee == session.spent == pv.PureDP(1)
    for name, release in batch.items():
        assert release.columns == (("region", *dict(TOGETHER[name].aggregates)) if name != "adults" else ("n",))
        pv.verify(release.certificate, ledger=session.ledger)
    assert "income" not in " ".join(batch["counts"].limits)
    assert batch["pay"].values("n") == sorted(batch["pay"].values("n"), reverse=True)
    assert str(batch["pay"]).endswith("as part of a batch.")


def test_the_same_batch_is_free_again_under_other_names(session: pv.Session) -> None:
    first = session.release_all(TOGETHER, epsilon=1, request_id="monday")
    assert session.release_all(TOGETHER, epsilon=1, request_id="monday").paid_before
    again = session.release_all(dict(zip("abcd", TOGETHER.values(), strict=True)), epsilon="0.9")
    assert again.paid_before
    assert [each.noisy for each in again.values()] == [each.noisy for each in first.values()]
    assert "Already paid for, at epsilon 1" in session.explain_all(TOGETHER, epsilon=1)
    assert not session.release_all(dict(reversed(TOGETHER.items())), epsilon=1).paid_before
    assert len(reserved(session)) == 2
    with pytest.raises(UserError, match="was already used for a different question"):
        session.release_all(TOGETHER, epsilon=1, weights={"pay": 2}, request_id="monday")


def test_equal_questions_are_one_measurement_at_the_price_of_both(session: pv.Session) -> None:
    twice = {"a": GROUPS.agg(n=pv.count()), "b": GROUPS.agg(m=pv.count()).limit(2)}
    batch = session.plan_all(twice, epsilon={"a": 0.1, "b": 0.4})
    assert batch.parts == (0, 0)
    assert [len(plan.noised) for plan in batch.values()] == [1, 1]
    assert batch["a"].epsilon == batch.guarantee().epsilon == Fraction(1, 2)  # type: ignore[union-attr]
    assert "a, b: about the same groups" in str(batch)


@pytest.mark.parametrize(
    "other",
    [
        ADULTS.group_by("region").agg(n=pv.mean("income")),
        people().agg(n=pv.mean("income")),
        GROUPS.agg(n=pv.mean("income")).cap(max_rows=1),
        GROUPS.agg(n=pv.mean("age")),
    ],
    ids=["rows", "keys", "cap", "nothing in common"],
)
def test_other_rows_keys_or_caps_are_measured_apart(session: pv.Session, other: Any) -> None:
    batch = session.plan_all({"a": GROUPS.agg(n=pv.std("income")), "b": other}, epsilon=1)
    assert batch.parts == (0, 1)
    assert [plan.epsilon for plan in batch.values()] == [Fraction(1, 2)] * 2
    assert not batch["a"].query.arrangement.hidden


KINDS: dict[str, Any] = {
    "count": pv.count(),
    "ages": pv.count("age"),
    "people": pv.count_people(),
    "sum": pv.sum("income"),
    "mean": pv.mean("income"),
    "std": pv.std("income"),
    "age": pv.mean("age"),
    "bins": pv.histogram("age", [0, 30, 60, 110]),
    "ratio": pv.sum("income") / pv.sum("age"),
}


@pytest.mark.parametrize(("budget", "name"), [(pv.PureDP(3), "epsilon"), (pv.ZeroConcentratedDP(3), "rho")])
def test_no_question_is_less_accurate_than_alone(budget: Any, name: str, effort: int) -> None:
    """Searches for a batch in which sharing hurts a question of one column. Says also how much it helps."""
    chance, gains = random.Random(7), []
    with a_session(budget=budget) as session:
        for _ in range(12 * effort):
            chosen = chance.sample(list(KINDS), chance.randint(2, 5))
            rows: Any = chance.choice([people(), GROUPS])
            asked = {each: rows.agg(x=KINDS[each]) for each in chosen}
            weights = {each: chance.choice([1, 1, 2, 5]) for each in chosen}
            batch = session.plan_all(asked, **{name: 1}, weights=weights, assuming=10_000)  # type: ignore[arg-type]
            assert batch.guarantee().implies(type(budget)(1))
            for each in chosen:
                share = Fraction(weights[each], sum(weights.values()))
                alone = session.plan(asked[each], **{name: share}, assuming=10_000)  # type: ignore[arg-type]
                for column, _ in alone.columns:
                    before, now = alone.expected(column), batch[each].expected(column)
                    assert before is not None
                    assert now is not None
                    assert now <= before, f"{each} of {chosen} with {weights}"
                    gains.append(float(now / before))
    assert min(gains) < 0.75


def test_errors_to_keep_to_are_shared_where_that_costs_less(session: pv.Session) -> None:
    asked = {
        "a": GROUPS.agg(n=pv.count(), bins=pv.histogram("age", [0, 30, 110])),
        "b": GROUPS.agg(m=pv.count()),
        "c": GROUPS.agg(bins=pv.histogram("age", [0, 30, 110])),
        "d": GROUPS.agg(n=pv.count()),
    }
    bins = {f"bins {label}": 40 for label in ("[0, 30)", "[30, 110]")}
    within: Any = {"a": {"n": 30, **bins}, "b": {"m": 20}, "c": dict.fromkeys(bins, 35)}
    batch = session.plan_all(asked, epsilon=0.1, within=within)
    assert batch.parts == (0, 0, 0, 1), "a price is not shared with errors"
    cost = sum(session.plan(asked[name], within=within[name]).epsilon for name in ("b", "c"))
    assert batch["a"].epsilon == cost, "the strictest errors decide"
    assert batch.guarantee() == pv.PureDP(cost + Fraction(1, 10))
    released = session.release_all(asked, epsilon=0.1, within=within)
    for name, errors in within.items():
        for column, most in errors.items():
            expected = released[name].plan.expected(column)
            assert expected is not None
            assert expected <= most
        assert list(released[name].shown) == list(errors)
        pv.verify(released[name].certificate, ledger=session.ledger)
    assert released.guarantee == session.spent == batch.guarantee()


def lost(batch: BatchPlan, one: pv.Session, other: pv.Session, *, once: bool) -> Fraction:
    """The privacy loss between two tables, before noise: the sum of |move| / scale over what is drawn."""
    total, seen = Fraction(0), set()
    for part, plan in zip(batch.parts, batch.values(), strict=True):
        if once and part in seen:
            continue
        seen.add(part)
        mine, theirs = (
            plan.coordinates([session.dataset.engine.answer(each) for each in plan.statements()])
            for session in (one, other)
        )
        for measured, a, b in zip(plan.noised, mine, theirs, strict=True):
            moved = sum(abs(x - y) for u, v in zip(a, b, strict=True) for x, y in zip(u, v, strict=True))
            total += Fraction(moved) / measured.scale
    return total


def test_one_person_moves_what_is_drawn_by_no_more_than_the_price(effort: int) -> None:
    """Noise off. The twin draws for each question what is paid for once, and is caught.

    Only the person who goes has more rows than the cap: each session has a salt of its own.
    """
    chance, losses, twins = random.Random(3), [], []
    for _ in range(6 * effort):
        rows = [
            {"id": who, "age": chance.choice([0, 50, 110, None]), "income": chance.choice([0.0, 1e4, -5.0, None]),
             "region": chance.choice(["north", "south", "x", None])}
            for who in range(4) for _ in range(chance.randint(1, 2))
        ]  # fmt: skip
        rows += [{"id": 9, "age": 110, "income": 1e4, "region": "north"}] * 3
        tables = [[row for row in rows if row["id"] != gone] for gone in (None, 9)]
        sessions = [
            a_session(
                pv.table(
                    "people",
                    pa.Table.from_pylist(each, PEOPLE.schema),
                    protect=pv.person("id", max_rows=2),
                    columns=COLUMNS,
                ),
                engine="reference",
            )
            for each in tables
        ]
        chosen = chance.sample(list(KINDS), 4)
        asked = {each: chance.choice([GROUPS, GROUPS, people()]).agg(x=KINDS[each]) for each in chosen}  # type: ignore[attr-defined]
        batch = sessions[0].plan_all(asked, epsilon=1)
        losses.append(lost(batch, sessions[0], sessions[1], once=True))
        twins.append(lost(batch, sessions[0], sessions[1], once=False))
        for session in sessions:
            session.close()
    assert max(losses) <= 1
    assert max(losses) > Fraction(1, 2), "the search comes close"
    assert max(twins) > 1


def test_a_batch_whose_parts_are_not_its_event_is_never_paid_for(session: pv.Session) -> None:
    """Broken twins: what would share noise between different questions, or draw it without paying."""
    sound = session.plan_all(APART, epsilon=1)
    assert isinstance(sound.whole, Composed)
    shares = BatchPlan(sound.plans, (0, 0, 1), Composed(sound.whole.events[:2]))
    unpaid = BatchPlan(sound.plans, sound.parts, Composed([*sound.whole.events[:2], Free()]))
    more = BatchPlan(sound.plans, sound.parts, Composed([*sound.whole.events, sound.whole.events[0]]))
    louder = replace(sound, plans={**sound.plans, "all": session.plan(APART["all"], epsilon=1)})
    for broken in (shares, unpaid, more, louder):
        with pytest.raises(InternalError, match="part"):
            batches.request(broken, APART)
    batches.request(sound, APART)


def test_a_batch_can_be_looked_at_before_it_is_asked(session: pv.Session) -> None:
    words = session.explain_all(TOGETHER, epsilon=1)
    assert "counts, pay, spread: about the same groups of the same rows" in " ".join(words.split())
    assert "Guarantee  epsilon 1, for all together." in words
    assert "enough for 3 batches like this" in words
    plan = session.plan_all(TOGETHER, epsilon=1)
    assert session.explain_all(plan) == words
    with pytest.raises(QueryError, match="a batch is asked by its questions"):
        session.release_all(plan)  # its plans one by one would cost epsilon 3
    with pytest.raises(QueryError):
        session.explain_all(TOGETHER, epsilon=1, within={"counts": {"nope": 1}})
    assert reserved(session) == []
