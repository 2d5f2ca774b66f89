"""Unknown keys: which of them an answer has is a private choice of its own, paid for together with the numbers.

A question whose keys are not public has two steps, and one price. The first counts the people who hold each key, and a
threshold mechanism decides which keys appear. From then on these keys are public, and the second step measures in their
groups as it would in declared ones. If the question only counts people, the noisy counts of the first step are the
answer, and there is no second step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from privet.errors import InternalError, QueryError, Remedy, Subject, write
from privet.exact import Exact
from privet.mechanisms.thresholds import GaussianThreshold, LaplaceThreshold, OptimalSelection, key_weight
from privet.planner.plan import ReleasePlan, bounding
from privet.privacy.guarantees import ApproxDP, Budget, Guarantee, PureDP, ZeroConcentratedDP
from privet.tables import operators
from privet.tables.discovered import Discovered
from privet.tables.expressions.rendering import show as show_node
from privet.tables.holders import Found, Held, Holders
from privet.tables.query import Query
from privet.tables.statement import PeopleInGroups, Unbounded
from privet.tables.types import NumberType

SHARE = Exact(1, 2)
"""The part of epsilon that finds the keys, if numbers are measured afterwards."""

_MANY = 1000  # a threshold for Gaussian noise is the largest over all numbers of keys

Selection = OptimalSelection | LaplaceThreshold | GaussianThreshold


@dataclass(frozen=True, slots=True)
class Discovery:
    """How the keys of an answer are found: who holds them, and the mechanism that decides which appear.

    Claim: its event is known before data are read. It does not depend on how many keys there are, or appear.
    """

    holders: Holders
    selection: Selection

    @property
    def epsilon(self) -> Exact:
        """The epsilon of the choice of keys."""
        price = self.selection.price if isinstance(self.selection, GaussianThreshold) else self.selection
        assert not isinstance(price, ZeroConcentratedDP)
        return price.epsilon

    def found(self, held: Sequence[Held]) -> tuple[Found, ...]:
        """The keys that appear, in the order of keys."""
        keys = sorted({each.key for each in held})
        place = {key: i for i, key in enumerate(keys)}
        counts: Counter[int] = Counter()
        for each in held:
            if not 1 <= each.keys <= self.holders.most:
                raise InternalError("a person holds more keys than the bounding allows. This is a bug in Privet.")
            weighted = isinstance(self.selection, GaussianThreshold)
            counts[place[each.key]] += each.people * (key_weight(each.keys) if weighted else 1)
        numbers = [counts[i] for i in range(len(keys))]
        match self.selection:
            case OptimalSelection():
                chosen = self.selection.select(numbers)
            case LaplaceThreshold() | GaussianThreshold():
                chosen, _ = self.selection.release(numbers)
        return tuple(keys[i] for i in chosen.tolist())


def divided(query: Query, asked: Guarantee | None) -> tuple[Discovery, PureDP]:
    """How the keys of a query are found at this price, and what is left of it for the numbers."""
    if not isinstance(asked, ApproxDP) or not asked.delta:
        raise QueryError(
            f"{_names(query)} is not public, so a question that groups by it is paid for with an epsilon and a delta",
            remedy=write(
                "epsilon=0.5, delta=1e-8", terminal="--epsilon 0.5 --delta 1e-8", http='"epsilon": 0.5, "delta": 1e-8'
            ),
        )
    groups = query.groups
    assert isinstance(groups, Discovered)
    how, most = bounding(query, people=True)
    assert isinstance(how, PeopleInGroups | Unbounded)
    holders = Holders(query.input, tuple(query.keys[i].expression for i in groups.unknown), how)
    spent = asked.epsilon * SHARE
    chosen = selection(epsilon=spent, delta=asked.delta, max_keys=most, adjacency=operators.adjacency(query.input))
    return Discovery(holders, chosen), PureDP.derived(asked.epsilon - spent)


def selection(*, epsilon: Exact, delta: Exact, max_keys: int, adjacency: str) -> Selection:
    """Of the mechanisms that choose keys, the one that needs the fewest people for an even chance; all of it public.

    Example:
        >>> few, many = (selection(epsilon=1, delta=1e-6, max_keys=k, adjacency="add/remove") for k in (1, 10))
        >>> type(few).__name__, few.people_for(0.5), type(many).__name__, many.people_for(0.5)
        ('OptimalSelection', 14, 'GaussianThreshold', 80)
    """
    known: dict[str, object] = {"epsilon": epsilon, "delta": delta, "max_keys": max_keys, "adjacency": adjacency}
    optimal = OptimalSelection(**known)  # type: ignore[arg-type]
    if not 1 < max_keys <= _MANY:
        return optimal
    weighted = GaussianThreshold(**known)  # type: ignore[arg-type]
    return weighted if weighted.people_for(0.5) < optimal.people_for(0.5) else optimal


def default_delta(query: Query, budget: Budget, share: Exact) -> Exact:
    """The delta of a question that names none: a share of the budget's. A budget that has none is refused."""
    if isinstance(budget, ApproxDP) and budget.delta:
        return budget.delta * share
    groups = query.groups
    assert isinstance(groups, Discovered)
    key = query.keys[groups.unknown[0]]
    name, kind = show_node(key.expression), key.expression.type(query.input.types())
    if isinstance(kind, NumberType):
        remedy = write(
            f'group_by(pv.bins("{name}", [0, 10, 100]))', sql=f"GROUP BY FLOOR({name} / 10) * 10",
            advice="Group by bins, or ask the steward for a budget with a delta",
        )  # fmt: skip
    else:
        remedy = write(
            f'columns={{"{name}": pv.keys("north", "south", other="elsewhere")}}',
            policy=f'{name} = {{ keys = ["north", "south"], other = "elsewhere" }}',
            advice="Declare its keys (or read them from a public list with keys_from), or open the dataset with a delta",
        )
    raise QueryError(
        f"which values of {name!r} occur is private. To find them costs a delta, and the budget has none: {budget}",
        subject=Subject("column", name),
        remedy=remedy,
    )


def attached(plan: ReleasePlan, discovery: Discovery, asked: Guarantee) -> ReleasePlan:
    """The plan for the numbers, together with the step that finds the keys, at the price of both."""
    whole = replace(plan, discovery=discovery, asked=asked, price=asked)
    if not whole.guarantee().implies(asked):
        raise InternalError(
            f"the plan promises {whole.guarantee()}, but {asked} was requested. Nothing was released. "
            "This is a bug in Privet."
        )
    return whole


def check_found(found: Sequence[Found], query: Query) -> tuple[Found, ...]:
    """What a certificate says was found: each a combination that can appear, in its order, none twice."""
    groups = query.groups
    assert isinstance(groups, Discovered)
    again = groups.resolved(tuple(found)).found or ()
    types = query.input.types()
    for each in again:
        for i, value in zip(groups.unknown, each, strict=True):
            kind = query.keys[i].expression.type(types)
            inside = kind.lower <= value <= kind.upper if isinstance(kind, NumberType) else isinstance(value, str)
            if not inside:
                raise QueryError(f"{str(value)[:40]!r} is not a value of {query.keys[i].name}")
    if list(again) != list(found) or len({*again}) < len(again):
        raise QueryError("what was found must be in its order, and not too much", remedy=Remedy("Sort it"))
    return again


def _names(query: Query) -> str:
    groups = query.groups
    assert isinstance(groups, Discovered)
    return " and ".join(repr(query.keys[i].name) for i in groups.unknown)
