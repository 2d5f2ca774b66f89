"""Exact numbers: what is read, how it is rounded, what encloses it."""

from __future__ import annotations

import functools
import math
import operator
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import exact as x
from privet.errors import NumberError, UserError
from privet.exact import down, exact, nearest, nonnegative, positive, probability, show, sqrt_up, up, whole

fractions = st.fractions() | st.builds(
    lambda f, e: f * Fraction(10) ** e, st.fractions(max_denominator=10**6), st.integers(-400, 400)
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (1e-9, Fraction(1, 10**9)),
        (1e22, Fraction(10**22)),
        (5e-324, Fraction(5, 10**324)),
        (-0.0, Fraction(0)),
        (7, Fraction(7)),
        ("1/3", Fraction(1, 3)),
        (" 0.10 ", Fraction(1, 10)),
        ("1e-6", Fraction(1, 10**6)),
        ("1_000", Fraction(1000)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Decimal("1E+3"), Fraction(1000)),
        (Fraction(2, 7), Fraction(2, 7)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.float16(0.1), Fraction(1, 10)),
        (np.longdouble("0.1"), Fraction(1, 10)),
        (np.int8(-5), Fraction(-5)),
        (np.uint64(2**64 - 1), Fraction(2**64 - 1)),
    ],
)
def test_a_number_is_what_was_written(written: object, meant: Fraction) -> None:
    assert exact(written) == meant
    assert type(exact(written)) is Fraction


def test_ten_times_a_tenth_is_one() -> None:
    assert sum([exact(0.1)] * 10) == 1 != functools.reduce(operator.add, [0.1] * 10)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_means_its_shortest_decimal(number: float) -> None:
    assert exact(number) == Fraction(repr(number))
    assert nearest(exact(number)) == number


BAD = [
    float("nan"),
    float("inf"),
    -math.inf,
    1e400,
    "1e400",
    "-1e-400",
    "1e99999999",
    True,
    False,
    np.bool_(True),
    np.float32("nan"),
    np.float64("inf"),
    np.array(0.5),
    np.array([0.5, 0.5]),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    Decimal("1E+9999"),
    1 + 0j,
    None,
    "abc",
    "",
    "-",
    "1/0",
    "0x10",
    "nan",
    "inf",
    "1.5/2",
    "1" * 401,
    b"1",
    [1],
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{type(bad).__name__}-{str(bad)[:12]}")
@pytest.mark.parametrize("read", [exact, positive, nonnegative, probability, whole])
def test_what_is_no_number_is_refused_with_the_line_to_write(bad: object, read: Callable[..., object]) -> None:
    with pytest.raises(NumberError, match=r"^epsilon must be .*Write, for example: PureDP\(0\.5\)$") as caught:
        read(bad, name="epsilon", example="PureDP(0.5)")
    assert isinstance(caught.value, UserError)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("read", "bad"),
    [
        (positive, 0),
        (positive, 0.0),
        (positive, -0.0),
        (positive, -1),
        (positive, "0/5"),
        (nonnegative, -1e-300),
        (probability, 0),
        (probability, 1),
        (probability, 1.5),
        (whole, 0),
        (whole, 2.5),
        (whole, "1/2"),
    ],
)
def test_numbers_out_of_range_are_refused(read: Callable[..., object], bad: object) -> None:
    with pytest.raises(NumberError, match=r"^epsilon must be .* Write, for example: here$"):
        read(bad, name="epsilon", example="here")


@pytest.mark.parametrize("read", [whole, positive, nonnegative])
def test_numbers_too_long_to_print_are_refused_all_the_same(read: Callable[..., object]) -> None:
    for bad in (-(10**5000), Fraction(-(10**5000)), Fraction(-1, 10**5000)):
        with pytest.raises(NumberError, match=r"^epsilon must be .* Write, for example: here$"):
            read(bad, name="epsilon", example="here")


LONG = 10**1_000_000
"""It takes Python half a minute to write this."""


