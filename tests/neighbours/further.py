"""Questions from a seed, further than those of `questions`: lower caps, filtered and different values, batches.

A case here is one of the search for measurements. The cases of `questions` keep their numbers, so that these have a
module of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.neighbours.questions import Asker, relation
from tests.neighbours.worlds import World

import privet as pv
from privet.errors import InternalError, UserError
from privet.planner import ReleasePlan, plan
from privet.requests.dividing import planned as batch
from privet.tables import caps
from privet.tables.query import Query
from privet.tables.statement import AtMostGroups, AtMostRows
from privet.tables.types import TextType


def lowered(chance: Random, made: Query) -> Query:
    """The question with a cap of its own: rows or groups, one row or nearly as many as are declared."""
    declared = caps.holding(made.input)
    if declared is None:
        return made
    if isinstance(declared, AtMostGroups) and chance.random() < 0.7:
        groups, rows = chance.randint(1, declared.groups), chance.randint(1, declared.rows)
        return made.cap(max_groups=groups, max_rows_per_group=rows)
    if isinstance(declared, AtMostRows) and chance.random() < 0.3:
        groups = chance.randint(1, min(declared.rows, 4))
        return made.cap(max_groups=groups, max_rows_per_group=chance.randint(1, declared.rows // groups))
    return made.cap(max_rows=chance.choice([1, 1, 2, max(1, caps.rows_of(declared) - 1)]))


def sometimes_lowered(chance: Random, made: Query) -> Query:
    """Half of the questions with a cap of their own, where they can have one."""
    try:
        return lowered(chance, made) if chance.random() < 0.5 else made
    except UserError:
        return made


class FurtherAsker(Asker):
    """Aggregates that `Asker` does not ask for."""

    def further(self) -> Any:
        """Different values of anything, aggregates of some rows, and what others ask for."""
        match self.chance.randrange(8):
            case 0 | 1:
                return pv.count_distinct(self.chance.choice([self.number, self.any, self.any])())
            case 2:
                return pv.count_distinct(self.key())
            case 3:
                return pv.count(where=self.condition(1))
            case 4:
                ways: list[Callable[..., Any]] = [pv.sum, pv.mean, pv.variance, pv.std]
                return self.chance.choice(ways)(self.summed(), where=self.condition(1))
            case 5:
                return pv.count(self.any())
        return self.aggregate()

    def any(self) -> Any:
        """A column of any type: texts, dates and keys above all."""
        texts = self.of_kind(TextType)
        if texts and self.chance.random() < 0.5:
            return pv.col(self.chance.choice(texts))
        return pv.col(self.chance.choice(list(self.types)))


def planned(chance: Random, of: World) -> ReleasePlan | None:
    """A question and its plan; of a batch, one that shares measurements with others."""
    try:
        rows = relation(chance, of, {name: table.relation for name, table in of.tables.items()})
        asker = FurtherAsker(chance, dict(rows.input.types()))
        keys = {f"k{i}": asker.key() for i in range(chance.choice([0, 0, 1, 1, 2]))}
        grouped: Any = rows.group_by(**keys) if keys else rows
        if chance.random() < 0.3:
            made = batched(chance, asker, grouped)
        else:
            asked = {f"a{i}": asker.further() for i in range(chance.choice([1, 1, 2, 3]))}
            made = plan(computed(chance, sometimes_lowered(chance, grouped.agg(**asked))), epsilon=1)
    except UserError:
        return None
    return made if made is not None and made.groups <= 60 else None


def computed(chance: Random, made: Query) -> Query:
    """Some of the time with a column that is computed from others: what is measured stays the same."""
    amounts = [name for name, what in made.aggregates if what.is_amount]
    if not amounts or chance.random() < 0.5:
        return made
    of = pv.col(chance.choice(amounts))
    return made.compute(c=chance.choice([of - 180, of / pv.total(amounts[0]), of.clip(0, 7), of * of / 3]))


def batched(chance: Random, asker: FurtherAsker, rows: Any) -> ReleasePlan | None:
    """One question of a batch about the same rows. Those that are measured together must be measured alike."""
    value = asker.summed()
    ways: list[Callable[[], Any]] = [
        pv.count, pv.count_people, lambda: pv.sum(value), lambda: pv.mean(value), lambda: pv.variance(value),
        lambda: pv.sum(asker.summed()), asker.further,
    ]  # fmt: skip
    first = sometimes_lowered(chance, rows.agg(a=chance.choice(ways)()))
    questions = {"q0": first}
    for i in range(1, chance.choice([2, 3, 4])):
        questions[f"q{i}"] = replace(rows.agg(**{f"b{i}": chance.choice(ways)()}), at_most=first.at_most)
    price = chance.choice([{"epsilon": 1}, {"rho": 1}])
    made = batch(questions, price, plan)
    for names in made.together():
        if len({(made[name].statements(), made[name].event()) for name in names}) > 1:
            raise InternalError("questions that are measured together are not measured alike")
    shared = [made[name] for names in made.together() for name in names]
    return chance.choice(shared or list(made.values()))
