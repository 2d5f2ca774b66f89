"""From a query and an epsilon to a plan: bounding, measurements, the budget's shares, the event, and an explanation."""

from privet.planner.plan import ReleasePlan, plan

__all__ = ["ReleasePlan", "plan"]
