"""Mechanisms: from a value of bounded sensitivity to a private answer and its event.

A noise mechanism for tables is one file with a `NoiseMechanism`, and one line in `NOISE`; a selection mechanism is one
with a `SelectionMechanism`, and one line in `SELECTION`.
"""

from privet.errors import QueryError, argument
from privet.mechanisms.above_threshold import AboveThreshold
from privet.mechanisms.base import NoiseMechanism, SelectionMechanism
from privet.mechanisms.calibration import epsilon_for
from privet.mechanisms.exponential import EXPONENTIAL, Exponential
from privet.mechanisms.gaussian import GAUSSIAN
from privet.mechanisms.laplace import LAPLACE
from privet.mechanisms.noisy_max import NOISY_MAX, ReportNoisyMax
from privet.mechanisms.permute_and_flip import PERMUTE_AND_FLIP, PermuteAndFlip
from privet.mechanisms.randomized_response import RandomizedResponse, ResponseCount
from privet.mechanisms.staircase import Staircase
from privet.mechanisms.standalone import Gaussian, Laplace
from privet.names.spelling import listed, nearest
from privet.privacy.events import BoundedRange, PrivacyEvent

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
    "RandomizedResponse",
    "ReportNoisyMax",
    "ResponseCount",
    "SelectionMechanism",
    "Staircase",
    "epsilon_for",
    "named",
    "serves",
    "short",
]

DEFAULT: NoiseMechanism = LAPLACE
"""The mechanism for questions that do not name one."""

NOISE: dict[str, NoiseMechanism] = {mechanism.name: mechanism for mechanism in (LAPLACE, GAUSSIAN)}
"""All noise mechanisms for tables, by name. Where two do equally well, the first is used."""

SELECTION: dict[str, SelectionMechanism] = {
    mechanism.name: mechanism for mechanism in (EXPONENTIAL, PERMUTE_AND_FLIP, NOISY_MAX)
}
"""All selection mechanisms, by name."""


def named(name: object) -> NoiseMechanism:
    """The mechanism with this name; its version may be left out. The default for None.

    Example:
        >>> named("laplace/1") is named("laplace") is named(None)
        True
    """
    if name is None:
        return DEFAULT
    if isinstance(name, str):
        for known, mechanism in NOISE.items():
            if name in (known, short(known)):
                return mechanism
    names = list(map(short, NOISE))
    if not isinstance(name, str):
        what = f"mechanism must be a name, not {type(name).__name__}"
        raise QueryError(what, allowed=listed(names, "mechanisms"), remedy=argument("mechanism", names[0]))
    raise QueryError(
        f"there is no mechanism {name[:40]!r}",
        allowed=listed(names, "mechanisms"),
        remedy=argument("mechanism", nearest(name, names) or names[0]),
    )


def short(name: str) -> str:
    """The name of a mechanism without its version."""
    return name.partition("/")[0]


def serves(stored: PrivacyEvent, asked: PrivacyEvent) -> bool:
    """Whether a stored draw can replace the requested one, according to the mechanism of these events.

    Example:
        >>> from privet.privacy.moves import L1Move
        >>> quiet, loud = (LAPLACE.event(L1Move(1), scale=scale) for scale in (1, 2))
        >>> serves(quiet, loud), serves(loud, quiet)
        (True, False)
    """
    if isinstance(stored, BoundedRange) and isinstance(asked, BoundedRange):
        return stored.epsilon >= asked.epsilon
    return stored == asked or any(mechanism.serves(stored, asked) for mechanism in NOISE.values())
