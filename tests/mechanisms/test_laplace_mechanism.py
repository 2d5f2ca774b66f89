"""The Laplace mechanism: what goes in and comes out, what it costs, and how exact it is."""

from __future__ import annotations

import copy
import math
import pickle
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privet.errors import DataError, NumberError, UserError
from privet.exact import lattice
from privet.mechanisms import Laplace, epsilon_for
from privet.mechanisms.values import read
from privet.noise import DiscreteLaplace
from privet.privacy.guarantees import PureDP
from privet.textbook import distributions

SURE = "1e9"
"""An epsilon with practically no noise: a draw other than 0 has probability 2e^-59 per coordinate or less."""


@contextmanager
def noise_off() -> Iterator[None]:
    """The seam of these tests: every draw is 0."""

    def zero(self: DiscreteLaplace, size: int | None = None) -> Any:
        return 0 if size is None else np.zeros(size, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiscreteLaplace, "sample", zero)
        yield


@contextmanager
def noise_of(draws: list[int]) -> Iterator[None]:
    """Every draw is given."""

    def given_draws(self: DiscreteLaplace, size: int | None = None) -> Any:
        return draws[0] if size is None else np.array(draws[:size], dtype=object)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiscreteLaplace, "sample", given_draws)
        yield


# --- what goes in and comes out ---------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 7, -7, 2**63, -(10**30), np.int8(-128), np.uint64(2**64 - 1), np.int64(-(2**63))])
def test_integers_in_integers_out(value: Any) -> None:
    with noise_off():
        answer = Laplace(sensitivity=1, epsilon=1).release(value)
    assert type(answer) is int
    assert answer == int(value)


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u8"])
@pytest.mark.parametrize("shape", [(0,), (6,), (2, 3), (1, 2, 3), ()])
def test_arrays_of_integers(kind: str, shape: tuple[int, ...]) -> None:
    limits = np.iinfo(np.dtype(kind))
    values = np.full(shape, limits.max, dtype=kind)
    with noise_off():
        answer = Laplace(sensitivity=1, epsilon=1).release(values)
    assert type(answer) is np.ndarray
    assert answer.shape == shape
    assert answer.tolist() == values.tolist()
    assert answer.dtype == (object if kind.endswith("u8") and values.size else np.int64)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, ">f8"])
@pytest.mark.parametrize("shape", [(0,), (6,), (2, 3), ()])
def test_arrays_of_floats(kind: Any, shape: tuple[int, ...]) -> None:
    values = np.full(shape, 0.25, dtype=kind)
    with noise_off():
        answer = Laplace(sensitivity=1, epsilon=1).release(values)
    assert answer.dtype == np.float64
    assert answer.shape == shape
    assert answer.tolist() == values.tolist()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], []),
        ((), []),
        ([1, 2, 3], [1, 2, 3]),
        ((1, 2), [1, 2]),
        ([1, 2**70], [1, 2**70]),
        ([np.int8(3), np.uint64(2**63)], [3, 2**63]),
        ([1, 0.5], [1.0, 0.5]),
        ([Fraction(1, 2), Decimal("0.25"), np.float32(0.125), 3], [0.5, 0.25, 0.125, 3.0]),
        (Fraction(1, 2), 0.5),
        (Decimal("-0.25"), -0.25),
        (Decimal(3), 3.0),
        (0.5, 0.5),
        (np.float64(0.5), 0.5),
        (np.float16(0.5), 0.5),
        (5e-324, 0.0),
        (-5e-324, 0.0),
        (1e300, 1e300),
        ([1e300, -1e300, 5e-324], [1e300, -1e300, 0.0]),
    ],
)
def test_other_values(value: Any, expected: Any) -> None:
    with noise_off():
        answer = Laplace(sensitivity=1, epsilon=1).release(value)
    assert answer == expected
    assert type(answer) is type(expected)
    if isinstance(answer, list):
        assert [type(part) for part in answer] == [type(part) for part in expected]