@pytest.mark.parametrize(
    "bad",
    [
        LONG, Fraction(1, LONG), Fraction(LONG + 1, LONG), 10**4300, Fraction(1, 10**4300), Fraction(3, 10**4000 + 1),
        Decimal("0." + "1" * 1_000_000), Decimal("1e-999999"), Decimal("1e999999"), np.float64("nan"),
        "1" * 4300, "1" * 1_000_000, "0." + "1" * 1_000_000, "1/" + "7" * 1_000_000, "1_" * 500_000 + "1",
        "1" * 1_000_000 + "x", "1." + "1" * 1_000_000 + "x", "1e-" + "9" * 1_000_000,
    ],
    ids=lambda bad: type(bad).__name__,
)  # fmt: skip
def test_numbers_of_thousands_of_digits_are_refused_quickly(bad: object) -> None:
    start = time.process_time()
    for read in (exact, positive, nonnegative, probability, whole):
        with pytest.raises(NumberError, match=r"^epsilon must be .* Write, for example: here$") as refused:
            read(bad, name="epsilon", example="here")
        assert len(str(refused.value)) < 250
    assert time.process_time() - start < 5


def test_what_is_computed_of_the_longest_numbers_is_a_number_again() -> None:
    long = exact("9" * 396 + "e399")
    assert exact(long / exact("1e-399")) == long * 10**399


def test_numbers_in_range_are_taken() -> None:
    assert positive("1e-399", name="n") == Fraction(1, 10**399)
    assert nonnegative(0, name="n") == 0
    assert probability(0.95, name="n") == Fraction(19, 20)
    assert whole("4/2", name="n") == 2
    assert whole(0, name="n", least=0) == 0
    assert type(whole(np.int64(3), name="n")) is int


@given(fractions)
def test_rounding_goes_the_way_it_says(number: Fraction) -> None:
    low, high = down(number), up(number)
    # infinities are compared as floats: a Fraction of one does not exist
    assert low == -math.inf or Fraction(low) <= number
    assert high == math.inf or number <= Fraction(high)
    representable = math.isfinite(nearest(number)) and Fraction(nearest(number)) == number
    assert (low == high) if representable else (math.nextafter(low, math.inf) == high)
    assert nearest(number) in (low, high)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("power", [309, 400, 5000])
def test_rounding_out_of_range(sign: int, power: int) -> None:
    huge = Fraction(sign * 10**power)
    assert nearest(huge) == sign * math.inf
    assert up(huge) == (math.inf if sign > 0 else -np.finfo(float).max)
    assert down(huge) == (np.finfo(float).max if sign > 0 else -math.inf)


def test_zero_has_no_sign() -> None:
    assert math.copysign(1, down(Fraction(0))) == math.copysign(1, up(Fraction(0))) == 1


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(1, 10), "0.1"),
        (Fraction(1, 3), "0.333333"),
        (Fraction(10**14 + 1), "100000000000001"),
        (2.5, "2.5"),
        (Fraction(10**400), "1e400"),
        (Fraction(1, 10**400), "1e-400"),
        (Fraction(1, 10**6), "1e-6"),
        (Fraction(1, 10**4), "0.0001"),
        (Fraction(-2, 3), "-0.666667"),
    ],
)
def test_shown(number: Fraction | float, text: str) -> None:
    assert show(number) == text


@given(st.fractions(min_value=0, max_value=10**12))
def test_square_roots_are_rounded_up_and_exact_for_squares(number: Fraction) -> None:
    root = sqrt_up(number)
    assert root >= 0
    assert root**2 >= number
    assert root == 0 or (root - Fraction(1, 2**96)) ** 2 < number or (root - Fraction(1, 2**96)) < 0
    assert sqrt_up(number**2) == number


# --- enclosures, against rational bounds that need no library ---------------------------------


