"""A question about tables, planned and ready to be paid for."""

from __future__ import annotations

from privet.errors import InternalError
from privet.planner import ReleasePlan
from privet.planner.choosing import GroupedCodes, chosen
from privet.planner.noise import add_noise
from privet.planner.ranks import ChosenRanks
from privet.planner.wording import worded
from privet.release import Release
from privet.release.certificate import of_query
from privet.release.recall import asked_digest, question_digest, recalled
from privet.requests.base import Debited, Request


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


def answered(plan: ReleasePlan, debited: Debited) -> tuple[Release, str]:
    """The answer to a question that is paid for, and the text of its certificate.

    Claim: the noise that is drawn is the noise that was paid for.
    """
    counts: list[int] | None = None
    noisy: tuple[tuple[tuple[int, ...], ...], ...]
    if plan.discovery is not None:
        held = debited.engine.holders(plan.discovery.holders)
        found, counts = plan.discovery.drawn(held, plan.limit)
        plan = plan.resolved(found)
    if counts is not None:  # their noise is drawn already, and nothing else is asked
        noisy, drawn = (tuple((count,) for count in counts),), plan.event()
    else:
        statements = plan.statements()
        exact = plan.coordinates(
            [debited.engine.answer(each) if plan.groups else [] for each in statements[: plan.summed]]
        )
        ranks = {
            place: chosen(part, GroupedCodes(statements[plan.statement_of(part)], debited.engine.histograms))
            for place, part in enumerate(plan.noised)
            if isinstance(part, ChosenRanks)
        }
        noisy, drawn = add_noise(plan, exact, ranks) if ranks else add_noise(plan, exact)
    if drawn != plan.event():
        raise InternalError("the noise that was drawn is not what was paid for")
    cells = plan.cells(noisy)
    certificate, text = debited.certify(of_query(plan, noisy, cells))
    return Release(plan, noisy, plan.guarantee(), None, certificate, cells), text


def words(plan: ReleasePlan) -> str:
    """The question as it was written, or in words."""
    return plan.text or worded(plan.query)
