"""The statistics against numpy and the standard library, against their claimed sensitivity, and against odd rows."""

from __future__ import annotations

import decimal
import math
import random
import statistics as plain
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from tests.effort import some

from privet.errors import DataError, NoSensitivity, NumberError, UserError
from privet.noise import DiscreteLaplace
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import PureDP
from privet.textbook import sensitivity, statistics
from privet.textbook.statistics import Estimate

Ask = Callable[..., Estimate]
Rows = Sequence[Any]


def quantile(q: str, interpolation: Any = "linear") -> Ask:
    return lambda data, **options: statistics.laplace_quantile(data, q, interpolation=interpolation, **options)


ASK: dict[str, Ask] = {
    "sum": statistics.sum,
    "mean": statistics.mean,
    "variance": statistics.variance,
    "sample variance": lambda data, **options: statistics.variance(data, ddof=1, **options),
    "std": statistics.std,
    "sample std": lambda data, **options: statistics.std(data, ddof=1, **options),
    "median": statistics.laplace_median,
    "lower median": lambda data, **options: statistics.laplace_median(data, interpolation="lower", **options),
    "quantile 1/4": quantile("0.25"),
    "lower quantile 1/10": quantile("0.1", "lower"),
    "max": statistics.laplace_max,
    "min": statistics.laplace_min,
}
NUMPY: dict[str, Callable[[Any], Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "variance": np.var,
    "sample variance": lambda rows: np.var(rows, ddof=1),
    "std": np.std,
    "sample std": lambda rows: np.std(rows, ddof=1),
    "median": np.median,
    "lower median": lambda rows: np.quantile(rows, 0.5, method="inverted_cdf"),
    "quantile 1/4": lambda rows: np.quantile(rows, 0.25),
    "lower quantile 1/10": lambda rows: np.quantile(rows, 0.1, method="inverted_cdf"),
    "max": np.max,
    "min": np.min,
}
EXACT: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "sum": lambda rows: sum(rows, Fraction(0)),
    "mean": plain.mean,
    "variance": plain.pvariance,
    "sample variance": plain.variance,
    "median": plain.median,
    "lower median": plain.median_low,
    "max": max,
    "min": min,
}
SPREADS = {"variance", "sample variance", "std", "sample std"}
SQUARED = {"std": plain.pvariance, "sample std": plain.variance}
every_statistic = pytest.mark.parametrize("name", ASK)


@contextmanager
def noise_off() -> Iterator[None]:
    def zero(self: DiscreteLaplace, size: int | None = None) -> Any:
        return 0 if size is None else np.zeros(size, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiscreteLaplace, "sample", zero)
        yield


def exact_answer(ask: Ask, rows: Any, **options: Any) -> Fraction:
    """What is released before the noise is added."""
    with noise_off():
        return ask(rows, epsilon=1, **options)._answer


SALARIES = [round(math.exp(plain.NormalDist(10.8, 0.5).inv_cdf((i + 0.5) / 301)), 2) for i in range(301)]
AGES = [18 + (i * i * 7 + 3 * i) % 67 for i in range(200)]


# --- the right statistic ----------------------------------------------------------------------


@every_statistic
@pytest.mark.parametrize("n", some([301, 3, 2, 10], every=2))
def test_against_numpy_with_negligible_noise(name: str, n: int) -> None:
    rows = SALARIES[::-1][:n]
    clamped = np.clip(rows, 20_000, 90_000)
    expected = float(NUMPY[name](clamped))
    wide = 70_000.0**2 if "variance" in name else 70_000.0
    for data in (rows, tuple(rows), np.array(rows), pa.array(rows), pa.chunked_array([rows[:1], rows[1:]])):
        answer = ASK[name](data, lower=20_000, upper=90_000, epsilon="1e12")
        assert answer.n == n
        assert answer.value == pytest.approx(expected, abs=n * wide * 1e-9)
        assert float(answer) == answer.value
        low, high = answer.interval(0.999)
        assert low <= answer.value <= high
        assert low - wide * 1e-12 <= expected <= high + wide * 1e-12


