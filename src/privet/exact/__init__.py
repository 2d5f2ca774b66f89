"""Exact numbers: the only place where a float becomes exact, or an exact number becomes a float.

Parameters (epsilon, delta, bounds, scales) are rationals. An irrational number (e^x, a square root) is represented by
an `Enclosure`, two rationals with the true number between them, from Arb's ball arithmetic. The name of a rounding
function states its direction: `down`, `up`.
"""

from privet.exact.enclosures import Enclosure, ball, enclose, ends, exp, floor, less, precision, rounded_up
from privet.exact.rationals import INFINITY, Exact, Number, binary, exact, nonnegative, positive, probability, whole
from privet.exact.rounding import down, literal, nearest, shorter_up, show, show_up, six_digits_up, sqrt_up, up

__all__ = [
    "INFINITY",
    "Enclosure",
    "Exact",
    "Number",
    "ball",
    "binary",
    "down",
    "enclose",
    "ends",
    "exact",
    "exp",
    "floor",
    "less",
    "literal",
    "nearest",
    "nonnegative",
    "positive",
    "precision",
    "probability",
    "rounded_up",
    "shorter_up",
    "show",
    "show_up",
    "six_digits_up",
    "sqrt_up",
    "up",
    "whole",
]
