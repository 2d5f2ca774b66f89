"""Bare mechanisms by their parameters: from the arguments of a call, and to and from JSON."""

from __future__ import annotations

from typing import Any, get_args

from privet.codec import ratio, read_ratio
from privet.errors import QueryError, Remedy, UserError, write
from privet.exact import Exact, Number
from privet.mechanisms.above_threshold import AboveThreshold
from privet.mechanisms.exponential import Exponential
from privet.mechanisms.noisy_max import ReportNoisyMax
from privet.mechanisms.permute_and_flip import PermuteAndFlip
from privet.mechanisms.selection import Selection
from privet.mechanisms.staircase import Staircase
from privet.mechanisms.standalone import Gaussian, Laplace
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP

Adding = Laplace | Gaussian | Staircase
"""The mechanisms that add noise to a value."""
Choosing = Exponential | PermuteAndFlip | ReportNoisyMax | AboveThreshold
"""The mechanisms that choose by scores."""

# Exactly these: a subclass could draw less noise than its event says.
_ADDS, _CHOOSES = get_args(Adding), get_args(Choosing)

_NAMES: dict[type[Adding | Choosing], str] = {
    Laplace: "laplace/1",
    Gaussian: "gaussian/1",
    Staircase: "staircase/1",
    Exponential: "exponential/1",
    PermuteAndFlip: "permute_and_flip/1",
    ReportNoisyMax: "noisy_max/1",
    AboveThreshold: "above_threshold/1",
}
_ADDING = write("release_value(value, mechanism=pv.Gaussian(sensitivity=1, rho=0.1), label=...)")
_CHOOSING = write("select(scores, mechanism=pv.Exponential(sensitivity=1, epsilon=0.5), label=...)")


# --- from arguments -----------------------------------------------------------------------------


def adding(mechanism: object, sensitivity: Number | None, **price: Number | None) -> Adding:
    """The mechanism that adds noise: the given one, or Laplace for an epsilon, and Gaussian for any other price.

    Example:
        >>> prices = {"epsilon": None, "delta": None, "rho": None}
        >>> adding(None, 1, **{**prices, "epsilon": 0.5}), adding(None, 1, **{**prices, "rho": 0.1})
        (Laplace(sensitivity=1, epsilon=0.5), Gaussian(sensitivity=1, rho=0.1))
    """
    given = [name for name, number in {"sensitivity": sensitivity, **price}.items() if number is not None]
    if mechanism is None:
        if sensitivity is None or len(given) == 1:
            missing = "a price" if sensitivity is not None else "the sensitivity"
            raise QueryError(
                f"{missing} is missing",
                allowed="A value needs its sensitivity with epsilon, with rho, or with epsilon and delta; or a "
                "mechanism",
                remedy=write("release_value(value, sensitivity=1, epsilon=0.5, label=...)"),
            )
        if given == ["sensitivity", "epsilon"]:
            return Laplace(sensitivity=sensitivity, epsilon=price["epsilon"])
        if "delta" in given and "epsilon" not in given and "rho" not in given:
            raise QueryError("delta is set without an epsilon", remedy=write("epsilon=0.5, delta=1e-6"))
        if "rho" in given and len(given) > 2:
            both = f"both {given[1]} and rho are set"
            raise QueryError(both, allowed="A price is epsilon, or epsilon and delta, or rho", remedy=write("rho=0.01"))
        return Gaussian(sensitivity=sensitivity, **price)  # type: ignore[arg-type]
    if type(mechanism) in _ADDS:
        if given:
            raise QueryError(f"the mechanism already says its {given[0]}", remedy=Remedy("Leave it out"))
        return mechanism  # type: ignore[return-value]
    if type(mechanism) in _CHOOSES:
        raise QueryError(f"{type(mechanism).__name__} chooses by scores, and adds nothing to a value", remedy=_CHOOSING)
    raise QueryError(
        f"mechanism must be one that adds noise, not {_shown(mechanism)}",
        allowed=f"These do: {_listed(_ADDS)}",
        remedy=_ADDING,
    )


