"""How far an answer is from the truth: pure functions of the noise.

`single` is about one noise variable, `sums` (and `equal`) about weighted sums of several, `ratios` (and `small`) about
quotients of two such sums (a mean), `moments` about the variance.
"""

from privet.accuracy.moments import variance_estimate, variance_interval, within_noise
from privet.accuracy.ratios import ratio_estimate, ratio_interval
from privet.accuracy.single import Noise, error, tail
from privet.accuracy.sums import error_of_sum, half_width, scale_for_sum, tail_of_sum

__all__ = [
    "Noise",
    "error",
    "error_of_sum",
    "half_width",
    "ratio_estimate",
    "ratio_interval",
    "scale_for_sum",
    "tail",
    "tail_of_sum",
    "variance_estimate",
    "variance_interval",
    "within_noise",
]
