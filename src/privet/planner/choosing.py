"""Choosing codes by rank, from what an engine counts: buckets of codes first, then the codes in those that matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from privet.mechanisms.ranks import CodeCounts
from privet.mechanisms.splitting import Chosen
from privet.noise.entropy import SYSTEM
from privet.planner.ranks import ChosenRanks
from privet.privacy.events import BoundedRange, PrivacyEvent
from privet.tables.statement import Buckets, Statement, counted_code

Histograms = Callable[[Statement, Buckets], list[dict[int, int]]]
"""What an engine counts: for each group, the rows in each bucket of codes."""

_BITS = 16
"""There are up to 2^17 buckets of codes, of all groups together; of each group 2^6 or more."""

_FEW = 1 << 17
"""If there are no more rows than this in all groups, all codes are counted at once."""


@dataclass
class _Group:
    """What is known of the codes of one group."""

    buckets: dict[int, int]
    known: dict[int, int] = field(default_factory=dict)
    counts: CodeCounts | None = None


class GroupedCodes:
    """The codes of all groups, as far as they were looked into.

    Claim: no code that is not needed leaves the engine, and none is released. What is looked into depends on the data,
    and so does the time that takes.
    """

    def __init__(self, statement: Statement, histograms: Histograms) -> None:
        self.statement, self._histograms = statement, histograms
        self.width = counted_code(statement).width
        bits = max(6, _BITS + 1 - (statement.groups - 1).bit_length())
        self.shift = max(0, self.width.bit_length() - bits)
        self.groups = [_Group(found) for found in histograms(statement, Buckets(self.shift))]
        if self.shift and sum(sum(group.buckets.values()) for group in self.groups) <= _FEW:
            self._add(histograms(statement, Buckets(0)))

    def _add(self, found: Sequence[dict[int, int]]) -> None:
        for group, codes in zip(self.groups, found, strict=True):
            if codes:
                group.known |= codes
                group.counts = None

    def counts(self, group: int) -> CodeCounts:
        """The codes of a group."""
        known = self.groups[group]
        if known.counts is None:
            known.counts = CodeCounts.of(known.buckets, shift=self.shift, width=self.width, known=known.known)
        return known.counts

    def look_into(self, wanted: set[tuple[int, int]]) -> None:
        """Count the codes in some buckets (group, code >> shift)."""
        if wanted:
            self._add(self._histograms(self.statement, Buckets(0, frozenset(wanted), self.shift)))

    def look_into_around(self, thresholds: Iterable[Iterable[int]]) -> None:
        """Make sure that the rows below some codes of each group can be told."""
        self.look_into(
            {
                (group, code >> self.shift)
                for group, few in enumerate(thresholds)
                for code in few
                if self.counts(group).is_coarse(code)
            }
        )


def chosen(
    part: ChosenRanks, codes: GroupedCodes
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], list[PrivacyEvent]]:
    """For each group, the chosen codes and the exact counts between them; and the events of the choices.

    Claim: choices of one level are independent, given those before. All groups take part in every level.
    """
    steps, groups = part.measurement.steps, len(codes.groups)
    made: list[list[Chosen | None]] = [[None] * len(steps) for _ in range(groups)]
    spent: list[PrivacyEvent] = []
    for level, epsilon in enumerate(part.epsilons):
        at = [step for step in steps if step.level == level]
        waiting = [
            (group, step.place, step.choice(
                made[group], width=codes.width, total=codes.counts(group).total, reach=part.away(step),
                rate=epsilon / (2 * part.moved(step)),
            ))
            for group in range(groups)
            for step in at
        ]  # fmt: skip
        while waiting:
            codes.look_into(
                {(g, code >> codes.shift) for g, _, choice in waiting for code in choice.needs(codes.counts(g))}
            )
            undecided = []
            for group, place, choice in waiting:
                drawn = choice.draw(codes.counts(group), SYSTEM)
                if drawn is None:
                    undecided.append((group, place, choice))
                else:
                    made[group][place] = drawn
            waiting = undecided
        spent.append(BoundedRange(epsilon=epsilon))
    found = [tuple(one[0] for one in group if one is not None) for group in made]
    if part.measurement.counts:
        codes.look_into_around(part.measurement.thresholds(few) for few in found)
    return found, [_between(part, codes.counts(g), few) for g, few in enumerate(found)], spent


def _between(part: ChosenRanks, counts: CodeCounts, few: Sequence[int]) -> tuple[int, ...]:
    """The rows below, between and above the chosen codes; none if no interval is wanted."""
    if not part.measurement.counts:
        return ()
    below = [0, *(counts.below(code) for code in part.measurement.thresholds(few)), counts.total]
    return tuple(after - before for before, after in pairwise(below))
