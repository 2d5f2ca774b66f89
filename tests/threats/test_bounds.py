"""T3, T5 and T6 as their authors wrote them; the general search is in tests/textbook/test_statistics.py."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privet.errors import DataError, NoSensitivity, NumberError
from privet.exact.lattice import Bounds
from privet.noise import DiscreteLaplace
from privet.textbook import statistics

LOW, HIGH = 2**52 + 512, 2**52 + 513


@pytest.fixture
def _noise_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "sample", lambda self, size=None: 0)


def float_sum(rows: list[float]) -> float:
    total = 0.0
    for row in rows:
        total += min(max(row, float(LOW)), float(HIGH))
    return total


@pytest.mark.usefixtures("_noise_off")
def test_t3_the_example_of_casacuberta_et_al() -> None:
    """In floats one row moves a sum by a thousand times the width of the bounds; here by the width at most."""
    rows = [float(LOW)] * 1500  # a sum between 2^62 and 2^63, where floats are 1024 apart and 512 is a tie
    moved = [abs(float_sum([*rows[cut:], float(HIGH)]) - float_sum([*rows[cut:], float(LOW)])) for cut in range(4)]
    assert max(moved) == 1024
    answers = [
        statistics.sum(data, lower=LOW, upper=HIGH, epsilon=1)._answer
        for data in (np.array([LOW, *rows]), [*rows, float(HIGH)], pa.array([float(HIGH), *rows]))
    ]
    assert answers[1] == answers[2]
    assert abs(answers[0] - answers[1]) <= 1


@pytest.mark.usefixtures("_noise_off")
def test_t3_the_order_of_a_long_column() -> None:
    rows = np.ldexp(1.0, np.arange(-1000, 1000)) * np.where(np.arange(2000) % 3, 1, -1)
    columns = [rows, rows[::-1], np.sort(rows), np.roll(rows, 777)]
    assert len({statistics.sum(c, lower=-1e9, upper=1e9, epsilon=1)._answer for c in columns}) == 1
    clipped = [float(np.add.accumulate(np.clip(c, -1e9, 1e9))[-1]) for c in columns]
    assert len(set(clipped)) > 1  # what floats do


@pytest.mark.usefixtures("_noise_off")
@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308])
def test_t5_special_values(special: float) -> None:
    rows = np.array([1.0, 2.0, 3.0, 4.0])
    poisoned = np.array([1.0, 2.0, 3.0, special])
    naive = np.clip(poisoned, 0, 10).mean()
    assert math.isnan(naive) == math.isnan(special)  # NaN survives np.clip
    for ask in (statistics.sum, statistics.mean, statistics.std, statistics.laplace_median, statistics.laplace_max):
        one, other = (ask(data, lower=0, upper=10, epsilon=1) for data in (rows, poisoned))
        assert math.isfinite(other.value)
        assert abs(one._answer - other._answer) <= one.sensitivity == other.sensitivity


def test_t5_a_chunked_dictionary_s_nulls_are_not_read_as_other_rows() -> None:
    """Pyarrow gives a null in a chunked dictionary the first value of the dictionary: another person's."""
    for first in (1, 9):
        column = pa.chunked_array([pa.array([first, None, None]).dictionary_encode()])
        with pytest.raises(DataError, match="dictionary"):
            Bounds(0, 10, step=1).encode(column, missing=5)
        decoded = column.cast(pa.int64())
        assert Bounds(0, 10, step=1).encode(decoded, missing=5).tolist() == [first, 5, 5]


@pytest.mark.parametrize("limits", [{}, {"lower": 0}, {"upper": 1}])
def test_t6_bounds_have_no_default(limits: dict[str, Any]) -> None:
    for ask in (statistics.sum, statistics.mean, statistics.std, statistics.max):
        with pytest.raises(TypeError, match="required keyword-only"):
            ask([1, 2], epsilon=1, **limits)


def test_t6_bounds_are_never_taken_from_the_data() -> None:
    for lower, upper in ((None, 1), (0, None), (0, math.inf), (-math.inf, 0)):
        with pytest.raises(NoSensitivity, match="without limit"):
            statistics.mean([1, 2], lower=lower, upper=upper, epsilon=1)  # type: ignore[arg-type]
    for lower, upper in ((1, 1), (1, 0), (math.nan, 1), (0, math.nan)):
        with pytest.raises(NumberError):
            statistics.mean([1, 2], lower=lower, upper=upper, epsilon=1)


def test_t6_a_step_that_is_no_float_is_refused() -> None:
    """(0 - lower)/step was 0/0 there, and NaN became the integer -2^63."""
    for upper in ("1e-320", Fraction(1, 10**400), 10**400):
        with pytest.raises(NumberError, match="another unit"):
            statistics.sum([0.0, 1.0], lower=0, upper=upper, epsilon=1)
