"""The search for neighbours that move a measurement further than its plan claims. Noise off.

A *case* is a world, a question and a pair of neighbours (or of orders of the same rows). Its number says all of it:
world = number // in_world(forms). `./dev soak neighbours --case 12345` shows one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import cycle
from random import Random

from tests.moves import keeps_to
from tests.neighbours import cubes
from tests.neighbours.exact import Bench, Vectors, changed
from tests.neighbours.findings import Findings, tables_around, through
from tests.neighbours.questions import planned
from tests.neighbours.worlds import Data, World, world

from privet.mechanisms import GAUSSIAN
from privet.planner import ReleasePlan
from privet.planner.plan import NoisyMeasurement
from privet.planner.pricing import measured
from privet.privacy.moves import L1Move, Move

QUESTIONS, FORMS = 5, 6
"""In a world: questions, and forms of the unit in which its neighbours differ."""


def pairs_of(forms: int) -> int:
    """The numbers of the pairs of a question."""
    return 1 + forms * (forms + 1) // 2


def in_world(forms: int = FORMS) -> int:
    """Numbers, not cases: under add/remove a star has fewer pairs, and some worlds have fewer questions."""
    return QUESTIONS * pairs_of(forms)


Claim = Callable[[NoisyMeasurement], Move]
Vectorize = Callable[[ReleasePlan, Data], Vectors]
Measure = Callable[[World], AbstractContextManager[Vectorize]]
"""What makes of a world something that measures plans over data."""


@dataclass(frozen=True)
class Case:
    """Two tables and a question, with what came out."""

    number: int
    of: World
    plan: ReleasePlan
    left: Data
    right: Data
    ordered: bool
    """Whether the tables are the same but for their order: nothing may move then."""
    before: Vectors
    after: Vectors

    def changes(self) -> Iterator[tuple[NoisyMeasurement, int]]:
        """Each measurement, and how far it moved."""
        for part, change in self.coordinates():
            yield part, sum(map(abs, change))

    def coordinates(self) -> Iterator[tuple[NoisyMeasurement, list[int]]]:
        """Each measurement, and by how much each of its coordinates moved."""
        yield from zip(self.plan.noised, changed(self.before, self.after), strict=True)

    def claims(self) -> Iterator[tuple[NoisyMeasurement, list[int]]]:
        """Each measurement as it is claimed for L1 and for L2, and by how much each of its coordinates moved."""
        yield from self.coordinates()
        squared = self.plan.once("in L2", lambda plan: measured(plan.query, plan.design, GAUSSIAN))
        if self.plan.query.sets is not None:
            yield from cubes.residuals(self.plan, squared, self.before, self.after)
            return
        for (part, coordinates), other in zip(self.coordinates(), squared, strict=True):
            assert part.measurement == other.measurement
            yield other, coordinates


Ask = Callable[[Random, World], ReleasePlan | None]
"""A question and its plan, from a seed."""


def questions(chance: Random, of: World, count: int = QUESTIONS, ask: Ask = planned) -> list[ReleasePlan]:
    """So many plans for a world."""
    found: list[ReleasePlan] = []
    for _ in range(20 * count):
        if len(found) == count:
            break
        if (made := ask(chance, of)) is not None:
            found.append(made)
    return found


@contextmanager
def by_engine(of: World, vectors: Callable[[Bench, ReleasePlan], Vectors] = Bench.vectors) -> Iterator[Vectorize]:
    """The exact vectors, by the engine; `vectors` may ask it for something else than the plan does."""
    with Bench(of) as bench:
        chunks, here = cycle([1, 2]), None

        def counted(plan: ReleasePlan, data: Data) -> Vectors:
            nonlocal here
            if data is not here:
                bench.put(data, chunks=next(chunks))
                here = data
            return vectors(bench, plan)

        yield counted


def cases(
    number: int,
    measure: Measure = by_engine,
    wanted: Callable[[World], bool] = lambda of: True,
    ask: Ask = planned,
    make: Callable[[Random], World] = world,
    forms: int = FORMS,
) -> Iterator[Case]:
    """All cases of a world."""
    chance = Random(number)
    made = make(chance)
    if not wanted(made):
        return
    plans = questions(chance, made, ask=ask)
    tables, around = tables_around(chance, made, forms, plans)
    pairs = [(0, 1), *around]
    with measure(made) as vectors:
        seen = [[vectors(each, data) for each in plans] for data in tables]
    for question, each in enumerate(plans):
        for place, (i, j) in enumerate(pairs):
            at = number * in_world(forms) + question * pairs_of(forms) + place
            before, after = seen[i][question], seen[j][question]
            yield Case(at, made, each, tables[i], tables[j], place == 0, before, after)


def search(
    worlds: Iterable[int],
    claim: Claim = lambda part: part.move,
    measure: Measure = by_engine,
    wanted: Callable[[World], bool] = lambda of: True,
    stop: bool = False,
    ask: Ask = planned,
    make: Callable[[Random], World] = world,
    forms: int = FORMS,
) -> Findings:
    """Every case of these worlds: what moved, against what is claimed; `stop` at the first world that shows one."""

    def look(number: int, found: Findings) -> None:
        asked = set()
        for case in list(cases(number, measure, wanted, ask, make, forms)):
            found.cases += 1
            asked.add((case.number - number * in_world(forms)) // pairs_of(forms))
            for part, coordinates in case.claims():
                rule, in_l1 = part.measurement.rule, isinstance(part.move, L1Move)
                change = sum(abs(x) if in_l1 else x * x for x in coordinates)
                if not keeps_to(L1Move(0) if case.ordered else claim(part), coordinates):
                    by = sorted(filter(None, coordinates))
                    what = f"{rule} moved by {by}, claimed {claim(part)}: {case.plan.query}"
                    found.wrong(case.number, what, of="case")
                found.at(f"{rule} {part.adjacency}{'' if in_l1 else ', squared L2'}", change / part.move.total)
        found.questions += len(asked)

    return through(worlds, look, stop=stop, numbered=in_world(forms))