@pytest.mark.parametrize(
    "value",
    [
        True, np.True_, None, "1", b"1", 1j, {}, {1: 2}, {1}, object(), range(3), [True], [None], [1, "2"], [[1], [2]],
        [np.array([1])], np.array([True]), np.array(["1"]), np.array([1j]), np.array([1, None], dtype=object),
        np.array(["2020-01-01"], dtype="datetime64[D]"), np.array([1], dtype="timedelta64[s]"),
        np.ma.array([1, 2], mask=[False, True]), np.ma.array([1.5], mask=[False]),
        math.nan, math.inf, -math.inf, Decimal("nan"), Decimal("sNaN"), Decimal("inf"), [1, math.nan], [math.inf],
        np.array([1.0, math.nan]), np.array([math.inf]), np.float32("nan"), np.array([1.0], dtype=np.longdouble),
    ],
    ids=lambda value: repr(value).split(" at 0x")[0],  # no addresses: the same in every process
)  # fmt: skip
@pytest.mark.parametrize("call", ["release", "fit", "interval"])
def test_what_is_no_number_is_refused(value: Any, call: str) -> None:
    mechanism = Laplace(sensitivity=1, epsilon=1)
    arguments = (value, 0.95) if call == "interval" else (value,)
    with pytest.raises(DataError, match=r"Write(, for example)?: release\(|Clamp the value before"):
        getattr(mechanism, call)(*arguments)


def test_nothing_under_a_mask_is_released() -> None:
    """Numpy's masked sum keeps the left operand where it is masked: the value itself, without noise."""
    values = np.ma.array([100, 200, 300], mask=[False, False, True])
    assert (values + np.array([7, 7, 7])).data[2] == 300  # what numpy does
    with pytest.raises(DataError, match=r"release\(values.filled\(0\)\)"):
        Laplace(sensitivity=1, epsilon=1).release(values)


@given(st.lists(st.integers(-(2**64), 2**64), min_size=1, max_size=4), st.data())
def test_the_type_of_the_answer_depends_on_the_sums_alone(sums: list[int], data: st.DataObject) -> None:
    """However a sum is split between the value and the noise, the answer is the same, type and all."""
    mechanism = Laplace(sensitivity=1, epsilon=1)
    answers = []
    for _ in range(2):
        values = [data.draw(st.integers(-(2**63), 2**63 - 1)) for _ in sums]
        with noise_of([total - value for total, value in zip(sums, values, strict=True)]):
            answers += [mechanism.release(np.array(values)), mechanism.release(np.array(values, dtype=np.int64))]
    assert {answer.dtype for answer in answers} == {answers[0].dtype}
    assert all(answer.tolist() == sums for answer in answers)
    assert answers[0].dtype == (np.int64 if all(-(2**63) <= total < 2**63 for total in sums) else object)


@pytest.mark.parametrize("value", [12.3, [0.1, 0.2, 0.3], np.array([1 / 3] * 50)])
def test_real_answers_are_on_the_lattice(value: Any) -> None:
    mechanism = Laplace(sensitivity="0.7", epsilon="0.3")
    step = mechanism.fit(value).step
    for _ in range(50):
        for answer in np.atleast_1d(mechanism.release(value)).tolist():
            assert (Fraction(answer) / step).denominator == 1


@pytest.mark.parametrize("value", [3, 3.5, [1, 2], [1.5, 2], np.arange(3), np.arange(3.0)])
def test_noise_is_added(value: Any) -> None:
    mechanism = Laplace(sensitivity=1, epsilon="1e-9")
    assert not np.array_equal(mechanism.release(value), mechanism.release(value))
    far = np.abs(np.subtract(mechanism.release(value), value, dtype=float))
    assert far.max() > 1000  # with probability 1 - 1e-6
    quiet = np.abs(np.subtract(Laplace(sensitivity=1, epsilon=SURE).release(value), value, dtype=float))
    assert quiet.max() < 1e-6


