"""Privacy guarantees: PureDP, ApproxDP, ZeroConcentratedDP."""

from privet.guarantees.kinds import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP, delta_for_population
from privet.guarantees.least import MIN_EPSILON, least_price

__all__ = [
    "MIN_EPSILON",
    "ApproxDP",
    "Guarantee",
    "PureDP",
    "ZeroConcentratedDP",
    "delta_for_population",
    "least_price",
]
