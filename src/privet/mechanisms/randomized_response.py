"""Randomized response: each person answers for themselves, with deniability."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.errors import DataError, NumberError, write
from privet.exact import (
    Enclosure,
    Exact,
    Number,
    ball,
    enclose,
    exact,
    positive,
    precision,
    probability,
    show,
    up,
    whole,
)
from privet.mechanisms.profiles import PureProfile
from privet.noise.coins import toss, uniform_integers
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.inversion import enclosed_prefixes
from privet.privacy.accounting import PureAccountant
from privet.privacy.events import Stated
from privet.privacy.guarantees import PureDP

_EXAMPLE = 'RandomizedResponse(["yes", "no"], epsilon=1)'


@dataclass(frozen=True, slots=True)
class ResponseCount:
    """How many of the people hold a category: an unbiased estimate, and an interval.

    The interval lies between 0 and the number of answers. The estimate may not: cutting it off would make it biased.
    """

    category: Any
    count: float
    low: int
    high: int


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse:
    """Report a category truthfully with probability p, and else one of the others, uniformly.

    Claim: p = e^epsilon / (e^epsilon + k - 1) for k categories, exactly, so each other category has probability 1 /
    (e^epsilon + k - 1), and the report is epsilon-differentially private for the one who reports: neighbours differ in
    that person's category. Each release of a value is a new report; two reports of one person cost twice.

    `categories` are k labels, or a number k for the labels 0 to k - 1. They are public, and so is that every value is
    one of them: another value is refused. The work does not depend on the value.

    Example:
        >>> mechanism = RandomizedResponse(["yes", "no", "unsure"], epsilon=2)
        >>> mechanism.release("yes") in ("yes", "no", "unsure"), float(mechanism.keep)
        (True, 0.7869860421615985)
        >>> answers = mechanism.release(["yes"] * 60_000 + ["no"] * 40_000)
        >>> [each.low <= n <= each.high for each, n in zip(mechanism.estimate(answers, 1 - 1e-9), (60_000, 40_000, 0))]
        [True, True, True]

    Reference: Warner 1965; Kairouz, Oh, Viswanath, "Extremal mechanisms for local differential privacy", 2014.
    """

    categories: tuple[Any, ...]
    epsilon: Exact
    _codes: dict[Any, int] | None = field(compare=False, repr=False)
    """Each label's number; None if the labels are numbers."""
    _prefix: int = field(compare=False, repr=False)

    def __init__(self, categories: int | Sequence[Any], *, epsilon: Number) -> None:
        codes, labels = None, categories
        if isinstance(categories, int | str | bytes | dict | set) or not hasattr(categories, "__len__"):
            labels = range(whole(categories, name="categories", least=2, example=_EXAMPLE))
        else:
            try:
                codes = {label: code for code, label in enumerate(categories)}
            except TypeError:
                raise DataError("categories must be texts or numbers", remedy=write(_EXAMPLE)) from None
            if len(codes) != len(categories) or len(codes) < 2:
                raise NumberError("categories must be at least 2, all different", remedy=write(_EXAMPLE))
        object.__setattr__(self, "categories", tuple(labels))  # type: ignore[arg-type]
        object.__setattr__(self, "epsilon", positive(epsilon, name="epsilon", example=_EXAMPLE))
        object.__setattr__(self, "_codes", codes)
        object.__setattr__(self, "_prefix", (1 << 64) - 1 - enclosed_prefixes(lambda: [self._changed()], 192)[0])
        self.event()  # refuses what a ledger could not store, before any data are read

    def __repr__(self) -> str:
        shown = list(self.categories) if self._codes is not None else len(self.categories)
        return f"RandomizedResponse({shown!r}, epsilon={show(self.epsilon)})"

    # --- its probabilities, and what it costs ---------------------------------------------------

    def _kept(self) -> arb:
        return 1 / (1 + (len(self.categories) - 1) * ball(-self.epsilon).exp())

    def _changed(self) -> arb:
        """1 - p, which is tiny for a large epsilon."""
        return (len(self.categories) - 1) * self._other()

    def _other(self) -> arb:
        return 1 / (ball(self.epsilon).exp() + len(self.categories) - 1)

    @property
    def keep(self) -> Enclosure:
        """The probability of a truthful report."""
        return enclose(self._kept)

    @property
    def other(self) -> Enclosure:
        """The probability of each other report."""
        return enclose(self._other)

    def pmf(self, report: Any, value: Any) -> Enclosure:
        """P(report) for a person with this value."""
        return self.keep if self._code(report) == self._code(value) else self.other

    def event(self) -> Stated:
        """The event of one report, for accountants."""
        return Stated(epsilon=self.epsilon, delta=0)

    def guarantee(self) -> PureDP:
        """The guarantee of one report."""
        return PureAccountant().account(self.event())

    def privacy_profile(self) -> PureProfile:
        """Epsilon -> delta, exactly: (e^epsilon - e^x) / (e^epsilon + k - 1).

        Example:
            >>> float(RandomizedResponse(2, epsilon=1).privacy_profile()(0))
            0.46211715726000974
        """
        return PureProfile(self.epsilon, answers=len(self.categories))

    # --- reports --------------------------------------------------------------------------------

    def release(self, value: Any) -> Any:
        """A report for a value, or a list or an array of reports, one for each value."""
        return self._draw(value, SYSTEM)

    def _draw(self, value: Any, bits: Bits) -> Any:
        """The same from these bits."""
        if isinstance(value, np.ndarray):
            reports = self._report(self._read(value.ravel()), bits)
            return (reports if self._codes is None else self._labels(value.dtype)[reports]).reshape(value.shape)
        if isinstance(value, list | tuple) and (self._codes is None or not _is_label(value, self._codes)):
            return [self.categories[code] for code in self._report(self._read(value), bits).tolist()]
        return self.categories[int(self._report(np.array([self._code(value)]), bits)[0])]

    def _labels(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The categories as an array; of objects if the values are, or if numpy would turn one type into another."""
        labels = np.empty(len(self.categories), dtype=object)
        labels[:] = self.categories
        mixed = len({type(label) for label in self.categories}) > 1
        return labels if dtype.kind == "O" or mixed else np.array(self.categories)

    def _report(self, codes: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        lower = np.full(len(codes), self._prefix, dtype=np.uint64)
        kept = toss(lower, 1, lambda i: self._kept(), bits)
        k = len(self.categories)
        others: NDArray[np.int64] = (codes + 1 + uniform_integers(k - 1, len(codes), bits)) % k
        return np.where(kept, codes, others)

    def _read(self, values: Any) -> NDArray[np.int64]:
        if isinstance(values, np.ma.MaskedArray):  # masked values would be released as they are
            raise DataError("a masked array can't be released", remedy=write("release(values.compressed())"))
        if self._codes is None and isinstance(values, np.ndarray) and values.dtype.kind in "iu":
            if len(values) and not 0 <= int(values.min()) <= int(values.max()) < len(self.categories):
                raise self._unknown()
            return values.astype(np.int64)
        values = values.tolist() if isinstance(values, np.ndarray) else values
        return np.array([self._code(value) for value in values], dtype=np.int64)

    def _code(self, value: Any) -> int:
        if self._codes is None:
            number = int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else -1
            if not 0 <= number < len(self.categories):
                raise self._unknown()
            return number
        try:
            return self._codes[value]
        except (KeyError, TypeError):
            raise self._unknown() from None

    def _unknown(self) -> DataError:
        return DataError("a value is not one of the categories", remedy=write(f"release({self.categories[0]!r})"))

    # --- estimates ------------------------------------------------------------------------------

    def estimate(self, responses: Any, confidence: Number = 0.95) -> list[ResponseCount]:
        """How many of those who reported hold each category.

        Claim: the count is unbiased, (reports - n q)/(p - q). Each interval contains the number of people in the list
        who hold the category with at least this confidence, by itself, whatever the truth: m is left out if n people,
        m of whom hold the category, give so many reports (or so few) with probability at most (1 - confidence)/2, by
        the bound e^(-n KL(reports/n, mean)) for sums of independent coins. It is conservative.

        Reference: Hoeffding, "Probability inequalities for sums of bounded random variables", 1963, theorem 1.
        """
        level = probability(confidence, name="confidence", example="estimate(responses, 0.95)")
        codes = self._read(responses.ravel() if isinstance(responses, np.ndarray) else responses)
        if not len(codes):
            raise DataError("there are no responses", remedy=write("estimate(mechanism.release(values))"))
        reports = np.bincount(codes, minlength=len(self.categories)).tolist()
        return [self._count(at, n, len(codes), level) for at, n in enumerate(reports)]

    def _count(self, category: int, reports: int, n: int, level: Exact) -> ResponseCount:
        count = enclose(lambda: (reports - n * self._other()) / (self._kept() - self._other()))
        most = enclose(lambda: ball(2 / (1 - level)).log()).upper

        def unlikely(m: int, side: int) -> bool:  # certainly so many (side = 1) or so few (side = -1) reports
            with precision(160):
                mean = (m * self._kept() + (n - m) * self._other()) / n
                if not side * (ball(Fraction(reports, n)) - mean) > 0:
                    return False
                terms = [(ball(Fraction(r, n)), p) for r, p in ((reports, mean), (n - reports, 1 - mean)) if r]
                return bool(n * sum((x * (x / p).log() for x, p in terms), arb(0)) >= ball(most))

        low = bisect_left(range(n + 1), True, key=lambda m: not unlikely(m, 1))
        high = bisect_left(range(n + 1), True, key=lambda m: unlikely(m, -1)) - 1
        return ResponseCount(self.categories[category], float(count), min(low, n), max(high, 0))

    def error(self, confidence: Number = 0.95, *, responses: int) -> float:
        """The error bound of a count that holds with this confidence, whatever the truth; rounded up."""
        level = probability(confidence, name="confidence", example="error(0.95, responses=1000)")
        n = whole(responses, name="responses", example="error(0.95, responses=1000)")
        half = enclose(lambda: (n * ball(2 / (1 - level)).log() / 2).sqrt() / (self._kept() - self._other()))
        return up(half.upper)

    def tail(self, t: Number, *, responses: int) -> float:
        """At least P(|count - truth| >= t): 2 e^(-2 (t (p - q))^2 / n), rounded up."""
        gap = exact(t, name="t", example="tail(100, responses=1000)")
        n = whole(responses, name="responses", example="tail(100, responses=1000)")
        if gap <= 0:
            return 1.0
        bound = enclose(lambda: 2 * (-2 * (ball(gap) * (self._kept() - self._other())) ** 2 / n).exp())
        return min(1.0, up(bound.upper))


def _is_label(value: Any, codes: dict[Any, int]) -> bool:
    try:
        return value in codes
    except TypeError:
        return False
