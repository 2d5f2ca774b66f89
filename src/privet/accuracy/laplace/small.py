"""Two terms of small Laplace noise, enumerated."""

from __future__ import annotations

import math

import numpy as np

from privet.accuracy.few import Box
from privet.accuracy.sums import Floats

LARGEST = 2.5
"""Up to this scale noise is enumerated; above, the continuous bound costs an eighth of the width at most."""


def laplace_box(scales: Floats, level: float) -> Box:
    """The enumeration of two discrete Laplace variables, for a test of this level."""
    reach = math.ceil(float(np.max(scales)) * math.log(1e3 / level))
    q = np.exp(-1 / scales)
    outside = float((2 * q ** (reach + 1) / (1 + q)).sum())
    k = np.arange(-reach, reach + 1)
    return Box(np.tanh(0.5 / scales)[:, None] * np.exp(-np.abs(k) / scales[:, None]), outside, level)