integers = st.lists(st.integers(-20, 20), min_size=2, max_size=9)


@pytest.mark.parametrize("name", [*EXACT, *SQUARED])
@given(rows=integers)
def test_exactly_with_the_noise_off(name: str, rows: list[int]) -> None:
    clamped = [Fraction(min(max(row, -7), 11)) for row in rows]
    answer = exact_answer(ASK[name], rows, lower=-7, upper=11, step=1)
    if name in EXACT:
        assert answer == EXACT[name](clamped)
    else:  # the root is rounded down, to less than 2^-20 of the range
        truth = SQUARED[name](clamped)
        assert answer**2 <= truth < (answer + Fraction(18, 2**20)) ** 2


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=9), st.sampled_from(sorted(EXACT)))
def test_reals_are_exact_up_to_the_rounding_that_is_claimed(rows: list[float], name: str) -> None:
    clamped = [min(max(Fraction(row), Fraction(-1, 3)), Fraction(1)) for row in rows]
    with noise_off():
        answer = ASK[name](rows, lower="-1/3", upper=1, epsilon=1)
    assert abs(answer._answer - EXACT[name](clamped)) <= answer._rounding < Fraction(1, 2**24)


@pytest.mark.parametrize("n", range(1, 10))
@pytest.mark.parametrize("q", ["0", "0.125", "0.25", "0.5", "0.6", "0.75", "0.9", "1"])
def test_quantiles_are_numpy_s(n: int, q: str) -> None:
    rows = [(7 * i * i + 3) % 20 for i in range(n)]
    linear = exact_answer(quantile(q), rows, lower=0, upper=20, step=1)
    assert float(linear) == pytest.approx(float(np.quantile(rows, float(q), method="linear")))
    lower = exact_answer(quantile(q, "lower"), rows, lower=0, upper=20, step=1)
    assert lower == int(np.quantile(rows, float(q), method="inverted_cdf"))


@every_statistic
def test_missing_values_count_as_the_middle_or_as_told(name: str) -> None:
    rows = [1, None, 9, math.nan, 4, "?"]
    for missing, read in ((None, 5), (0, 0), ("7", 7)):
        filled = [1, read, 9, read, 4, read]
        answer = exact_answer(ASK[name], rows, lower=0, upper=10, step=1, missing=missing)
        assert answer == exact_answer(ASK[name], filled, lower=0, upper=10, step=1)


def test_one_row_and_none() -> None:
    for name, ask in ASK.items():
        empties: list[Any] = [[], (), np.array([]), pa.array([], pa.float64())]
        for empty in empties:
            with pytest.raises(DataError, match="at least one row"):
                ask(empty, lower=0, upper=1, epsilon=1)
        if name in SPREADS:
            with pytest.raises(DataError, match="two rows"):
                ask([1], lower=0, upper=1, epsilon=1)
        else:
            assert exact_answer(ask, [7], lower=0, upper=10, step=1) == 7


# --- the claim --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 7, 100, 10_001])
def test_sensitivities_are_the_published_ones(n: int) -> None:
    rows = [0.5] * n
    linear = Fraction(3 * (n - 1), 4) % 1  # how far the quartile lies between two rows
    published: dict[str, Fraction | int] = {
        "sum": 1,
        "mean": Fraction(1, n),
        "variance": Fraction(n - 1, n * n),
        "sample variance": Fraction(1, n),
        "median": 1 if n % 2 else Fraction(1, 2),
        "lower median": 1,
        "quantile 1/4": max(linear, 1 - linear),
        "lower quantile 1/10": 1,
        "max": 1,
        "min": 1,
    }
    for name, most in published.items():
        assert ASK[name](rows, lower=0, upper=1, epsilon=1).sensitivity == most, name
        wide = ASK[name](rows, lower=-5, upper=15, epsilon=1, step=1).sensitivity
        assert wide == most * (400 if name in SPREADS else 20), name
    for name, square in (("std", Fraction(n - 1, n * n)), ("sample std", Fraction(1, n))):
        most = ASK[name](rows, lower=0, upper=1, epsilon=1).sensitivity
        assert square <= most**2 <= square * (1 + Fraction(1, 2**20)), name


