"""Privacy loss of fixed batches: never better than exact, and close to it; published values; broken twins."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.fft
from flint import arb, fmpz_poly
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import AccountingError
from privet.exact import ball, ends, precision
from privet.privacy import dominating, pld
from privet.privacy.accounting import PureAccountant, fixed_batch
from privet.privacy.events import (
    BoundedRange,
    Composed,
    FixedBatch,
    Free,
    GaussianNoise,
    LaplaceNoise,
    PrivacyEvent,
    Repeated,
    Stated,
)
from privet.privacy.moves import L1Move, L2Move

MILLIONTH = Fraction(1, 10**6)
Atoms = dict[Fraction | None, arb]
"""The privacy loss, exactly: log ratios with their probabilities; None is infinite."""


# --- an independent computation: every outcome, in Arb -------------------------------------------------


def laplace(scale: Fraction, shift: int) -> Atoms:
    atoms: Atoms = defaultdict(arb)
    r = (-1 / ball(scale)).exp()
    for k in range(shift + 1):
        weight = 1 / (1 + r) if k in (0, shift) else (1 - r) / (1 + r)
        atoms[(shift - 2 * k) / scale] += weight * r**k
    return atoms


def response(epsilon: Fraction, delta: Fraction) -> Atoms:
    odds = ball(epsilon).exp()
    rest = ball(1 - delta)
    atoms: Atoms = {epsilon: rest * odds / (1 + odds), -epsilon: rest / (1 + odds)}
    return {**atoms, None: ball(delta)} if delta else atoms


def together(parts: Iterable[Atoms]) -> Atoms:
    whole: Atoms = {Fraction(0): arb(1)}
    for part in parts:
        sums: Atoms = defaultdict(arb)
        for a, p in whole.items():
            for b, q in part.items():
                sums[None if a is None or b is None else a + b] += p * q
        whole = sums
    return whole


def exact_delta(atoms: Atoms, epsilon: Fraction) -> Fraction:
    """A lower end of the true delta, closer than any float."""
    beyond = [
        mass * (1 if loss is None else 1 - ball(epsilon - loss).exp())
        for loss, mass in atoms.items()
        if loss is None or loss > epsilon
    ]
    return ends(sum(beyond, arb(0))).lower


@contextmanager
def exactly() -> Iterator[None]:
    with precision(256):
        yield


def loss_of(*events: PrivacyEvent) -> pld.PrivacyLoss:
    return pld._loss(Composed(events), MILLIONTH)


# --- published values ----------------------------------------------------------------------------------


def test_a_hundred_laplace_questions() -> None:
    """dp-accounting 0.6 and prv 0.2 agree on 4.22034735 for continuous noise; a fine lattice comes close to it."""
    epsilon = pld.batch_epsilon(Repeated(LaplaceNoise(move=L1Move(1000), scale=10_000), 100), Fraction(1, 10**5))
    assert epsilon is not None
    assert 4.22034 < epsilon < 4.2205


def test_three_gaussian_questions() -> None:
    noise = GaussianNoise(move=L2Move(500**2), sigma_squared=3 * 500**2, coordinates=1, epsilon=None)
    assert 0.126936 < loss_of(Repeated(noise, 3)).delta(Fraction(1)) < 0.126939


def test_two_approximate_questions() -> None:
    parts = (Stated(epsilon=1, delta="0.1"), Stated(epsilon=2, delta="0.2"))
    assert 0 <= loss_of(*parts).delta(Fraction(3)) - Fraction("0.28") < Fraction(1, 10**10)


def test_one_step_of_laplace_noise_is_randomized_response() -> None:
    """dp_accounting's own test: a = 1, one step: the losses 1 and -1 with .73105858 and .26894142."""
    masses = loss_of(LaplaceNoise(move=L1Move(1), scale=1))
    assert [round(mass, 8) for mass in masses.masses if mass > 1e-9] == [0.26894142, 0.73105858]


