"""From a query and an epsilon to a plan: bounding, measurements, shares of the budget, the event, an explanation."""

from privet.planner.plan import ReleasePlan, plan

__all__ = ["ReleasePlan", "plan"]
