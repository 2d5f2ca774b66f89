"""Toy kinds of columns, as anybody could add them: a function that declares a column, and a record."""

from __future__ import annotations

from dataclasses import replace

from privet.tables.kinds import Guess, Kind, Parameter
from privet.tables.schema import Column, integer


def rating(worst: int, best: int) -> Column:
    """A whole number of stars: clamped to worst..best."""
    return replace(integer(worst, best), kind_name="rating")


def score(*, required: bool = False) -> Column:
    """A whole number of points: clamped to 0..100."""
    return replace(integer(0, 100, required=required), kind_name="score")


RATING = Kind(
    "rating",
    "A whole number of stars, clamped to public bounds.",
    rating,
    (Parameter("rating", "integers", "The worst and the best rating.", optional=False),),
    python="rating(1, 5)",
    policy="{ rating = [1, 5] }",
    line="rating 1 5",
    needs="a rating needs the worst and the best one",
    like="integer",
    guesses=(Guess("1 5", ("stars rating",)),),
)
SCORE = Kind(
    "score",
    "A whole number of points, from 0 to 100.",
    score,
    (Parameter("required", "flag", "Whether a missing score counts as 0."),),
    python="score()",
    policy='"score"',
    line="score",
    like="integer",
    guesses=(Guess("", ("score points",)),),
)