def test_each_coordinate_has_its_own_noise() -> None:
    assert len(set(Laplace(sensitivity=1, epsilon="1e-12").release([0] * 100))) > 95


# --- the lattice ------------------------------------------------------------------------------


def test_fit() -> None:
    plain = Laplace(sensitivity=3, epsilon="0.5")
    value: Any
    assert plain.dimension is None
    assert plain.step == 1
    for value in (1, [1, 2], np.arange(4), []):
        assert plain.fit(value) is plain
    for value, dimension in ((0.5, 1), ([0.5, 1], 2), (np.zeros((2, 3)), 6), (np.array([]), 1), (np.array(0.5), 1)):
        fitted = plain.fit(value)
        assert (fitted.dimension, fitted.sensitivity, fitted.epsilon) == (dimension, Fraction(3), Fraction(1, 2))
        assert fitted == Laplace(sensitivity=3, epsilon="0.5", dimension=dimension)
        assert fitted.fit(value) is fitted
    wide = Laplace(sensitivity=3, epsilon="0.5", dimension=5)
    assert wide.fit([0.5] * 5) is wide
    assert wide.fit(1) is wide
    assert isinstance(wide.release(1), float)
    assert wide.fit([0.5] * 6).dimension == 6
    coarse = Laplace(sensitivity=3, epsilon="0.5", step=2)
    assert (coarse.dimension, coarse.step, coarse.steps) == (1, Fraction(2), 2)
    with pytest.raises(DataError, match=r"Write: Laplace\(\.\.\., step=2, dimension=3\)"):
        coarse.fit([0.5] * 3)
    with pytest.raises(DataError, match=r"Write: Laplace\(\.\.\., step=1, dimension=1\)"):
        Laplace(sensitivity=3, epsilon="0.5", step=1).release(0.5)
    assert Laplace(sensitivity=3, epsilon="0.5", step=2, dimension=3).fit([0.5] * 3).dimension == 3
    whole = Laplace(sensitivity=3, epsilon="0.5", step=1, dimension=1)
    assert whole.fit(0.5) is whole
    assert whole.release(0.5).is_integer()
    assert repr(Laplace(sensitivity=3, epsilon="0.5", step=1)) == "Laplace(sensitivity=3, epsilon=0.5, step=1)"


@pytest.mark.parametrize("step", [3, "0.1", Fraction(1, 3), 0, -1, math.nan, True, "x"])
def test_steps_are_powers_of_two(step: Any) -> None:
    with pytest.raises(NumberError, match="Write, for example"):
        Laplace(sensitivity=1, epsilon=1, step=step)


@pytest.mark.parametrize("dimension", [0, -1, 1.5, True, "x", math.nan])
def test_dimensions_are_whole(dimension: Any) -> None:
    with pytest.raises(NumberError, match="Write, for example: dimension=3"):
        Laplace(sensitivity=1, epsilon=1, dimension=dimension)


@pytest.mark.parametrize("bad", [None, 0, -1, math.nan, math.inf, -0.0, True, "", "x", "1/0", 1j, [1], np.True_])
def test_bad_parameters_are_refused_with_a_line_to_write(bad: Any) -> None:
    for arguments in ({"sensitivity": bad, "epsilon": 1}, {"sensitivity": 1, "epsilon": bad}):
        with pytest.raises(NumberError, match=r"Write, for example: Laplace\(sensitivity=1, epsilon=0.5\)"):
            Laplace(**arguments)
    if bad is not None:
        with pytest.raises(NumberError, match=r"Write, for example: Laplace\(sensitivity=1, scale=2\)"):
            Laplace(sensitivity=1, scale=bad)


def test_epsilon_or_scale() -> None:
    assert Laplace(sensitivity=3, scale=6) == Laplace(sensitivity=3, epsilon="0.5")
    assert Laplace(sensitivity=3, scale=6).scale == 6
    for both in ({}, {"epsilon": 1, "scale": 1}):
        with pytest.raises(NumberError, match="either epsilon or scale"):
            Laplace(sensitivity=1, **both)
    with pytest.raises(TypeError):
        Laplace(1, 0.5)  # type: ignore[call-arg]


