"""Statistics of the user's own, with every bare mechanism: paid for, certified, recalled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import privet as pv
from privet.errors import BudgetError, DataError, QueryError, UserError, VerificationError
from privet.mechanisms import described
from privet.privacy.accounting import ConcentratedAccountant

ROWS = pa.table({"id": list(range(40)), "age": [20 + i for i in range(40)]})
PEOPLE = pv.table("people", ROWS, protect=pv.person("id", max_rows=1), columns={"age": pv.integer(0, 110)})
BUDGETS: list[Any] = [pv.PureDP(3), pv.ApproxDP(3, "1e-6"), pv.ZeroConcentratedDP(1)]

ADDING: list[tuple[Any, Any]] = [
    (pv.Laplace(sensitivity=1, epsilon="0.5"), 1234),
    (pv.Laplace(sensitivity="0.5", epsilon="0.5"), [1.5, 2.5]),
    (pv.Laplace(sensitivity=1, epsilon="0.5", step=2**-4, dimension=2), np.array([1.5, 2.5])),
    (pv.Gaussian(sensitivity=1, rho="0.01"), 1234),
    (pv.Gaussian(sensitivity=2, sigma=20), [1, 2, 3]),
    (pv.Gaussian(sensitivity=1, epsilon="0.5", delta="1e-7"), 12.5),
    (pv.Gaussian(sensitivity=1, epsilon="0.5", delta="1e-7"), np.array([[1.5, 2.5], [1, 2]])),
    (pv.Gaussian(sensitivity=3, epsilon="0.5", delta="1e-7"), np.arange(5)),
    (pv.Staircase(sensitivity=20, epsilon="0.5"), 1234),
]
CHOOSING: list[Any] = [
    pv.Exponential(sensitivity=1, epsilon="0.5"),
    pv.Exponential(sensitivity="1/3", epsilon="0.5", monotone=True),
    pv.PermuteAndFlip(sensitivity=1, epsilon="0.5"),
    pv.ReportNoisyMax(sensitivity=1, epsilon="0.5"),
    pv.AboveThreshold(sensitivity=1, epsilon="0.5", threshold="7/2"),
]


def opened(budget: Any, **how: Any) -> pv.Session:
    return pv.Session([PEOPLE], budget=budget, ledger=None, **how)


@pytest.fixture(params=BUDGETS, ids=str)
def session(request: pytest.FixtureRequest) -> Iterator[pv.Session]:
    with opened(request.param) as made:
        yield made


def payable(session: pv.Session, mechanism: Any) -> bool:
    return not (isinstance(session.balance.budget, pv.PureDP) and isinstance(mechanism, pv.Gaussian))


def rho_of(mechanism: Any) -> Fraction:
    return ConcentratedAccountant().account(mechanism.event()).rho


# --- paid, certified, recalled --------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "value"), ADDING, ids=lambda each: repr(each)[:50])
def test_a_value(session: pv.Session, mechanism: Any, value: Any) -> None:
    if not payable(session, mechanism):
        with pytest.raises(QueryError, match=r"has no price in epsilon alone, .*Nothing was spent.*pv\.Laplace\("):
            session.release_value(value, mechanism=mechanism, label="mine")
        assert session.spent == pv.PureDP.ZERO
        return
    first = session.release_value(value, mechanism=mechanism, label="mine", request_id="one")
    fitted = mechanism.fit(value)
    assert (first.mechanism, first.spent, first.remaining) == (fitted, fitted.guarantee(), session.remaining)
    if isinstance(session.spent, pv.ZeroConcentratedDP):
        assert session.spent.rho == rho_of(fitted)
    elif isinstance(session.spent, pv.PureDP):
        assert session.spent == fitted.guarantee()
    else:
        assert 0 < session.spent.used < 1
    assert np.shape(first.value) == np.shape(value)
    assert np.abs(np.asarray(first.value, float) - np.asarray(value, float)).max() < 2000
    low, high = first.interval(0.9)
    assert (np.asarray(low) <= np.asarray(high)).all()
    verified = pv.verify(first.certificate, ledger=session.ledger)
    assert str(fitted.guarantee()) in verified.promise
    spent = session.spent
    again = session.release_value(value, mechanism=mechanism, label="mine", request_id="one")
    assert np.array_equal(again.value, first.value)
    assert (type(again.value), again.spent, again.certificate) == (type(first.value), pv.PureDP.ZERO, first.certificate)
    with pytest.raises(UserError, match="'one' was already used"):
        session.release_value(value, mechanism=mechanism, label="other", request_id="one")
    assert session.spent == spent


@pytest.mark.parametrize("mechanism", CHOOSING, ids=lambda each: type(each).__name__)
def test_a_choice(session: pv.Session, mechanism: Any) -> None:
    scores, names = [-500, 500, -400], ["a", "b", "c"]
    first = session.select(scores, candidates=names, mechanism=mechanism, label="best", request_id="one")
    assert (first.value, first.spent, first.remaining) == ("b", pv.PureDP("0.5"), session.remaining)
    if isinstance(session.spent, pv.ZeroConcentratedDP):
        assert session.spent.rho == Fraction(1, 32 if isinstance(mechanism, pv.Exponential) else 8)
    assert "epsilon 0.5" in pv.verify(first.certificate, ledger=session.ledger).promise
    again = session.select([9, 1, 1], candidates=names, mechanism=mechanism, label="best", request_id="one")
    assert (again.value, again.spent, again.certificate) == ("b", pv.PureDP.ZERO, first.certificate)
    for other in ({"candidates": ["a", "b", "d"]}, {"candidates": None}, {"label": "worst"}):
        how: dict[str, Any] = {"candidates": names, "label": "best", **other}
        with pytest.raises(UserError, match="'one' was already used"):
            session.select(scores, mechanism=mechanism, request_id="one", **how)
    assert session.select(scores, mechanism=mechanism, label="best").value == 1
    with pytest.raises(UserError, match="a choice has no interval"):
        first.interval()


def test_nothing_is_above_the_threshold(session: pv.Session) -> None:
    mechanism = pv.AboveThreshold(sensitivity=1, epsilon=1, threshold=10**6)
    first = session.select([1, 2], candidates=["a", "b"], mechanism=mechanism, label="best", request_id="one")
    assert first.value is None
    assert pv.verify(first.certificate, ledger=session.ledger).ledger
    again = session.select([1, 2], candidates=["a", "b"], mechanism=mechanism, label="best", request_id="one")
    assert (again.value, again.spent) == (None, pv.PureDP.ZERO)


def test_the_price_names_the_noise() -> None:
    with opened(pv.ApproxDP(3, "1e-6")) as session:
        for how, kind, spent in (
            ({"epsilon": "0.5"}, pv.Laplace, pv.PureDP("0.5")),
            ({"rho": "0.01"}, pv.Gaussian, pv.ZeroConcentratedDP("0.01")),
            ({"epsilon": "0.5", "delta": "1e-7"}, pv.Gaussian, pv.ApproxDP("0.5", "1e-7")),
        ):
            made = session.release_value(7, sensitivity=1, label="mine", **how)  # type: ignore[arg-type]
            assert (type(made.mechanism), made.spent) == (kind, spent)
            assert pv.verify(made.certificate, ledger=session.ledger).ledger


def test_meters_charge_gaussian_noise_and_choices_by_their_own_prices() -> None:
    """460 exponential choices of 0.01 use far less of the budget than pure mechanisms of the same epsilon."""
    used = {}
    for mechanism in (pv.Exponential(sensitivity=1, epsilon="0.01"), pv.PermuteAndFlip(sensitivity=1, epsilon="0.01")):
        with opened(pv.ApproxDP(1, "1e-6")) as session:
            used[type(mechanism)] = session.remaining.times(mechanism)
    assert used[pv.Exponential] > 3.9 * used[pv.PermuteAndFlip] > 1500


# --- refused, before anything is paid -------------------------------------------------------------


def test_what_is_wrong_is_refused_before_the_debit() -> None:
    laplace, best = pv.Laplace(sensitivity=1, epsilon=1), pv.Exponential(sensitivity=1, epsilon=1)
    noisy = pv.ReportNoisyMax(sensitivity=1, epsilon=1)
    wrong: list[tuple[Any, str]] = [
        (lambda s: s.release_value(1, label="x"), "the sensitivity is missing"),
        (lambda s: s.release_value(1, sensitivity=1, label="x"), "a price is missing"),
        (lambda s: s.release_value(1, sensitivity=1, epsilon=1, rho=1, label="x"), "both epsilon and rho are set"),
        (lambda s: s.release_value(1, sensitivity=1, delta=0.1, label="x"), "delta is set without an epsilon"),
        (lambda s: s.release_value(1, mechanism=laplace, epsilon=1, label="x"), "already says its epsilon"),
        (lambda s: s.release_value(1, mechanism="laplace", epsilon=1, label="x"), "must be one that adds noise"),
        (lambda s: s.release_value(1, mechanism="laplace", label="x"), "must be one that adds noise, not 'laplace'"),
        (lambda s: s.release_value(1, mechanism=best, label="x"), "Exponential chooses by scores"),
        (lambda s: s.release_value(1, mechanism=pv.RandomizedResponse(2, epsilon=1), label="x"), "adds noise, not"),
        (lambda s: s.release_value([1, 2], mechanism=pv.Staircase(sensitivity=1, epsilon=1), label="x"), "one integer"),
        (lambda s: s.release_value(float("nan"), mechanism=laplace, label="x"), "NaN and infinity"),
        (lambda s: s.release_value(1, mechanism=laplace, label=""), "label must say what the value is"),
        (lambda s: s.select([1, 2], mechanism=laplace, label="x"), "chooses by scores, not Laplace"),
        (lambda s: s.select([1, 2], mechanism="exponential", label="x"), "chooses by scores, not 'exponential'"),
        (lambda s: s.select([1, 2], mechanism=best, label=" "), "label must say what the choice is"),
        (lambda s: s.select([1, 2], mechanism=best, label="x", candidates=["a"]), "candidates is 1, but"),
        (lambda s: s.select([1, 2], mechanism=best, label="x", candidates=["a", ()]), "a text or a finite"),
        (lambda s: s.select([1, 2], mechanism=best, label="x", candidates=["a", float("inf")]), "a text or a finite"),
        (lambda s: s.select([1, 2], mechanism=best, label="x", candidates=["a", 10**5000]), "at most 4096 bits"),
        (lambda s: s.select([1, 2], label="x"), "chooses by scores, not None"),
        (lambda s: s.select([], mechanism=best, label="x"), "there is no candidate"),
        (lambda s: s.select(3, mechanism=best, label="x"), "scores must be a list"),
        (lambda s: s.select([1.0, 2.0], mechanism=noisy, label="x"), "scores must be a list .* of integers"),
        (lambda s: s.release_value(1, sensitivity=1, epsilon=50, label="x"), "this costs epsilon 50"),
        (lambda s: s.select([1], mechanism=pv.Exponential(sensitivity=1, epsilon=50), label="x"), "this costs epsilon"),
    ]
    for budget in BUDGETS:
        with opened(budget) as session:
            before = session.ledger.head()
            for call, text in wrong:
                with pytest.raises((UserError, BudgetError, DataError), match=text):
                    call(session)
            assert session.ledger.head() == before


def test_the_least_price_in_epsilon_and_in_rho() -> None:
    with opened(pv.ApproxDP(3, "1e-6")) as session:
        for how, text in (
            ({"rho": "4e-7"}, r"rho 4e-7 is below the minimum price of a question, which is 5e-7"),
            ({"epsilon": "0.0009", "delta": "1e-8"}, r"epsilon 0\.0009 is below the minimum price"),
            ({"epsilon": "0.0009"}, r"epsilon 0\.0009 is below the minimum price"),
        ):
            with pytest.raises(QueryError, match=text):
                session.release_value(3, sensitivity=1, label="mine", **how)  # type: ignore[arg-type]
        with pytest.raises(QueryError, match=r"epsilon 0\.0009 is below"):
            session.select([1, 2], mechanism=pv.Exponential(sensitivity=1, epsilon="0.0009"), label="mine")
        assert session.release_value(3, sensitivity=1, rho="5e-7", label="mine").spent == pv.ZeroConcentratedDP("5e-7")
    with opened(pv.ZeroConcentratedDP(1), min_epsilon="1/3") as session:
        with pytest.raises(QueryError, match=r'which is 1/18\. Write, for example: rho="1/18"'):
            session.release_value(3, sensitivity=1, rho="0.05", label="mine")
        assert session.release_value(3, sensitivity=1, rho="1/18", label="mine").spent == pv.ZeroConcentratedDP("1/18")


def test_a_plain_sum_needs_an_epsilon_of_gaussian_noise() -> None:
    with opened(pv.ApproxDP(3, "1e-6"), accountant="approx") as session:
        with pytest.raises(
            QueryError, match=r"no price in epsilon and delta.*pv\.Gaussian\(sensitivity=1, epsilon=0\.5"
        ):
            session.release_value(3, sensitivity=1, rho="0.1", label="mine")
        paid = session.release_value(3, sensitivity=1, epsilon=1, delta="1e-7", label="mine")
        assert paid.spent == pv.ApproxDP(1, "1e-7")


# --- certificates that lie ------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [each for each, _ in ADDING] + CHOOSING, ids=lambda each: repr(each)[:50])
def test_parameters_have_one_text(mechanism: Any) -> None:
    for each in (mechanism, mechanism.fit([1, 2, 3]) if type(mechanism) is pv.Gaussian else mechanism):
        tree = json.loads(json.dumps(described.to_tree(each)))
        again = described.from_tree(tree)
        assert (again, again.event(), described.to_tree(again)) == (each, each.event(), tree)


def lies(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every leaf of a document, altered."""
    if isinstance(tree, dict | list):
        for at, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from lies(part, (*path, at))
    elif isinstance(tree, bool):
        yield path, not tree
    elif isinstance(tree, int | float):
        yield path, tree + 1
    elif tree is None:
        yield path, 7
    else:
        yield path, "3/7" if "/" in tree else "other"


