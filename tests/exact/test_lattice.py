"""The lattice: rounding that a sensitivity can count on, and reading that is total and local to each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privet.errors import DataError, NoSensitivity, NumberError, UserError
from privet.exact.lattice import (
    Bounds,
    add_exactly,
    array_from_steps,
    array_to_steps,
    from_steps,
    is_power_of_two,
    power_of_two_below,
    to_steps,
)

ONE = Fraction(1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ODD_FLOATS = [0.0, -0.0, 0.5, -0.5, 0.49999999999999994, -0.49999999999999994, 0.5000000000000001, -0.5000000000000001]
ODD_FLOATS += [5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308]
ODD_FLOATS += [1.5, -1.5, 2.5, -2.5, 2.0**52 + 0.5, 2.0**53 + 2, 2.0**61, 2.0**62, -(2.0**62), 2.0**63, 1e300]

fractions = st.fractions(min_value=-50, max_value=50, max_denominator=12)
steps = st.sampled_from([ONE, Fraction(1, 2), Fraction(1, 8), Fraction(3), Fraction(2, 7)])


def to_even(value: Fraction, step: Fraction) -> int:
    """The twin that rounds halves to even, as `round` does."""
    return round(value / step)


# --- rounding ---------------------------------------------------------------------------------


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
@example(Fraction(1))
@example(Fraction(2**70 + 1, 3))
@example(Fraction(2) ** -2000)
def test_power_of_two_below(number: Fraction) -> None:
    power = power_of_two_below(number)
    assert power <= number < 2 * power
    assert is_power_of_two(power)
    assert is_power_of_two(number) == (power == number)
    assert power.numerator.bit_count() == power.denominator.bit_count() == 1


@given(fractions, steps)
def test_rounding_is_to_the_nearest_step_with_halves_upwards(value: Fraction, step: Fraction) -> None:
    assert to_steps(value, step) == math.floor(value / step + Fraction(1, 2))
    assert -step / 2 < to_steps(value, step) * step - value <= step / 2


@given(st.lists(st.tuples(fractions, fractions), min_size=1, max_size=5), steps)
def test_vectors_come_no_further_apart_than_claimed(pairs: list[tuple[Fraction, Fraction]], step: Fraction) -> None:
    apart = sum(abs(x - y) for x, y in pairs)
    images = sum(abs(to_steps(x, step) - to_steps(y, step)) for x, y in pairs)
    assert images <= math.ceil(apart / step) + len(pairs) - 1


def furthest(rounding: Any, dimension: int, distance: Fraction, parts: int = 4) -> int:
    """The greatest L1 distance of rounded vectors, over all pairs on a grid of quarter steps within `distance`."""
    grid = [Fraction(k, parts) for k in range(3 * parts + 1)]
    gaps: dict[Fraction, int] = {}  # by how much they differ -> how far apart one coordinate can come
    for x, y in product(grid, repeat=2):
        gap = abs(rounding(x, ONE) - rounding(y, ONE))
        gaps[abs(x - y)] = max(gap, gaps.get(abs(x - y), 0))
    return max(
        sum(gaps[gap] for gap in choice) for choice in product(gaps, repeat=dimension) if sum(choice) <= distance
    )


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("distance", ["1/4", "1", "3/2", "2", "9/4"])
def test_the_claim_is_reached_and_never_exceeded(dimension: int, distance: str) -> None:
    apart = Fraction(distance)
    found, claimed = furthest(to_steps, dimension, apart), math.ceil(apart) + dimension - 1
    assert found <= claimed
    # on this grid each coordinate but one must move by a quarter of a step, at least, to be rounded apart
    if math.ceil(apart - Fraction(dimension - 1, 4)) == math.ceil(apart):
        assert found == claimed


def test_the_claim_is_tight_for_whole_distances_too() -> None:
    """As a limit of fine grids: three coordinates at distance 2 in all come 4 steps apart."""
    tiny = Fraction(1, 1000)
    x = [Fraction(0), Fraction(1, 2) - tiny, Fraction(1, 2) - tiny]
    y = [Fraction(2) - 2 * tiny, Fraction(1, 2), Fraction(1, 2)]
    assert sum(abs(a - b) for a, b in zip(x, y, strict=True)) == 2
    assert sum(abs(to_steps(a, ONE) - to_steps(b, ONE)) for a, b in zip(x, y, strict=True)) == 2 + 3 - 1


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_halves_to_even_break_the_claim(dimension: int) -> None:
    assert furthest(to_even, dimension, ONE * dimension) > 2 * dimension - 1


def exactly(values: Sequence[float], step: Fraction) -> list[int]:
    return [to_steps(Fraction(x), step) for x in values]


@given(st.lists(FLOATS | st.floats(-3, 3) | st.sampled_from(ODD_FLOATS), max_size=8), st.integers(-1200, 1200))
@settings(max_examples=120)
@example(ODD_FLOATS, 0)
@example(ODD_FLOATS[:12], 0)
@example([0.49999999999999994], 0)
@example([5e-324, -5e-324], -1074)
@example([5e-324, -5e-324], -1073)
@example([1.7976931348623157e308], 1023)
@example([1.7976931348623157e308, -1.7976931348623157e308], 1024)
def test_arrays_are_rounded_as_scalars_are(values: list[float], exponent: int) -> None:
    step = Fraction(2) ** exponent
    got = array_to_steps(np.array(values, dtype=np.float64), step)
    assert got.tolist() == exactly(values, step)


def test_each_odd_float_by_itself() -> None:
    """One huge value sends the whole array down the slow path; alone, each takes its own."""
    for x, exponent in product(ODD_FLOATS, (-1074, -60, -1, 0, 1, 60, 1023)):
        step = Fraction(2) ** exponent
        assert array_to_steps(np.array([x]), step).tolist() == exactly([x], step)


def test_adding_a_half_and_flooring_would_be_wrong() -> None:
    twin = np.floor(np.array([0.49999999999999994, 2.0**52 + 1]) + 0.5).tolist()
    assert twin != exactly([0.49999999999999994, 2.0**52 + 1], ONE)


def test_arrays_keep_their_shape() -> None:
    for scale in (1.0, 1e300):
        values = np.arange(6.0).reshape(2, 3) * scale
        assert array_to_steps(values, ONE).shape == (2, 3)
        assert array_from_steps(array_to_steps(values, ONE), ONE).tolist() == values.tolist()
    assert array_to_steps(np.array([]), ONE).shape == (0,)


@given(st.lists(st.integers(-(2**53), 2**53), max_size=5), st.integers(-1000, 900))
def test_steps_come_back_as_the_same_floats_either_way(values: list[int], exponent: int) -> None:
    step = Fraction(2) ** exponent
    both = (
        array_from_steps(np.array(values, dtype=np.int64), step),
        array_from_steps(np.array(values, dtype=object), step),
    )
    assert both[0].tolist() == both[1].tolist() == [from_steps(k, step) for k in values]


def test_out_of_range_is_infinite_and_silent() -> None:
    huge = Fraction(2) ** 1000
    assert from_steps(2**30, huge) == math.inf
    assert from_steps(-(2**30), huge) == -math.inf
    assert array_from_steps(np.array([2**30, -(2**30), 1]), huge).tolist() == [math.inf, -math.inf, 2.0**1000]
    with np.errstate(all="raise"):
        assert array_from_steps(np.array([1, 3]), Fraction(2) ** -1074).tolist() == [5e-324, 1.5e-323]
        assert array_to_steps(np.array([5e-324]), ONE).tolist() == [0]


# --- adding -----------------------------------------------------------------------------------

EDGES = [-(2**63), -(2**63) + 1, -(2**62) - 1, -(2**62), -1, 0, 1, 2**62 - 1, 2**62, 2**63 - 1]


@given(st.lists(st.tuples(*[st.sampled_from(EDGES) | st.integers(-(2**63), 2**63 - 1)] * 2), max_size=4))
def test_sums_are_exact_and_their_type_depends_on_them_alone(pairs: list[tuple[int, int]]) -> None:
    sums = [x + y for x, y in pairs]
    fits = all(-(2**63) <= total < 2**63 for total in sums)
    for left_type, right_type in product((np.int64, object), repeat=2):
        left = np.array([x for x, _ in pairs], dtype=left_type)
        right = np.array([y for _, y in pairs], dtype=right_type)
        total = add_exactly(left, right)
        assert total.tolist() == sums
        assert total.dtype == (np.int64 if fits else object)


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i8", ">u4"])
def test_every_width_of_integer_is_added_exactly(kind: str) -> None:
    limits = np.iinfo(np.dtype(kind))
    values = np.array([limits.min, limits.max], dtype=kind)
    for noise in (np.array([-1, 1]), np.array([2**40, -(2**40)]), np.array([-(2**63), 2**63 - 1])):
        total = add_exactly(values, noise)
        assert total.tolist() == [int(v) + int(k) for v, k in zip(values, noise, strict=True)]
        fits = all(-(2**63) <= x < 2**63 for x in total.tolist())
        assert total.dtype == (np.int64 if fits else object)


# --- bounds -----------------------------------------------------------------------------------


class Liar(float):
    def __float__(self) -> float:
        raise RuntimeError("the salary is 61,234")


class Strange:
    def __array__(self) -> None:
        raise RuntimeError("the salary is 61,234")


MISSING: list[Any] = [None, math.nan, -math.nan, np.nan, np.float32("nan"), np.datetime64("NaT", "s"), Decimal("nan")]
MISSING += [Decimal("sNaN"), Decimal("-sNaN123"), "", "3", "nan", "x" * 10_000, b"3", 3j, complex(3), np.complex128(3)]
MISSING += [[3], (3,), {}, {"a": 3}, {3}, object(), np.array([3]), Liar(3), Strange(), float, math, np.str_("3")]

CLAMPED: list[tuple[Any, int]] = [
    (0, 0), (0.0, 0), (-0.0, 0), (10, 10), (3, 3), (True, 1), (False, 0), (np.True_, 1), (np.False_, 0),
    (math.inf, 10), (-math.inf, 0), (Decimal("Infinity"), 10), (Decimal("-Infinity"), 0),
    (-(2**63), 0), (2**63, 10), (2**64, 10), (10**400, 10), (-(10**400), 0), (10**5000, 10),
    (Fraction(10**400), 10), (Fraction(-(10**400), 3), 0), (Fraction(1, 10**400), 0), (Fraction(31, 10), 3),
    (Decimal("1e400"), 10), (Decimal("-1e400"), 0), (Decimal("1e-400"), 0), (Decimal("1e999999"), 10),
    (Decimal("2.5"), 2), (3.5, 4), (2.4999, 2), (5e-324, 0), (1.7976931348623157e308, 10), (-1.7976931348623157e308, 0),
    (np.int8(-128), 0), (np.uint64(2**64 - 1), 10), (np.int64(-(2**63)), 0), (np.float16(3.3), 3), (np.float32(7), 7),
    (np.longdouble("1e4000"), 10), (np.longdouble("-1e4000"), 0), (np.longdouble("3.25"), 3),
]  # fmt: skip


def test_every_value_has_a_code_by_itself() -> None:
    bounds = Bounds(0, 10, step=1)
    for value in MISSING:
        assert bounds.encode([value], missing=5).tolist() == [5], repr(value)[:40]
    for value, code in CLAMPED:
        assert bounds.encode([value], missing=5).tolist() == [code], repr(value)[:40]


def test_a_row_s_code_depends_on_no_other_row() -> None:
    bounds = Bounds(0, 10, step=1)
    rows = [*MISSING, *(value for value, _ in CLAMPED)]
    codes = [5] * len(MISSING) + [code for _, code in CLAMPED]
    assert bounds.encode(rows, missing=5).tolist() == codes
    assert bounds.encode(tuple(reversed(rows)), missing=5).tolist() == codes[::-1]
    column = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        column[i] = row
    assert bounds.encode(column, missing=5).tolist() == codes


values = (
    st.floats() | st.integers() | st.decimals() | st.fractions() | st.booleans() | st.none() | st.text(max_size=3)
) | st.sampled_from([*MISSING, *(value for value, _ in CLAMPED)])


@given(st.lists(values, max_size=6), values, st.lists(values, max_size=6))
def test_reading_is_total_and_local(before: list[Any], row: Any, after: list[Any]) -> None:
    bounds = Bounds("-1.5", 7)
    (alone,) = bounds.encode([row], missing=3).tolist()
    codes = bounds.encode([*before, row, *after], missing=3)
    assert codes.dtype == np.int64
    assert codes[len(before)] == alone
    assert all(0 <= code <= bounds.width for code in codes.tolist())


INTEGERS = st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-10, 10)


@given(st.lists(INTEGERS, max_size=8), st.sampled_from([(0, 10), (-(2**63), 2**63 - 1), (2**53, 2**53 + 100)]))
def test_a_list_and_an_arrow_column_of_integers_are_read_alike(rows: list[int | None], limits: tuple[int, int]) -> None:
    """Arrow turns integers with nulls into floats, and without nulls into integers; the codes must not tell."""
    bounds = Bounds(*limits)
    codes = bounds.encode(rows, missing=7).tolist()
    assert bounds.encode(pa.array(rows, pa.int64()), missing=7).tolist() == codes
    assert bounds.encode(pa.chunked_array([rows[:2], rows[2:]], pa.int64()), missing=7).tolist() == codes
    present = [(row, code) for row, code in zip(rows, codes, strict=True) if row is not None]
    whole = np.array([row for row, _ in present], dtype=np.int64)
    assert bounds.encode(whole, missing=7).tolist() == [code for _, code in present]
    assert bounds.encode(pa.array(whole), missing=7).tolist() == [code for _, code in present]


@given(st.lists(st.none() | st.floats(), max_size=8))
def test_a_list_an_array_and_an_arrow_column_of_floats_are_read_alike(rows: list[float | None]) -> None:
    bounds = Bounds(-3, 3)
    codes = bounds.encode(rows, missing=7).tolist()
    assert bounds.encode(pa.array(rows, pa.float64()), missing=7).tolist() == codes
    assert bounds.encode(np.array(rows, dtype=object), missing=7).tolist() == codes
    assert bounds.encode(np.array(rows, dtype=np.float64), missing=7).tolist() == codes
    assert bounds.encode(np.array(rows, dtype=">f8"), missing=7).tolist() == codes
    assert bounds.encode(np.array(rows, dtype=np.longdouble), missing=7).tolist() == codes
    masked = np.ma.array([0.0 if row is None else row for row in rows], mask=[row is None for row in rows])
    assert bounds.encode(masked, missing=7).tolist() == codes


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        (np.ma.array([1, 2, 9], mask=[False, False, True]), [1, 2, 5]),
        (np.array([], dtype=np.int8), []),
        (np.array([1, 200], dtype=np.uint8), [1, 10]),
        (np.array([1, 4], dtype=np.float16), [1, 4]),
        (pa.array([True, None, False]), [1, 5, 0]),
        (pa.array([Decimal("2.5"), None, Decimal("1e20")]), [2, 5, 10]),
        (pa.array([1, None, 300], pa.uint16()), [1, 5, 10]),
        (pa.array([2**64 - 1, None], pa.uint64()), [10, 5]),
        (pa.array([1.5, None, math.nan], pa.float16()), [2, 5, 5]),
        (pa.nulls(2), [5, 5]),
        (pa.chunked_array([], pa.int64()), []),
        (pa.chunked_array([[1], [], [None]], pa.int64()), [1, 5]),
    ],
    ids=lambda value: (
        f"{value.type} {value.to_pylist()}" if isinstance(value, pa.Array | pa.ChunkedArray) else repr(value)
    ),
)
def test_columns(column: Any, codes: list[int]) -> None:
    assert Bounds(0, 10, step=1).encode(column, missing=5).tolist() == codes


@pytest.mark.parametrize(
    "data",
    [
        None, 3, 3.5, "12", b"12", {1, 2}, {"a": 1}, iter([1]), object(),
        np.array(3), np.zeros((2, 2)), np.array(["a", "bc"]), np.array([b"a"]), np.array([3j]),
        np.array(["2020-01-01"], dtype="datetime64[D]"), np.array([(1,)], dtype=[("a", int)]),

        pa.table({"a": [1]}), pa.array(["1"]), pa.array([b"1"]), pa.array([[1]]), pa.array([{"a": 1}]),
        pa.array([1], pa.date32()), pa.array([1], pa.timestamp("s")), pa.scalar(1),
        pa.array([1, None]).dictionary_encode(), pa.chunked_array([pa.array([1, None]).dictionary_encode()]),
    ],
    ids=lambda data: f"{type(data).__name__} {getattr(data, 'dtype', getattr(data, 'type', ''))}"[:40],
)  # fmt: skip
def test_what_is_no_column_of_numbers_is_refused_by_its_type(data: Any) -> None:
    with pytest.raises(DataError, match=r"pandas, polars\), not .*\. Write, for example: mean\("):
        Bounds(0, 10).encode(data, missing=5)


def test_a_refusal_does_not_depend_on_a_row() -> None:
    texts = set()
    for rows in (["a"], ["a", "a much longer text"]):
        for data in (np.array(rows), pa.array(rows)):
            with pytest.raises(DataError) as refusal:
                Bounds(0, 10).encode(data, missing=5)
            texts.add(str(refusal.value))
    assert len(texts) == 2  # one for numpy, one for Arrow


def test_text_that_does_not_decode_is_refused_like_any_other() -> None:
    offsets, content = pa.py_buffer(np.array([0, 1], dtype=np.int32)), pa.py_buffer(b"\xff")
    with pytest.raises(DataError, match="StringArray of string"):
        Bounds(0, 10).encode(pa.StringArray.from_buffers(1, offsets, content), missing=5)


def test_nothing_warns_even_where_numpy_is_told_to_fail() -> None:
    rows = [5e-324, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, math.nan]
    with np.errstate(all="raise"):
        for column in (rows, np.array(rows), np.array(rows, dtype=np.longdouble) * 10):
            assert Bounds(0, 10, step=1).encode(column, missing=5).tolist() == [0, 10, 0, 10, 5]
        assert Bounds(0, "1e-140").encode(rows, missing=5)[0] == 0


# --- the parameters ---------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [None, math.inf, -math.inf, np.inf, np.float32("inf"), Decimal("inf"), "inf"])
def test_bounds_that_bound_nothing_are_refused(bound: Any) -> None:
    for limits in ((bound, 1), (0, bound)):
        with pytest.raises(NoSensitivity, match="Write, for example: lower=0"):
            Bounds(*limits)


@pytest.mark.parametrize("bound", [math.nan, "x", "", True, Decimal("nan"), 3j, [1], np.True_])
def test_bounds_that_are_no_number_are_refused(bound: Any) -> None:
    for limits in ((bound, 1), (0, bound)):
        with pytest.raises(NumberError, match="Write, for example: lower=0"):
            Bounds(*limits)


@pytest.mark.parametrize("limits", [(1, 1), (2, 1), (0.0, -0.0), ("1/3", Fraction(1, 3))])
def test_empty_bounds_are_refused(limits: tuple[Any, Any]) -> None:
    with pytest.raises(NumberError, match="must be less than upper"):
        Bounds(*limits)


@pytest.mark.parametrize("limits", [(-(10**400), 10**400), (0, "1e-320"), (0, 1.7e308), (0, 5e-324), (0, 10**200)])
def test_bounds_beyond_floats_are_refused(limits: tuple[Any, Any]) -> None:
    """With steps that round to 0 or infinity as floats, 0/0 would become a code of -2^63."""
    with pytest.raises(NumberError, match="Use another unit"):
        Bounds(*limits)


@pytest.mark.parametrize("step", [0, -1, math.nan, "x", 11, Fraction(10, 2**52 + 1), True])
def test_steps_that_do_not_divide_the_range_are_refused(step: Any) -> None:
    with pytest.raises(UserError, match="Write"):
        Bounds(0, 10, step=step)


numbers = st.fractions(-(10**6), 10**6) | st.floats(-1e140, 1e140).map(Fraction) | st.floats(-1e-100, 1e-100)


@given(numbers, numbers, st.lists(st.fractions(-2, 3), min_size=1, max_size=5), st.booleans())
@settings(max_examples=120)
@example(2**52 + 512, 2**52 + 513, [Fraction(1, 3)], False)
@example(Fraction(1, 10), Fraction(11, 10), [Fraction(1, 2)], False)
@example(10**15, 10**15 + 1, [Fraction(1, 3), Fraction(2, 3)], True)
@example(0, Fraction(21, 2), [Fraction(1), Fraction(2)], True)
def test_values_move_by_no_more_than_the_rounding(a: Any, b: Any, places: list[Fraction], stepped: bool) -> None:
    low, high = sorted([Fraction(a), Fraction(b)])
    if high - low < Fraction(1, 2**400):
        return
    bounds = Bounds(low, high, step=(high - low) * Fraction(2, 21) if stepped else None)
    assert bounds.lower + bounds.width * bounds.step <= bounds.upper
    values = [low + place * (high - low) for place in places]
    if stepped:  # values that lie on the steps, and values that are clamped
        values = [low + math.floor(place * 11) * bounds.step for place in places]
        values = [high + 1 if value > low + bounds.width * bounds.step else value for value in values]
    codes = bounds.encode(values, missing=0).tolist()
    for value, code in zip(values, codes, strict=True):
        clamped = min(max(value, low), high)
        assert abs(low + code * bounds.step - clamped) <= bounds.rounding


def test_the_rounding_is_small_and_none_for_values_on_their_steps() -> None:
    assert Bounds(0, 110, step=1).rounding == 0
    assert Bounds("0.1", 1, step="0.1").rounding == 0
    assert Bounds(0, 200_000).rounding < Fraction(1, 10**4)
    assert Bounds(0, Fraction(21, 2), step=1).rounding == Fraction(1, 2)  # 10.5 becomes 10
    assert Bounds(2**52 + 512, 2**52 + 513).rounding > 2  # floats are that coarse there
    assert Bounds(10**15, 10**15 + 1, step="0.01").rounding > Fraction(1, 4)


def test_public_numbers_have_codes_too() -> None:
    bounds = Bounds(-2, 2, step="0.5")
    assert [bounds.code(Fraction(x)) for x in (-9, -2, "-0.3", 0, "0.25", 9)] == [0, 0, 3, 4, 4, 8]
    assert bounds.width == 8
    assert bounds == Bounds(-2.0, Decimal(2), step=Fraction(1, 2))
    assert len({bounds, Bounds(-2, 2, step=0.5), Bounds(-2, 2)}) == 2
