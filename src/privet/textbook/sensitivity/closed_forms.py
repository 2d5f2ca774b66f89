"""Closed forms: the global sensitivity of the usual statistics of values in [lower, upper].

Claim: each function returns the largest change of the exact statistic between two datasets that differ
in one row, and no smaller number is valid (square roots are rounded up, by less than 2^-96 of themselves).

- replace, n public (`n=5`): both datasets have n rows, one of them different
- replace, n private (`n=None`): the same, and the worst n
- add/remove, n private: one dataset has one row more; a public n would be a contradiction and is refused

w = upper - lower below. Every form is w, or w^2, times a number, except for the sum under add/remove. Equal
bounds are allowed: then w = 0, and 0 is the right answer.

**Too few rows.** A mean of no rows does not exist, so under add/remove the forms hold between datasets on
which the statistic exists (1 row; 2 rows for ddof=1). Whether a dataset is that small is private too: an
error, or no answer, would reveal it. So define a fixed public value for such datasets. With the following values the
forms hold between *all* neighbours: the midpoint (lower + upper)/2 for mean, median, quantile, maximum and
minimum; for variance and std 0 with ddof=0, and w^2/4 and w/2 with ddof=1. (0 would be wrong for ddof=1: one
row to two moves the sample variance from 0 to w^2/2, more than w^2/3.)

**Floats.** The forms are for exact arithmetic. A float sum of the same values can move much further: see `search`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from privet.errors import NoSensitivity, NumberError, write
from privet.exact import Exact, Number, exact, nonnegative, show, sqrt_up, whole
from privet.exact.lattice import public_bounds
from privet.privacy.adjacency import Adjacency

Interpolation = Literal["linear", "lower"]
"""The definition of a quantile: interpolated between two order statistics, numpy's default, or always one of them."""


def total(*, lower: Number, upper: Number, adjacency: Adjacency | str, n: int | None = None) -> Exact:
    """The sensitivity of the sum.

    Claim: replace w: the sum moves by y - x. Add/remove max(|lower|, |upper|): it moves by x.

    Example:
        >>> total(lower=-1, upper=5, adjacency="replace"), total(lower=-1, upper=5, adjacency="add/remove")
        (Fraction(6, 1), Fraction(5, 1))
    """
    low, high = public_bounds(lower, upper, statistic="sum")
    relation, _ = _neighbours("sum", adjacency, n)
    return high - low if relation is Adjacency.REPLACE else max(abs(low), abs(high))


def mean(*, lower: Number, upper: Number, adjacency: Adjacency | str, n: int | None = None) -> Exact:
    """The sensitivity of the mean.

    Claim: replace w/n, and w for private n (n = 1). Add/remove w/2: a row x beside n rows with mean m
    moves it by (x - m)/(n + 1), and n >= 1. For no rows, let the mean be the midpoint: then w/2 holds there too.

    Example:
        >>> mean(lower=0, upper=200_000, adjacency="replace", n=1000), mean(lower=0, upper=1, adjacency="add/remove")
        (Fraction(200, 1), Fraction(1, 2))
    """
    width = _width("mean", lower, upper)
    relation, rows = _neighbours("mean", adjacency, n)
    return width / (rows or 1) if relation is Adjacency.REPLACE else width / 2


def count(*, adjacency: Adjacency | str, n: int | None = None) -> Exact:
    """The sensitivity of the number of rows.

    Claim: replace 0 for `each_row`: every neighbour has as many rows. Add/remove 1. (Counting the rows that
    pass a filter is a `histogram` with one bin, and moves by 1 under replace too: `l1_move([[1]], ...)`.)

    Example:
        >>> count(adjacency="add/remove"), count(adjacency="replace")
        (Fraction(1, 1), Fraction(0, 1))
    """
    relation, _ = _neighbours("count", adjacency, n)
    return Fraction(0 if relation is Adjacency.REPLACE else 1)


def histogram(*, adjacency: Adjacency | str, n: int | None = None) -> Exact:
    """The L1 sensitivity of counts in two or more bins, each row in at most one of them.

    Claim: replace 2: one bin loses the row, another gains it. Add/remove 1.

    Example:
        >>> histogram(adjacency="add/remove"), histogram(adjacency="replace")
        (Fraction(1, 1), Fraction(2, 1))
    """
    relation, _ = _neighbours("histogram", adjacency, n)
    return Fraction(2 if relation is Adjacency.REPLACE else 1)


