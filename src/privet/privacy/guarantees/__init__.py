"""Privacy guarantees: PureDP, ApproxDP, ZeroConcentratedDP."""

from privet.privacy.guarantees.budgets import budget_of, show_down, stricter
from privet.privacy.guarantees.definitions import (
    ApproxDP,
    Budget,
    Guarantee,
    PureDP,
    ZeroConcentratedDP,
)
from privet.privacy.guarantees.meaning import delta_for_population

__all__ = [
    "ApproxDP",
    "Budget",
    "Guarantee",
    "PureDP",
    "ZeroConcentratedDP",
    "budget_of",
    "delta_for_population",
    "show_down",
    "stricter",
]