@every_statistic
@pytest.mark.parametrize("epsilon", [0.1, "1/3", 2])
def test_the_guarantee_is_epsilon_and_the_scale_is_the_textbook_s(name: str, epsilon: Any) -> None:
    answer = ASK[name](AGES, lower=18, upper=90, epsilon=epsilon)
    assert answer.guarantee() == PureDP(epsilon)
    assert answer.epsilon == Fraction(str(epsilon))
    assert answer.scale == answer.sensitivity / answer.epsilon
    assert answer.event().move.total / answer.event().scale == answer.epsilon


def test_the_mean_of_the_lecture_notes() -> None:
    mean = statistics.mean([0] * 1000, lower=0, upper=200_000, epsilon=0.5, step=1)
    assert mean.sensitivity == 200
    assert mean.scale == 400
    assert mean.error(0.95) == pytest.approx(400 * math.log(20), rel=1e-4)  # 2 e^(-t n eps/M) = 0.1


BOUNDS: list[tuple[Any, Any]] = [
    (0, 10),
    (-1, 1),
    ("0.1", "0.7"),
    (-(2**63), 2**63 - 1),
    (2**52 + 512, 2**52 + 513),
    (0, "1e-100"),
    (-(10**150), 10**150),
    ("-1/3", "1e9"),
]
ODD_ROWS: list[Any] = [
    None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
    -(2**63), 2**63 - 1, 2**64, 10**400, -(10**400), Decimal("1e400"), Decimal("sNaN"), Decimal("NaN"), Decimal("0.1"),
    Fraction(1, 3), Fraction(10**400), "x", "1", b"1", 3j, [1], {}, True, np.False_, object(),
]  # fmt: skip


def some_rows(source: random.Random, low: Fraction, high: Fraction, count: int) -> list[Any]:
    def one() -> Any:
        places: list[float] = [0, 0, 1, 1, 0.5, source.random()]
        at = low + (high - low) * Fraction(source.choice(places))
        return source.choice([float(at), float(at), at, math.floor(at), source.choice(ODD_ROWS)])

    return [one() for _ in range(count)]


def too_far(
    answer: Callable[[list[Any]], Any], claimed: Callable[[int], Fraction], low: Any, high: Any, tries: int
) -> str | None:
    """Neighbours (one row replaced, all rows in another order) that move an answer by more than claimed."""
    source = random.Random(f"{low} {high}")
    for _ in range(tries):
        one = some_rows(source, Fraction(low), Fraction(high), source.randint(2, 12))
        other = [*one[1:], *some_rows(source, Fraction(low), Fraction(high), 1)]
        source.shuffle(other)
        left, right = answer(one), answer(other)
        if not abs(Fraction(left) - Fraction(right)) <= claimed(len(one)):
            return f"{one} -> {left}, {other} -> {right}"
    return None


@every_statistic
def test_no_row_moves_a_statistic_by_more_than_claimed(name: str, effort: int) -> None:
    """T3 and T5: generated neighbours in any order, over odd bounds and odd rows, with the noise off."""
    for low, high in BOUNDS:
        known: dict[int, Fraction] = {}

        def answer(rows: list[Any], low: Any = low, high: Any = high, known: dict[int, Fraction] = known) -> Fraction:
            estimate = ASK[name](rows, lower=low, upper=high, epsilon=1)
            assert math.isfinite(estimate.value)
            assert known.setdefault(len(rows), estimate.sensitivity) == estimate.sensitivity
            return estimate._answer

        with noise_off():
            assert too_far(answer, known.__getitem__, low, high, 80 * effort) is None


def numpy_sum(rows: list[Any], low: Any, high: Any) -> float:
    """The twin: floats, clipped and summed."""
    plain_rows = (row for row in rows if isinstance(row, int | float | Fraction))
    floats = [float(row) if -(10**300) < row < 10**300 else 0.0 for row in plain_rows]
    return float(np.sum(np.clip(floats, float(Fraction(low)), float(Fraction(high)))))