def variance(
    *, lower: Number, upper: Number, adjacency: Adjacency | str, ddof: Literal[0, 1], n: int | None = None
) -> Exact:
    """The sensitivity of the variance: of the population (ddof=0) or of a sample (ddof=1).

    Claim: replace w^2 (n-1)/n^2 (ddof=0) and w^2/n (ddof=1); for private n the worst is n = 2, w^2/4 and
    w^2/2. Add/remove w^2/4 (n = 1 to 2) and w^2/3 (n = 2 to 3).
    For n rows of mean m and variance v, and one more row x, have the variance v n/(n+1) + (x-m)^2 n/(n+1)^2.
    Replacing x moves only the second part, by w^2 n/(n+1)^2 at most. Adding x raises v by at most as much, and lowers
    it by at most v/(n+1) <= w^2/12 (n >= 2; one row has v = 0). For a sample the variance is
    v (n-1)/n + (x-m)^2/(n+1): raised by at most w^2/(n+1), lowered by at most v/n <= w^2/4, and n >= 2.

    Example:
        >>> variance(lower=0, upper=1, adjacency="replace", ddof=0, n=5)
        Fraction(4, 25)
        >>> variance(lower=0, upper=1, adjacency="add/remove", ddof=1)
        Fraction(1, 3)
    """
    width = _width("variance", lower, upper)
    return width**2 * _spread("variance", adjacency, n, ddof)


def std(
    *, lower: Number, upper: Number, adjacency: Adjacency | str, ddof: Literal[0, 1], n: int | None = None
) -> Exact:
    """The sensitivity of the standard deviation: of the population (ddof=0) or of a sample (ddof=1).

    Claim: w sqrt(c), rounded up, where w^2 c is the sensitivity of the variance in the same case: replace
    w sqrt(n-1)/n and w/sqrt(n), private n w/2 and w/sqrt(2); add/remove w/2 and w/sqrt(3).
    For the std is sqrt(a + c (x-m)^2) with a >= 0, which as a function of x has slope sqrt(c) at most.
    Adding x raises sqrt(v) by at most sqrt(c) |x-m|, since a <= v, and lowers it by at most
    sqrt(v) (1 - sqrt(n/(n+1))), which is less (ddof=1: sqrt(v) (1 - sqrt((n-1)/n))).

    Example:
        >>> std(lower=0, upper=1, adjacency="replace", ddof=0, n=5)
        Fraction(2, 5)
        >>> float(std(lower=0, upper=1, adjacency="add/remove", ddof=1))
        0.5773502691896257
    """
    width = _width("std", lower, upper)
    return width * sqrt_up(_spread("std", adjacency, n, ddof))


def maximum(*, lower: Number, upper: Number, adjacency: Adjacency | str, n: int | None = None) -> Exact:
    """The sensitivity of the greatest value.

    Claim: w, for any n: all rows are at lower, and one of them moves to upper.

    Example:
        >>> maximum(lower=0, upper=110, adjacency="replace", n=1000)
        Fraction(110, 1)
    """
    width = _width("maximum", lower, upper)
    _neighbours("maximum", adjacency, n)
    return width


def minimum(*, lower: Number, upper: Number, adjacency: Adjacency | str, n: int | None = None) -> Exact:
    """The sensitivity of the smallest value.

    Claim: w, for any n: all rows are at upper, and one of them moves to lower.

    Example:
        >>> minimum(lower=0, upper=110, adjacency="add/remove")
        Fraction(110, 1)
    """
    width = _width("minimum", lower, upper)
    _neighbours("minimum", adjacency, n)
    return width


def median(
    *,
    lower: Number,
    upper: Number,
    adjacency: Adjacency | str,
    n: int | None = None,
    interpolation: Interpolation,
) -> Exact:
    """The sensitivity of the median: `quantile` at 1/2.

    Claim: "linear" (the midpoint at even n): replace w for odd or private n and w/2 for even n; add/remove w/2.
    "lower" (the lower of the two in the middle): w.

    Example:
        >>> median(lower=0, upper=1, adjacency="replace", n=6, interpolation="linear")
        Fraction(1, 2)
        >>> median(lower=0, upper=1, adjacency="replace", n=6, interpolation="lower")
        Fraction(1, 1)
    """
    half = Fraction(1, 2)
    return _quantile("median", half, lower, upper, adjacency, n, interpolation)