def choosing(mechanism: object) -> Choosing:
    """The mechanism that chooses, or an error.

    Example:
        >>> choosing(Laplace(sensitivity=1, epsilon=0.5))
        Traceback (most recent call last):
        privet.errors.QueryError: mechanism must be one that chooses by scores, not Laplace. These do: Exponential,
        PermuteAndFlip, ReportNoisyMax, AboveThreshold.
        Write, for example: select(scores, mechanism=pv.Exponential(sensitivity=1, epsilon=0.5), label=...)
    """
    if type(mechanism) in _CHOOSES:
        return mechanism  # type: ignore[return-value]
    raise QueryError(
        f"mechanism must be one that chooses by scores, not {_shown(mechanism)}",
        allowed=f"These do: {_listed(_CHOOSES)}",
        remedy=_CHOOSING,
    )


def payable(budget: Guarantee) -> Remedy:
    """What to write under a budget that has no price for a mechanism."""
    if isinstance(budget, PureDP):
        return write(
            "mechanism=pv.Laplace(sensitivity=1, epsilon=0.5)",
            advice="Gaussian noise needs a dataset with a budget such as pv.ApproxDP(3, 1e-6)",
        )
    return write("mechanism=pv.Gaussian(sensitivity=1, epsilon=0.5, delta=1e-6)")


def _listed(kinds: tuple[type, ...]) -> str:
    return ", ".join(kind.__name__ for kind in kinds)


def _shown(mechanism: object) -> str:
    return f"{mechanism!r:.40}" if isinstance(mechanism, str | None) else type(mechanism).__name__


# --- JSON ---------------------------------------------------------------------------------------


def to_tree(mechanism: Adding | Choosing) -> dict[str, Any]:
    """The parameters of a mechanism, exactly.

    Example:
        >>> to_tree(Exponential(sensitivity=1, epsilon=0.5))
        {'kind': 'exponential/1', 'sensitivity': '1/1', 'epsilon': '1/2', 'monotone': False}
    """
    tree: dict[str, Any] = {"kind": _NAMES[type(mechanism)], "sensitivity": ratio(Exact(mechanism.sensitivity))}
    if not isinstance(mechanism, Gaussian):
        tree["epsilon"] = ratio(mechanism.epsilon)
    elif isinstance(mechanism.price, ApproxDP):
        tree |= {"epsilon": ratio(mechanism.price.epsilon), "delta": ratio(mechanism.price.delta)}
    else:
        tree["rho"] = ratio(mechanism.price.rho)
    if isinstance(mechanism, Laplace | Gaussian):
        tree |= {"step": ratio(mechanism.step) if mechanism._chosen else None, "dimension": mechanism.dimension}
    if isinstance(mechanism, Gaussian):
        tree["coordinates"] = mechanism.coordinates
    if isinstance(mechanism, Selection | AboveThreshold):
        tree["monotone"] = mechanism.monotone
    if isinstance(mechanism, AboveThreshold):
        tree["threshold"] = ratio(mechanism.threshold)
    return tree


def from_tree(tree: dict[str, Any]) -> Adding | Choosing:
    """The mechanism with these parameters; a `UserError` for anything else.

    Claim: from_tree(to_tree(mechanism)) == mechanism, and to_tree(from_tree(tree)) == tree.
    """
    kind = next((kind for kind, name in _NAMES.items() if name == tree.get("kind")), None)
    if kind is None:
        raise UserError("this is not a mechanism")
    exactly = {"sensitivity", "epsilon", "delta", "rho", "step", "threshold"}
    given = {name: read_ratio(x) if name in exactly and x is not None else x for name, x in tree.items()}
    coordinates = given.pop("coordinates", None)
    del given["kind"]
    if kind is Staircase:
        given["sensitivity"] = int(given["sensitivity"] or 0)
    make: Any = kind
    mechanism = make(**given)
    if kind is Gaussian and mechanism.dimension is None and type(coordinates) is int and coordinates > 0:
        mechanism = mechanism._for_integers(coordinates)
    if to_tree(mechanism) != tree:
        raise UserError("this is not a mechanism")
    return mechanism  # type: ignore[no-any-return]
