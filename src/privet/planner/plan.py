"""A plan: how a query is answered, everything except the data and the noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from privet.errors import Face, UserError, write
from privet.exact import Exact
from privet.mechanisms import NoiseMechanism
from privet.planner.design import Design
from privet.planner.linear import Noisy
from privet.planner.measurements import Measurement
from privet.planner.noise import Noise
from privet.planner.outputs import Cells, Fixed, Output, Quotient, Spread
from privet.privacy import events
from privet.privacy.accounting.guarantee import guarantee_as
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from privet.privacy.moves import Move
from privet.tables import caps
from privet.tables.query import Query
from privet.tables.statement import (
    Bounding,
    PeopleInGroups,
    Statement,
    Tally,
    Unbounded,
)

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

    def event(self) -> events.PrivacyEvent:
        """What adding its noise does, as accountants see it."""
        return self.mechanism.event(self.move, scale=self.scale, coordinates=self.coordinates)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ReleasePlan:
    """How to answer a query, and the cost; computed from public facts alone.

    Claim: `guarantee()` is what an accountant makes of the noise that will be drawn, and implies `price`.
    """

    query: Query
    design: Design
    noised: tuple[NoisyMeasurement, ...]
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
        """The number of measured groups, shown or not."""
        return self.once("groups", lambda plan: plan.query.groups.most)

    @property
    def columns(self) -> tuple[tuple[str, Output], ...]:
        """The numeric columns of the answer."""
        return self.design.columns

    @property
    def chosen_by_noise(self) -> bool:
        """Whether noisy numbers decide which groups are shown; then intervals cover less often than stated."""
        noisy = {name for name, output in self.columns if not isinstance(output, Fixed)}
        return bool(noisy & self.query.arrangement.chooses_by())

    @property
    def scales(self) -> tuple[Exact, ...]:
        return tuple(part.scale for part in self.noised)

    @property
    def noise(self) -> Noise:
        """The noise of all measurements together."""
        return Noise(self.mechanism, self.scales)

    @property
    def level(self) -> Exact:
        """The confidence of a single cell; by Bonferroni, if all intervals must hold together."""
        cells = self.groups * len(self.columns) if self.simultaneous else 1
        return 1 - (1 - self.confidence) / cells

    @property
    def epsilon(self) -> Exact:
        """The epsilon of its cost."""
        if isinstance(self.price, ZeroConcentratedDP):
            raise UserError("this question costs rho, not epsilon", remedy=write("plan.price.rho"))
        return self.price.epsilon

    def event(self) -> events.PrivacyEvent:
        """The event of the release, for accountants."""
        return self.once("event", lambda plan: plan.together([part.event() for part in plan.noised]))

    def together(self, noises: Sequence[events.PrivacyEvent]) -> events.PrivacyEvent:
        """The event of the release, from those of its measurements."""
        return self.mechanism.together(noises, epsilon=self.stated_at)

    def guarantee(self) -> Guarantee:
        """The guarantee of the release, of the kind of its price, computed from the event alone."""
        return self.once("guarantee", lambda plan: guarantee_as(type(plan.price), plan.event()))

    def statements(self) -> tuple[Statement, ...]:
        """The statements for the engine: one for rows, one for people, as needed."""
        return self.once("statements", ReleasePlan._statements)

    def _statements(self) -> tuple[Statement, ...]:
        return tuple(
            _statement(self.query, bounding(self.query, people=people)[0], tallies)
            for people in (False, True)
            if (tallies := self._tallies(people=people))
        )

    def statement_of(self, part: NoisyMeasurement) -> int:
        """The statement that counts for a measurement."""
        return len(self.statements()) - 1 if part.measurement.people else 0

    def _tallies(self, *, people: bool) -> tuple[Tally, ...]:
        parts = [part.measurement for part in self.noised if part.measurement.people is people]
        return tuple(dict.fromkeys(tally for part in parts for tally in part.tallies))

    def coordinates(self, answers: Sequence[Sequence[Sequence[int]]]) -> list[list[tuple[int, ...]]]:
        """The exact vectors from the engine's integers: by measurement, by group."""
        asked = self.statements()
        vectors = []
        for part in self.noised:
            index = self.statement_of(part)
            vectors.append(part.measurement.vectors(asked[index].tallies, answers[index]))
        return vectors

    def cells(self, noisy: Sequence[Sequence[Sequence[int]]]) -> dict[str, Cells]:
        """The columns of the answer from noisy vectors: by measurement, by group."""
        noise = self.noise
        by_group: list[Noisy] = [[part[group] for part in noisy] for group in range(self.groups)]
        return {name: output.cells(by_group, noise, self.level) for name, output in self.columns}

    def explain(self, face: Face = "python") -> Explanation:
        """The plan in words, from the source to the guarantee, rule by rule."""
        from privet.planner.explain import explain

        return explain(self, face)

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    @property
    def limits(self) -> tuple[str, ...]:
        """Every cap and clamp that affects the answer, in words."""
        from privet.planner.limits import limits

        return self.once("limits", limits)

    def to_json(self) -> dict[str, Any]:
        """The plan for programs: the question, its consequences, and the limits of the answer in words."""
        from privet.planner.facts import asked, derived

        return deepcopy({"asked": asked(self), "derived": derived(self), "limits": list(self.limits)})

    def depends(self, name: str) -> bool:
        """Whether the error of a column depends on the number of rows in a group."""
        return isinstance(dict(self.columns)[name], Quotient | Spread)

    def expected(self, name: str) -> Exact | None:
        """A bound on the error of a cell of this column; None for a ratio if no number of rows is assumed."""
        return dict(self.columns)[name].expected(self.noise, self.level, self.assuming)


def bounding(query: Query, *, people: bool) -> tuple[Bounding, int]:
    """The bounding of rows per person, and the maximum number of rows."""
    groups = query.groups.most
    cap = caps.effective(query.input, query.at_most, groups)
    if cap is None:
        return Unbounded(), 1
    if people:
        most = caps.people(query.input, query.at_most, groups)
        return PeopleInGroups(most), most
    return cap, caps.rows_of(cap)


def _statement(query: Query, how: Bounding, tallies: tuple[Tally, ...]) -> Statement:
    keys = tuple(key.expression for key in query.keys)
    return Statement(query.input, keys, how, tallies, query.groups)