def quantile(
    q: Number,
    *,
    lower: Number,
    upper: Number,
    adjacency: Adjacency | str,
    n: int | None = None,
    interpolation: Interpolation,
) -> Exact:
    """The sensitivity of the q-quantile, 0 <= q <= 1.

    Claim: "lower", the order statistic of rank ceil(q n), at least 1 (numpy's `inverted_cdf`): w.
    "linear", at height h = (n-1) q between order statistics (numpy's default): replace max(f, 1-f) w with f the
    fractional part of h, and w for private n (n = 1); add/remove max(q, 1-q) w.
    Proof: a dataset is the sum of its thresholds 1[x >= t], and so is its quantile, so 0/1 rows suffice. With z zeros
    the quantile is h - z + 1, clamped to [0, 1]. Replacing a row moves z by one, so at most the larger part, f or
    1-f, is crossed. Adding a one moves h by q; adding a zero moves h - z by q - 1.

    Example:
        >>> quantile(0.25, lower=0, upper=1, adjacency="replace", n=8, interpolation="linear")
        Fraction(3, 4)
        >>> quantile(0.9, lower=0, upper=1, adjacency="add/remove", interpolation="linear")
        Fraction(9, 10)
    """
    level = exact(q, name="q", example="q=0.25")
    if not 0 <= level <= 1:
        raise NumberError(f"q must be between 0 and 1, not {show(level)}", remedy=write("q=0.25"))
    return _quantile("quantile", level, lower, upper, adjacency, n, interpolation)


def for_rows(one_row: Number, *, rows: int) -> Exact:
    """The sensitivity if up to `rows` rows change, from that of one row.

    Claim: rows * one_row, by the triangle inequality along a chain of one-row neighbours; the sizes in between lie
    between those at the ends. A person who is replaced, and may afterwards have more or fewer rows, up to k, is k
    steps away, each a replacement, an addition or a removal: use the greater of the two one-row values, or `l1_move`,
    which is the same for sums.

    Example:
        >>> for_rows(mean(lower=0, upper=1, adjacency="replace", n=100), rows=3)
        Fraction(3, 100)
        >>> sides = [total(lower=5, upper=9, adjacency=relation) for relation in ("replace", "add/remove")]
        >>> for_rows(max(sides), rows=3)
        Fraction(27, 1)
    """
    step = nonnegative(one_row, name="one_row", example="one_row=1")
    return whole(rows, name="rows", example="rows=3") * step


# --- what the forms share ---------------------------------------------------------------------


def _neighbours(
    statistic: str, adjacency: Adjacency | str, n: object, *, least: int = 1
) -> tuple[Adjacency, int | None]:
    relation = Adjacency(adjacency)
    if n is None:
        return relation, None
    rows = whole(n, name="n", least=least, example="n=100")
    if relation is Adjacency.ADD_REMOVE:
        raise NoSensitivity(
            f"the {statistic} has no sensitivity under add/remove if n={rows} is public, because adding or removing a "
            "row changes n",
            remedy=write(
                'adjacency="replace"', advice="If n is private, omit it. If it is public, use replace", exact=True
            ),
        )
    return relation, rows


def _width(statistic: str, lower: object, upper: object) -> Exact:
    low, high = public_bounds(lower, upper, statistic=statistic)
    return high - low


def _spread(statistic: str, adjacency: Adjacency | str, n: object, ddof: object) -> Exact:
    ddof = whole(ddof, name="ddof", least=0, example="ddof=0 (population) or ddof=1 (sample)")
    if ddof > 1:
        raise NumberError(f"ddof must be 0 (population) or 1 (sample), not {ddof}", remedy=write("ddof=0"))
    relation, rows = _neighbours(statistic, adjacency, n, least=1 + int(ddof == 1))
    if relation is Adjacency.ADD_REMOVE:
        return Fraction(1, 3) if ddof else Fraction(1, 4)
    rows = rows or 2
    return Fraction(1, rows) if ddof else Fraction(rows - 1, rows**2)


def _quantile(
    statistic: str,
    q: Exact,
    lower: object,
    upper: object,
    adjacency: Adjacency | str,
    n: object,
    interpolation: object,
) -> Exact:
    width = _width(statistic, lower, upper)
    relation, rows = _neighbours(statistic, adjacency, n)
    if interpolation == "lower":
        return width
    if interpolation != "linear":
        raise NumberError(
            f'interpolation must be "linear" or "lower", not {interpolation!r}',
            remedy=write('interpolation="linear"'),
        )
    part = q if relation is Adjacency.ADD_REMOVE else (((rows or 1) - 1) * q) % 1
    return max(part, 1 - part) * width
