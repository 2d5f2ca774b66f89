"""A released statistic of the user's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from privet.exact import Number
from privet.ledger import Remaining
from privet.mechanisms import Laplace
from privet.privacy.guarantees import PureDP
from privet.release.certificate import Certificate


@dataclass(frozen=True, slots=True)
class ReleasedValue:
    """A user's own statistic with noise, its cost, and the remaining budget."""

    value: Any
    mechanism: Laplace = field(repr=False)
    spent: PureDP
    remaining: Remaining | None
    """The budget that remains afterwards; None if unknown."""
    certificate: Certificate = field(repr=False)

    def interval(self, confidence: Number = 0.95) -> tuple[Any, Any]:
        """The interval that contains the true value with this confidence."""
        return self.mechanism.interval(self.value, confidence)
