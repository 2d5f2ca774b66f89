"""Unknown keys in words: how many people a key needs to appear, and what leaves one out. All of it is public."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from privet.exact import show, show_up
from privet.mechanisms.thresholds import GaussianThreshold, OptimalSelection, TruncatedThreshold
from privet.tables.caps import some
from privet.tables.computed import leaves
from privet.tables.discovered import Discovered
from privet.tables.expressions.nodes import OfAnswer
from privet.tables.holders import LONGEST
from privet.tables.types import TextType

if TYPE_CHECKING:
    from privet.planner.discovery import Discovery
    from privet.planner.plan import ReleasePlan

_NAMES: dict[type, str] = {
    OptimalSelection: "the optimal selection",
    TruncatedThreshold: "noisy counts, shown from a threshold on",
    GaussianThreshold: "Gaussian noise on weighted counts of people, above a threshold",
}


def _unknown(plan: ReleasePlan) -> list[str]:
    groups = plan.query.groups
    assert isinstance(groups, Discovered)
    return [plan.query.keys[i].name for i in groups.unknown]


def people(discovery: Discovery) -> tuple[int, int]:
    """The people that a key needs to appear with a probability of 50 % and of 95 %."""
    return discovery.selection.people_for("1/2"), discovery.selection.people_for("19/20")


def _enough(discovery: Discovery, who: str) -> str:
    """How many people a key needs to appear half of the time: fewest if they have no other, most if they have many."""
    chosen, (even, _) = discovery.selection, people(discovery)
    alone = even if isinstance(chosen, TruncatedThreshold) else chosen.people_for("1/2", keys=1)
    if alone == even:
        return f"{even:,} {who} have"
    return f"{alone:,} to {even:,} {who} have (fewer if each has few values)"


def explained(plan: ReleasePlan, discovery: Discovery) -> Iterator[str]:
    """How the keys of an answer are found."""
    chosen, names = discovery.selection, _unknown(plan)
    even, sure = people(discovery)
    what = f"the combination of {', '.join(names)}" if len(names) > 1 else names[0]
    who = "people" if plan.is_of_people else "rows"
    yield (
        f"{what}: not public, so which values appear is found at epsilon {show_up(discovery.epsilon)} and delta "
        f"{show_up(chosen.delta)}, by {_NAMES[type(chosen)]}."
    )
    yield (
        f"A value with {even:,} {who} appears with a probability of 50 %, one with {sure:,} with 95 %, and one with a "
        f"single {'person' if plan.is_of_people else 'row'} with {show(chosen.delta)} at most."
    )
    if discovery.counts:
        yield "The noisy counts that decide this are the answer: they cost nothing more."
    if plan.is_of_people:
        yield f"A person counts for at most {some(chosen.max_keys, 'value')}, chosen by a keyed hash."
    if not isinstance(chosen, TruncatedThreshold) and chosen.max_keys > 1:
        alone, certain = (chosen.people_for(chance, keys=1) for chance in ("1/2", "19/20"))
        yield (
            f"That is for people who have {chosen.max_keys} values each. Those with fewer count more: {alone:,} people "
            f"with one value each are enough for 50 %, and {certain:,} for 95 %."
        )


def cut(discovery: Discovery) -> str:
    """Where the noise of counts that find keys ends, in words."""
    chosen = discovery.selection
    if not isinstance(chosen, TruncatedThreshold):
        return ""
    return f", from {chosen.noise.lowest:,} to {chosen.noise.highest:,},"


def limits(plan: ReleasePlan) -> list[str]:
    """What an answer with unknown keys leaves out, in a few words."""
    assert plan.discovery is not None
    groups, types = plan.query.groups, plan.query.input.types()
    assert isinstance(groups, Discovered)
    who = "people" if plan.is_of_people else "rows"
    names = " and ".join(_unknown(plan))
    clauses = [
        f"values of {names} that {_enough(plan.discovery, who)} appear half of the time, rarer ones less often",
        f"at most {groups.ceiling:,} groups",
    ]
    formulas = (node for _, node in plan.query.arrangement.computed)
    if any(isinstance(leaf, OfAnswer) and leaf.function == "total" for node in formulas for leaf in leaves(node)):
        clauses.append(f"totals over the values of {names} that appear, not over all")
    if any(isinstance(plan.query.keys[i].expression.type(types), TextType) for i in groups.unknown):
        clauses.append(f"texts of more than {LONGEST} characters, or not printable, left out")
    return clauses


def nothing(plan: ReleasePlan) -> str:
    """Why an answer has no groups."""
    assert plan.discovery is not None
    even, sure = people(plan.discovery)
    names = " or ".join(_unknown(plan))
    who = "people" if plan.is_of_people else "rows"
    return (
        f"No {names} was found. A value that {even:,} {who} have appears half of the time, and one that {sure:,} have, "
        "95 % of the time."
    )
