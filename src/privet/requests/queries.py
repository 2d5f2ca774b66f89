"""A question about tables, planned and ready to be paid for."""

from __future__ import annotations

from privet.engines.base import Looks
from privet.errors import InternalError
from privet.planner import ReleasePlan
from privet.planner.choosing import GroupedCodes, chosen
from privet.planner.noise import add_noise
from privet.planner.ranks import ChosenRanks
from privet.release import Release
from privet.release.certificate import of_query
from privet.release.recall import asked_digest, question_digest, recalled
from privet.requests.base import Debited, Request
from privet.tables.holders import Found
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
        statements=plan.asks(),
    )


Noisy = tuple[tuple[tuple[int, ...], ...], ...]
"""Noisy integers: by measurement, by group, by coordinate."""
Drawn = tuple[tuple[Found, ...] | None, Noisy]
"""The keys that were found, and the noisy integers of their groups."""


def answered(plan: ReleasePlan, debited: Debited) -> tuple[Release, str]:
    """The answer to a question that is paid for, and the text of its certificate."""
    with debited.engine.snapshot() as looks:
        found, noisy = measured(plan, looks)
    return certified(resolved(plan, found), noisy, debited)


def resolved(plan: ReleasePlan, found: tuple[Found, ...] | None) -> ReleasePlan:
    """The plan after keys were found; the plan itself, if all of its keys are public."""
    return plan if found is None else plan.resolved(found)


def measured(plan: ReleasePlan, looks: Looks) -> Drawn:
    """The keys that were found, if they are not public, and the measurements of a plan that is paid for, with noise.

    Claim: the noise that is drawn is the noise that was paid for, if all looks see the tables in one state. A row that
    changed between two of them could count twice, and its price covers it once.
    """
    counts: list[int] | None = None
    found: tuple[Found, ...] | None = None
    noisy: Noisy
    if plan.discovery is not None:
        found, counts = plan.discovery.drawn(looks.holders(plan.discovery.holders), plan.limit)
        plan = plan.resolved(found)
    if counts is not None:  # their noise is drawn already, and nothing else is asked
        noisy, drawn = (tuple((count,) for count in counts),), plan.event()
    else:
        statements = plan.statements()
        exact = plan.coordinates([looks.answer(each) if plan.groups else [] for each in statements[: plan.summed]])
        ranks = {
            place: chosen(part, GroupedCodes(statements[plan.statement_of(part)], looks.histograms))
            for place, part in enumerate(plan.noised)
            if isinstance(part, ChosenRanks)
        }
        noisy, drawn = add_noise(plan, exact, ranks) if ranks else add_noise(plan, exact)
    if drawn != plan.event():
        raise InternalError("the noise that was drawn is not what was paid for")
    return found, noisy


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
