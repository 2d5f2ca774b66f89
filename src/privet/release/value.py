"""A released statistic of the user's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from privet import markup
from privet.errors import UserError, write
from privet.exact import Number
from privet.ledger import Remaining
from privet.mechanisms.described import Adding, Choosing
from privet.privacy.guarantees import Guarantee
from privet.release.certificate import Certificate
from privet.release.render.numerals import numerals


@dataclass(frozen=True, slots=True)
class ReleasedValue:
    """A user's own statistic with noise, or a choice by scores; its cost, and the remaining budget."""

    value: Any
    """The noisy value; of a choice, the candidate, or its position if there are no candidates."""
    mechanism: Adding | Choosing = field(repr=False)
    spent: Guarantee
    remaining: Remaining | None
    """The budget that remains afterwards; None if unknown."""
    certificate: Certificate = field(repr=False)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("mechanism", repr(self.mechanism)), ("spent", self.spent)]
        value: object = self.value
        if isinstance(self.mechanism, Adding):
            low, high = self.interval()
            rows.insert(0, ("95 % interval", f"{low} to {high}"))
            if isinstance(value, int | float):
                value = " ".join(numerals(value, low, high, around=True))
        if self.remaining is not None:
            rows.append(("left", self.remaining))
        return markup.table(["value", value], rows)

    def interval(self, confidence: Number = 0.95) -> tuple[Any, Any]:
        """The interval that contains the true value with this confidence; a choice has none."""
        if isinstance(self.mechanism, Adding):
            return self.mechanism.interval(self.value, confidence)
        raise UserError(
            "a choice has no interval",
            allowed="How far its score can be below the best is the mechanism's error",
            remedy=write("answer.mechanism.error(0.95, candidates=3)"),
        )