def some_number(source: random.Random) -> Any:
    """A parameter as people write it, over many orders of magnitude."""
    size = 10.0 ** source.uniform(-9, 9)
    return source.choice(
        [size, repr(size), Fraction(size), Decimal(size), math.ceil(size), Fraction(source.randint(1, 99), 97)]
    )


def test_the_price_is_epsilon_exactly_and_the_noise_never_less(effort: int) -> None:
    source = random.Random("laplace")
    for _ in range(3000 * effort):
        sensitivity, epsilon = some_number(source), some_number(source)
        dimension = source.choice([None, 1, 2, 3, 10, 1000])
        mechanism = Laplace(sensitivity=sensitivity, epsilon=epsilon, dimension=dimension)
        assert mechanism.guarantee() == PureDP(mechanism.epsilon)
        assert mechanism.guarantee().epsilon == mechanism.epsilon
        assert mechanism.scale == mechanism.noise.scale * mechanism.step
        ratio = mechanism.scale * mechanism.epsilon / mechanism.sensitivity
        assert 1 <= ratio <= 1 + Fraction(1, 2**23)
        assert (ratio == 1) or mechanism.dimension is not None
        by_scale = Laplace(sensitivity=sensitivity, scale=epsilon, dimension=dimension)
        assert by_scale.scale >= mechanism.epsilon  # the number that was given
        assert by_scale.guarantee().epsilon == by_scale.sensitivity / mechanism.epsilon


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=100),
    st.integers(-8, 8),
    st.none() | st.integers(1, 5),
    st.fractions(min_value=Fraction(1, 100), max_value=100),
)
def test_with_a_step_of_one_s_own_too(
    sensitivity: Fraction, power: int, dimension: int | None, epsilon: Fraction
) -> None:
    mechanism = Laplace(sensitivity=sensitivity, epsilon=epsilon, step=Fraction(2) ** power, dimension=dimension)
    assert mechanism.guarantee().epsilon == epsilon
    assert mechanism.scale * epsilon >= sensitivity
    assert mechanism.steps == math.ceil(sensitivity / mechanism.step) + (dimension or 1) - 1


# --- rounding counts --------------------------------------------------------------------------


def images_apart(step: Fraction, dimension: int, x: list[Fraction], y: list[Fraction]) -> Fraction:
    """How many steps apart the mechanism puts two vectors, seen from outside with the noise off."""
    mechanism = Laplace(sensitivity=1, epsilon=1, step=step, dimension=dimension)
    with noise_off():
        left, right = mechanism.release(x), mechanism.release(y)
    return sum((abs(Fraction(a) - Fraction(b)) / step for a, b in zip(left, right, strict=True)), Fraction(0))


def counterexample(claimed_steps: Any, dimension: int, step: Fraction) -> tuple[list[Fraction], list[Fraction]] | None:
    """Two vectors at L1 distance D whose images differ by more than claimed, among those near the halves."""
    half, tiny = step / 2, step / 64
    grid = [half - tiny, half, half + step, half + step - tiny, half + 2 * step]
    for x in product(grid[:3], repeat=dimension):
        for y in product(grid, repeat=dimension):
            apart = sum((abs(a - b) for a, b in zip(x, y, strict=True)), Fraction(0))
            if apart and images_apart(step, dimension, list(x), list(y)) > claimed_steps(apart):
                return list(x), list(y)
    return None


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("step", [Fraction(1), Fraction(1, 8), Fraction(4)])
def test_rounding_is_counted(dimension: int, step: Fraction) -> None:
    def claimed(apart: Fraction) -> int:
        return Laplace(sensitivity=apart, epsilon=1, step=step, dimension=dimension).steps

    assert counterexample(claimed, dimension, step) is None
    assert counterexample(lambda apart: apart / step, dimension, step) is not None  # the twin that ignores rounding
    if dimension > 1:  # and the one that forgets the other coordinates
        assert counterexample(lambda apart: math.ceil(apart / step), dimension, step) is not None


