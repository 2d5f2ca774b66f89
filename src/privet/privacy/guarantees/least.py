"""The least that a question may cost: it bounds how many questions a budget can pay for."""

from privet.exact import Exact

MIN_EPSILON = Exact(1, 1000)
"""Unless the steward decides otherwise: a budget of epsilon 3 pays for at most 3,000 questions."""