def altered(document: Any, path: tuple[Any, ...], part: Any) -> Any:
    copy = json.loads(json.dumps(document))
    at = copy
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = part
    return copy


@pytest.mark.parametrize(
    "mechanism", [pv.Gaussian(sensitivity=1, rho="0.01"), pv.Staircase(sensitivity=3, epsilon=1), *CHOOSING],
    ids=lambda each: repr(each)[:40],
)  # fmt: skip
def test_a_certificate_that_lies_is_rejected(mechanism: Any) -> None:
    """Every altered leaf of what was asked and of what follows from it: by the ledger, and its price by the rules."""
    with opened(pv.ApproxDP(3, "1e-6")) as session:
        if isinstance(mechanism, pv.Gaussian | pv.Staircase):
            certificate = session.release_value(9, mechanism=mechanism, label="mine").certificate
        else:
            certificate = session.select([1, 9], mechanism=mechanism, candidates=["a", "b"], label="mine").certificate
        document = certificate.document
        assert pv.verify(certificate, ledger=session.ledger).ledger
        tried = 0
        for path, part in lies({name: document[name] for name in ("kind", "asked", "derived", "answer")}):
            twin = pv.Certificate(altered(document, path, part))
            tried += 1
            if path[0] == "derived" or path[-1] in ("kind", "epsilon", "rho"):
                with pytest.raises(VerificationError):
                    pv.verify(twin)
            with pytest.raises(VerificationError):
                pv.verify(twin, ledger=session.ledger)
        assert tried >= 8
