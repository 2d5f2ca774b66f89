"""How far an answer is from the truth: functions of what a mechanism states about its noise.

`sums` says what that is: the error of weighted sums. `single` is about one noise variable, `ratios` about quotients of
two sums (a mean), `moments` about the variance, `combined` about numbers made of many draws. `laplace` is what is known
of sums of Laplace noise.
"""

from privet.accuracy.combined import Combined
from privet.accuracy.moments import variance_estimate, variance_interval, within_noise
from privet.accuracy.ratios import ratio_estimate, ratio_interval
from privet.accuracy.single import Noise, error, tail
from privet.accuracy.sums import NoiseSums, NoiseTest, half_width

__all__ = [
    "Combined",
    "Noise",
    "NoiseSums",
    "NoiseTest",
    "error",
    "half_width",
    "ratio_estimate",
    "ratio_interval",
    "tail",
    "variance_estimate",
    "variance_interval",
    "within_noise",
]
