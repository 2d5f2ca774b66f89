"""A request: its event, how to answer it, and how to read its answer again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Generic, TypeVar

from privet.engines.base import Engine
from privet.privacy.events import PrivacyEvent
from privet.release import Certificate, Release
from privet.release.batch import ReleasedBatch
from privet.release.certificate import certify
from privet.release.signing import SigningKey
from privet.release.value import ReleasedValue
from privet.tables.holders import Holders
from privet.tables.statement import Statement

AnswerT = TypeVar("AnswerT", bound=Release | ReleasedValue | ReleasedBatch)


@dataclass(frozen=True, slots=True)
class Debited:
    """What a request that is paid for is answered with."""

    engine: Engine
    dataset: str
    link: Mapping[str, Any]
    """The certificate's reference to the debit."""
    signing_key: SigningKey | None

    def certify(self, body: dict[str, Any]) -> tuple[Certificate, str]:
        """The certificate of an answer, and its text."""
        return certify(body, dataset=self.dataset, link=dict(self.link), version=_version(), key=self.signing_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[AnswerT]):
    """What is paid for at once, and answered as a whole or not at all.

    Claim: `answer` does what `event` describes to accountants. `again` reads no rows and draws no noise.
    """

    event: PrivacyEvent
    asked: str
    """The digest of the whole request: two requests with the same id must agree in it."""
    words: str
    """What was asked, as the ledger's history shows it."""
    answer: Callable[[Debited], tuple[AnswerT, str]]
    """The answer and its text for the ledger. Called only after the debit."""
    again: Callable[[str], AnswerT]
    """The answer from its text."""
    question: str = ""
    """The digest by which a stored answer is found; empty for a request that is never answered from the ledger."""
    statements: tuple[Statement | Holders, ...] | None = None
    """What the engine is asked; None if it is not needed."""


@cache
def _version() -> str:
    return version("privet")
