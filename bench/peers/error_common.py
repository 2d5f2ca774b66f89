"""What the peers of the error benchmark share: the pipe, and how a question is put.

In: {"path", "statistic", "q", "grouped", "adjacency", "epsilon", "delta", "cap", "lower", "upper", "whole", "keys",
"draws"}. The file has the columns unit, copy, place, value, centred (value - middle), square (centred squared) and
mark. It holds `draws` copies of the data, each with units of its own, so that one question by copy is `draws`
independent answers. Out: {"values"}, one list per draw with one number per key, or the number of keys found; or
{"absent": why}.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

GRID = 1_001
"""Candidates for the quantiles of a library that wants a list of them, where the column is not of whole numbers."""


class Absent(Exception):
    """A library has no such statistic."""


def serve(answer: Callable[[Any], list[list[float]]]) -> None:
    """Answer each question with answer(question), a list per draw."""
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else writes to standard output goes to standard error
    for line in sys.stdin:
        asked = SimpleNamespace(**json.loads(line))
        found: dict[str, Any]
        try:
            with contextlib.redirect_stdout(sys.stderr):
                found = {"values": answer(asked)}
        except Absent as absent:
            found = {"absent": str(absent)}
        except Exception as error:  # a question that fails is a cell of the table, not the end of it
            found = {"absent": f"failed: {type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(found), file=pipe, flush=True)


def middle(asked: Any) -> float:
    return (asked.lower + asked.upper) / 2


def radius(asked: Any) -> float:
    """The greatest distance of a value from the middle."""
    return (asked.upper - asked.lower) / 2


def cells(asked: Any, found: Mapping[tuple[int, str], float]) -> list[list[float]]:
    """The answers by copy and key, in order; a key that is missing counts as 0."""
    keys = asked.keys if asked.grouped else [""]
    return [[float(found.get((copy, key)) or 0.0) for key in keys] for copy in range(asked.draws)]


def per_copy(asked: Any, marks: Iterable[str]) -> list[list[float]]:
    """How many keys were found in each copy; a mark is "copy|key"."""
    found = [0] * asked.draws
    for mark in marks:
        found[int(mark.split("|", 1)[0])] += 1
    return [[float(number)] for number in found]


def moments(count: float, centred: float, asked: Any, square: float | None = None) -> float:
    """The mean, or with `square` the variance, from a count and sums of centred values."""
    count = max(count, 1.0)
    if square is None:
        return middle(asked) + centred / count
    return square / count - (centred / count) ** 2


def candidates(asked: Any) -> list[float]:
    """The values that a quantile is chosen from: all whole numbers, or an even grid."""
    if asked.whole and asked.upper - asked.lower <= 10_000:
        return [float(value) for value in range(int(asked.lower), int(asked.upper) + 1)]
    return [asked.lower + (asked.upper - asked.lower) * step / (GRID - 1) for step in range(GRID)]
