"""Answers that were paid for before: the same measurement, of the same data, from the ledger."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from privet.codec import canonical
from privet.errors import InternalError
from privet.exact import Exact
from privet.ledger import Charge
from privet.planner import ReleasePlan, discovery
from privet.planner.discovery import check_found
from privet.planner.facts import asked, derived, plan_again
from privet.privacy import events
from privet.privacy.guarantees import Guarantee, PureDP, budgets
from privet.release.answer import Release
from privet.release.certificate import Certificate


def asked_digest(plan: ReleasePlan | dict[str, Any]) -> str:
    """The digest of the whole request: two requests with the same id must agree in it."""
    return plan.once("request", lambda made: _digest(asked(made))) if isinstance(plan, ReleasePlan) else _digest(plan)


def question_digest(plan: ReleasePlan) -> str:
    """The digest of the measurement without its noise; names, intervals and arrangement make no difference."""
    return plan.once("question", _question_digest)


def _question_digest(plan: ReleasePlan) -> str:
    measured = [
        {name: fact for name, fact in part.items() if name not in ("price", "scale")}
        for part in derived(plan)["measurements"]
    ]
    bounded = [statement["bounding"] for statement in derived(plan)["statements"]]
    query = asked(plan)["query"]
    rows, by = query["input"], [key["expression"] for key in query["keys"]]
    found = {} if plan.discovery is None else {"holders": derived(plan)["discovery"]["holders"]["bounding"]}
    return _digest({"rows": rows, "by": by, "at most": bounded, "what": measured, **found})


def _digest(tree: Any) -> str:
    return hashlib.sha256(canonical(tree).encode()).hexdigest()


def recalled(plan: ReleasePlan, text: str) -> Release:
    """The answer to a plan from the certificate of an earlier one that measured the same, with its noise."""
    certificate = Certificate.from_json(text)
    derived_then = certificate.document["derived"]
    if plan.discovery is not None:
        plan = discovery.stored(plan, derived_then["discovery"])
        plan = plan.resolved([tuple(each) for each in certificate.document["found"]])
    event = events.from_tree(derived_then["event"])
    noised = tuple(
        part.restored(measured) for part, measured in zip(plan.noised, derived_then["measurements"], strict=True)
    )
    stated_at = certificate.document["asked"]["stated_at"]
    stored_plan = replace(
        plan,
        noised=noised,
        price=budgets.from_tree(derived_then["price"]),
        stated_at=None if stated_at is None else Exact(stated_at),
        raised_to=plan.raised_to if noised == plan.noised else None,
    )
    if stored_plan.event() != event:
        raise InternalError("the stored answer belongs to another question. This is a bug in Privet.")
    noisy = tuple(tuple(tuple(vector) for vector in part) for part in certificate.document["noisy"])
    return Release(stored_plan, noisy, PureDP.ZERO, None, certificate)


def paid_before(plan: ReleasePlan, stored: Charge | None) -> Guarantee | None:
    """The cost of the stored answer that asking would return; None if there is none, so asking costs budget."""
    if stored is None or stored.answer is None or not (plan.noised or plan.discovery):
        return None
    return recalled(plan, stored.answer).guarantee


def stored_line(before: Guarantee | None, *, fresh: bool) -> list[str]:
    """The line of `explain` about a stored answer, if there is one."""
    if before is None:
        return []
    if fresh:
        return [f"{'Stored':<11}An answer at {before} is stored and would be free; a fresh one costs budget."]
    return [f"{'Stored':<11}Already paid for, at {before}: asking returns the stored answer and spends nothing."]


def recalled_value(text: str, *, like: Any) -> tuple[Any, Certificate]:
    """A stated value from its certificate, in its original form: an array if it was one."""
    certificate = Certificate.from_json(text)
    released = certificate.document["answer"]
    if not isinstance(like, np.ndarray):
        return released, certificate
    array = np.array(released, dtype=object)
    numbers = array.ravel().tolist()
    whole = all(isinstance(x, int) for x in numbers)
    kind: Any = np.float64 if not whole else np.int64 if all(-(2**63) <= x < 2**63 for x in numbers) else object
    return array.astype(kind).reshape(like.shape), certificate


def planned_again(document: dict[str, Any]) -> ReleasePlan:
    """The plan of an answered question, by today's rules, from its certificate; with the keys that were found."""
    plan = plan_again(document["asked"])
    if plan.discovery is None:
        return plan
    return plan.resolved(check_found([tuple(each) for each in document["found"]], plan.query))


def reopened(certificate: Certificate) -> Release:
    """The release that a certificate states, with its own numbers: they differ between machines in their last bits.

    It is not verified here.
    """
    document = certificate.document
    plan = planned_again(document)
    noisy = tuple(tuple(tuple(vector) for vector in part) for part in document["noisy"])
    cells = {}
    for name, computed in plan.cells(noisy).items():
        stated = document["answer"][name]
        parts = [
            tuple(mine if theirs is None else theirs for mine, theirs in zip(part, stated[which], strict=True))
            for which, part in (("values", computed.values), ("low", computed.low), ("high", computed.high))
        ]
        cells[name] = replace(computed, values=parts[0], low=parts[1], high=parts[2], noisy=tuple(stated["noisy"]))
    return Release(plan, noisy, plan.guarantee(), None, certificate, cells)