reals = st.floats(-10, 10) | st.integers(-40, 40).map(lambda k: k / 4) | st.sampled_from([0.49999999999999994, 5e-324])


@given(st.lists(st.tuples(reals, reals), min_size=1, max_size=4), st.integers(-30, 3))
@example([(0.5, 0.49999999999999994), (1.5, 1.4999999999999998)], 0)
def test_no_two_vectors_come_apart_by_more_than_the_steps(pairs: list[tuple[float, float]], power: int) -> None:
    x, y = ([pair[side] for pair in pairs] for side in (0, 1))
    apart = sum((abs(Fraction(a) - Fraction(b)) for a, b in pairs), Fraction(0))
    if not apart:
        return
    for step in (None, Fraction(2) ** power):
        mechanism = Laplace(sensitivity=apart, epsilon=1, step=step, dimension=len(pairs))
        with noise_off():
            for form in (list, np.array):
                left, right = mechanism.release(form(x)), mechanism.release(form(y))
                moved = sum(abs(Fraction(a) - Fraction(b)) for a, b in zip(left, right, strict=True))
                assert moved / mechanism.step <= mechanism.steps


# --- its accuracy -----------------------------------------------------------------------------

SCALES = ["1/10", "1/2", 1, 2, "2.5", 10]


def inside(noise: DiscreteLaplace, radius: int) -> tuple[Fraction, Fraction]:
    """P(|X| <= radius), summed term by term: a lower and an upper bound."""
    masses = [noise.pmf(k) for k in range(-radius, radius + 1)]
    return sum((m.lower for m in masses), Fraction(0)), sum((m.upper for m in masses), Fraction(0))


@pytest.mark.parametrize("scale", SCALES)
def test_tails_are_the_sum_over_the_pmf(scale: Any) -> None:
    mechanism = Laplace(sensitivity=1, scale=scale)
    assert mechanism.tail(0) == mechanism.tail(-3) == 1
    for t in map(Fraction, ["1/3", "1", "1.5", "2", "3", "7", "20"]):
        low, high = inside(mechanism.noise, math.ceil(t) - 1)
        assert float(1 - high) == pytest.approx(mechanism.tail(t), rel=1e-9, abs=1e-18)
        assert Fraction(mechanism.tail(t)) >= 1 - high  # rounded up
        assert mechanism.tail(t) <= min(1, 2 * math.exp(-float(t * mechanism.epsilon)) * (1 + 1e-12))
        assert Fraction(mechanism.tail(t)) <= (1 - low) * (1 + Fraction(1, 2**50)) + Fraction(1, 2**60)


def test_the_tail_of_reals_takes_the_rounding_s_share() -> None:
    mechanism = Laplace(sensitivity=1, epsilon=1, step=1, dimension=1)
    assert mechanism.tail(3) == Laplace(sensitivity=1, epsilon=1).tail("2.5")
    assert mechanism.error(0.95) == Laplace(sensitivity=1, epsilon=1).error(0.95) + 0.5
    fine = Laplace(sensitivity=1, epsilon=1, dimension=1)
    assert fine.tail(3) == pytest.approx(math.exp(-3), rel=1e-6)
    assert fine.error(0.95) == pytest.approx(2.995732273553991, rel=1e-6)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("confidence", ["0.01", 0.5, 0.9, 0.95, 0.999])
def test_errors_hold_with_their_confidence_and_no_smaller_one_would(scale: Any, confidence: Any) -> None:
    mechanism = Laplace(sensitivity=1, scale=scale)
    error = mechanism.error(confidence)
    assert isinstance(error, int)
    assert inside(mechanism.noise, error)[0] >= Fraction(str(confidence))
    assert error == 0 or inside(mechanism.noise, error - 1)[1] < Fraction(str(confidence))


