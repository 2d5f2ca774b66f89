"""Privet: differentially private statistics with exact noise.

>>> import privet as pv
>>> mechanism = pv.Laplace(sensitivity=1, epsilon=0.5)
>>> mechanism.error(0.95)
6

Names are loaded when they are first used, so that `import privet` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privet import (
        accounting,
        audit,
        distances,
        distributions,
        divergences,
        errors,
        events,
        exact,
        guarantees,
        mechanisms,
        noise,
        sensitivity,
        statistics,
    )
    from privet.distances import Adjacency, each_row, person
    from privet.errors import InternalError, PrivetError, UserError
    from privet.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
    from privet.mechanisms import Laplace, epsilon_for

__version__ = "0.1.0"

_HOMES = {
    "Adjacency": "distances",
    "ApproxDP": "guarantees",
    "InternalError": "errors",
    "Laplace": "mechanisms",
    "PrivetError": "errors",
    "PureDP": "guarantees",
    "UserError": "errors",
    "ZeroConcentratedDP": "guarantees",
    "each_row": "distances",
    "epsilon_for": "mechanisms",
    "person": "distances",
}

__all__ = [
    "Adjacency",
    "ApproxDP",
    "InternalError",
    "Laplace",
    "PrivetError",
    "PureDP",
    "UserError",
    "ZeroConcentratedDP",
    "accounting",
    "audit",
    "distances",
    "distributions",
    "divergences",
    "each_row",
    "epsilon_for",
    "errors",
    "events",
    "exact",
    "guarantees",
    "mechanisms",
    "noise",
    "person",
    "sensitivity",
    "statistics",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"privet.{_HOMES[name]}"), name)
    elif name in __all__:
        value = import_module(f"privet.{name}")
    else:
        raise AttributeError(f"module 'privet' has no attribute {name!r}. It has: {', '.join(__all__)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
