"""The delta of discrete Gaussian noise against sums by another arithmetic, published values and broken twins."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from privet.errors import AccountingError, NumberError
from privet.exact import INFINITY
from privet.noise import DiscreteGaussian
from privet.privacy.divergences import max_divergence
from privet.privacy.events import GaussianNoise, JointGaussian
from privet.privacy.gaussian import delta_of, gaussian_delta, largest_rho, smallest_sigma_squared, stated, together
from privet.privacy.guarantees import ApproxDP, ZeroConcentratedDP
from privet.privacy.moves import L2Move


def masses(sigma_squared: float) -> tuple[np.ndarray, np.ndarray]:
    reach = int(40 * math.sqrt(sigma_squared)) + 10
    k = np.arange(-reach, reach + 1)
    w = np.exp(-(k**2) / (2 * sigma_squared))
    return k, w / w.sum()


def true_delta(sigma_squared: float, shift: tuple[int, ...], epsilon: float) -> float:
    """The hockey-stick divergence by enumeration: the loss is linear in the dot product of noise and shift."""
    k, p = masses(sigma_squared)
    law = {0: 1.0}
    for s in shift:
        new: dict[int, float] = {}
        for at, mass in law.items():
            for j, q in zip((k * s).tolist(), p.tolist(), strict=True):
                if mass * q > 1e-22:
                    new[at + j] = new.get(at + j, 0.0) + mass * q
        law = new
    square = sum(s * s for s in shift)
    return sum(m * max(0.0, -math.expm1(epsilon - (square - 2 * at) / (2 * sigma_squared))) for at, m in law.items())


def continuous(sigma_squared: float, squared: float, epsilon: float) -> float:
    """The broken twin: the formula for continuous noise (Balle and Wang 2018)."""
    sigma, d = math.sqrt(sigma_squared), math.sqrt(squared)
    first, second = (norm.cdf(sign * d / (2 * sigma) - epsilon * sigma / d) for sign in (1, -1))
    return float(first - math.exp(epsilon) * second)


def test_published_values() -> None:
    """CKS20: the continuous formula says too little, at sigma^2 = 2.4 and epsilon 3."""
    found = float(gaussian_delta(L2Move(1), "2.4", 1, 3))
    assert found == pytest.approx(1.297e-6, rel=1e-3)
    assert found == pytest.approx(true_delta(2.4, (1,), 3), rel=1e-9)
    assert continuous(2.4, 1, 3) < 0.75 * found
    google = 0.008751768145810  # sigma = 10, epsilon .1, one step; continuous
    assert continuous(100, 1, 0.1) == pytest.approx(google, rel=1e-9)
    assert float(gaussian_delta(L2Move(1), 100, 1, 0.1)) == pytest.approx(google, rel=3e-3)
    fine = 2**40
    assert float(gaussian_delta(L2Move(fine**2), 100 * fine**2, 1, 0.1)) == pytest.approx(google, rel=1e-9)


def test_the_scalar_formula_is_wrong_for_vectors() -> None:
    scalar = float(gaussian_delta(L2Move(4), 10, 1, 3))
    truth = true_delta(10, (1, 1, 1, 1), 3)
    assert scalar == pytest.approx(4.50e-7, rel=2e-3)
    assert truth == pytest.approx(5.27e-7, rel=2e-3)
    assert scalar < truth <= float(gaussian_delta(L2Move(4), 10, 4, 3))


@settings(max_examples=40, deadline=None)
@given(
    st.fractions(min_value=Fraction(1, 5), max_value=60, max_denominator=20),
    st.integers(1, 9),
    st.fractions(min_value=0, max_value=4, max_denominator=20),
)
def test_one_coordinate_is_summed_exactly(sigma_squared: Fraction, shift: int, epsilon: Fraction) -> None:
    truth = true_delta(float(sigma_squared), (shift,), float(epsilon))
    found = gaussian_delta(L2Move(shift**2), sigma_squared, 1, epsilon)
    assert float(found) == pytest.approx(truth, rel=1e-6, abs=1e-18)
    assert gaussian_delta(L2Move(shift**2 + 2 * shift), sigma_squared, 1, epsilon) == found, "no integer in between"
    assert gaussian_delta(L2Move((shift + 1) ** 2), sigma_squared, 1, epsilon) >= found
    assert gaussian_delta(L2Move(shift**2), sigma_squared, 1, epsilon + 1) <= found


@settings(max_examples=25, deadline=None)
@given(
    st.fractions(min_value=1, max_value=20, max_denominator=7),
    st.lists(st.integers(0, 2), min_size=2, max_size=3),
    st.fractions(min_value=0, max_value=3, max_denominator=10),
)
def test_vectors_never_need_more(sigma_squared: Fraction, shift: list[int], epsilon: Fraction) -> None:
    squared = sum(s * s for s in shift)
    found = gaussian_delta(L2Move(squared), sigma_squared, len(shift), epsilon)
    assert float(found) >= true_delta(float(sigma_squared), tuple(shift), float(epsilon)) * (1 - 1e-9)


def test_the_order_is_the_best_one() -> None:
    """Corollary 13 solved for epsilon, which another function does, leads back to the same delta."""
    for rho, delta in ((Fraction(1, 32), Fraction(1, 1000)), (Fraction(1, 2), Fraction(1, 10**8))):
        epsilon = ZeroConcentratedDP(rho).to_approx(delta=delta).epsilon
        assert gaussian_delta(L2Move(2), 1 / rho, 2, epsilon) == pytest.approx(float(delta), rel=1e-3)


def test_a_vector_that_moves_by_one_moves_in_one_coordinate() -> None:
    assert gaussian_delta(L2Move(1), 5, 7, 1) == gaussian_delta(L2Move(1), 5, 1, 1)
    assert gaussian_delta(L2Move(0), 5, 7, 0) == 0
    assert gaussian_delta(L2Move(10**12), 1, 1, 0) <= 1
    assert max_divergence(DiscreteGaussian(4), DiscreteGaussian(4, 1)) == INFINITY


@pytest.mark.parametrize(("squared", "coordinates"), [(1, 1), (9, 1), (4, 4), (2**50, 1), (2, 1000)])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.01", "1e-9"), ("0", "0.05"), ("20", "1e-30")])
def test_the_smallest_noise_keeps_to_delta(squared: int, coordinates: int, epsilon: str, delta: str) -> None:
    move = L2Move(squared)
    found = smallest_sigma_squared(move, coordinates, epsilon=epsilon, delta=delta)
    assert gaussian_delta(move, found, coordinates, epsilon) <= Fraction(delta)
    assert gaussian_delta(move, found * (1 - Fraction(1, 10**11)), coordinates, epsilon) > Fraction(delta)
    assert len(str(found.numerator)) < 40


def test_continuous_noise_would_be_too_little() -> None:
    """The broken twin calibrates by the continuous formula: the discrete delta at its sigma is too large."""
    low, high = 0.1, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if continuous(middle, 1, 3) <= 1e-6 else (middle, high)
    assert gaussian_delta(L2Move(1), high, 1, 3) > Fraction(1, 10**6)
    assert smallest_sigma_squared(L2Move(1), 1, epsilon=3, delta="1e-6") > Fraction(high)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1, 0.1), (1, 0), (1, 1), (1, 2), ("x", 0.1)])
def test_prices_that_make_no_sense_are_refused(epsilon: object, delta: object) -> None:
    with pytest.raises(NumberError):
        smallest_sigma_squared(L2Move(1), 1, epsilon=epsilon, delta=delta)  # type: ignore[arg-type]
    with pytest.raises(NumberError):
        smallest_sigma_squared(L2Move(0), 1, epsilon=1, delta="1e-6")


def test_the_guarantee_it_is_for() -> None:
    sigma_squared = smallest_sigma_squared(L2Move(2), 5, epsilon=1, delta="1e-6")
    assert ZeroConcentratedDP(1 / sigma_squared).to_approx(delta="1e-6").epsilon <= 1 + Fraction(1, 10**9)
    assert ApproxDP(1, gaussian_delta(L2Move(2), sigma_squared, 5, 1)).implies(ApproxDP(1, "1e-6"))


@pytest.mark.parametrize("epsilon", ["1e-12", "1e-3", "1", "100", "1e50", "1e399"])
def test_prices_are_short_and_quick_at_any_epsilon(epsilon: str) -> None:
    """A hostile epsilon takes no minutes, and every price can be written to a ledger and read again."""
    for coordinates in (1, 5):
        for squared in (1, 4, 2**4000):
            delta = gaussian_delta(L2Move(squared), 50, coordinates, Fraction(epsilon))
            assert 0 < delta <= 1
            assert delta.numerator.bit_length() <= 31


def test_what_is_calibrated_for_a_delta_costs_that_delta() -> None:
    for coordinates, epsilon, delta in ((1, 1, 1e-6), (1, 0.5, 5e-7), (3, 1, 1e-6), (10, 2, 1e-9)):
        move = L2Move(coordinates)
        sigma_squared = smallest_sigma_squared(move, coordinates, epsilon=epsilon, delta=delta)
        assert gaussian_delta(move, sigma_squared, coordinates, epsilon) <= Fraction(str(delta))


@pytest.mark.parametrize("epsilon", [0, "1e-30", "1e-9"])
@pytest.mark.parametrize("delta", ["1e-100", "1e-6", "0.9", "0.999999"])
def test_tiny_epsilons_have_their_noise(epsilon: str, delta: str) -> None:
    """Where delta decides and epsilon hardly does, the first guess is far off."""
    squared = smallest_sigma_squared(L2Move(1), 1, epsilon=epsilon, delta=delta)
    assert gaussian_delta(L2Move(1), squared, 1, epsilon) <= Fraction(delta)
    assert gaussian_delta(L2Move(1), squared * Fraction(999, 1000), 1, epsilon) > Fraction(delta)


# --- several vectors, each with its own noise -----------------------------------------------------


def joint(parts: list[tuple[Fraction, tuple[int, ...]]], epsilon: Fraction) -> JointGaussian:
    """Noises of these sigma^2, each for this shift."""
    noises = [
        GaussianNoise(
            move=L2Move(sum(s * s for s in shift)), sigma_squared=square, coordinates=len(shift), epsilon=None
        )
        for square, shift in parts
    ]
    return JointGaussian(noises=noises, epsilon=epsilon)


def joint_delta(parts: list[tuple[Fraction, tuple[int, ...]]], epsilon: float) -> float:
    """The hockey-stick divergence by enumeration of the losses of all coordinates."""
    losses, law = np.zeros(1), np.ones(1)
    for square, shift in parts:
        for s in shift:
            k, p = masses(float(square))
            kept = p > 1e-16
            loss = (s * s - 2 * s * k[kept]) / (2 * float(square))
            losses, law = (losses[:, None] + loss[None]).ravel(), (law[:, None] * p[kept][None]).ravel()
            losses, law = losses[law > 1e-18], law[law > 1e-18]
    return float((law * np.maximum(0.0, -np.expm1(epsilon - losses))).sum())


PARTS = st.tuples(
    st.fractions("1/3", 9, max_denominator=9), st.lists(st.integers(0, 2), min_size=1, max_size=2).map(tuple)
)


@settings(max_examples=40, deadline=None)
@given(st.lists(PARTS, min_size=2, max_size=2), st.fractions("0.1", 4, max_denominator=20))
def test_noises_together_never_need_more(parts: list[tuple[Fraction, tuple[int, ...]]], epsilon: Fraction) -> None:
    assert joint_delta(parts, float(epsilon)) <= float(delta_of(joint(parts, epsilon))) + 1e-12


def test_broken_twins_of_noises_together_are_told() -> None:
    """The largest of the deltas, their sum, and the formula for one number with the same rho are all too small."""
    parts: list[tuple[Fraction, tuple[int, ...]]] = [(Fraction(4), (1,)), (Fraction(5), (1,))]
    epsilon = Fraction(1)
    truth = joint_delta(parts, float(epsilon))
    alone = [float(gaussian_delta(L2Move(1), square, 1, epsilon)) for square, _ in parts]
    assert max(alone) <= sum(alone) < truth <= float(delta_of(joint(parts, epsilon)))
    steep: list[tuple[Fraction, tuple[int, ...]]] = [(Fraction(10), (1, 1)), (Fraction(10), (1, 1))]
    scalar = float(gaussian_delta(L2Move(4), 10, 1, 3))  # the same rho in one number: published
    assert scalar < joint_delta(steep, 3.0) <= float(delta_of(joint(steep, Fraction(3))))


@pytest.mark.parametrize("delta", ["1e-3", "1e-9", "1e-15"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_noise_states_the_smallest_epsilon_for_a_delta(count: int, delta: str) -> None:
    noises = [
        GaussianNoise(move=L2Move(i + 1), sigma_squared=50 + i, coordinates=2, epsilon=None) for i in range(count)
    ]
    event = stated(noises, delta=Fraction(delta))
    assert event.epsilon is not None
    assert delta_of(event) <= Fraction(delta)
    assert delta_of(together(noises, epsilon=event.epsilon * Fraction(99, 100))) > Fraction(delta)


def test_the_largest_rho_keeps_to_a_delta() -> None:
    for epsilon, delta in (("0.1", "1e-9"), ("1", "1e-6"), ("10", "1e-3")):
        rho = largest_rho(epsilon=epsilon, delta=delta)
        half = GaussianNoise(move=L2Move(1), sigma_squared=1 / rho, coordinates=1, epsilon=None)
        assert delta_of(JointGaussian(noises=[half, half], epsilon=epsilon)) <= Fraction(delta)
        louder = GaussianNoise(move=L2Move(1), sigma_squared=Fraction(99, 100) / rho, coordinates=1, epsilon=None)
        assert delta_of(JointGaussian(noises=[louder, louder], epsilon=epsilon)) > Fraction(delta)


@pytest.mark.parametrize("noises", [[], [1], [None, None]])
def test_noises_together_are_two_or_more(noises: list[object]) -> None:
    noise = GaussianNoise(move=L2Move(1), sigma_squared=50, coordinates=1, epsilon=1)
    for wrong in (noises, [noise, noise]):
        with pytest.raises(AccountingError, match="two or more Gaussian noises"):
            JointGaussian(noises=wrong, epsilon=1)  # type: ignore[arg-type]


def test_an_epsilon_of_0_that_is_not_quite_enough_is_raised() -> None:
    noise = GaussianNoise(move=L2Move(9), sigma_squared=9_000_000, coordinates=2, epsilon=None)
    delta = Fraction("0.00060653068516")
    assert ZeroConcentratedDP(noise.rho).to_approx(delta=delta).epsilon == 0
    assert delta_of(together([noise], epsilon=Fraction(0))) > delta
    event = stated([noise], delta=delta)
    assert delta_of(event) <= delta
    assert event.epsilon is not None
    assert 0 < event.epsilon < Fraction(1, 10**9)


def test_noise_that_hides_nothing_states_no_epsilon() -> None:
    noise = GaussianNoise(move=L2Move(1), sigma_squared="1e-9", coordinates=2, epsilon=None)
    with pytest.raises(NumberError, match="rho must be at most 1,000,000"):
        stated([noise], delta=Fraction(1, 10**6))