def test_published_errors() -> None:
    """OpenDP 0.16 interpolates; an integer quantile is the floor."""
    assert Laplace(sensitivity=1, scale=1).error(0.95) == math.floor(3.3756177665957137)
    assert Laplace(sensitivity=1, scale=2).error(0.95) == math.floor(6.42960493986766)


@pytest.mark.parametrize(
    ("x", "scale", "confidence", "interval"),
    [
        ("13", "27.33333333333", "0.95", (-68.88334881, 94.88334881)),
        ("83.1235", "60", "0.76", (-2.503481338, 168.7504813)),
        ("38.4234", Fraction("8.6") / Fraction("0.6"), "0.8", (15.35478992, 61.49201008)),  # l0 = 2, linf = 4.3
    ],
)
def test_intervals_of_google_go(x: str, scale: Any, confidence: str, interval: tuple[float, float]) -> None:
    continuous = distributions.Laplace(x, scale).interval(confidence)
    assert continuous == pytest.approx(interval, rel=1e-9)
    mechanism = Laplace(sensitivity="4.3", scale=scale)
    assert mechanism.interval(float(x), confidence) == pytest.approx(interval, rel=1e-6, abs=1e-5)
    assert mechanism.interval([float(x)], confidence)[0] == pytest.approx([interval[0]], rel=1e-6, abs=1e-5)


def test_published_quantile() -> None:
    assert float(distributions.Laplace(0, 3).quantile("1.23757362e-15")) == pytest.approx(-100.897429529251364)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (10, 4, 16),
        ([10, 20], [4, 14], [16, 26]),
        ((10, 20), [4, 14], [16, 26]),
        (np.array([3], dtype=np.uint8), [-3], [9]),
        (np.array([-(2**63), 2**63 - 1]), [-(2**63) - 6, 2**63 - 7], [-(2**63) + 6, 2**63 + 5]),
        (np.array([[1, 2]]), [[-5, -4]], [[7, 8]]),
        (2**70, 2**70 - 6, 2**70 + 6),
        ([], [], []),
    ],
    ids=repr,
)
def test_intervals_of_integers(value: Any, low: Any, high: Any) -> None:
    ends = Laplace(sensitivity=1, epsilon="0.5").interval(value, 0.95)
    assert tuple(end.tolist() if isinstance(end, np.ndarray) else end for end in ends) == (low, high)
    assert all(isinstance(end, np.ndarray) == isinstance(value, np.ndarray) for end in ends)


@pytest.mark.parametrize("value", [1.5, Fraction(3, 2), Decimal("1.5"), np.float32(1.5), [1.5], np.array([1.5])])
def test_intervals_of_reals(value: Any) -> None:
    low, high = Laplace(sensitivity=1, epsilon=1).interval(value, 0.95)
    assert np.ravel(low).tolist() == pytest.approx([1.5 - 2.9957324], rel=1e-6)
    assert np.ravel(high).tolist() == pytest.approx([1.5 + 2.9957324], rel=1e-6)


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, math.nan, "x", None, True])
def test_bad_confidence(confidence: Any) -> None:
    mechanism = Laplace(sensitivity=1, epsilon=1)
    for ask in (mechanism.error, lambda level: mechanism.interval(3, level)):
        with pytest.raises(NumberError, match=r"Write, for example: confidence=0\.95"):
            ask(confidence)


def test_privacy_profile() -> None:
    whole = Laplace(sensitivity=1, epsilon=1).privacy_profile()
    assert float(whole(0)) == pytest.approx(math.tanh(0.5))
    assert float(whole(1)) == 0
    fine = Laplace(sensitivity=1, epsilon=1, dimension=1).privacy_profile()
    assert float(fine(0)) == pytest.approx(0.3934693402873666, abs=1e-7)
    assert float(fine(0.5)) == pytest.approx(0.22119921692859512, abs=1e-7)
    assert fine(1).upper == 0
    assert float(fine("0.999999")) > 0


