"""The levels of a rollup or a cube in words, for `explain`: what is measured, its noise, and the errors of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from privet.exact import Exact, show, show_up, sqrt_up
from privet.planner.cubes import by_measurement, cube, worst
from privet.planner.hierarchies import Hierarchy
from privet.planner.levels import Keys
from privet.planner.plan import NoisyMeasurement, ReleasePlan
from privet.planner.pricing import amount
from privet.privacy.guarantees import ZeroConcentratedDP
from privet.privacy.moves import L1Move
from privet.tables.groups import Sets


def is_on_levels(plan: ReleasePlan) -> bool:
    """Whether the answer has several levels."""
    return isinstance(plan.query.groups, Sets)


def named(plan: ReleasePlan, keys: Keys) -> str:
    """The name of a level: the keys that it groups by."""
    return ", ".join(plan.query.keys[key].name for key in keys) or "total"


def levels(plan: ReleasePlan) -> Iterator[str]:
    """Which levels there are, and how they become consistent."""
    made = cube(plan)
    names = [named(plan, keys) for keys in made.levels.sets]
    yield f"{len(names)} level{'s' if len(names) > 1 else ''}: {'; '.join(names)}."
    yield "They add up exactly, so counts are not rounded. A row without one of the keys is in none of them."
    if any(isinstance(part, NoisyMeasurement) and part.level and part.level.residual for part in plan.noised):
        yield (
            "Of each level, the residual is measured: what it adds to the coarser levels. Centred again, the noisy "
            "residuals add up to every level."
        )
        if isinstance(made.levels, Hierarchy):
            yield "Groups with few others beside them have a larger weight, so that one person moves all alike."
    elif plan.noised:
        yield (
            "Levels that finer ones tell better are not measured. The others are made consistent by least squares. "
            "Each is at least as accurate as with an equal share of its own."
        )


def noises(plan: ReleasePlan, phi: Callable[[NoisyMeasurement], Iterator[str]]) -> Iterator[tuple[str, list[str]]]:
    """A section for each measurement: what a row contributes (`phi`), and the noise on each of its levels."""
    for i, some in enumerate(by_measurement(plan)):
        total = sum((amount(part.price) for part in some), Exact(0))
        yield f"Noise {i + 1}", [*phi(some[0]), *(_level(plan, part, total) for part in some)]


def _level(plan: ReleasePlan, part: NoisyMeasurement, total: Exact) -> str:
    assert part.level is not None
    name = named(plan, part.level.keys)
    what = f"residual of {name}" if part.level.residual and part.level.keys else name
    move = part.move
    size = f"L1 sensitivity {move.total}" if isinstance(move, L1Move) else f"L2 {show_up(sqrt_up(Exact(move.squared)))}"
    share = show(100 * amount(part.price) / total, 3)
    of = "rho" if isinstance(part.price, ZeroConcentratedDP) else "epsilon"
    return (
        f"{what[:1].upper()}{what[1:]}: {size}, {part.mechanism.show(scale=part.scale)}, on {part.coordinates} "
        f"number{'s' if part.coordinates > 1 else ''}; {share} % of its {of}."
    )


def prices(plan: ReleasePlan) -> list[Exact]:
    """The price of each measurement, all levels together."""
    return [sum((amount(part.price) for part in some), Exact(0)) for some in by_measurement(plan)]


def errors(plan: ReleasePlan, name: str) -> list[Exact]:
    """A bound on the error of a column, for each kind of cells of each level."""
    output = dict(plan.columns)[name]
    return [each.expected(noise, plan.level, plan.assuming) or Exact(0) for each, noise in plan.views(output)]


def each(plan: ReleasePlan, bounds: Sequence[Exact]) -> str:
    """The errors of all levels in words, of the least accurate cells; if there is only one level, its error."""
    if not is_on_levels(plan):
        return show_up(bounds[0])
    sets = zip(cube(plan).levels.sets, worst(plan, bounds), strict=True)
    return ", ".join(f"{show_up(bound)} ({named(plan, keys)})" for keys, bound in sets)
