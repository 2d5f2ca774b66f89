"""A hunt for neighbouring datasets that break a claimed sensitivity.

Finding none proves nothing; finding a pair proves that the claim is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from numbers import Integral
from typing import Any

from privet.errors import DataError, NoSensitivity
from privet.exact import INFINITY, Exact, Number, nonnegative, show, whole
from privet.exact.lattice import public_bounds
from privet.privacy.adjacency import Adjacency
from privet.textbook.sensitivity.candidates import ORDERS, Pair, Rows, Stream, Values, listings

Statistic = Callable[[list[Any]], Any]

_CLIMB = 60  # moves before a climb starts again elsewhere


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Two neighbours whose answers lie further apart than claimed.

    Claim: the two are neighbours with all values inside the bounds, and change > claimed. `change` is infinite
    when only one of them has an answer, or when the answers differ in length.

    Example:
        >>> print(Counterexample((0, 0), (0, 1), Fraction(1, 2), Fraction(1, 3), ("0.0", "0.5")))
        claimed 0.333333, but neighbours differ by 0.5:
          f([0, 0]) = 0.0
          f([0, 1]) = 0.5
    """

    left: Rows
    right: Rows
    change: Exact | float
    claimed: Exact
    answers: tuple[str, str]

    def __str__(self) -> str:
        sides = (
            f"  f({_list(rows)}) = {said}" for rows, said in zip((self.left, self.right), self.answers, strict=True)
        )
        claimed, change = show(self.claimed), show(self.change)
        if claimed == change:  # the difference is in digits that are not shown
            change = f"{show(self.change - self.claimed, 2)} more"
        return "\n".join([f"claimed {claimed}, but neighbours differ by {change}:", *sides])


def search(
    f: Statistic,
    *,
    claimed: Number,
    lower: Number,
    upper: Number,
    adjacency: Adjacency | str,
    n: int | Iterable[int] | None = None,
    kind: type[float] | type[int] | type[Fraction] = float,
    ordered: bool = False,
    tolerance: Number = 0,
    tries: int = 20_000,
) -> Counterexample | None:
    """Two neighbours on which f moves by more than claimed, or None if none was found.

    f takes a list of rows (values of `kind` in [lower, upper]) and gives a number or a vector, measured in L1. It
    is called at most `tries` times (a little more to finish a pair): first on every dataset of a few grids (the
    bounds, the middle, their next values, zeros), small sizes first; then on climbs from fixed, hashed starting
    points. The same call always gives the same answer.

    - n: the number of rows, or the sizes to try. None means 1 to 6; write range(0, 7) to try the empty
      dataset too. Under add/remove both neighbours have one of these sizes.
    - ordered: tables have no order, so neighbours may also list their rows in another order, unless ordered=True.
    - tolerance: answers are compared by their exact values, so one unit in the last place over the claim counts. A
      change of up to claimed + tolerance is let pass.
    - An f that fails (raises, or returns NaN, an infinity or no number) on one of two neighbours, has no
      sensitivity there: the failure can be seen. That is a counterexample with an infinite change. An f
      that fails on both says the same for both. One that always fails, or that answers differently when
      asked again, is refused.

    Claim: what is returned was checked by calling f anew on both.

    Example:
        >>> f = lambda rows: sum(rows) / len(rows)
        >>> print(search(f, claimed="1/4", lower=0, upper=1, adjacency="replace", n=3))
        claimed 0.25, but neighbours differ by 0.333333:
          f([0.0, 0.0, 0.0]) = 0.0
          f([0.0, 0.0, 1.0]) = 0.3333333333333333
        >>> search(f, claimed="1/3", lower=0, upper=1, adjacency="replace", n=3, kind=Fraction) is None
        True

    Reference: Casacuberta, Shoemate, Vadhan, Wagaman (2022), Widespread Underestimation of Sensitivity in
    Differentially Private Libraries.
    """
    how = Adjacency(adjacency)
    low, high = public_bounds(lower, upper, of="statistic")
    limit = nonnegative(claimed, name="claimed", example="claimed=1")
    slack = nonnegative(tolerance, name="tolerance", example="tolerance=1e-12")
    asked = _Asked(f, limit, limit + slack, whole(tries, name="tries", example="tries=20_000"))
    pairs = _sizes(n, how)
    values = Values.between(low, high, kind)
    found = _grid(asked, pairs, values, ordered) or _climb(asked, pairs, values, ordered)
    if found is None and not asked.answered:
        raise DataError(f"f gave no number on any dataset; the last time: {asked.last}. f must take a list of numbers.")
    return found


def _sizes(n: int | Iterable[int] | None, how: Adjacency) -> list[tuple[int, int]]:
    """The sizes (left, right) of the neighbours to try; left is the smaller one."""
    if isinstance(n, Iterable):
        sizes = sorted({whole(size, name="n", least=0, example="n=range(1, 7)") for size in n})
    else:
        sizes = list(range(1, 7)) if n is None else [whole(n, name="n", example="n=5")]
    if how is Adjacency.REPLACE:
        pairs = [(size, size) for size in sizes if size > 0]
    else:
        pairs = [(size, size + 1) for size in sizes if size + 1 in sizes]
    if not pairs:
        raise NoSensitivity(
            f"there are no neighbours under {how.value} with these sizes: {sizes}. Under add/remove two sizes "
            "in a row are needed, for example: n=range(1, 7)"
        )
    return pairs


