"""A question about tables, planned and ready to be paid for."""

from __future__ import annotations

from privet.engines.base import Engine
from privet.errors import InternalError
from privet.planner import ReleasePlan
from privet.planner.noise import add_noise
from privet.release import Release
from privet.release.certificate import of_query
from privet.release.recall import asked_digest, question_digest, recalled
from privet.requests.base import Debited, Request
from privet.tables.query import Query
from privet.tables.wording import worded


def request(plan: ReleasePlan) -> Request[Release]:
    """The request for a plan's answer."""

    def answer(debited: Debited) -> tuple[Release, str]:
        return answered(plan, debited)

    def again(text: str) -> Release:
        return recalled(plan, text)

    return Request(
        event=plan.event(),
        asked=asked_digest(plan),
        words=words(plan),
        answer=answer,
        again=again,
        question=question_digest(plan),
        statements=plan.statements(),
    )


Noisy = tuple[tuple[tuple[int, ...], ...], ...]
"""Noisy integers: by measurement, by group, by coordinate."""


def answered(plan: ReleasePlan, debited: Debited) -> tuple[Release, str]:
    """The answer to a question that is paid for, and the text of its certificate."""
    return certified(plan, measured(plan, debited.engine), debited)


def measured(plan: ReleasePlan, engine: Engine) -> Noisy:
    """The measurements of a plan that is paid for, with noise.

    Claim: the noise that is drawn is the noise that was paid for.
    """
    exact = plan.coordinates([engine.answer(each) for each in plan.statements()])
    noisy, drawn = add_noise(plan, exact)
    if drawn != plan.event():
        raise InternalError("the noise that was drawn is not what was paid for")
    return noisy


def certified(plan: ReleasePlan, noisy: Noisy, debited: Debited) -> tuple[Release, str]:
    """The answer that follows from noisy measurements, and the text of its certificate."""
    cells = plan.cells(noisy)
    certificate, text = debited.certify(of_query(plan, noisy, cells))
    return Release(plan, noisy, plan.guarantee(), None, certificate, cells), text


def words(plan: ReleasePlan) -> str:
    """The question as it was written, or in words."""
    return plan.text or worded(plan.query)


def asked_in_words(asked: Query | str | ReleasePlan, plan: ReleasePlan) -> str:
    """The same for a question of a batch, whose plan may measure more than was asked."""
    return worded(asked) if isinstance(asked, Query) else words(plan)
