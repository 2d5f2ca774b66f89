"""Mechanisms: from a value of bounded sensitivity to a private answer and its event.

A noise mechanism for tables is one file with a `NoiseMechanism`, and one line in `NOISE`; a selection mechanism is one
with a `SelectionMechanism`, and one line in `SELECTION`.
"""

from privet.errors import QueryError, argument
from privet.mechanisms.above_threshold import AboveThreshold
from privet.mechanisms.base import NoiseMechanism, PricedNoise, SelectionMechanism
from privet.mechanisms.calibration import epsilon_for
from privet.mechanisms.exponential import EXPONENTIAL, Exponential
from privet.mechanisms.gaussian import GAUSSIAN
from privet.mechanisms.laplace import LAPLACE
from privet.mechanisms.noisy_max import NOISY_MAX, ReportNoisyMax
from privet.mechanisms.permute_and_flip import PERMUTE_AND_FLIP, PermuteAndFlip
from privet.mechanisms.randomized_response import RandomizedResponse, ResponseCount
from privet.mechanisms.staircase import Staircase
from privet.mechanisms.standalone import Gaussian, Laplace
from privet.privacy.events import PrivacyEvent

__all__ = [
    "DEFAULT",
    "GAUSSIAN",
    "NOISE",
    "SELECTION",
    "AboveThreshold",
    "Exponential",
    "Gaussian",
    "Laplace",
    "NoiseMechanism",
    "PermuteAndFlip",
    "PricedNoise",
    "RandomizedResponse",
    "ReportNoisyMax",
    "ResponseCount",
    "SelectionMechanism",
    "Staircase",
    "epsilon_for",
    "named",
    "serves",
]

DEFAULT: NoiseMechanism = LAPLACE
"""The mechanism for questions that do not name one."""

NOISE: dict[str, NoiseMechanism] = {mechanism.name: mechanism for mechanism in (LAPLACE,)}
"""All noise mechanisms for tables, by name."""

SELECTION: dict[str, SelectionMechanism] = {
    mechanism.name: mechanism for mechanism in (EXPONENTIAL, PERMUTE_AND_FLIP, NOISY_MAX)
}
"""All selection mechanisms, by name."""


def named(name: object) -> NoiseMechanism:
    """The mechanism with this name; the default for None.

    Example:
        >>> named("laplace/1") is named(None)
        True
    """
    if name is None:
        return DEFAULT
    if isinstance(name, str) and name in NOISE:
        return NOISE[name]
    raise QueryError(
        f"there is no mechanism {str(name)[:40]!r}",
        allowed=f"The mechanisms are: {', '.join(NOISE)}",
        remedy=argument("mechanism", DEFAULT.name),
    )


def serves(stored: PrivacyEvent, asked: PrivacyEvent) -> bool:
    """Whether a stored draw can replace the requested one, according to the mechanism of these events.

    Example:
        >>> from privet.privacy.moves import L1Move
        >>> quiet, loud = (LAPLACE.event(L1Move(1), scale=scale) for scale in (1, 2))
        >>> serves(quiet, loud), serves(loud, quiet)
        (True, False)
    """
    return stored == asked or any(mechanism.serves(stored, asked) for mechanism in NOISE.values())
