"""Mechanisms: a value of bounded sensitivity in, a private answer and its event out."""

from privet.mechanisms.calibration import epsilon_for
from privet.mechanisms.laplace import Laplace

__all__ = ["Laplace", "epsilon_for"]
