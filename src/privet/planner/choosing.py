"""Choosing codes by rank, from what an engine counts: buckets of codes first, then the codes in those that matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from privet.mechanisms.ranks import CodeCounts, looked_into
from privet.mechanisms.splitting import Chosen
from privet.noise.entropy import SYSTEM
from privet.planner.ranks import ChosenRanks
from privet.privacy.events import BoundedRange, PrivacyEvent
from privet.tables.statement import Buckets, Statement, counted_code

Histograms = Callable[[Statement, Buckets], list[dict[int, int]]]
"""What an engine counts: for each group, the rows in each bucket of codes."""

_BITS = 13
"""There are up to 2^13 buckets of codes at first, of all groups together; of each group 2^6 or more."""

_FEW, _CROWD = 1 << 17, 1 << 12
"""A look into buckets counts every code if there are no more rows than this, in all of them or in each. Else it counts
finer buckets first."""

_MANY = 64
"""If codes are wanted from more buckets than this, and the table has few rows, all codes are counted: a list of
buckets would take longer."""


@dataclass
class _Group:
    """What is known of the codes of one group: the rows in each bucket, by its shift. No two have a code in common."""

    cells: dict[int, dict[int, int]]
    counts: CodeCounts | None = None

    def rows(self) -> int:
        """The number of rows."""
        return sum(sum(buckets.values()) for buckets in self.cells.values())

    def shift(self, code: int) -> int:
        """The shift of the bucket with rows that has this code."""
        return next(shift for shift, buckets in self.cells.items() if code >> shift in buckets)


class GroupedCodes:
    """The codes of all groups, as far as they were looked into.

    Claim: codes leave the engine only from buckets near to where a choice aims, unless there are few rows, and none is
    released. What is looked into depends on the data, and so does the time that takes.
    """

    def __init__(self, statement: Statement, histograms: Histograms) -> None:
        self.statement, self._histograms = statement, histograms
        self.width = counted_code(statement).width
        shift = max(0, self.width.bit_length() - self._bits(statement.groups))
        self.groups = [_Group({shift: found}) for found in histograms(statement, Buckets(shift))]

    @staticmethod
    def _bits(many: int) -> int:
        """In how many bits of codes each of so many groups or buckets is divided."""
        return max(6, _BITS - (many - 1).bit_length())

    def counts(self, group: int) -> CodeCounts:
        """The codes of a group."""
        known = self.groups[group]
        if known.counts is None:
            known.counts = CodeCounts.of_cells(known.cells, width=self.width)
        return known.counts

    def look_into(self, wanted: Iterable[tuple[int, int]]) -> bool:
        """Count finer buckets, or codes, in the buckets of some pairs of a group and a code; whether there are any."""
        coarse: dict[int, set[tuple[int, int]]] = {}
        for group, code in wanted:
            shift = self.groups[group].shift(code)
            coarse.setdefault(shift, set()).add((group, code >> shift))
        if sum(map(len, coarse.values())) > _MANY and sum(map(_Group.rows, self.groups)) <= _FEW:
            self.groups = [_Group({0: found}) for found in self._histograms(self.statement, Buckets(0))]
            return True
        for shift, some in coarse.items():
            rows = sum(self.groups[group].cells[shift].pop(bucket) for group, bucket in some)
            finer = 0 if rows <= max(_FEW, _CROWD * len(some)) else max(0, shift - self._bits(len(some)))
            found = self._histograms(self.statement, Buckets(finer, frozenset(some), shift))
            for group, _ in some:
                self.groups[group].counts = None
            for known, buckets in zip(self.groups, found, strict=True):
                if buckets:
                    known.cells.setdefault(finer, {}).update(buckets)
        return bool(coarse)

    def look_around(self, part: ChosenRanks) -> None:
        """Look at once where all choices will probably be: as if those before had chosen what they aim at."""
        steps, far = part.measurement.steps, [0.0]
        for level in range(len(part.epsilons)):
            reach = [
                looked_into(self.width + 1, part.rate(step), split=step.split) for step in steps if step.level == level
            ]
            far.append(far[-1] + float(max(reach)))
        around = []
        for group in range(len(self.groups)):
            aims: dict[int, float] = {}
            for step in steps:
                start = 0.0 if step.left is None else aims[step.left]
                end = float(self.counts(group).total) if step.right is None else aims[step.right]
                aims[step.place] = start + float(step.q) * (end - start) + step.side * part.away(step)
            beside = [(aims[step.place], far[step.level + 1]) for step in steps]
            around += [(group, aim - reach, aim + reach) for aim, reach in beside]
        while self.look_into(
            {(group, code) for group, low, high in around for code in self.counts(group).coarse_between(low, high)}
        ):
            pass

    def look_into_around(self, thresholds: Iterable[Iterable[int]]) -> None:
        """Make sure that the rows below some codes of each group can be told."""
        some = [(group, code) for group, few in enumerate(thresholds) for code in few]
        while self.look_into({(group, code) for group, code in some if self.counts(group).is_coarse(code)}):
            pass


def chosen(
    part: ChosenRanks, codes: GroupedCodes
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], list[PrivacyEvent]]:
    """For each group, the chosen codes and the exact counts between them; and the events of the choices.

    Claim: choices of one level are independent, given those before. All groups take part in every level.
    """
    steps, groups = part.measurement.steps, len(codes.groups)
    made: list[list[Chosen | None]] = [[None] * len(steps) for _ in range(groups)]
    spent: list[PrivacyEvent] = []
    codes.look_around(part)
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
            while codes.look_into({(g, code) for g, _, choice in waiting for code in choice.needs(codes.counts(g))}):
                pass
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
