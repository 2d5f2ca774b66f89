"""Whether choices by rank have the privacy that a certificate claims, from its statements and nothing else.

Claim: a level of choices that look at different rows has the bounded range of its epsilon, if the weight of a candidate
falls by e^(-epsilon / (2 D)) with each rank, and one person moves its distance by at most D. With k rows per person and
q the share of rows at which a choice aims, D is k max(q, 1 - q) if rows are added or removed. If they are replaced, it
is twice that, or k for a choice that looks at all rows of a table without groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

from privet.codec import canonical, read_ratio
from privet.errors import VerificationError
from privet.privacy.events import BoundedRange
from privet.privacy.moves import L1Move, L2Move, Move, Norm

RULES = ("quantiles/1", "edge/1")
_STEP = {"place", "left", "right", "q", "side", "split", "level", "moved"}


def check_choices(
    statement: Any, measured: Any, vectors: Any, *, rows: int, blocks: int, replaced: bool, where: str
) -> list[BoundedRange]:
    """The events of the choices of one measurement, one for each level; raises if one claims too little.

    A person has at most `rows` rows in each of so many `blocks` (groups).
    """
    if len(statement["tallies"]) != 1 or canonical(statement["tallies"]) != canonical(measured["tallies"]):
        raise VerificationError(f"{where}.tallies: codes must be chosen from what the statement counts")
    (tally,) = statement["tallies"]
    if tally["kind"] != "present" or tally["value"]["kind"] != "code":
        raise VerificationError(f"{where}.tallies: must be the rows with a code")
    steps, epsilons = measured["steps"], [_positive(text, where) for text in measured["scale"]["epsilons"]]
    if type(measured["counts"]) is not int or type(measured["scale"]["reach"]) is not int:
        raise VerificationError(f"{where}: counts and ranks must be whole numbers")
    _check_order(steps, len(epsilons), where)
    for step in steps:
        q = Fraction(0) if step["q"] == "0/1" else _positive(step["q"], where)
        if q > 1:
            raise VerificationError(f"{where}.steps.q: must be between 0 and 1")
        moved = rows * blocks * max(q, 1 - q)
        if replaced:
            alone = len(vectors) == 1 and step["left"] is None and step["right"] is None
            moved = Fraction(rows * blocks) if alone else 2 * moved
        claimed = _positive(step["moved"], where)
        if claimed < moved:
            raise VerificationError(f"{where}.steps.moved: is {claimed}, but the statement implies {moved}")
    width = tally["value"]["width"]
    if any(not 0 <= code <= width for vector in vectors for code in vector[: len(steps)]):
        raise VerificationError(f"{where}: a chosen code must be one of 0..{width}")
    pairs = [(step["left"], step["place"]) for step in steps if step["left"] is not None]
    pairs += [(step["place"], step["right"]) for step in steps if step["right"] is not None]
    if any(vector[low] > vector[high] for vector in vectors for low, high in pairs):
        raise VerificationError(f"{where}: chosen codes must be in the order of their ranks")
    return [BoundedRange(epsilon=epsilon) for epsilon in epsilons]


def _check_order(steps: Any, levels: int, where: str) -> None:
    """Choices of one level must look at different rows: each between two neighbours of those that split the rows."""
    if any(set(step) != _STEP or step["side"] not in (-1, 0, 1) for step in steps):
        raise VerificationError(f"{where}.steps: must have {', '.join(sorted(_STEP))}")
    if sorted(step["place"] for step in steps) != list(range(len(steps))):
        raise VerificationError(f"{where}.steps.place: each place must be chosen once")
    if {step["level"] for step in steps} != set(range(levels)):
        raise VerificationError(f"{where}.steps.level: every level must have an epsilon and a choice")
    order: list[int | None] = [None, None]
    for level in range(levels):
        at = [step for step in steps if step["level"] == level]
        gaps = list(pairwise(order))
        used = [(step["left"], step["right"]) for step in at]
        if len({*used}) < len(used) or any(gap not in gaps for gap in used):
            raise VerificationError(f"{where}.steps: choices of one level must look at different rows")
        splits = {(step["left"], step["right"]): step["place"] for step in at if step["split"] is True}
        order = [None, *_inserted(gaps, splits), None]


def _inserted(gaps: list[tuple[int | None, int | None]], splits: dict[Any, int]) -> Iterator[int]:
    for gap in gaps:
        if gap in splits:
            yield splits[gap]
        if gap[1] is not None:
            yield gap[1]


def counts_moved(*, rows: int, blocks: int, replaced: bool, norm: Norm) -> Move:
    """How far one person moves counts of rows, each of which is in one of them or in none."""
    times = 2 if replaced else 1
    return L1Move(rows, blocks=times * blocks) if norm == "L1" else L2Move(times * blocks * rows * rows)


def _positive(text: Any, where: str) -> Fraction:
    number = read_ratio(text)
    if number is None or number <= 0:
        raise VerificationError(f"{where}: must be a positive number, written as p/q")
    return number