@pytest.mark.parametrize(("epsilon", "count"), [("0.1", 10), ("0.05", 26), ("0.02", 142), ("0.01", 562)])
def test_more_questions_than_filters_grant(epsilon: str, count: int) -> None:
    """Meters grant 10, 22, 125 and 490, with all of delta."""
    question = LaplaceNoise(move=L1Move(1), scale=1 / Fraction(epsilon))
    batch = fixed_batch([question] * count, MILLIONTH)
    price = batch.epsilon if isinstance(batch, FixedBatch) else PureAccountant().account(batch).epsilon
    assert price <= 1


# --- never better than exact ---------------------------------------------------------------------------

small = st.fractions(min_value=Fraction(1, 20), max_value=2, max_denominator=20)
parts = st.lists(
    st.one_of(
        st.builds(
            lambda s, n, g: ("laplace", s, n, g), small.map(lambda x: 1 / x), st.integers(1, 4), st.integers(1, 2)
        ),
        st.builds(lambda e, d: ("response", e, d), small, st.sampled_from([Fraction(0), Fraction(1, 50)])),
    ),
    min_size=1,
    max_size=4,
)


def events_of(drawn: Any) -> list[PrivacyEvent]:
    return [
        LaplaceNoise(move=L1Move(each[2], blocks=each[3]), scale=each[1])
        if each[0] == "laplace"
        else Stated(epsilon=each[1], delta=each[2])
        for each in drawn
    ]


def atoms_of(drawn: Any) -> Atoms:
    pairs = [
        each
        for one in drawn
        for each in ([laplace(one[1], one[2])] * one[3] if one[0] == "laplace" else [response(*one[1:])])
    ]
    return together(pairs)


@settings(max_examples=25)
@given(drawn=parts, at=st.fractions(min_value=0, max_value=3, max_denominator=40))
def test_delta_is_never_below_the_exact_one_and_close(drawn: Any, at: Fraction) -> None:
    loss = loss_of(*events_of(drawn))
    with exactly():
        truth = exact_delta(atoms_of(drawn), at)
    assert truth <= loss.delta(at) <= truth + Fraction(2, 1000)


@settings(max_examples=10)
@given(drawn=parts)
def test_epsilon_is_on_the_upper_side(drawn: Any) -> None:
    delta = Fraction(1, 30)
    epsilon = pld._loss(Composed(events_of(drawn)), delta).epsilon(delta)
    with exactly():
        assert epsilon is None or exact_delta(atoms_of(drawn), epsilon) <= delta


def test_order_does_not_matter_and_repeated_is_composed() -> None:
    one, two = LaplaceNoise(move=L1Move(2), scale=3), BoundedRange(epsilon=0.3)
    assert loss_of(one, two, one).delta(Fraction(1)) == loss_of(Repeated(one, 2), two).delta(Fraction(1))
    for event in (one, two, Stated(epsilon=0.2, delta=1e-4)):
        assert pld.batch_epsilon(Repeated(event, 5), MILLIONTH * 1000) == pld.batch_epsilon(
            Composed([event] * 5), MILLIONTH * 1000
        )


# --- the bound for floats and transforms ---------------------------------------------------------------


def off(loss: pld.PrivacyLoss, parts: list[Any]) -> Fraction:
    """How far masses are from the exact convolution of those of their parts, in L1."""
    scale = 2**1100
    whole = fmpz_poly([1])
    for masses in parts:
        whole *= fmpz_poly([int(Fraction(float(x)) * scale) for x in masses])
    lowest = sum(1 for _ in parts)
    exact = [Fraction(int(whole[i]), scale**lowest) for i in range(whole.length())]
    return sum((abs(Fraction(float(x)) - y) for x, y in zip(loss.masses, exact, strict=True)), Fraction(0))


@pytest.mark.parametrize(("count", "step"), [(2, Fraction(1, 256)), (3, Fraction(1, 256)), (2, Fraction(1, 2**13))])
def test_convolutions_are_off_by_less_than_stated(count: int, step: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pld, "_TAIL", 0.0)
    one = pld._on_grid(pld._pair(dominating.laplace, Fraction(4000), 2000), step)
    assert one.error == 0
    many = one.times(count)
    error = off(many, [one.masses] * count)
    assert 0 < error <= Fraction(many.error), "and floats do err"
    assert many.error < 1e-10


