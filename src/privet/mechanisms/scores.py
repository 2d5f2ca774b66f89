"""Scores of candidates, as exact integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privet.errors import DataError, write
from privet.exact.lattice import Integers
from privet.mechanisms.values import Value, read

_SAFE = 1 << 62


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores as integers over a common denominator; equality compares identity, because arrays have no truth value."""

    integers: Integers
    denominator: int

    def __len__(self) -> int:
        return len(self.integers)


def read_scores(scores: Any, *, example: str = "select([3, 5, 4])") -> Scores:
    """Parse scores: a list, a tuple or a one-dimensional array of integers, fractions or finite floats.

    A float means its exact binary value. What is refused depends on types, and on whether all numbers are finite.

    Example:
        >>> read_scores([1, 0.5]).integers.tolist(), read_scores([1, 0.5]).denominator
        ([2, 1], 2)
    """
    content = _numbers(scores, example)
    if content is None:
        raise DataError(
            "scores must be a list or a one-dimensional array of finite numbers, one for each candidate",
            remedy=write(_line(scores, example)),
        )
    array = content.array
    if array.dtype.kind in "iu":
        return Scores(_narrow(array), 1)
    numbers = [Fraction(x) for x in array.tolist()]
    denominator = math.lcm(*(x.denominator for x in numbers))
    integers = np.empty(len(numbers), dtype=object)
    integers[:] = [x.numerator * (denominator // x.denominator) for x in numbers]
    return Scores(_narrow(integers), denominator)


def whole_scores(scores: Any, *, name: str, example: str) -> Integers:
    """The same for mechanisms that add noise to the scores: they must have the type of integers.

    The lattice of the noise must not follow the data, and neither must a refusal: 3.0 is refused like 3.5.

    Example:
        >>> whole_scores([3, 5], name="scores", example="select([3, 5, 4])").tolist()
        [3, 5]
        >>> whole_scores([3.0, 5.0], name="scores", example="select([3, 5, 4])")
        Traceback (most recent call last):
        privet.errors.DataError: scores must be a list or a one-dimensional array of integers: the noise has a step,
        which may not depend on the data. To use other numbers, multiply everything, the sensitivity too, by a public
        number; then round the scores down with math.floor, and the sensitivity up.
        Write, for example: select([3, 5, 4])
    """
    content = _numbers(scores, example)
    if content is None or content.real:
        raise DataError(
            f"{name} must be a list or a one-dimensional array of integers: the noise has a step, which may not depend "
            "on the data",
            remedy=write(
                _line(scores, example),
                advice="To use other numbers, multiply everything, the sensitivity too, by a public number; then round "
                f"the {name} down with math.floor, and the sensitivity up",
            ),
        )
    return _narrow(content.array)


def _numbers(scores: Any, example: str) -> Value | None:
    """A list or a one-dimensional array of at least one number; None for anything else."""
    try:
        content = read(scores)
    except DataError:
        return None
    if content.array.ndim != 1:
        return None
    if not len(content.array):
        raise DataError("there is no candidate to select", remedy=write(example))
    return content


def _line(scores: Any, example: str) -> str:
    return "select(scores.to_numpy())" if hasattr(scores, "to_numpy") else example


def integers_of(scores: Sequence[int] | Integers) -> Integers:
    """Integers as an array of int64, or of Python integers; numpy by itself would make floats of large ones.

    Example:
        >>> integers_of([2**63, -1])
        array([9223372036854775808, -1], dtype=object)
    """
    if isinstance(scores, np.ndarray):
        return _narrow(scores)
    integers = np.empty(len(scores), dtype=object)
    integers[:] = [int(score) for score in scores]
    return _narrow(integers)


def distances(scores: Sequence[int] | Integers) -> Integers:
    """How far each score is below the best.

    Example:
        >>> distances([3, 5, 4]).tolist()
        [2, 0, 1]
    """
    integers = integers_of(scores)
    best, least = int(integers.max()), int(integers.min())
    if integers.dtype == object or best - least >= _SAFE:
        return best - integers.astype(object) if best - least >= _SAFE else (best - integers).astype(np.int64)
    return best - integers


def pick(candidates: Sequence[Any] | None, length: int) -> Sequence[Any]:
    """The candidates that the scores belong to: their positions if None."""
    if candidates is None:
        return range(length)
    if not hasattr(candidates, "__len__") or not hasattr(candidates, "__getitem__") or isinstance(candidates, dict):
        raise DataError(
            f"candidates must be a list, not {type(candidates).__name__}",
            remedy=write('select([3, 5], candidates=["a", "b"])'),
        )
    if len(candidates) != length:
        raise DataError(
            f"the number of candidates is {len(candidates)}, but that of scores is {length}",
            allowed="Each candidate needs one score",
            remedy=write('select([3, 5], candidates=["a", "b"])'),
        )
    return list(candidates)  # by position, whatever the labels of a pandas Series


def labels_of(candidates: Sequence[Any]) -> list[Any]:
    """Candidates as JSON can write them: texts, numbers, booleans or None.

    Example:
        >>> labels_of(np.array([1, 2])), labels_of(["a", None])
        ([1, 2], ['a', None])
    """
    labels = [label.item() if isinstance(label, np.generic) else label for label in candidates]
    for label in labels:
        finite = not isinstance(label, float) or math.isfinite(label)
        short = not isinstance(label, int) or label.bit_length() <= 4096
        if not (isinstance(label, str | int | float | None) and finite and short):
            what = repr(label)[:40] if finite and short else type(label).__name__
            raise DataError(
                f"a candidate must be a text or a finite number of at most 4096 bits, not {what}",
                remedy=write('candidates=["a", "b"]'),
            )
    return labels


def _narrow(integers: Integers) -> Integers:
    """As int64 if they fit, whatever integers they were."""
    if integers.dtype.kind == "i":
        return integers.astype(np.int64, copy=False)
    fits = not len(integers) or (int(integers.min()) > -_SAFE and int(integers.max()) < _SAFE)
    return integers.astype(np.int64) if fits else integers.astype(object)