@pytest.mark.parametrize(("low", "high"), [(2**52 + 512, 2**52 + 513), ("0.1", "0.7")])
def test_the_same_checker_catches_a_sum_of_floats(low: Any, high: Any) -> None:
    width = Fraction(high) - Fraction(low)
    assert too_far(lambda rows: numpy_sum(rows, low, high), lambda n: width, low, high, 500) is not None


def test_the_same_checker_catches_a_sensitivity_that_is_a_little_too_small() -> None:
    for name, ask in ASK.items():
        one = ask([0] * 4, lower=0, upper=10, epsilon=1, step=1).sensitivity * Fraction(99, 100)
        small = {n: ask([0] * n, lower=0, upper=10, epsilon=1).sensitivity * Fraction(99, 100) for n in range(2, 13)}
        assert one > 0
        found = too_far(
            lambda rows: exact_answer(ask, rows, lower=0, upper=10),  # noqa: B023
            lambda n: small[n],  # noqa: B023
            0, 10, 20_000 if name in SPREADS else 2000,
        )  # fmt: skip
        assert found is not None, name


@pytest.mark.parametrize("name", ["sum", "mean", "median", "max", "variance", "std"])
def test_the_search_finds_no_counterexample_either(name: str) -> None:
    for low, high in [(0, 10), (2**52 + 512, 2**52 + 513)]:
        claimed = ASK[name]([0] * 4, lower=low, upper=high, epsilon=1).sensitivity
        with noise_off():
            found = sensitivity.search(
                lambda rows: ASK[name](rows, lower=low, upper=high, epsilon=1)._answer,  # noqa: B023
                claimed=claimed, lower=low, upper=high, adjacency=Adjacency.REPLACE, n=4, tries=400,
            )  # fmt: skip
        assert found is None, str(found)


def test_the_order_of_rows_changes_nothing() -> None:
    rows = [0.1, 0.2, 0.3, 1e-17, 0.7, 5e-324, None, 0.1 + 0.2]
    for ask in ASK.values():
        answers = {exact_answer(ask, random.Random(k).sample(rows, len(rows)), lower=0, upper="0.7") for k in range(20)}
        assert len(answers) == 1


# --- parameters come first --------------------------------------------------------------------