def test_transforms_have_the_lengths_that_the_bound_is_for() -> None:
    """Of real numbers, scipy transforms lengths with no other prime factors than 2, 3 and 5, not four times as long."""
    for size in [*range(2, 3000), *range(100_000, 200_000, 997)]:
        length = rest = scipy.fft.next_fast_len(size, real=True)
        assert size <= length < 4 * size
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        assert rest == 1


def test_no_bound_at_all_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin of the test above: floats are taken to be exact."""
    monkeypatch.setattr(pld, "_TAIL", 0.0)
    monkeypatch.setattr(pld, "_UNIT", 0.0)
    one = pld._on_grid(pld._pair(dominating.laplace, Fraction(40), 20), Fraction(1, 256))
    many = one.times(3)
    assert off(many, [one.masses] * 3) > Fraction(many.error)


def test_masses_are_rounded_up_and_their_sum_is_one() -> None:
    for pair in (
        pld._pair(dominating.laplace, Fraction(17, 3), 3),
        pld._pair(dominating.bounded_range, Fraction(1, 3)),
        pld._pair(dominating.randomized_response, Fraction(1, 2), Fraction(1, 7)),
        pld._pair(dominating.gaussian, Fraction(30), 2),
    ):
        loss = pld._on_grid(pair, Fraction(1, 256))
        whole = sum(map(Fraction, loss.masses.tolist()), Fraction(loss.pmf._infinity_mass))
        assert 1 <= whole < 1 + Fraction(1, 10**14)


# --- dominating pairs ----------------------------------------------------------------------------------


@given(
    scale=st.fractions(min_value=Fraction(1, 2), max_value=20, max_denominator=8),
    split=st.lists(st.integers(1, 4), min_size=2, max_size=3),
    at=st.fractions(min_value=-3, max_value=3, max_denominator=16),
)
def test_a_split_move_is_dominated_by_one_in_one_coordinate(scale: Fraction, split: list[int], at: Fraction) -> None:
    with exactly():
        whole = ends(dominating.laplace(scale, sum(split))(at))
        assert abs(exact_delta(laplace(scale, sum(split)), at) - whole.lower) < Fraction(1, 2**200)
        apart = exact_delta(together([laplace(scale, part) for part in split]), at)
        assert apart <= whole.upper


@given(
    epsilon=st.fractions(min_value=Fraction(1, 10), max_value=3, max_denominator=10),
    share=st.fractions(min_value=0, max_value=1, max_denominator=20),
    at=st.fractions(min_value=-3, max_value=3, max_denominator=16),
)
def test_every_choice_of_bounded_range_is_dominated(epsilon: Fraction, share: Fraction, at: Fraction) -> None:
    top = epsilon * share
    if share in (0, 1):
        return
    with exactly():
        high, low = ball(top).exp(), ball(top - epsilon).exp()
        q = (1 - low) / (high - low)
        atoms: Atoms = {top: q * high, top - epsilon: (1 - q) * low}
        assert exact_delta(atoms, at) <= ends(dominating.bounded_range(epsilon)(at)).upper
        assert (
            exact_delta({-k: v / ball(k).exp() for k, v in atoms.items() if k is not None}, at)
            <= ends(dominating.bounded_range(epsilon)(at)).upper
        )


# --- broken twins: each must be caught by the comparison with the exact delta --------------------------------

CAUGHT_BY: list[Any] = [("laplace", Fraction(5), 3, 2), ("response", Fraction(1, 3), Fraction(0))]


def too_small() -> bool:
    """Whether some delta is below the exact one."""
    pld._loss.cache_clear()
    loss = loss_of(*events_of(CAUGHT_BY * 2))
    with exactly():
        atoms = atoms_of(CAUGHT_BY * 2)
        return any(loss.delta(Fraction(k, 10)) < exact_delta(atoms, Fraction(k, 10)) for k in range(25))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    pld._loss.cache_clear()


def test_the_real_thing_passes() -> None:
    assert not too_small()


def test_optimistic_rounding_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = pld._on_grid

    def optimistic(pair: Any, step: Fraction) -> pld.PrivacyLoss:
        loss = real(pair, step)
        pmf = type(loss.pmf)(float(step), loss.pmf._lower_loss - 1, loss.masses, loss.pmf._infinity_mass, True)
        return pld.PrivacyLoss(pmf, step, 0.0)

    monkeypatch.setattr(pld, "_on_grid", optimistic)
    assert too_small()


def test_a_cut_that_is_forgotten_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pld, "_TAIL", 0.01)
    assert not too_small(), "a large cut is coarse, and valid"
    real = pld.PrivacyLoss.compose

    def forgetful(self: pld.PrivacyLoss, other: pld.PrivacyLoss) -> pld.PrivacyLoss:
        both = real(self, other)
        pmf = type(both.pmf)(float(both.step), both.pmf._lower_loss, both.masses, 0.0, True)
        return pld.PrivacyLoss(pmf, both.step, 0.0)

    monkeypatch.setattr(pld.PrivacyLoss, "compose", forgetful)
    assert too_small()


def test_continuous_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplace noise on the reals, in place of the integers: an optimist's curve."""

    def continuous(scale: Fraction, shift: int) -> Any:
        def delta(epsilon: Fraction) -> arb:
            reach = shift / scale
            if epsilon >= reach:
                return arb(0)
            return 1 - ball(epsilon).exp() if epsilon <= -reach else 1 - ball((epsilon - reach) / 2).exp()

        return delta

    monkeypatch.setattr(dominating, "laplace", continuous)
    monkeypatch.setattr(
        pld, "_pair", lambda make, *numbers: pld._Pair(lambda: make(*numbers), *_reach(make, numbers, continuous))
    )
    assert too_small()


