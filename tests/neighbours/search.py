"""The search for neighbours that move a measurement further than its plan claims. Noise off.

A *case* is a world, a question and a pair of neighbours (or of orders of the same rows). Its number says all of it:
world = number // in_world(forms). `./dev soak neighbours --case 12345` shows one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from random import Random

from tests.moves import keeps_to
from tests.neighbours import cubes
from tests.neighbours.exact import Bench, Vectors, changed
from tests.neighbours.questions import numbers, planned
from tests.neighbours.worlds import Data, World, shuffled, star, world

from privet.errors import InternalError, NoAnswer
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


@dataclass
class Found:
    """What a search saw."""

    worlds: int = 0
    questions: int = 0
    cases: int = 0
    violations: list[str] = field(default_factory=list)
    reached: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By rule and adjacency: the largest part of the claimed sensitivity that was seen."""
    first: int | None = None
    """The number of the first case with a violation."""

    def add(self, other: Found) -> None:
        self.worlds += other.worlds
        self.questions += other.questions
        self.cases += other.cases
        self.violations += other.violations
        for key, part in other.reached.items():
            self.reached[key] = max(self.reached[key], part)
        if other.first is not None:
            self.first = other.first if self.first is None else min(self.first, other.first)


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
    told = [n for each in plans for n in numbers(each.query) if abs(n) < 2**70]
    around = star(chance, made, forms, told)
    tables = [shuffled(chance, made.data), made.data, *around.tables()]
    pairs = [(0, 1), *((i + 2, j + 2) for i, j in around.pairs())]
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
) -> Found:
    """Every case of these worlds: what moved, against what is claimed; `stop` at the first world that shows one."""
    found = Found()
    for number in worlds:
        found.worlds += 1
        asked, first = set(), number * in_world(forms)
        try:
            seen = list(cases(number, measure, wanted, ask, make, forms))
        except (InternalError, NoAnswer) as error:  # no question that can be asked may end so
            found.violations.append(f"case {first}: {type(error).__name__}: {error}")
            found.first = first if found.first is None else found.first
            seen = []
        for case in seen:
            found.cases += 1
            asked.add((case.number - first) // pairs_of(forms))
            for part, coordinates in case.claims():
                rule, in_l1 = part.measurement.rule, isinstance(part.move, L1Move)
                change = sum(abs(x) if in_l1 else x * x for x in coordinates)
                if not keeps_to(L1Move(0) if case.ordered else claim(part), coordinates):
                    by = sorted(filter(None, coordinates))
                    what = f"case {case.number}: {rule} moved by {by}, claimed {claim(part)}: {case.plan.query}"
                    found.violations.append(what)
                    found.first = case.number if found.first is None else found.first
                key = f"{rule} {part.adjacency}{'' if in_l1 else ', squared L2'}"
                found.reached[key] = max(found.reached[key], change / part.move.total)
        found.questions += len(asked)
        if stop and found.violations:
            break
    return found
