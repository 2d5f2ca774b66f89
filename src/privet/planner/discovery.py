"""Unknown keys: which of them an answer has is a private choice of its own, paid for together with the numbers.

A question whose keys are not public has two steps, and one price. The first counts the people who hold each key, and a
threshold mechanism decides which keys appear. From then on these keys are public, and the second step measures in their
groups as it would in declared ones. There is no second step if the question asks for the keys alone, or only counts
people: then the noisy counts of the first step are the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privet.errors import InternalError, QueryError, Remedy, Subject, write
from privet.exact import Exact
from privet.mechanisms.thresholds import GaussianThreshold, OptimalSelection, TruncatedThreshold
from privet.planner.kept import Kept
from privet.planner.outputs import Straight
from privet.planner.plan import ReleasePlan, bounding
from privet.privacy.guarantees import ApproxDP, Budget, Guarantee, PureDP, ZeroConcentratedDP
from privet.tables import caps, operators
from privet.tables.aggregates import Count, CountPeople
from privet.tables.discovered import Discovered
from privet.tables.expressions.rendering import in_sql
from privet.tables.expressions.rendering import show as show_node
from privet.tables.holders import Found, Held, Holders, can_appear
from privet.tables.query import Query
from privet.tables.statement import PeopleInGroups, Unbounded
from privet.tables.types import NumberType

SHARE = Exact(1, 2)
"""The part of epsilon that finds the keys, if numbers are measured afterwards.

