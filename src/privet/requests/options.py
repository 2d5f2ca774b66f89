"""How a question, or a batch of them, is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from privet.exact import Number


class QuestionOptions(TypedDict, total=False):
    """How a question is asked: an epsilon, a rho or errors to keep `within`, and options for its intervals."""

    epsilon: Number | None
    rho: Number | None
    within: Mapping[str, Number] | None
    confidence: Number
    simultaneous: bool
    assuming: int | None
    weights: Mapping[str, Number] | None
    mechanism: str | None


class BatchOptions(TypedDict, total=False):
    """How a batch is asked: prices, weights and errors by the names of questions, and options for every question."""

    epsilon: Number | Mapping[str, Number] | None
    rho: Number | Mapping[str, Number] | None
    weights: Mapping[str, Number] | None
    within: Mapping[str, Mapping[str, Number]] | None
    delta: Number | None
    confidence: Number
    simultaneous: bool
    assuming: int | None
    mechanism: str | None


class ReleaseOptions(QuestionOptions, total=False):
    """The same for one question, which may have a delta: besides an epsilon, or for its errors."""

    delta: Number | None


class BoundsOptions(TypedDict, total=False):
    """How bounds are asked for: at a price, and with a confidence for the share of values inside."""

    epsilon: Number | None
    delta: Number | None
    rho: Number | None
    confidence: Number
    mechanism: str | None


class DiagnosisOptions(TypedDict, total=False):
    """How a diagnosis is asked for: at a price, in epsilon or in rho."""

    epsilon: Number | None
    rho: Number | None
    confidence: Number
    mechanism: str | None
