"""Questions on several levels, from a seed, and what neighbours move of their residuals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from tests.neighbours.exact import Vectors
from tests.neighbours.further import sometimes_lowered
from tests.neighbours.questions import question
from tests.neighbours.worlds import World

from privet.errors import UserError
from privet.planner import ReleasePlan, plan
from privet.planner.plan import NoisyMeasurement, Part
from privet.tables.groups import GroupingSets, cube, rollup


def planned(chance: Random, of: World) -> ReleasePlan | None:
    """A question on several levels, and its plan; the finest level is always among them."""
    made = question(chance, of)
    if made is None or not made.keys:
        return None
    try:
        return plan(sometimes_lowered(chance, replace(made, sets=sets(chance, len(made.keys)))), epsilon=1)
    except UserError:
        return None


def sets(chance: Random, keys: int) -> GroupingSets:
    """A rollup, a cube, or some sets of a cube."""
    every = cube(keys)
    match chance.randrange(3):
        case 0:
            return rollup(keys)
        case 1:
            return every
    return (every[0], *chance.sample(every[1:], chance.randint(1, len(every) - 1)))


def residuals(
    of: ReleasePlan, squared: Sequence[Part], before: Vectors, after: Vectors
) -> Iterator[tuple[NoisyMeasurement, list[int]]]:
    """Each residual as it is claimed for L2, and by how much each of its coordinates moved."""
    finest = of.query.listed.most
    whole = {
        part.measurement: (old, new)
        for part, old, new in zip(of.noised, before, after, strict=True)
        if part.level is not None and not part.level.residual and part.level.cells == finest
    }
    for part in squared:
        assert isinstance(part, NoisyMeasurement)
        assert part.level is not None
        old, new = (part.level.vectors(cells) for cells in whole[part.measurement])
        yield part, [y - x for a, b in zip(old, new, strict=True) for x, y in zip(a, b, strict=True)]
