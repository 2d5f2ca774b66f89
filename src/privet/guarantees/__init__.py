"""Privacy guarantees: PureDP, ApproxDP, ZeroConcentratedDP."""

from privet.guarantees.kinds import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP, delta_for_population

__all__ = ["ApproxDP", "Guarantee", "PureDP", "ZeroConcentratedDP", "delta_for_population"]
