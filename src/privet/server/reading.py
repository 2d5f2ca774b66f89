"""Questions as they are sent, and answers as they are sent back. Nothing here waits, and nothing is paid for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from privet.codec import parsed
from privet.errors import Face, InternalError, LedgerError, QueryError, Remedy, ReusedRequest, Subject, UserError
from privet.exact import Exact, exact, literal
from privet.exact import nearest as to_float
from privet.planner import ReleasePlan
from privet.preview import Preview, explained, standing, within_budget
from privet.privacy.accounting import guarantee_of
from privet.privacy.events import from_tree, to_tree
from privet.privacy.guarantees import PureDP
from privet.privacy.guarantees.budgets import amount
from privet.release import Certificate, Release
from privet.release.batch import ReleasedBatch
from privet.release.recall import reopened as reopened_release
from privet.release.render.json import answer_tree, explanation_tree
from privet.server.models import Batch, CappedStatement, Question
from privet.server.plans import Plans
from privet.session import Session
from privet.tables.codec import RECORDS
from privet.tables.query import Query
from privet.tables.wording import worded

_MALFORMED = LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError
_CURVE = tuple(Exact(each) for each in ("1/4", "1/2", "1", "2", "4"))
_DRAWN = 2000  # cells up to which a curve is cheap
_CAPS = ("max_rows", "max_groups", "max_rows_per_group")
_NO_PLAN = {"fresh", "face"}  # fields of a question that make no difference to its plan


# --- questions ------------------------------------------------------------------------------------


def statement(session: Preview, asked: CappedStatement) -> Query | str:
    """The SELECT, or the query that a tree encodes; a tree about other tables is refused."""
    if asked.sql is not None:
        return asked.sql
    try:
        query = RECORDS.decode(asked.query)
    except UserError as error:
        raise QueryError(f"query: {error.what}", subject=Subject("argument", "query")) from None
    except (*_MALFORMED, InternalError):
        raise QueryError("query: this is not a query", subject=Subject("argument", "query")) from None
    if not isinstance(query, Query):
        raise QueryError("query: must be a query, not a part of one", subject=Subject("argument", "query"))
    session.dataset.catalog.check(query)
    return query


def plan(session: Preview, asked: Question, plans: Plans) -> ReleasePlan:
    """The plan of a question; one that was made before is kept. Which one fits the budget is decided each time."""
    stated = statement(session, asked)
    question, options = session.dataset.capped(stated, _caps(asked), _options(asked))
    sent = asked.model_dump_json(exclude=_NO_PLAN)
    made = plans.kept((session.name, session.analyst), sent, lambda: session.dataset.plan(question, **options))
    return within_budget(session, made, question, options)


def _options(asked: Question) -> dict[str, Any]:
    return {
        "epsilon": asked.epsilon,
        "delta": asked.delta,
        "rho": asked.rho,
        "within": asked.within,
        "confidence": asked.confidence,
        "simultaneous": asked.simultaneous,
        "assuming": asked.assuming,
        "weights": asked.weights,
        "mechanism": asked.mechanism,
    }


def batch(session: Preview, asked: Batch) -> tuple[dict[str, Query | str], dict[str, Any]]:
    """The questions of a batch, and its options."""
    questions: dict[str, Query | str] = {}
    for name, each in asked.questions.items():
        try:
            question, priced = session.dataset.capped(statement(session, each), _caps(each), {})
        except UserError as error:
            error.inside(f"question {name!r}")
            raise
        if priced:
            raise QueryError(f"question {name!r}: caps and a price in its OPTIONS can't be combined here")
        questions[name] = question
    names = ("epsilon", "delta", "rho", "within", "weights", "confidence", "simultaneous", "assuming", "mechanism")
    return questions, {name: getattr(asked, name) for name in names}


def _caps(asked: CappedStatement) -> dict[str, int | None]:
    return {name: getattr(asked, name) for name in _CAPS}


def reused(request_id: str) -> ReusedRequest:
    """The error of a key that is in use for another question."""
    return ReusedRequest(
        f"the request id {request_id!r} was already used for a different question or version",
        subject=Subject("argument", "request_id"),
        remedy=Remedy("Use a new request id, or none"),
    )


# --- what is free ---------------------------------------------------------------------------------


def parse(session: Preview, asked: CappedStatement) -> dict[str, Any]:
    """What a SELECT asks, as a tree and in words."""
    question, price = statement(session, asked), {}
    if isinstance(question, str):
        found = session.dataset.asked(question)
        question, price = found.query, dict(found.price)
    return {
        "query": RECORDS.encode(question),
        "words": worded(question),
        "options": {name: literal(number).strip('"') for name, number in price.items()},
    }


def explain(session: Preview, asked: Question, plans: Plans, face: Face = "http") -> dict[str, Any]:
    """A plan in JSON and in words, and what other prices would buy."""
    planned = plan(session, asked, plans)
    found = standing(session, planned)
    before = None if asked.fresh else found.before
    return {
        **explanation_tree(planned, paid_before=before),
        "text": str(explained(session, planned, found, fresh=asked.fresh, face=face)),
        "cost": amount(planned.guarantee() if before is None else PureDP.ZERO),
        "fits": before is not None or found.times > 0,
        "times": found.times,
        "curve": planned.once("curve", lambda made: curve(session, asked, made)),
    }


def explain_batch(session: Preview, asked: Batch) -> dict[str, Any]:
    """The plan of a batch in JSON and in words."""
    questions, options = batch(session, asked)
    planned = session.plan_all(questions, **options)
    before = None if asked.fresh else session.paid_before(planned)
    times = session.remaining.times(planned)
    return {
        "questions": {name: each.to_json() for name, each in planned.items()},
        "together": planned.together(),
        "event": to_tree(planned.whole),
        "paid_before": amount(before),
        "text": str(session.explain_all(planned, fresh=asked.fresh)),
        "cost": amount(planned.guarantee() if before is None else PureDP.ZERO),
        "fits": before is not None or times > 0,
        "times": times,
    }


def curve(session: Preview, asked: Question, planned: ReleasePlan) -> list[dict[str, Any]]:
    """The expected errors at a few prices around the plan's; none if that is expensive, or not in epsilon."""
    epsilon = getattr(planned.guarantee(), "epsilon", None)
    if epsilon is None or asked.rho is not None or planned.groups * len(planned.columns) > _DRAWN:
        return []
    priced = _at_prices(session, asked)
    points = []
    for factor in _CURVE:
        price = exact(epsilon) * factor
        text = literal(price).strip('"')
        with suppress(UserError):  # below the least price, for example
            at = planned if factor == 1 else session.dataset.replanned(planned, **priced(text))
            points.append({"epsilon": text, "expected_error": {name: _error(at, name) for name, _ in at.columns}})
    return points