class Untouchable:
    """Data that tells when it is looked at."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"the data was touched: {name}")


GOOD: dict[str, Any] = {"lower": 0, "upper": 1, "epsilon": 1}
BAD: list[dict[str, Any]] = [
    *({name: value} for name in ("lower", "upper") for value in (None, math.inf, -math.inf, math.nan, "x", True, 3j)),
    {"lower": 1}, {"lower": 2}, {"upper": 0}, {"upper": "-1"}, {"upper": 10**400}, {"upper": "1e-320"},
    *({"epsilon": value} for value in (None, 0, -1, -0.0, math.nan, math.inf, "", "0", "x", True)),
    *({"step": value} for value in (0, -1, 2, math.nan, "x", Fraction(1, 2**60))),
    *({"missing": value} for value in (-1, 2, math.nan, "x", math.inf)),
]  # fmt: skip


@every_statistic
def test_bad_parameters_are_refused_before_data_is_read(name: str) -> None:
    for change in BAD:
        with pytest.raises(UserError, match="Write") as refusal:
            ASK[name](Untouchable(), **(GOOD | change))
        unbounded = any(value is None or value in (math.inf, -math.inf) for value in change.values())
        if unbounded and not {"epsilon", "missing"} & change.keys():
            assert isinstance(refusal.value, NoSensitivity)
    for left_out in GOOD:
        with pytest.raises(TypeError, match=left_out):
            ASK[name](Untouchable(), **{key: value for key, value in GOOD.items() if key != left_out})
    with pytest.raises(AssertionError, match="touched"):
        ASK[name](Untouchable(), **GOOD)


@pytest.mark.parametrize("ddof", [2, -1, 0.5, True, "x", None, math.nan])
def test_bad_ddof_is_refused_before_data_is_read(ddof: Any) -> None:
    for ask in (statistics.variance, statistics.std):
        with pytest.raises(NumberError, match="ddof=0"):
            ask(Untouchable(), ddof=ddof, **GOOD)


def test_ddof_may_be_any_one() -> None:
    for one in (1, 1.0, "1", np.int8(1)):
        answer = statistics.variance([0, 1], lower=0, upper=1, epsilon=1, ddof=one)  # type: ignore[arg-type]
        assert answer.sensitivity == Fraction(1, 2)


def test_bad_quantiles_are_refused_before_data_is_read() -> None:
    for q in (-1, "1.01", math.nan, None, "x", True):
        with pytest.raises(NumberError, match="Write"):
            statistics.laplace_quantile(Untouchable(), q, **GOOD)  # type: ignore[arg-type]
    for interpolation in ("nearest", None, 3):
        for ask in (statistics.laplace_median, quantile("0.5", interpolation)):
            options: Any = GOOD | ({"interpolation": interpolation} if ask is statistics.laplace_median else {})
            with pytest.raises(NumberError, match='Write, for example: interpolation="linear"'):
                ask(Untouchable(), **options)


# --- errors and types never depend on a row ---------------------------------------------------


def outcome(ask: Ask, data: Any) -> tuple[Any, ...]:
    """All that can be seen but for the noisy number itself."""
    try:
        answer = ask(data, lower=0, upper=10, epsilon=1)
    except Exception as error:  # whatever it is, it would be seen
        return type(error), str(error)
    low, high = answer.interval()
    seen = (answer.value, low, high, answer.error())
    return (
        type(answer), answer.n, answer.epsilon, answer.sensitivity, answer.scale, answer.event(),
        [type(number) for number in seen], [math.isfinite(number) for number in seen],
    )  # fmt: skip


@every_statistic
def test_a_poison_row_changes_nothing_that_can_be_seen(name: str) -> None:
    assert len(ODD_ROWS) >= 30
    clean = outcome(ASK[name], [1, 2.5, 3, 4])
    assert clean[0] is Estimate
    for poison in ODD_ROWS:
        assert outcome(ASK[name], [1, 2.5, poison, 4]) == clean
        column = np.array([1, 2.5, None, 4], dtype=object)
        column[2] = poison
        assert outcome(ASK[name], column) == clean
    for number in (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308):
        assert outcome(ASK[name], np.array([1, 2.5, number, 4])) == clean
        assert outcome(ASK[name], pa.array([1, 2.5, number, 4])) == clean
    for whole in (None, -(2**63), 2**63 - 1, 0):
        assert outcome(ASK[name], pa.array([1, 2, whole, 4], pa.int64())) == clean


@every_statistic
def test_a_refusal_is_the_same_whatever_the_rows(name: str) -> None:
    texts = {outcome(ASK[name], np.array(rows)) for rows in (["a", "b"], ["a", "much longer"])}
    assert len(texts) == 1
    assert next(iter(texts))[0] is DataError


# --- its error --------------------------------------------------------------------------------


def coverage(hits: int, count: int, risk: float = 1e-7) -> tuple[float, float]:
    """Clopper and Pearson's bounds, each wrong with probability `risk`: rare enough never to fail by chance."""
    low = float(beta.ppf(risk, hits, count - hits + 1)) if hits else 0.0
    return low, float(beta.ppf(1 - risk, hits + 1, count - hits)) if hits < count else 1.0


@pytest.mark.slow
@every_statistic
def test_intervals_hold_the_truth_as_often_as_they_say(name: str, effort: int) -> None:
    """Coverage is 95 % and not much more, so errors half or twice as large are told apart."""
    count = 800 * effort
    data = np.array(SALARIES)
    truth = float(NUMPY[name](np.clip(data, 20_000, 90_000)))
    inside = once = half = twice = 0
    for _ in range(count):
        answer = ASK[name](data, lower=20_000, upper=90_000, epsilon=2)
        low, high = answer.interval(0.95)
        inside += low <= truth <= high
        away, error = abs(float(answer._answer) - truth), answer.error(0.95)
        once += away <= error
        half += away <= error / 2  # what a twin with half of the error would claim
        twice += away <= error * 2
    assert coverage(inside, count)[1] >= 0.95
    assert coverage(once, count)[0] <= 0.95 <= coverage(once, count)[1]
    assert coverage(half, count)[1] < 0.95
    assert coverage(twice, count)[0] > 0.95


