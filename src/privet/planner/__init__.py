"""From a query and an epsilon to a plan: bounding, measurements, shares of the budget, the event, an explanation."""

from privet.planner.plan import ReleasePlan
from privet.planner.planning import plan

__all__ = ["ReleasePlan", "plan"]
