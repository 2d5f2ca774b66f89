"""The notes below an answer: what its intervals cover, which bounds shaped it, and what was spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_FLOOR

from privet.exact import Exact, show
from privet.ledger import Remaining
from privet.ledger.balance import Planned, how_often
from privet.privacy.guarantees import Guarantee, PureDP
from privet.privacy.guarantees.budgets import is_nothing
from privet.release.render.view import Column, marks

_REASONS = {
    False: "less than twice its margin of error, or a mean or ratio of too few rows",
    True: (
        "a quantile, minimum or maximum whose interval is not proved, or is more than half of the range, or a minimum "
        "or maximum of too few rows"
    ),
}


def notes(
    *,
    columns: Sequence[Column],
    confidence: Exact,
    simultaneous: bool,
    guarantee: Guarantee,
    spent: Guarantee,
    remaining: Remaining | None,
    limits: Sequence[str] = (),
    left_out: int = 0,
    chosen_by_noise: bool = False,
    drawn: bool = False,
    part: bool = False,
    like: Planned | None = None,
) -> list[str]:
    """The notes below a table: what the intervals cover, which bounds shaped the answer, and what was spent.

    Below a picture, whose legend tells the marks, it ends with the guarantee.
    """
    lines = []
    if any(_is_bounded(column) for column in columns):
        how = "for all cells together" if simultaneous else "for each cell separately"
        covered = "the noise, not the bias from the limits below" if limits else "the noise"
        lines.append(f"{show(confidence * 100, rounding=ROUND_FLOOR)} % intervals {how}. They cover {covered}.")
    if limits:
        lines.append(f"Limits: {'; '.join(limits)}.")
    if left_out:
        lines.append(f"{left_out:,} group{'s are' if left_out > 1 else ' is'} not shown.")
    if chosen_by_noise:
        lines.append("Noisy values decided which groups are shown, so these intervals hold less often than stated.")
    if drawn:
        return [*lines, _promise(guarantee)]
    marked = {column.ranked for column in columns if any(marks(column.cells))}
    if marked:
        reasons = [words for ranked, words in _REASONS.items() if ranked in marked]
        lines.append(f"~ too noisy to rely on: {', or '.join(reasons)}.")
    return [*lines, cost(guarantee, spent, remaining, part=part, like=like)]


def cost(
    guarantee: Guarantee,
    spent: Guarantee,
    remaining: Remaining | None,
    *,
    part: bool = False,
    like: Planned | None = None,
) -> str:
    """What was spent, perhaps as part of a batch, and what is left; a share in questions like this one, too."""
    paid = _cost(guarantee, spent) + (", as part of a batch" if part and not is_nothing(spent) else "")
    if remaining is None:
        return f"{paid}."
    enough = ""
    if like is not None and not part and str(remaining).endswith("%)") and not is_nothing(guarantee):
        times = remaining.times(like)
        enough = (
            f": enough for {how_often(times)} like this" if times else ": not enough for another question like this"
        )
    return f"{paid}; {_left(remaining)} left{enough}."


def _is_bounded(column: Column) -> bool:
    """Whether a column has intervals: it is not public, and not every end is infinite."""
    cells = column.cells
    return not column.public and not (cells.low and all(map(math.isinf, (*cells.low, *cells.high))))


def _promise(guarantee: Guarantee) -> str:
    """The guarantee for those who see a picture of the answer: the same whenever the answer is drawn again."""
    if is_nothing(guarantee):
        return "Nothing private is shown."
    return f"Differentially private, {guarantee}."


def _cost(guarantee: Guarantee, spent: Guarantee) -> str:
    """The cost of the answer, and whether it was paid now."""
    if not is_nothing(spent):
        return f"Spent {spent}"
    return "Nothing was spent" if is_nothing(guarantee) else f"Paid for before, at {guarantee}: nothing was spent now"


def _left(remaining: Remaining) -> str:
    """What is left, rounded down; of a pure budget the number alone."""
    if not isinstance(remaining.guarantee, PureDP):
        return str(remaining)
    return str(remaining).removeprefix("epsilon ") if remaining.guarantee.epsilon else "nothing"
