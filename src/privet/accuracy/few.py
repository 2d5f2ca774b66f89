"""Two terms of small noise, a few steps wide, where a continuous bound gives away too much: they are enumerated."""

from __future__ import annotations

import numpy as np

from privet.accuracy.sums import Bools, Floats


class Box:
    """Two independent symmetric variables on the integers, enumerated up to `reach` steps from 0.

    `masses` are their probabilities from -reach to reach, and `outside` is the sum of what both have beyond.

    Claim: `tail` is at least P(|w . X| >= t), and decreasing in t. As a function of w, the t at which it passes a
    given level is a maximum of minima of |w . X| over points X of the box, so it moves no faster than they do: along
    w = alpha - t beta no faster than reach (|beta_1| + |beta_2|).
    """

    def __init__(self, masses: Floats, outside: float, level: float) -> None:
        self._level, self._mass, self._outside = level, masses, outside
        self.reach = masses.shape[1] // 2
        above = np.cumsum(masses[:, ::-1], axis=1)[:, ::-1]  # P(k <= X <= reach)
        self._above = np.concatenate([above, np.zeros((2, 1))], axis=1)

    def plausible(self, weights: Floats, distance: Floats) -> Bools:
        """Whether that probability could be `level` or more."""
        return self.tail(weights, distance) >= self._level

    def tail(self, weights: Floats, t: Floats) -> Floats:
        """An upper bound on P(|w_1 X_1 + w_2 X_2| >= t), for weights >= 0 in the last axis."""
        first = np.argmin(weights, axis=-1)[..., None]
        small, large = (np.take_along_axis(weights, order, axis=-1) for order in (first, 1 - first))
        steps = np.arange(-self.reach, self.reach + 1)
        with np.errstate(all="ignore"):
            rest = np.ceil((t[..., None] - small * steps) / large - 1e-9)
        rest = np.clip(np.nan_to_num(rest, nan=-self.reach), -self.reach, self.reach + 1).astype(np.intp)
        one_side = self._mass[first, steps + self.reach] * self._above[1 - first, rest + self.reach]
        bound = (2 * one_side.sum(axis=-1) + self._outside) * (1 + 1e-12)  # all terms are positive
        return np.where(t <= 0, 1.0, np.minimum(1.0, bound))