def exp_bounds(number: Fraction) -> tuple[Fraction, Fraction]:
    """Rational bounds of e^x for 0 <= x <= 8: the Taylor sum, and the same with the geometric bound of its rest."""
    term, total, n = Fraction(1), Fraction(1), 0
    while n < 80:
        n += 1
        term *= number / n
        total += term
    rest = term * (number / (n + 1)) / (1 - number / (n + 2))
    return total, total + rest


@settings(max_examples=40)
@given(st.fractions(min_value=0, max_value=8, max_denominator=1000))
def test_exp_encloses_the_true_value(number: Fraction) -> None:
    low, high = exp_bounds(number)
    found = x.exp(number)
    assert found.lower <= high
    assert low <= found.upper
    assert found.width <= found.upper / 2**64
    inverse = x.exp(-number)
    assert inverse.lower <= 1 / low
    assert 1 / high <= inverse.upper
    # a shift by more than the width must be told apart: an enclosure that is merely wide would not do
    assert high * (1 + Fraction(1, 2**60)) not in found


def test_enclosures_of_exact_numbers_are_points() -> None:
    assert x.exp(Fraction(0)) == x.Enclosure(Fraction(1), Fraction(1))
    assert x.ends(x.ball(Fraction(1, 4))) == x.Enclosure(Fraction(1, 4), Fraction(1, 4))
    third = x.ends(x.ball(Fraction(1, 3)))
    assert third.lower < Fraction(1, 3) < third.upper


def test_a_number_near_zero_is_still_enclosed() -> None:
    nothing = x.enclose(lambda: x.ball(Fraction(2)).sqrt() ** 2 - 2)
    assert Fraction(0) in nothing
    assert nothing.width < Fraction(1, 2**4096)


def test_precision_is_put_back() -> None:
    before = ctx.prec
    with x.precision(777):
        assert ctx.prec == 777
        with pytest.raises(ZeroDivisionError), x.precision(999):
            1 / 0  # noqa: B018
        assert ctx.prec == 777
    assert ctx.prec == before


@pytest.mark.parametrize("power", [10**12, 10**30])
def test_what_would_fill_the_memory_is_refused(power: int) -> None:
    with pytest.raises(NumberError, match="smaller epsilon"):
        x.exp(Fraction(power))


@pytest.mark.parametrize("power", [-(10**6), -(10**12), -(10**30)])
def test_what_is_nearly_zero_is_enclosed_between_zero_and_little(power: int) -> None:
    found = x.exp(Fraction(power))
    assert 0 <= found.lower < found.upper < Fraction(1, 10**300)


@given(st.fractions(min_value=0, max_value=10**6))
def test_what_is_shown_rounded_up_is_not_smaller(number: Fraction) -> None:
    shown = Fraction(x.show_up(number))
    assert shown >= number
    assert shown - number <= max(number, Fraction(1, 10**9)) / 10**5
    assert Fraction(x.show(number)) <= shown


@given(st.fractions(min_value=0))
def test_a_shorter_number_is_not_smaller(number: Fraction) -> None:
    assert x.shorter_up(number) == number
    long = number + Fraction(1, 3**200)
    assert 0 < x.shorter_up(long) - long < Fraction(1, 2**320)
    assert x.shorter_up(long).denominator <= 2**320


def test_subclasses_that_compute_otherwise_do_not_come_in() -> None:
    class Evil(Fraction):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = Fraction.__hash__

        def __rtruediv__(self, other: object) -> Fraction:  # type: ignore[override]
            return Fraction(1, 1000)

    came = x.exact(Evil(1, 10))
    assert type(came) is Fraction
    assert came == Fraction(1, 10)
    assert 1 / came == 10


@given(st.fractions(), st.fractions(min_value=0), st.fractions())
def test_comparisons_of_enclosures_are_certain(lower: Fraction, width: Fraction, number: Fraction) -> None:
    found = x.Enclosure(lower, lower + width)
    for end in (found.lower, found.upper):  # the real number could be either
        assert not found < number or end < number
        assert not found <= number or end <= number
        assert not found > number or end > number
        assert not found >= number or end >= number
    assert found < found.upper + 1
    assert found > found.lower - 1
