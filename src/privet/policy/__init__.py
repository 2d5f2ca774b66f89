"""The steward's policy, privet.toml: datasets, tables, bounds, keys and budgets, which no analyst can change.

Loading a policy reads no data. An error lists every problem, with its line and what to write there instead.
"""

from privet.errors import PolicyError
from privet.policy.loading import load, parse
from privet.policy.policy import DatasetPolicy, Policy, TablePolicy
from privet.policy.shape import schema

__all__ = ["DatasetPolicy", "Policy", "PolicyError", "TablePolicy", "load", "parse", "schema"]