# --- asking f ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answer:
    """What f said about some rows: an exact vector, or none and why."""

    rows: Rows
    parts: tuple[Exact, ...] | None
    said: str

    def distance(self, other: _Answer) -> Exact | float:
        if self.parts is None or other.parts is None:
            return Fraction(0) if self.parts is other.parts else INFINITY
        if len(self.parts) != len(other.parts):
            return INFINITY
        return sum((abs(a - b) for a, b in zip(self.parts, other.parts, strict=True)), Fraction(0))


class _Asked:
    """f with its claim and a count of its calls."""

    def __init__(self, f: Statistic, claimed: Exact, limit: Exact, tries: int) -> None:
        self.left = tries
        self.answered, self.last = False, ""
        self._f, self._claimed, self._limit = f, claimed, limit

    def __call__(self, rows: Rows) -> _Answer:
        self.left -= 1
        try:
            value = self._f(list(rows))
            answer = _Answer(rows, tuple(_parts(value)), _short(value))
        except Exception as failure:  # whatever f raises is what an analyst would see
            self.last = f"{type(failure).__name__}: {failure}"
            return _Answer(rows, None, self.last)
        self.answered = True
        return answer

    def judge(self, left: _Answer, right: _Answer) -> Counterexample | None:
        """The two as a counterexample, if they are one."""
        change = left.distance(right)
        if change <= self._limit:
            return None
        if any(self(answer.rows).parts != answer.parts for answer in (left, right)):
            raise DataError(
                "f gives different answers for the same rows, so it has no sensitivity. Take the noise out of f."
            )
        return Counterexample(left.rows, right.rows, change, self._claimed, (left.said, right.said))


def _parts(value: Any) -> Iterator[Exact]:
    """Each number of an answer by its exact binary value: not `exact`, which reads a float as a person means it."""
    if hasattr(value, "tolist"):  # numpy
        value = value.tolist()
    if isinstance(value, list | tuple):
        for part in value:
            yield from _parts(part)
    elif isinstance(value, Integral):
        yield Fraction(int(value))
    elif hasattr(value, "as_integer_ratio"):
        yield Fraction(*value.as_integer_ratio())  # NaN and infinities raise here
    else:
        raise TypeError(f"f returned {_short(value)}, which is neither a number nor a vector")


def _short(value: object) -> str:
    said = str(value)
    return said if len(said) <= 60 else said[:57] + "..."


def _list(rows: Rows) -> str:
    shown = [str(row) for row in rows]
    if len(rows) > 12:
        shown[4:-4] = [f"({len(rows) - 8} more)"]
    return f"[{', '.join(shown)}]"


# --- first: every dataset of a grid -----------------------------------------------------------


def _grid(asked: _Asked, pairs: list[tuple[int, int]], values: Values, ordered: bool) -> Counterexample | None:
    reserve = asked.left // 2
    for grid in values.grids():
        for small, large in pairs:
            if asked.left - _calls(len(grid), {small, large}, ordered) >= reserve:
                found = _all_pairs(asked, grid, small, large > small, ordered)
                if found is not None:
                    return found
    return None


def _calls(choices: int, sizes: set[int], ordered: bool) -> int:
    """How often f is asked at most, for all datasets of these sizes."""
    if ordered:
        return sum(choices**size for size in sizes)
    return sum(math.comb(choices + size - 1, size) * min(math.factorial(size), ORDERS) for size in sizes)


def _all_pairs(asked: _Asked, grid: list[Any], size: int, longer: bool, ordered: bool) -> Counterexample | None:
    """Rows are handled as places in the grid, which are easy to sort and to compare."""
    known: dict[tuple[int, ...], list[_Answer]] = {}

    def answers(places: tuple[int, ...]) -> list[_Answer]:
        """What f says about these rows, over some of their orders; each answer once."""
        if places not in known:
            orders = [places] if ordered else listings(places)
            said = [asked(tuple(grid[place] for place in order)) for order in orders]
            known[places] = list({answer.parts: answer for answer in reversed(said)}.values())
        return known[places]

    places = range(len(grid))
    for base in product(places, repeat=size) if ordered else combinations_with_replacement(places, size):
        for other in _beside(base, len(grid), longer, ordered):
            for left in answers(base):
                for right in answers(other):
                    found = asked.judge(left, right)
                    if found is not None:
                        return found
    return None


def _beside(base: tuple[int, ...], choices: int, longer: bool, ordered: bool) -> Iterator[tuple[int, ...]]:
    """The neighbours of base: a row added, or one replaced."""
    for at in range(len(base) + 1 if longer else len(base)):
        if not ordered and at > 0 and (longer or base[at] == base[at - 1]):
            continue  # base is sorted: the same neighbours again
        for value in range(choices):
            other = (*base[:at], value, *base[at if longer else at + 1 :])
            yield other if ordered else tuple(sorted(other))


# --- then: climbs -----------------------------------------------------------------------------


def _climb(asked: _Asked, pairs: list[tuple[int, int]], values: Values, ordered: bool) -> Counterexample | None:
    stream, start = Stream("climb"), 0
    while asked.left > 0:
        small, large = pairs[start % len(pairs)]
        start += 1
        pair = Pair.start(stream, values, large - 1, 1 if large > small else 2)
        best: Exact | float = -1
        for _ in range(_CLIMB):
            tried = pair.moved(stream, values, ordered=ordered)
            left, right = map(asked, tried.sides())
            found = asked.judge(left, right)
            if found is not None:
                return found
            change = left.distance(right)
            if change >= best:
                pair, best = tried, change
    return None
