"""The minimum cost of a question, which limits the number of questions that a budget can pay for."""

from privet.exact import Exact

MIN_EPSILON = Exact(1, 1000)
"""The default: a budget of epsilon 3 pays for at most 3,000 questions."""
