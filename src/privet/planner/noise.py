"""The noise of a plan: its mechanism, its scale for each measurement, and the resulting errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from privet import accuracy
from privet.accuracy import NoiseSums
from privet.exact import Exact
from privet.planner.linear import Linear
from privet.planner.ranks import ChosenRanks
from privet.privacy.events import PrivacyEvent

if TYPE_CHECKING:
    from privet.planner.plan import ReleasePlan

Chosen = tuple[Sequence[tuple[int, ...]], Sequence[tuple[int, ...]], Sequence[PrivacyEvent]]
"""For each group, codes that were chosen and exact counts; and the events of the choices."""

_NONE: Mapping[int, Chosen] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent noise of one mechanism on every coordinate; a scale for each measurement."""

    mechanism: NoiseSums
    scales: tuple[Exact, ...]
    inside: tuple[int, ...] = ()
    """How many ranks from the edge a minimum or maximum of each measurement aims; 0 for other measurements."""

    def error(self, form: Linear, confidence: Exact) -> Exact:
        """A bound on the error of a linear form, at this confidence."""
        return self.mechanism.error_of_sum(form.weights(), form.scales(self.scales), confidence)

    def half_width(self, form: Linear, confidence: Exact) -> Exact:
        """Half the width of a linear form's interval."""
        return accuracy.half_width(self.mechanism, form.weights(), form.scales(self.scales), confidence)

    def factor(self, form: Linear, confidence: Exact, error: Exact) -> Exact | None:
        """The factor for all scales at which a linear form has this error; None if none is known."""
        return self.mechanism.scale_for_sum(form.weights(), form.scales(self.scales), confidence, error)


def add_noise(
    plan: ReleasePlan, exact: Sequence[Sequence[tuple[int, ...]]], ranks: Mapping[int, Chosen] = _NONE
) -> tuple[tuple[tuple[tuple[int, ...], ...], ...], PrivacyEvent]:
    """Fresh noise on every coordinate of every measurement, and the event of the noise that was drawn.

    `ranks` has what was chosen for some of them: codes to which no noise is added, and counts to which it is.
    """
    noisy: list[tuple[tuple[int, ...], ...]] = []
    drawn: list[PrivacyEvent] = []
    spent = [event for _, _, choices in ranks.values() for event in choices]
    for place, (part, vectors) in enumerate(zip(plan.noised, exact, strict=True)):
        codes: Sequence[tuple[int, ...]] = [()] * len(vectors)
        if place in ranks:
            codes, vectors, _ = ranks[place]
        size = part.measurement.counts if isinstance(part, ChosenRanks) else part.measurement.size
        if not size:
            noisy.append(tuple(codes))
            continue
        array, event = part.mechanism.draw(part.move, scale=part.scale, count=len(vectors) * size)
        draws = array.tolist()
        drawn.append(event)
        noisy.append(
            tuple(
                (*code, *(x + y for x, y in zip(vector, draws[i * size : (i + 1) * size], strict=True)))
                for i, (code, vector) in enumerate(zip(codes, vectors, strict=True))
            )
        )
    return tuple(noisy), plan.together(drawn, spent)
