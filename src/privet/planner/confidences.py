"""The confidences at which answers are judged, whatever the confidence of their intervals."""

from __future__ import annotations

from privet.exact import Exact

USUAL = Exact(19, 20)
"""The minimum confidence of the error by which answers are marked: a narrow interval at a low confidence does not make
an answer less noisy. Shares and ranks of quantiles are also chosen for it."""


def careful(confidence: Exact) -> Exact:
    """The confidence of an interval just above the line, and of the proof that a quantile without a mark needs.

    Example:
        >>> careful(Exact("0.95"))
        Fraction(399, 400)
    """
    return 1 - (1 - confidence) ** 2