@every_statistic
def test_answers_and_intervals_stay_in_range(name: str) -> None:
    rows = [0, 1, 1, 0, 1]
    most = {"sum": 5.0, "variance": 6 / 25, "sample variance": 6 / 20, "std": 0.6**0.5 * 0.4**0.5}
    most["sample std"] = (6 / 20) ** 0.5
    limit = most.get(name, 1.0) * (1 + 1e-12)
    seen = set()
    for _ in range(60):
        answer = ASK[name](rows, lower=0, upper=1, epsilon="0.01")
        low, high = answer.interval(0.5)
        assert 0 <= low <= answer.value <= high <= limit
        seen |= {answer.value}
    assert {round(min(seen), 9), round(max(seen), 9)} == {0, round(most.get(name, 1.0), 9)}


def test_a_given_step_that_leaves_a_rest_is_counted() -> None:
    """All rows at 100, clamped to 10.5, which is no whole number of steps: read as 10."""
    answer = statistics.mean([100] * 10**4, lower=0, upper="10.5", step=1, missing=0, epsilon=10)
    low, high = answer.interval(0.999)
    assert low <= 10.5 <= high


def test_integers_beyond_floats_are_counted() -> None:
    rows = [2**60 + 1] * 50_000
    answer = statistics.mean(rows, lower=2**60, upper=2**60 + 1000, step=1, epsilon=1000)
    low, high = answer.interval(0.999)
    assert low <= 2**60 + 1 <= high


def test_how_an_estimate_reads() -> None:
    with noise_off():
        text = str(statistics.mean([52_000, 61_000, 58_000], lower=0, upper=200_000, epsilon=100))
    assert text == "mean 57,000.00, 95 % interval 55,002.84 to 58,997.16 (epsilon 100, n 3)"
    assert "_answer" not in repr(statistics.mean([1], lower=0, upper=2, epsilon=1))


def test_an_interval_never_shrinks_to_a_point() -> None:
    """When the noise throws the answer far out of the range, only the range is known."""
    widths = set()
    for _ in range(400):
        low, high = statistics.laplace_max([200_000] * 5, lower=0, upper=200_000, epsilon=0.5).interval(0.5)
        assert 0 <= low < high <= 200_000
        widths.add(high - low == 200_000)
    assert True in widths


@pytest.mark.parametrize("answer", [0.001234567, 12.3456789, 1234.5678, 70_395_443_670_478.70, 2.6e30])
def test_what_is_printed_is_rounded_outward(answer: float) -> None:
    top = 3 * answer
    with noise_off():
        found = statistics.mean([answer] * 10, lower=0, upper=top, epsilon=50)
    low, high = found._interval("0.95")
    words = str(found).replace(",", "").split()
    assert Fraction(words[words.index("interval") + 1]) <= low
    assert Fraction(words[words.index("to") + 1]) >= high


def test_printing_does_not_mind_the_user_s_decimal_context() -> None:
    with decimal.localcontext(decimal.Context(prec=2, Emax=3, Emin=-3, traps=[decimal.Inexact, decimal.Overflow])):
        assert "epsilon 0.333334" in str(statistics.mean([1, 2], lower=0, upper=10**9, epsilon="1/3"))


def test_the_line_to_write_is_exact() -> None:
    bounds = {"lower": "-1234567.25", "upper": 7654321.5, "epsilon": 1}
    with pytest.raises(NumberError, match=r"missing=-1234567\.25"):
        statistics.mean([1], missing="-9999999", **bounds)  # type: ignore[arg-type]
    with pytest.raises(NumberError, match=r"lower=-7654321\.25, upper=1234567\.5"):
        statistics.mean([1], lower=1234567.5, upper=-7654321.25, epsilon=1)
