"""How far apart two tables are, in rows, and two vectors, in the norms of sensitivity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from privet.errors import DataError, write
from privet.exact import Exact, Number, exact, sqrt_up

# --- tables -----------------------------------------------------------------------------------


def symmetric(a: Iterable[Hashable], b: Iterable[Hashable]) -> int:
    """How many rows must be added or removed to turn multiset `a` into multiset `b`.

    Claim: sum over rows of |times in a - times in b|. The order of rows does not matter.

    Example:
        >>> symmetric(["x", "y", "y"], ["y", "z"])
        3
    """
    left, right = _multiset(a), _multiset(b)
    return (left - right).total() + (right - left).total()


def hamming(a: Sequence[object], b: Sequence[object]) -> int:
    """How many rows must be changed, in place, to turn `a` into `b`; both have the same length.

    Claim: symmetric(a, b) <= 2 * hamming(a, b), since a change is one removal and one addition.

    Example:
        >>> hamming(["x", "y", "y"], ["x", "y", "z"])
        1
    """
    if len(a) != len(b):
        raise DataError(
            f"the Hamming distance needs tables of equal length, not {len(a)} and {len(b)} rows",
            remedy=write("symmetric(a, b)"),
        )
    return sum(1 for x, y in zip(a, b, strict=True) if x != y)


def _multiset(rows: Iterable[Hashable]) -> Counter[Hashable]:
    try:
        return Counter(rows)
    except TypeError as error:
        raise DataError(f"rows must be hashable ({error})", remedy=write("map(tuple, rows)")) from None


# --- vectors ----------------------------------------------------------------------------------


def l1(u: Sequence[Number], v: Sequence[Number]) -> Exact:
    """The L1 distance, exactly: the sum of |u_i - v_i|.

    Example:
        >>> l1([0, 0.1], [1, 0.3])
        Fraction(6, 5)
    """
    return sum(_gaps(u, v), Exact(0))


def l2_squared(u: Sequence[Number], v: Sequence[Number]) -> Exact:
    """The square of the L2 distance, exactly: the sum of (u_i - v_i)^2.

    Example:
        >>> l2_squared([0, 0], [3, 4])
        Fraction(25, 1)
    """
    return sum((gap * gap for gap in _gaps(u, v)), Exact(0))


def l2_up(u: Sequence[Number], v: Sequence[Number]) -> Exact:
    """A rational not smaller than the L2 distance: exact if that is rational, else within 2^-96.

    Example:
        >>> l2_up([0, 0], [3, 4]), l2_up([0, 0], [1, 1]) ** 2 > 2
        (Fraction(5, 1), True)
    """
    return sqrt_up(l2_squared(u, v))


def linf(u: Sequence[Number], v: Sequence[Number]) -> Exact:
    """The L-infinity distance, exactly: the greatest |u_i - v_i|.

    Example:
        >>> linf([0, 0.1], [1, 0.3])
        Fraction(1, 1)
    """
    return max(_gaps(u, v), default=Exact(0))


def _gaps(u: Sequence[Number], v: Sequence[Number]) -> list[Exact]:
    if len(u) != len(v):
        raise DataError(f"vectors must have equal length, not {len(u)} and {len(v)}")
    return [abs(exact(x, name="coordinate") - exact(y, name="coordinate")) for x, y in zip(u, v, strict=True)]
