"""A batch: several questions that are planned first, paid for at once, and then answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from privet.errors import Remedy, Subject, UserError, argument, write
from privet.exact import Exact, Number, positive
from privet.ledger import Balance
from privet.planner import ReleasePlan
from privet.privacy import events
from privet.privacy.accounting import fixed_batch, guarantee_of
from privet.privacy.guarantees import ApproxDP, Budget
from privet.release.batch import ReleasedBatch, digests, linked, packed, recalled_batch
from privet.requests import queries
from privet.requests.base import Debited, Request
from privet.tables.schema import check_name


def request(plans: Mapping[str, ReleasePlan], event: events.Composed | events.FixedBatch) -> Request[ReleasedBatch]:
    """The request for the answers of all of these plans, or none; the parts of `event` are theirs."""

    def answer(debited: Debited) -> tuple[ReleasedBatch, str]:
        answers = [
            queries.answered(plan, replace(debited, link=linked(debited.link, event, i)))
            for i, plan in enumerate(plans.values())
        ]
        releases = dict(zip(plans, (release for release, _ in answers), strict=True))
        return ReleasedBatch(releases, guarantee_of([event]), paid_before=False), packed([t for _, t in answers])

    def again(text: str) -> ReleasedBatch:
        return recalled_batch(plans, text)

    asked, question = digests(plans)
    texts = [f"{name}: {queries.words(plan)}" for name, plan in plans.items()]
    return Request(
        event=event,
        asked=asked,
        words=f"batch of {len(plans)}: {'; '.join(texts)}",
        answer=answer,
        again=again,
        question=question,
        statements=tuple(each for plan in plans.values() for each in plan.asks()),
    )


def planned(questions: object, options: Mapping[str, Any], plan: Callable[..., ReleasePlan]) -> dict[str, ReleasePlan]:
    """The plans of a batch's questions, by name. Options hold for every question that is not a plan."""
    example = write('session.release_all({"men": men, "women": women}, epsilon=0.1)')
    if not isinstance(questions, Mapping) or not questions:
        raise UserError("a batch must be a dict of questions by name, at least one", remedy=example)
    if options and all(isinstance(each, ReleasePlan) for each in questions.values()):
        return {name: plan(each, **options) for name, each in questions.items()}  # says what is wrong
    return {
        check_name(name, "name"): plan(each) if isinstance(each, ReleasePlan) else plan(each, **options)
        for name, each in questions.items()
    }


def one_by_one(plans: Mapping[str, ReleasePlan]) -> events.Composed:
    """The event of a batch that costs what its questions would cost one by one."""
    return events.Composed([plan.event() for plan in plans.values()])


def together(
    plans: Mapping[str, ReleasePlan], delta: Number, balance: Balance, granted: Budget
) -> events.Composed | events.FixedBatch:
    """The event of a batch whose privacy loss is stated at one delta; one by one, where that is cheaper.

    Cheaper is what leaves more of the whole budget (`granted`), not of its rest: retries must choose the same.
    """
    separate = one_by_one(plans)
    choices = fixed_batch(separate.events, _delta(delta, balance.budget)), separate
    accountant = balance.accountant
    return min(choices, key=lambda event: -accountant.share(accountant.price(event), granted))


def _delta(delta: Number, budget: Budget) -> Exact:
    """The delta of a batch, which must have its place in the budget."""
    amount = positive(delta, name="delta", example="delta=1e-6")
    if not isinstance(budget, ApproxDP) or not budget.delta:
        raise UserError(
            f"a batch can't have a delta, since the budget has none: {budget}",
            subject=Subject("argument", "delta"),
            remedy=Remedy("Leave it out: the questions then cost what they would one by one"),
        )
    if amount >= 1:
        raise UserError("delta must be less than 1", remedy=argument("delta", 1e-6))
    return amount
