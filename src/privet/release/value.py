"""A statistic of a user's own, released."""

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
    """A user's own statistic with noise, what it cost, and what is left."""

    value: Any
    mechanism: Laplace = field(repr=False)
    spent: PureDP
    remaining: Remaining | None
    """What is left of the budget afterwards; None if nobody knows."""
    certificate: Certificate = field(repr=False)

    def interval(self, confidence: Number = 0.95) -> tuple[Any, Any]:
        """The interval that holds the true value with this confidence."""
        return self.mechanism.interval(self.value, confidence)