def _at_prices(session: Preview, asked: Question) -> Callable[[str], dict[str, Any]]:
    """The options of a question at an epsilon; refused if its statement names another price."""
    options = _options(asked) | {"within": None}
    named = asked.sql is not None and "options" in asked.sql.casefold()  # only then it can name one
    found = session.dataset.asked(asked.sql) if asked.sql is not None and named else None

    def priced(epsilon: str) -> dict[str, Any]:
        at = options | {"epsilon": epsilon}
        return at if found is None else found.priced(at)

    return priced


def _error(planned: ReleasePlan, name: str) -> float | None:
    error = planned.expected(name)
    return None if error is None else to_float(error)


# --- answers --------------------------------------------------------------------------------------


def answer(released: Release, request_id: str | None) -> dict[str, Any]:
    """An answer as the API sends it."""
    document = released.certificate.document
    return {
        **answer_tree(released),
        "request_id": request_id,
        "entry": document["ledger"]["entry"],
        "certificate": {"document": document, "signature": released.certificate.signature},
    }


def batch_answer(released: ReleasedBatch, request_id: str | None) -> dict[str, Any]:
    """The answers to a batch as the API sends them."""
    answers = {name: answer(each, request_id) for name, each in released.items()}
    return {
        "answers": answers,
        "guarantee": amount(released.guarantee),
        "paid_before": released.paid_before,
        "spent": amount(PureDP.ZERO if released.paid_before else released.guarantee),
        "left": None if released.remaining is None else amount(released.remaining.guarantee),
        "request_id": request_id,
        "entry": next(iter(answers.values()))["entry"],
    }


def reopened(session: Session, text: str) -> Release | ReleasedBatch:
    """A stored answer from its text in the ledger, as it was first asked; the answers of a batch by their positions."""
    tree = parsed(text)
    remaining = None
    with suppress(LedgerError):
        remaining = session.remaining
    if "batch" not in tree:
        return replace(_stored(text), remaining=remaining)
    releases = {str(place): _stored(each) for place, each in enumerate(tree["batch"])}
    event = from_tree(next(iter(releases.values())).certificate.document["ledger"]["batch"]["event"])
    return ReleasedBatch(releases, guarantee_of([event]), paid_before=True, remaining=remaining)


def _stored(text: str) -> Release:
    return replace(reopened_release(Certificate.from_json(text)), spent=PureDP.ZERO)


def certificates(text: str) -> list[Mapping[str, Any]]:
    """The certificates of a stored answer: one, or those of a batch."""
    tree = parsed(text)
    return [parsed(each) for each in tree["batch"]] if "batch" in tree else [tree]