# --- epsilon for an error ---------------------------------------------------------------------


@given(
    st.integers(1, 1000) | st.fractions(min_value=Fraction(1, 50), max_value=500),
    st.sampled_from(["0.01", "0.5", "0.9", "0.95", "0.999", "0.999999999"]),
    st.sampled_from([1, 3, "0.7", "1e-5", 10**6]),
    st.sampled_from([None, None, 1, "1/1024"]),
)
@settings(max_examples=40)
def test_epsilon_for_is_the_smallest(error: Any, confidence: str, sensitivity: Any, step: Any) -> None:
    half = Fraction(step) / 2 if step == "1/1024" else Fraction(1, 10**4)
    if Fraction(error) < half:
        return
    epsilon = epsilon_for(error=error, confidence=confidence, sensitivity=sensitivity, step=step)
    digit = Fraction(10) ** (math.floor(math.log10(epsilon)) - 5)
    assert (epsilon / digit).denominator == 1
    assert 10**5 <= epsilon / digit <= 10**6
    assert Laplace(sensitivity=sensitivity, epsilon=epsilon, step=step).error(confidence) <= error
    less = epsilon - (digit if epsilon > 10**5 * digit else digit / 10)
    assert Laplace(sensitivity=sensitivity, epsilon=less, step=step).error(confidence) > error


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", 1, 2])
def test_epsilon_for_undoes_error(epsilon: Any) -> None:
    error = Laplace(sensitivity=5, epsilon=epsilon).error(0.95)
    found = epsilon_for(error=error, confidence=0.95, sensitivity=5)
    assert found <= Fraction(epsilon) * (1 + Fraction(1, 10**5))
    assert Laplace(sensitivity=5, epsilon=found).error(0.95) == error


@pytest.mark.parametrize(
    "asked",
    [
        {"error": 10**400, "confidence": 0.95, "sensitivity": 1},
        {"error": 1, "confidence": 0.95, "sensitivity": 10**400},
        {"error": 1, "confidence": 1 - Fraction(1, 10**400), "sensitivity": 1},
        {"error": 1, "confidence": "1e-300", "sensitivity": 1},
        {"error": Fraction(1, 10**9), "confidence": 0.95, "sensitivity": 1},
    ],
)
def test_epsilon_for_extremes(asked: dict[str, Any]) -> None:
    epsilon = epsilon_for(**asked)
    enough = Laplace(sensitivity=asked["sensitivity"], epsilon=epsilon).error(asked["confidence"])
    assert enough <= asked["error"]
    less = Laplace(sensitivity=asked["sensitivity"], epsilon=epsilon * Fraction(99999, 100000))
    assert less.error(asked["confidence"]) > asked["error"]


@pytest.mark.parametrize(
    "change",
    [
        {"error": 0}, {"error": -1}, {"error": math.nan}, {"error": "x"}, {"confidence": 0}, {"confidence": 1},
        {"confidence": 95}, {"sensitivity": 0}, {"sensitivity": None}, {"step": 3}, {"error": "0.1", "step": "1/4"},
    ],
)  # fmt: skip
def test_epsilon_for_refuses(change: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"error": 50, "confidence": 0.95, "sensitivity": 1}
    with pytest.raises(NumberError, match="Write, for example: "):
        epsilon_for(**(asked | change))


# --- as a value -------------------------------------------------------------------------------


