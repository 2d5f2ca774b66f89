"""A batch: several questions that are planned first, paid for at once, and then answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from privet.errors import InternalError
from privet.planner import ReleasePlan
from privet.planner.batch import BatchPlan
from privet.release.batch import ReleasedBatch, digests, linked, packed, recalled_batch
from privet.release.recall import question_digest
from privet.requests import queries
from privet.requests.base import Debited, Request
from privet.tables.query import Query


def request(batch: BatchPlan, questions: Mapping[str, Query | str | ReleasePlan]) -> Request[ReleasedBatch]:
    """The request for the answers of all questions of a batch, or of none.

    Claim: noise is drawn once for each part of the event, and it is the noise that the part describes. Questions of
    the same part get the same noisy numbers. All questions see the tables in one state.
    """
    _check_parts(batch)

    def answer(debited: Debited) -> tuple[ReleasedBatch, str]:
        drawn: dict[int, queries.Drawn] = {}
        with debited.engine.snapshot() as looks:
            for part, plan in zip(batch.parts, batch.values(), strict=True):
                if part not in drawn:
                    drawn[part] = queries.measured(plan, looks)
        releases, texts = {}, []
        for part, (name, plan) in zip(batch.parts, batch.items(), strict=True):
            found, noisy = drawn[part]
            part_of = replace(debited, link=linked(debited.link, batch.whole, part))
            releases[name], text = queries.certified(queries.resolved(plan, found), noisy, part_of)
            texts.append(text)
        return ReleasedBatch(releases, batch.guarantee(), paid_before=False), packed(texts)

    def again(text: str) -> ReleasedBatch:
        return recalled_batch(batch, text)

    asked, question = digests(batch)
    texts = [f"{name}: {queries.asked_in_words(questions[name], plan)}" for name, plan in batch.items()]
    return Request(
        event=batch.whole,
        asked=asked,
        words=f"batch of {len(batch)}: {'; '.join(texts)}",
        answer=answer,
        again=again,
        question=question,
        statements=tuple(dict.fromkeys(each for plan in batch.values() for each in plan.asks())),
    )


def _check_parts(batch: BatchPlan) -> None:
    """Before anything is paid for: each part of the event is what the plans of that part will draw, and no more."""
    first = dict(reversed([*zip(batch.parts, batch.values(), strict=True)]))
    if sorted(first) != list(range(len(batch.whole.events))):
        raise InternalError("the parts of the batch are not those of its event. This is a bug in Privet.")
    for part, plan in zip(batch.parts, batch.values(), strict=True):
        same = plan.event() == batch.whole.events[part] and question_digest(plan) == question_digest(first[part])
        if not same:
            raise InternalError("a part of the batch is not what is paid for. This is a bug in Privet.")
