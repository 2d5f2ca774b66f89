"""Many coins at once, each with its own certified probability; and many uniform integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.noise.entropy import Bits
from privet.noise.inversion import UniformReal
from privet.noise.powers import Words


def toss(lower: Words, slack: int, exactly: Callable[[int], arb], bits: Bits) -> NDArray[np.bool_]:
    """One toss of each coin.

    Claim: coin i shows True with probability exactly(i), exactly and independently, if lower[i] <= 2^64 exactly(i) <=
    lower[i] + slack. 64 bits of a uniform real decide unless they fall between the two; then more bits are drawn.
    The work is the same for every outcome, except in that case, which has a probability of (slack + 1) 2^-64.

    Example:
        >>> from privet.exact import ball
        >>> from privet.noise.entropy import SYSTEM
        >>> toss(np.array([0, 2**64 - 1], dtype=np.uint64), 1, lambda i: ball(i), SYSTEM).tolist()
        [False, True]
    """
    words = np.empty(len(lower), dtype=np.uint64)
    bits.fill(words)
    shown: NDArray[np.bool_] = words < lower
    for i in np.flatnonzero(~shown & (words - lower <= np.uint64(slack))).tolist():
        uniform = UniformReal(bits, int(words[i]), 64)
        shown[i] = uniform.below(lambda i=i: exactly(i))  # type: ignore[misc]
    return shown


def uniform_integers(bound: int, count: int, bits: Bits) -> NDArray[np.int64]:
    """`count` uniform integers in 0, ..., bound - 1, for a bound up to 2^63, by rejection.

    Example:
        >>> from privet.noise.entropy import SYSTEM
        >>> set(uniform_integers(3, 1000, SYSTEM).tolist())
        {0, 1, 2}
    """
    if bound == 1:
        return np.zeros(count, dtype=np.int64)
    shift = np.uint64(64 - max(1, (bound - 1).bit_length()))
    numbers = np.empty(count, dtype=np.uint64)
    places = np.arange(count)
    while len(places):
        words = np.empty(len(places), dtype=np.uint64)
        bits.fill(words)
        numbers[places] = words >> shift
        places = places[numbers[places] >= np.uint64(bound)]
    return numbers.astype(np.int64)
