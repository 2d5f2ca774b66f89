"""The noise of a plan: its mechanism, its scale for each measurement, and the resulting errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privet import accuracy
from privet.accuracy import NoiseSums
from privet.exact import Exact
from privet.planner.linear import Linear
from privet.privacy.events import PrivacyEvent

if TYPE_CHECKING:
    from privet.planner.plan import ReleasePlan


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent noise of one mechanism on every coordinate; a scale for each measurement."""

    mechanism: NoiseSums
    scales: tuple[Exact, ...]

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
    plan: ReleasePlan, exact: Sequence[Sequence[tuple[int, ...]]]
) -> tuple[tuple[tuple[tuple[int, ...], ...], ...], PrivacyEvent]:
    """Fresh noise on every coordinate of every measurement, and the event of the noise that was drawn."""
    noisy, drawn = [], []
    for part, vectors in zip(plan.noised, exact, strict=True):
        size = part.measurement.size
        array, event = part.mechanism.draw(part.move, scale=part.scale, count=len(vectors) * size)
        draws = array.tolist()
        drawn.append(event)
        noisy.append(
            tuple(
                tuple(x + y for x, y in zip(vector, draws[i * size : (i + 1) * size], strict=True))
                for i, vector in enumerate(vectors)
            )
        )
    return tuple(noisy), plan.together(drawn)
