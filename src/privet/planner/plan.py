"""A plan: how a query is answered, everything except the data and the noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from privet.errors import Face, UserError, write
from privet.exact import Exact
from privet.mechanisms import NoiseMechanism
from privet.planner import computed
from privet.planner.design import Design
from privet.planner.hierarchies import Branches
from privet.planner.levels import Level
from privet.planner.linear import Noisy
from privet.planner.measurements import Measurement
from privet.planner.noise import Noise
from privet.planner.outputs import Cells, Fixed, Output, Quotient, Spread
from privet.planner.ranks import ChosenRanks
from privet.privacy import events
from privet.privacy.accounting.guarantee import guarantee_as
from privet.privacy.adjacency import Adjacency, Person
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from privet.privacy.moves import Move
from privet.tables import caps, operators
from privet.tables.discovered import Discovered
from privet.tables.groups import Sets
from privet.tables.holders import Found, Holders
from privet.tables.query import Query
from privet.tables.statement import (
    AtMostGroups,
    Bounding,
    Distinct,
    PeopleInGroups,
    Statement,
    Tally,
    Unbounded,
)
from privet.tables.types import how_many

if TYPE_CHECKING:
    from privet.planner.discovery import Discovery

if TYPE_CHECKING:
    from privet.planner.explain import Explanation

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class NoisyMeasurement:
    """A measurement, how far one person moves it, and the noise that hides that."""

    measurement: Measurement
    rows: int
    """Maximum rows per person."""
    groups: int
    adjacency: Adjacency
    same_rows: bool
    mechanism: NoiseMechanism
    move: Move
    price: PureDP | ZeroConcentratedDP
    """Its cost, in the kind of guarantee that adds up over measurements."""
    scale: Exact
    """The scale of the noise of each coordinate, as the mechanism understands it."""
    level: Level | Branches | None = None
    """Which level of several it is; None if there is only one."""

    @property
    def coordinates(self) -> int:
        """The number of coordinates, in all groups together."""
        return self.measurement.size * self.groups

    def at(self, price: Guarantee) -> NoisyMeasurement:
        """The same at another price."""
        scale = self.mechanism.calibrate(self.move, price, coordinates=self.coordinates)
        if isinstance(price, ApproxDP):
            return self.scaled(scale)
        return replace(self, price=price, scale=scale)

    def scaled(self, scale: Exact) -> NoisyMeasurement:
        """The same with noise of another scale."""
        cost = self.mechanism.cost(self.move, scale=scale, coordinates=self.coordinates, like=self.price)
        assert isinstance(cost, PureDP | ZeroConcentratedDP)
        return replace(self, price=cost, scale=scale)

    def restored(self, measured: Mapping[str, Any]) -> NoisyMeasurement:
        """The same with the noise that a certificate states."""
        return self.scaled(Exact(measured["scale"]))

    def choices(self) -> list[events.PrivacyEvent]:
        """The events of choices: none."""
        return []

    def noises(self) -> list[events.PrivacyEvent]:
        """The events of noises: one."""
        return [self.event()]

    def vectors(self, tallies: Sequence[Tally], counted: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """The exact vector of each of its groups, from what an engine counted for these tallies."""
        found = self.measurement.vectors(tallies, counted)
        return found if self.level is None else self.level.vectors(found)

    def event(self) -> events.PrivacyEvent:
        """What adding its noise does, as accountants see it."""
        return self.mechanism.event(self.move, scale=self.scale, coordinates=self.coordinates)


Part = NoisyMeasurement | ChosenRanks
"""What a plan draws: noise on sums, or codes by rank."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ReleasePlan:
    """How to answer a query, and the cost; computed from public facts alone.

    Claim: `guarantee()` is what an accountant makes of the noise that will be drawn, and implies `price`.
    """

    query: Query
    design: Design
    noised: tuple[Part, ...]
    price: Guarantee
    """Its cost."""
    asked: Guarantee | None
    """The requested price, if there is one instead of `within`."""
    confidence: Exact
    simultaneous: bool
    assuming: int | None
    weights: tuple[tuple[str, Exact], ...]
    within: tuple[tuple[str, Exact], ...] | None
    """The requested errors, if there are any instead of a price."""
    mechanism: NoiseMechanism
    delta: Exact | None = None
    """The delta that the requested errors may cost."""
    stated_at: Exact | None = None
    """The epsilon at which noise that is priced in rho states its delta, if it does."""
    raised_to: Exact | None = None
    """The minimum price of a question, in epsilon, if those errors would cost less."""
    discovery: Discovery | None = None
    """How keys that are not public are found."""
    choice: str = field(default="", compare=False)
    """Why this mechanism, if there was a choice: for people to read."""
    text: str = field(default="", compare=False, repr=False)
    """The SELECT that it comes from, if it does."""
    _memo: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Values that were already computed; a plan never changes."""

    def once(self, name: str, compute: Callable[[ReleasePlan], _T]) -> _T:
        """A value that follows from the plan, computed when first needed."""
        if name not in self._memo:
            self._memo[name] = compute(self)
        known: _T = self._memo[name]
        return known

    @property
    def groups(self) -> int:
        """The number of groups of the answer, shown or not."""
        return self.once("groups", lambda plan: plan.query.groups.most)

    def groups_of(self, part: Part) -> int:
        """How many noisy vectors a measurement has: one for each of its groups, or for each that was found."""
        return part.groups if self.discovery is None else self.groups

    @property
    def is_of_people(self) -> bool:
        """Whether people are protected, and not each row on its own."""
        return isinstance(operators.protected(self.query.input), Person)

    @property
    def most_groups(self) -> int:
        """The maximum number of groups, whatever keys are found."""
        return most_groups(self.query)

    @property
    def limit(self) -> int:
        """The maximum number of combinations of keys that are found."""
        assert isinstance(self.query.groups, Discovered)
        return self.query.groups.limit

    def resolved(self, found: Sequence[Found]) -> ReleasePlan:
        """The same plan after these keys were found."""
        assert isinstance(self.query.groups, Discovered)
        return replace(self, query=self.query.resolved(self.query.groups.resolved(tuple(found))))

    @property
    def columns(self) -> tuple[tuple[str, Output], ...]:
        """The numeric columns of the answer."""
        return self.design.columns

    @property
    def chosen_by_noise(self) -> bool:
        """Whether noisy numbers decide which groups are shown; then intervals cover less often than stated."""
        noisy = {name for name, output in self.columns if not isinstance(output, Fixed)}  # formulas read these
        return bool(noisy & self.query.arrangement.chooses_by())

    @property
    def scales(self) -> tuple[Exact, ...]:
        return tuple(part.scale for part in self.noised)

    @property
    def noise(self) -> Noise:
        """The noise of all measurements together."""
        inside = tuple(part.inside if isinstance(part, ChosenRanks) else 0 for part in self.noised)
        return Noise(self.mechanism, self.scales, inside)

    @property
    def level(self) -> Exact:
        """The confidence of a single cell; by Bonferroni, if all intervals must hold together."""
        columns = len(self.columns) + len(self.query.arrangement.computed)
        cells = max(1, self.groups * columns) if self.simultaneous else 1
        return 1 - (1 - self.confidence) / cells

    @property
    def epsilon(self) -> Exact:
        """The epsilon of its cost."""
        if isinstance(self.price, ZeroConcentratedDP):
            raise UserError("this question costs rho, not epsilon", remedy=write("plan.price.rho"))
        return self.price.epsilon

    def places(self) -> list[int]:
        """For each noisy measurement, which measurement of the design it is, or is a level of."""
        return [self.design.measurements.index(part.measurement) for part in self.noised]

    def event(self) -> events.PrivacyEvent:
        """The event of the release, for accountants."""
        return self.once(
            "event",
            lambda plan: plan.together(
                [noise for part in plan.noised for noise in part.noises()],
                [choice for part in plan.noised for choice in part.choices()],
            ),
        )

    def together(
        self, noises: Sequence[events.PrivacyEvent], choices: Sequence[events.PrivacyEvent] = ()
    ) -> events.PrivacyEvent:
        """The event of the release, from those of its noises and choices, and of the choice of keys."""
        if choices:
            rest = self.mechanism.together(noises, epsilon=self.stated_at) if noises else events.Composed([])
            rest = events.Composed([*choices, *(rest.events if isinstance(rest, events.Composed) else [rest])])
        else:
            rest = self.mechanism.together(noises, epsilon=self.stated_at)
        if self.discovery is None:
            return rest
        keys = self.discovery.selection.event()
        return events.Composed([keys] if self.discovery.counts or not (noises or choices) else [keys, rest])

    def guarantee(self) -> Guarantee:
        """The guarantee of the release, of the kind of its price, computed from the event alone."""
        return self.once("guarantee", lambda plan: guarantee_as(type(plan.price), plan.event()))

    def statements(self) -> tuple[Statement, ...]:
        """The statements for the engine: one for rows, one for people, as needed."""
        return self.once("statements", ReleasePlan._statements)

    def asks(self) -> tuple[Statement | Holders, ...]:
        """All that the engine is asked: the statements, and before them who holds the keys that are not public."""
        return (*([] if self.discovery is None else [self.discovery.holders]), *self.statements())

    def _statements(self) -> tuple[Statement, ...]:
        ranked = [part.measurement.tallies for part in self.noised if isinstance(part, ChosenRanks)]
        every = [(people, distinct, self._tallies(people, distinct)) for people, distinct in self.kinds()]
        every += [(False, None, tallies) for tallies in dict.fromkeys(ranked)]
        return tuple(
            _statement(self.query, bounding(self.query, people=people, distinct=distinct)[0], tallies)
            for people, distinct, tallies in every
        )

    def kinds(self) -> list[tuple[bool, Distinct | None]]:
        """What needs a statement of its own: rows, the different values of each expression, people."""
        parts = [part.measurement for part in self.noised if isinstance(part, NoisyMeasurement)]
        kinds = dict.fromkeys((each.people, each.distinct) for each in parts)
        return sorted(kinds, key=lambda kind: (kind[0], kind[1] is not None))

    @property
    def summed(self) -> int:
        """How many statements are answered with sums; those after them, with the codes of rows."""
        return len(self.kinds())

    def statement_of(self, part: Part) -> int:
        """The statement that counts for a measurement."""
        if isinstance(part, ChosenRanks):
            found = [statement.tallies for statement in self.statements()[self.summed :]]
            return self.summed + found.index(part.measurement.tallies)
        return self.kinds().index((part.measurement.people, part.measurement.distinct))

    def _tallies(self, people: bool, distinct: Distinct | None) -> tuple[Tally, ...]:
        parts = [part.measurement for part in self.noised if isinstance(part, NoisyMeasurement)]
        parts = [each for each in parts if each.people is people and each.distinct == distinct]
        return tuple(dict.fromkeys(tally for part in parts for tally in part.tallies))

    def coordinates(self, answers: Sequence[Sequence[Sequence[int]]]) -> list[list[tuple[int, ...]]]:
        """The exact vectors from the engine's integers: by measurement, by group; none where codes are chosen."""
        asked = self.statements()
        return [
            [] if isinstance(part, ChosenRanks) else part.vectors(asked[index].tallies, answers[index])
            for part in self.noised
            for index in [self.statement_of(part)]
        ]

    def cells(self, noisy: Sequence[Sequence[Sequence[int]]]) -> dict[str, Cells]:
        """The columns of the answer from noisy vectors: by measurement, by group."""
        if isinstance(self.query.groups, Sets):
            from privet.planner.cubes import cube

            return cube(self).cells(noisy)
        if not self.groups:
            names = (name for name, _ in (*self.columns, *self.query.arrangement.computed))
            return {name: Cells((), (), (), ()) for name in names}
        by_group: list[Noisy] = [[part[group] for part in noisy] for group in range(self.groups)]
        keys = list(self.query.groups) if self.query.arrangement.computed else []
        return computed.Groups(dict(self.columns), self.noise, by_group, keys).cells(self)

    def explain(self, face: Face = "python") -> Explanation:
        """The plan in words, from the source to the guarantee, rule by rule."""
        from privet.planner.explain import explain

        return self.once(f"explained, {face}", lambda plan: explain(plan, face))

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    @property
    def limits(self) -> tuple[str, ...]:
        """Every cap and clamp that affects the answer, in words."""
        from privet.planner.limits import limits

        return self.once("limits", limits)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Notes on the conditions of the query."""
        from privet.planner.conditions import notes

        return self.once("conditions", lambda plan: tuple(notes(plan.query)))

    def to_json(self) -> dict[str, Any]:
        """The plan for programs: the question, its consequences, and the limits of the answer in words."""
        from privet.planner.facts import asked, derived

        return deepcopy({"asked": asked(self), "derived": derived(self), "limits": list(self.limits)})

    def depends(self, name: str) -> bool:
        """Whether the error of a column depends on the number of rows in a group."""
        return isinstance(dict(self.columns)[name], Quotient | Spread)

    def expected(self, name: str) -> Exact | None:
        """A bound on the error of a cell of this column; None for a ratio if no number of rows is assumed."""
        return self.bound(dict(self.columns)[name], self.assuming)

    def bound(self, output: Output, assuming: int | None) -> Exact | None:
        """A bound on the error of a cell of an output, on all levels of the answer."""
        errors = [each.expected(noise, self.level, assuming) for each, noise in self.views(output)]
        return None if None in errors else max(error for error in errors if error is not None)

    def views(self, output: Output) -> list[tuple[Output, Noise]]:
        """An output and its noise, on each level of the answer."""
        if isinstance(self.query.groups, Sets):
            from privet.planner.cubes import views

            return list(views(self, output))
        return [(output, self.noise)]


def most_groups(query: Query) -> int:
    """The maximum number of groups, on the finest level: the same before and after keys are found."""
    return query.groups.ceiling if isinstance(query.groups, Discovered) else query.listed.most


def bounding(query: Query, *, people: bool, distinct: Distinct | None = None) -> tuple[Bounding, int]:
    """The bounding of rows per person, and the maximum number of rows.

    Of different values a person has no more rows than there can be values.
    """
    groups = most_groups(query)
    cap = caps.effective(query.input, query.at_most, groups)
    if cap is None:
        return Unbounded(), 1
    if people:
        most = caps.people(query.input, query.at_most, groups)
        return PeopleInGroups(most), most
    values = None if distinct is None else how_many(distinct.value.expression.type(query.input.types()))
    if values is not None:
        cap = replace(cap, rows=min(cap.rows, values if isinstance(cap, AtMostGroups) else values * groups))
    return cap, caps.rows_of(cap)


def _statement(query: Query, how: Bounding, tallies: tuple[Tally, ...]) -> Statement:
    keys = tuple(key.expression for key in query.keys)
    if isinstance(query.groups, Discovered):
        keys, listed = query.groups.statement(keys)
        return Statement(query.input, keys, how, tallies, listed)
    return Statement(query.input, keys, how, tallies, query.listed)
