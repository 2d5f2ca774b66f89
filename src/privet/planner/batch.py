"""A batch: questions that are planned together, for one price, by their weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from privet.exact import Exact, show_up
from privet.planner import computed
from privet.planner.explain import Explanation, section
from privet.planner.outputs import Output
from privet.planner.plan import ReleasePlan
from privet.planner.rank_outputs import RankedCode
from privet.planner.rank_words import rank_error
from privet.planner.ranks import ChosenRanks
from privet.privacy import events
from privet.privacy.accounting import guarantee_of
from privet.privacy.guarantees import Guarantee


@dataclass(frozen=True, slots=True, eq=False)
class BatchPlan(Mapping[str, ReleasePlan]):
    """The plans of a batch's questions, by name, and the event of all of them together.

    Claim: the event has one part for each set of measurements that is made. Plans of the same part show columns of the
    same noisy numbers, which are drawn and paid for once.
    """

    plans: Mapping[str, ReleasePlan]
    parts: tuple[int, ...]
    """For each question, its part of the event."""
    whole: events.Composed | events.FixedBatch

    def __getitem__(self, name: str) -> ReleasePlan:
        return self.plans[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.plans)

    def __len__(self) -> int:
        return len(self.plans)

    def event(self) -> events.PrivacyEvent:
        """The event of the batch, for accountants."""
        return self.whole

    def guarantee(self) -> Guarantee:
        """The guarantee of all answers together."""
        return guarantee_of([self.whole])

    def together(self) -> list[list[str]]:
        """The questions that share measurements, in lists of two or more."""
        parts: dict[int, list[str]] = {}
        for name, part in zip(self.plans, self.parts, strict=True):
            parts.setdefault(part, []).append(name)
        return [names for names in parts.values() if len(names) > 1]

    def explain(self) -> Explanation:
        """The batch in words: what each question costs, its errors, and what all of them cost together."""
        count = len(self)
        lines = section("Batch", [f"{count} question{'' if count == 1 else 's'}, answered and paid for together."])
        groups = self.together()
        for i, (name, plan) in enumerate(self.plans.items(), 1):
            with_others = any(name in names for names in groups)
            price = "shared" if with_others else f"{plan.guarantee()}"
            lines += section(f"{i}", [f"{name}: {price}. {'; '.join(self._errors(plan))}."])
        for names in groups:
            price = f"{self.plans[names[0]].guarantee()}"
            said = f"{', '.join(names)}: about the same groups of the same rows, so they are measured together, once"
            lines += section("Shared", [f"{said}, for {price}."])
        return Explanation("\n".join([*lines, *section("Guarantee", [f"{self.guarantee()}, for all together."])]))

    def _errors(self, plan: ReleasePlan) -> Iterator[str]:
        arrangement = plan.query.arrangement
        hidden = {each for name in arrangement.hidden for each in plan.query.columns()[name]}
        shown = [(name, output) for name, output in plan.columns if name not in hidden]
        formulas = [(name, node) for name, node in arrangement.computed if not computed.is_plain(plan, node)]
        said = [self._error(plan, name, output) for name, output in shown[:_MOST]]
        for name, node in formulas[: _MOST - len(said)]:
            errors = computed.expected(plan, node)
            said.append(f"{name} {_within(max(errors)) if errors is not None else 'is computed from other columns'}")
        more = len(shown) + len(formulas) - len(said)
        yield from said or ["No noise"]
        if more:
            yield f"{more} more column{'' if more == 1 else 's'}"

    def _error(self, plan: ReleasePlan, name: str, output: Output) -> str:
        if isinstance(output, RankedCode):
            part = plan.noised[output.measurement]
            assert isinstance(part, ChosenRanks)
            return f"{name} {rank_error(part, output, plan.level)}".replace("; usually", ", usually")
        error = plan.expected(name)
        return f"{name} {_within(error)}" if error is not None else f"{name} depends on the rows in a group"

    def __str__(self) -> str:
        return str(self.explain())

    def __repr__(self) -> str:
        return f"<BatchPlan of {', '.join(self)}: {self.guarantee()}>"

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()


def _within(error: Exact) -> str:
    return f"within {show_up(error)}"


_MOST = 6  # columns of a question whose errors are listed