def _reach(make: Any, numbers: Any, continuous: Any) -> tuple[Fraction, Fraction]:
    reach = numbers[1] / numbers[0] if make is continuous else numbers[0]
    return reach, reach * reach


def test_the_scalar_formula_is_not_used_for_vectors() -> None:
    """sigma^2 = 10, move^2 = 4, epsilon 3: the shift (1, 1, 1, 1) has 5.27e-7, and the scalar formula 4.50e-7."""
    vector = GaussianNoise(move=L2Move(4), sigma_squared=10, coordinates=4, epsilon=None)
    scalar = GaussianNoise(move=L2Move(4), sigma_squared=10, coordinates=1, epsilon=None)
    assert loss_of(scalar).delta(Fraction(3)) < Fraction("4.6e-7")
    assert loss_of(vector).delta(Fraction(3)) > Fraction("5.27e-7")


# --- what is refused ---------------------------------------------------------------------------------------


def test_without_dp_accounting_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pld, "_pmfs", lambda: None)
    pld._loss.cache_clear()
    assert not pld.installed()
    with pytest.raises(AccountingError, match=r"needs dp-accounting.*pip install 'privet\[pld\]'"):
        fixed_batch([Stated(epsilon=1, delta=0)] * 9, MILLIONTH)


def test_unknown_events_and_huge_ones_are_refused() -> None:
    class Milder(LaplaceNoise):
        pass

    with pytest.raises(AccountingError, match="epsilon up to 64"):
        pld.batch_epsilon(Stated(epsilon=65, delta=0), MILLIONTH)
    with pytest.raises(AccountingError, match="there is no privacy loss for Milder"):
        pld.batch_epsilon(Milder(move=L1Move(1), scale=1), MILLIONTH)
    batch = FixedBatch(events=[Free()], epsilon=0, delta=0, method="pld/2")
    with pytest.raises(AccountingError, match="this version computes batches by pld/1, not by pld/2"):
        pld.batch_delta(batch)


def test_a_batch_is_checked_anew_and_a_smaller_epsilon_is_not_enough() -> None:
    batch = fixed_batch([LaplaceNoise(move=L1Move(1), scale=20)] * 30, MILLIONTH)
    assert isinstance(batch, FixedBatch)
    assert pld.batch_delta(batch) <= batch.delta
    lower = FixedBatch(
        events=batch.events, epsilon=batch.epsilon * Fraction(99, 100), delta=batch.delta, method="pld/1"
    )
    assert pld.batch_delta(lower) > batch.delta
    assert math.isclose(pld.batch_delta(batch), batch.delta, rel_tol=0.01)
    assert np.all(loss_of(*batch.events).masses > -1e-15)
