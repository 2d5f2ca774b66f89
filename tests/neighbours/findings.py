"""What the searches over worlds share: the loop, the tables around a world, and what was seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.neighbours.questions import numbers
from tests.neighbours.worlds import Data, World, shuffled, star

from privet.errors import InternalError, NoAnswer
from privet.planner import ReleasePlan


@dataclass
class Findings:
    """What a search saw."""

    worlds: int = 0
    questions: int = 0
    cases: int = 0
    violations: list[str] = field(default_factory=list)
    reached: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By rule and adjacency: the largest part of what is claimed that was seen."""
    first: int | None = None
    """The number of the first world, or case, with a violation."""

    def at(self, what: str, part: float) -> None:
        self.reached[what] = max(self.reached[what], part)

    def wrong(self, number: int, what: str, of: str = "world") -> None:
        self.violations.append(f"{of} {number}: {what}")
        self.first = number if self.first is None else min(self.first, number)

    def add(self, other: Findings) -> None:
        self.worlds += other.worlds
        self.questions += other.questions
        self.cases += other.cases
        self.violations += other.violations
        for what, part in other.reached.items():
            self.at(what, part)
        if other.first is not None:
            self.first = other.first if self.first is None else min(self.first, other.first)


def through(
    worlds: Iterable[int], look: Callable[[int, Findings], None], *, stop: bool, numbered: int | None = None
) -> Findings:
    """All that a look at each of these worlds finds; `stop` at the first that shows a violation.

    `numbered` is how many numbers of cases a world has, if cases have numbers.
    """
    found = Findings()
    for number in worlds:
        found.worlds += 1
        try:
            look(number, found)
        except (InternalError, NoAnswer) as error:  # no question that can be asked may end so
            place, of = (number, "world") if numbered is None else (number * numbered, "case")
            found.wrong(place, f"{type(error).__name__}: {error}", of)
        if stop and found.violations:
            break
    return found


def tables_around(
    chance: Random, of: World, forms: int, plans: Sequence[ReleasePlan] = ()
) -> tuple[list[Data], list[tuple[int, int]]]:
    """The rows in another order, the rows, and the tables of a star around them; and which of these are neighbours.

    The units of the star hold the numbers that the plans name.
    """
    told = [n for each in plans for n in numbers(each.query) if abs(n) < 2**70]
    around = star(chance, of, forms, told)
    tables = [shuffled(chance, of.data), of.data, *around.tables()]
    return tables, [(i + 2, j + 2) for i, j in around.pairs()]