With a part s, the people that a key needs grow like 1/s, and the errors in its group like 1/(1 - s). Half makes neither
more than twice what the whole of epsilon would. What would be better depends on how large the groups are: private.
"""

_MANY = 1000  # a threshold for Gaussian noise is the largest over all numbers of keys

Selection = OptimalSelection | TruncatedThreshold | GaussianThreshold
KINDS = {kind.__name__: kind for kind in (OptimalSelection, TruncatedThreshold, GaussianThreshold)}


@dataclass(frozen=True, slots=True)
class Discovery:
    """How the keys of an answer are found: who holds them, and the mechanism that decides which appear.

    Claim: its event is known before data are read. It does not depend on how many keys there are, or appear.
    """

    holders: Holders
    selection: Selection

    @classmethod
    def by(cls, selection: Selection, holders: Holders) -> Discovery:
        """With this mechanism, for which people are weighed by the number of their keys if they count differently."""
        return cls(replace(holders, weighed=not isinstance(selection, TruncatedThreshold)), selection)

    @property
    def epsilon(self) -> Exact:
        """The epsilon of the choice of keys."""
        price = self.selection.price if isinstance(self.selection, GaussianThreshold) else self.selection
        assert not isinstance(price, ZeroConcentratedDP)
        return price.epsilon

    @property
    def counts(self) -> bool:
        """Whether the noisy counts that decide which keys appear are the answer."""
        return isinstance(self.selection, TruncatedThreshold)

    def drawn(self, held: Sequence[Held], most: int) -> tuple[tuple[Found, ...], list[int] | None]:
        """The keys that appear, at most so many, in the order of keys; and their noisy counts, if these are the answer.

        If there are more, those with the largest noisy counts stay, or the first: released numbers alone decide.
        """
        keys = sorted({each.key for each in held})
        place = {key: i for i, key in enumerate(keys)}
        counts: Counter[int] = Counter()
        for each in held:
            if not 1 <= each.keys <= self.holders.most:
                raise InternalError("a person holds more keys than the bounding allows. This is a bug in Privet.")
            counts[place[each.key]] += each.people * self.selection.weight(each.keys)
        people = [counts[i] for i in range(len(keys))]
        if isinstance(self.selection, OptimalSelection):
            return tuple(keys[i] for i in self.selection.select(people).tolist()[:most]), None
        chosen, noisy = self.selection.release(people)
        largest = sorted(zip((-noisy).tolist(), chosen.tolist(), strict=True))[:most]
        pairs = sorted((i, -count) for count, i in largest)
        return tuple(keys[i] for i, _ in pairs), [count for _, count in pairs] if self.counts else None


def divided(query: Query, asked: Guarantee | None) -> tuple[Discovery, PureDP]:
    """How the keys of a query are found at this price, and the price of the numbers.

    If only people are counted, one noise serves both, and the price of the numbers is all of it. Without numbers, all
    of it finds keys.
    """
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
    known: dict[str, Any] = {"max_keys": most, "adjacency": operators.adjacency(query.input), "delta": asked.delta}
    if not query.aggregates:
        return Discovery.by(selection(epsilon=asked.epsilon, **known), holders), PureDP.ZERO
    spent = asked.epsilon * SHARE
    chosen = selection(epsilon=spent, **known)
    if _counts_units(query):
        both = TruncatedThreshold(epsilon=asked.epsilon, **known)
        if both.people_for("1/2") <= chosen.people_for("1/2"):
            return Discovery.by(both, holders), PureDP.derived(asked.epsilon)
    return Discovery.by(chosen, holders), PureDP.derived(asked.epsilon - spent)


def _counts_units(query: Query) -> bool:
    """Whether every column is the number of people who hold the keys, or of rows, if each unit has one of them.

    Not if columns are computed from it: a count that is shown because it is large has no noise of a known sum.
    """
    groups, types = query.groups, query.input.types()
    assert isinstance(groups, Discovered)
    cap = caps.effective(query.input, query.at_most, groups.ceiling)
    asked = [what for _, what in query.aggregates]
    if len(groups.unknown) < len(query.keys) or query.arrangement.computed:
        return False
    if all(isinstance(what, CountPeople) for what in asked):
        return True
    return (cap is None or caps.rows_of(cap) == 1) and all(
        isinstance(what, Count) and (what.expression is None or not what.expression.type(types).missing)
        for what in asked
    )


def selection(*, epsilon: Exact, delta: Exact, max_keys: int, adjacency: str) -> OptimalSelection | GaussianThreshold:
    """Of the mechanisms that choose keys, the one that needs the fewer people for an even chance; all of it public.

    How many keys people hold is not known, so both extremes count: people who hold one key, and people who hold
    max_keys of them. The product of the two numbers decides.

    Example:
        >>> few, many = (selection(epsilon=1, delta=1e-6, max_keys=k, adjacency="add/remove") for k in (3, 100))
        >>> type(few).__name__, [few.people_for(0.5, keys=k) for k in (1, 3)]
        ('OptimalSelection', [14, 41])
        >>> type(many).__name__, [many.people_for(0.5, keys=k) for k in (1, 100)]
        ('GaussianThreshold', [27, 269])
    """
    known: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "max_keys": max_keys, "adjacency": adjacency}
    optimal = OptimalSelection(**known)
    if not 1 < max_keys <= _MANY:
        return optimal
    weighted = GaussianThreshold(**known)
    return weighted if _needed(weighted) < _needed(optimal) else optimal


def _needed(chosen: OptimalSelection | GaussianThreshold) -> int:
    return chosen.people_for("1/2", keys=1) * chosen.people_for("1/2", keys=chosen.max_keys)


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
            sql=f"WHERE {in_sql(key.expression)} IN ('north', 'south')",
            policy=f'{name} = {{ keys = ["north", "south"], other = "elsewhere" }}',
            advice="Name the values in a condition, declare its keys, read them from a public list (keys_from), or "
            "budget for a delta",
        )
    raise QueryError(
        f"which values of {name!r} occur is private. To find them costs a delta, and the budget has none: {budget}",
        subject=Subject("column", name),
        remedy=remedy,
    )


def attached(plan: ReleasePlan, discovery: Discovery, asked: Guarantee) -> ReleasePlan:
    """The plan for the numbers, together with the step that finds the keys, at the price of both."""
    if isinstance(discovery.selection, TruncatedThreshold) and plan.scales != (discovery.selection.scale,):
        raise InternalError("the noise that chooses keys is not that of their counts. This is a bug in Privet.")
    whole = replace(_with(plan, discovery), asked=asked, price=asked)
    if not whole.guarantee().implies(asked):
        raise InternalError(
            f"the plan promises {whole.guarantee()}, but {asked} was requested. Nothing was released. "
            "This is a bug in Privet."
        )
    return whole


def stored(plan: ReleasePlan, tree: dict[str, Any]) -> ReleasePlan:
    """The plan with the mechanism that found the keys of a stored answer: it may have cost more than was asked."""
    assert plan.discovery is not None
    prices = {name: Exact(tree[name]) for name in ("epsilon", "delta")}
    chosen: Selection = KINDS[tree["mechanism"]](**prices, max_keys=tree["max_keys"], adjacency=tree["adjacency"])
    return _with(plan, Discovery.by(chosen, plan.discovery.holders))


def _with(plan: ReleasePlan, discovery: Discovery) -> ReleasePlan:
    """The plan with keys that are found in this way; counts that decide which appear have intervals of their own."""
    design = plan.design
    if isinstance(discovery.selection, TruncatedThreshold):
        straight = [(name, output) for name, output in plan.columns if isinstance(output, Straight)]
        columns = tuple((name, Kept(output.form, True, law=discovery.selection.noise)) for name, output in straight)
        design = replace(design, columns=columns)
    return replace(plan, design=design, discovery=discovery)


def check_found(found: Sequence[Found], query: Query) -> tuple[Found, ...]:
    """What a certificate says was found: each a combination that can appear, in its order, none twice."""
    groups = query.groups
    assert isinstance(groups, Discovered)
    again = groups.resolved(tuple(found)).found or ()
    types = query.input.types()
    for each in again:
        for i, value in zip(groups.unknown, each, strict=True):
            kind = query.keys[i].expression.type(types)
            inside = isinstance(value, str)
            if isinstance(kind, NumberType):
                inside = isinstance(value, int) and kind.lower <= value <= kind.upper
            if not inside or not can_appear(value):
                raise QueryError(f"{str(value)[:40]!r} is not a value of {query.keys[i].name}")
    if list(again) != list(found) or len({*again}) < len(again):
        raise QueryError("what was found must be in its order, and not too much", remedy=Remedy("Sort it"))
    return again


def _names(query: Query) -> str:
    groups = query.groups
    assert isinstance(groups, Discovered)
    return " and ".join(repr(query.keys[i].name) for i in groups.unknown)
