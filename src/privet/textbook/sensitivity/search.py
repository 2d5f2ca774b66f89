"""A search for neighbouring datasets that break a claimed sensitivity.

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

from privet.errors import DataError, NoSensitivity, Remedy, write
from privet.exact import INFINITY, Exact, Number, nonnegative, show, whole
from privet.exact.lattice import public_bounds
from privet.privacy.adjacency import Adjacency
from privet.textbook.sensitivity.candidates import ORDERS, Pair, Rows, Stream, Values, listings

Statistic = Callable[[list[Any]], Any]

_CLIMB = 60  # moves before a climb restarts elsewhere


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Two neighbours whose answers differ by more than claimed.

    Claim: the two are neighbours with all values inside the bounds, and change > claimed. `change` is infinite
    if only one of them has an answer, or if the answers differ in length.

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
            f"  f({_list(rows)}) = {answer}" for rows, answer in zip((self.left, self.right), self.answers, strict=True)
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

    f takes a list of rows (values of `kind` in [lower, upper]) and returns a number or a vector, measured in L1. It
    is called at most `tries` times (a little more to finish a pair): first on every dataset of a few grids (the
    bounds, the middle, their next values, zeros), small sizes first; then on climbs from fixed, hashed starting
    points. The same call always gives the same answer.

    - n: the number of rows, or the sizes to try. None means 1 to 6; write range(0, 7) to try the empty
      dataset too. Under add/remove both neighbours have one of these sizes.
    - ordered: tables have no order, so neighbours may also list their rows in another order, unless ordered=True.
    - tolerance: answers are compared by their exact values, so one unit in the last place above the claim counts. A
      change of up to claimed + tolerance is accepted.
    - An f that fails (raises, or returns NaN, an infinity or something else than numbers) on one of two neighbours has
      no sensitivity there, because the failure is visible. That is a counterexample with an infinite change. Failing
      on both counts as the same answer. An f that always fails, or whose answer for the same rows varies, is refused.

    Claim: a returned counterexample was checked by calling f again on both.

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
    relation = Adjacency(adjacency)
    low, high = public_bounds(lower, upper, statistic="statistic")
    limit = nonnegative(claimed, name="claimed", example="claimed=1")
    slack = nonnegative(tolerance, name="tolerance", example="tolerance=1e-12")
    checker = _Checker(f, limit, limit + slack, whole(tries, name="tries", example="tries=20_000"))
    pairs = _sizes(n, relation)
    values = Values.between(low, high, kind)
    counterexample = _grid(checker, pairs, values, ordered) or _climb(checker, pairs, values, ordered)
    if counterexample is None and not checker.answered:
        raise DataError(
            f"f returned no number for any dataset; the last result: {checker.last}",
            allowed="f must take a list of numbers, and return a number or a vector",
        )
    return counterexample


def _sizes(n: int | Iterable[int] | None, relation: Adjacency) -> list[tuple[int, int]]:
    """The sizes (left, right) of the neighbours to try, the smaller one first."""
    if isinstance(n, Iterable):
        sizes = sorted({whole(size, name="n", least=0, example="n=range(1, 7)") for size in n})
    else:
        sizes = list(range(1, 7)) if n is None else [whole(n, name="n", example="n=5")]
    if relation is Adjacency.REPLACE:
        pairs = [(size, size) for size in sizes if size > 0]
    else:
        pairs = [(size, size + 1) for size in sizes if size + 1 in sizes]
    if not pairs:
        raise NoSensitivity(
            f"there are no neighbours under {relation.value} with these sizes: {sizes}",
            allowed="Under add/remove, two consecutive sizes are needed" if relation is Adjacency.ADD_REMOVE else "",
            remedy=write("n=range(1, 7)"),
        )
    return pairs


# --- calling f --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answer:
    """The result of f for some rows: an exact vector, or None and the reason."""

    rows: Rows
    parts: tuple[Exact, ...] | None
    text: str

    def distance(self, other: _Answer) -> Exact | float:
        if self.parts is None or other.parts is None:
            return Fraction(0) if self.parts is other.parts else INFINITY
        if len(self.parts) != len(other.parts):
            return INFINITY
        return sum((abs(a - b) for a, b in zip(self.parts, other.parts, strict=True)), Fraction(0))


class _Checker:
    """f with its claim and the number of calls that are left."""

    def __init__(self, f: Statistic, claimed: Exact, limit: Exact, tries: int) -> None:
        self.left = tries
        self.answered, self.last = False, ""
        self._f, self._claimed, self._limit = f, claimed, limit

    def __call__(self, rows: Rows) -> _Answer:
        self.left -= 1
        try:
            value = self._f(list(rows))
            answer = _Answer(rows, tuple(_parts(value)), _short(value))
        except Exception as failure:  # an analyst would see any error of f
            self.last = f"{type(failure).__name__}: {failure}"
            return _Answer(rows, None, self.last)
        self.answered = True
        return answer

    def judge(self, left: _Answer, right: _Answer) -> Counterexample | None:
        """A counterexample, if the two answers differ by more than the limit."""
        change = left.distance(right)
        if change <= self._limit:
            return None
        if any(self(answer.rows).parts != answer.parts for answer in (left, right)):
            raise DataError(
                "f returns different answers for the same rows, so it has no sensitivity",
                remedy=Remedy("Remove the noise from f"),
            )
        return Counterexample(left.rows, right.rows, change, self._claimed, (left.text, right.text))


def _parts(value: Any) -> Iterator[Exact]:
    """Each number of an answer by its exact binary value, unlike `exact`, which reads a float as a decimal."""
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
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _list(rows: Rows) -> str:
    texts = [str(row) for row in rows]
    if len(rows) > 12:
        texts[4:-4] = [f"({len(rows) - 8} more)"]
    return f"[{', '.join(texts)}]"


# --- first: every dataset of a grid -----------------------------------------------------------


def _grid(checker: _Checker, pairs: list[tuple[int, int]], values: Values, ordered: bool) -> Counterexample | None:
    reserve = checker.left // 2
    for grid in values.grids():
        for small, large in pairs:
            if checker.left - _calls(len(grid), {small, large}, ordered) >= reserve:
                counterexample = _all_pairs(checker, grid, small, large > small, ordered)
                if counterexample is not None:
                    return counterexample
    return None


def _calls(choices: int, sizes: set[int], ordered: bool) -> int:
    """The maximum number of calls of f for all datasets of these sizes."""
    if ordered:
        return sum(choices**size for size in sizes)
    return sum(math.comb(choices + size - 1, size) * min(math.factorial(size), ORDERS) for size in sizes)


def _all_pairs(checker: _Checker, grid: list[Any], size: int, longer: bool, ordered: bool) -> Counterexample | None:
    """Compare all neighbours on a grid. Rows are indices into the grid, which are easy to sort and to compare."""
    cache: dict[tuple[int, ...], list[_Answer]] = {}

    def answers(rows: tuple[int, ...]) -> list[_Answer]:
        """The distinct answers of f for these rows, over some of their orders."""
        if rows not in cache:
            orders = [rows] if ordered else listings(rows)
            results = [checker(tuple(grid[index] for index in order)) for order in orders]
            cache[rows] = list({answer.parts: answer for answer in reversed(results)}.values())
        return cache[rows]

    indices = range(len(grid))
    for base in product(indices, repeat=size) if ordered else combinations_with_replacement(indices, size):
        for other in _beside(base, len(grid), longer, ordered):
            for left in answers(base):
                for right in answers(other):
                    counterexample = checker.judge(left, right)
                    if counterexample is not None:
                        return counterexample
    return None


def _beside(base: tuple[int, ...], choices: int, longer: bool, ordered: bool) -> Iterator[tuple[int, ...]]:
    """The neighbours of base: a row added, or one replaced."""
    for at in range(len(base) + 1 if longer else len(base)):
        if not ordered and at > 0 and (longer or base[at] == base[at - 1]):
            continue  # base is sorted, so these neighbours are repeated
        for value in range(choices):
            other = (*base[:at], value, *base[at if longer else at + 1 :])
            yield other if ordered else tuple(sorted(other))


# --- then: climbs -----------------------------------------------------------------------------


def _climb(checker: _Checker, pairs: list[tuple[int, int]], values: Values, ordered: bool) -> Counterexample | None:
    stream, start = Stream("climb"), 0
    while checker.left > 0:
        small, large = pairs[start % len(pairs)]
        start += 1
        pair = Pair.start(stream, values, large - 1, 1 if large > small else 2)
        best: Exact | float = -1
        for _ in range(_CLIMB):
            candidate = pair.moved(stream, values, ordered=ordered)
            left, right = map(checker, candidate.sides())
            counterexample = checker.judge(left, right)
            if counterexample is not None:
                return counterexample
            change = left.distance(right)
            if change >= best:
                pair, best = candidate, change
    return None