def test_a_mechanism_is_a_value() -> None:
    mechanism = Laplace(sensitivity=1, epsilon=0.1)
    assert mechanism == Laplace(sensitivity="1", epsilon=Decimal("0.1"))
    assert hash(mechanism) == hash(Laplace(sensitivity=1.0, epsilon=Fraction(1, 10)))
    assert mechanism != Laplace(sensitivity=1, epsilon=0.2)
    assert mechanism != Laplace(sensitivity=2, epsilon=0.1)
    assert mechanism != Laplace(sensitivity=1, epsilon=0.1, dimension=1)
    assert mechanism != Laplace(sensitivity=1, epsilon=0.1, step=1)  # it would keep that step for reals
    with pytest.raises(FrozenInstanceError):
        mechanism.epsilon = Fraction(2)  # type: ignore[misc]
    for same in (copy.copy(mechanism), copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))):
        assert same == mechanism
        assert isinstance(same.release(3), int)
    assert repr(mechanism) == "Laplace(sensitivity=1, epsilon=0.1)"
    assert repr(mechanism.fit([0.5, 1])) == "Laplace(sensitivity=1, epsilon=0.1, step=2.98023e-8, dimension=2)"
    assert eval(repr(mechanism), {"Laplace": Laplace}) == mechanism


def test_an_event_that_a_ledger_could_not_hold_is_refused_as_a_user_s_error() -> None:
    odd = Fraction(3**3000, 2**4760)  # below 1, with numbers of over 4096 bits
    with pytest.raises(UserError, match="digits"):
        Laplace(sensitivity=1, epsilon=odd)


def test_the_lattice_s_names() -> None:
    assert lattice.is_power_of_two(Laplace(sensitivity="0.3", epsilon=1).step)
    assert Laplace(sensitivity="0.3", epsilon=1).step <= Fraction("0.3") / 2**24


def test_wide_floats_are_not_rounded_first() -> None:
    """Neighbours 1 apart stay 1 apart, though as 64-bit floats they would be 256 apart."""
    low = np.longdouble(2**60) + np.longdouble(128)
    wide = low + np.longdouble(1) != low  # else long doubles are 64-bit floats here
    for form in (lambda value: value, lambda value: [value]):
        codes = [read(form(value)).steps(Fraction(1, 4))[0] for value in (low, low + np.longdouble(1))]
        assert codes[1] - codes[0] == (4 if wide else 0)


@pytest.mark.parametrize("value", [np.longdouble("nan"), np.longdouble("inf"), [np.longdouble("inf")], Decimal("sNaN")])
def test_wide_floats_that_are_not_finite_are_refused(value: Any) -> None:
    with pytest.raises(DataError, match="isfinite"):
        Laplace(sensitivity=1, epsilon=1).release(value)


@pytest.mark.parametrize(("sensitivity", "dimension"), [(1, 1), (1, 7), ("0.3", 2)])
def test_epsilon_for_reals(sensitivity: Any, dimension: int) -> None:
    epsilon = epsilon_for(error=0.5, confidence=0.95, sensitivity=sensitivity, dimension=dimension)
    mechanism = Laplace(sensitivity=sensitivity, epsilon=epsilon, dimension=dimension)
    assert 0.49 < mechanism.error(0.95) <= 0.5


def test_intervals_hold_what_the_answer_s_float_lost() -> None:
    """Near 10^17 floats are 16 apart: the interval must cover the true value, which lies between two of them."""
    mechanism, truth = Laplace(sensitivity=0.5, epsilon=1), Fraction(2 * 10**17 + 15, 2)
    covered = 0
    for _ in range(400):
        low, high = mechanism.interval(mechanism.release(truth), 0.95)
        covered += Fraction(low) <= truth <= Fraction(high)
    assert covered >= 350


def test_a_released_array_of_any_size_has_an_interval() -> None:
    mechanism = Laplace(sensitivity=1, epsilon="1e-20")
    released = mechanism.release(np.array([[0, 0], [0, 2**62]]))
    low, high = mechanism.interval(released, 0.95)
    assert released.shape == low.shape == high.shape == (2, 2)
    assert all(a < r < b for a, r, b in zip(low.flat, released.flat, high.flat, strict=True))
    again = mechanism.release(released)
    assert again.shape == (2, 2)
    assert all(type(value) is int for value in again.ravel().tolist())
