"""Answers that were paid for before: the same measurement, of the same data, from the ledger."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from privet import events
from privet.canonical import canonical
from privet.errors import InternalError
from privet.guarantees import ApproxDP, PureDP
from privet.ledger import Ledger
from privet.planner import ReleasePlan
from privet.planner.facts import asked, derived
from privet.relation.codec import encode
from privet.release.answer import Release
from privet.release.certificate import Certificate


def asked_digest(made: ReleasePlan | dict[str, Any]) -> str:
    """Of all that was asked: two requests with one id must agree in it."""
    return _digest(asked(made) if isinstance(made, ReleasePlan) else made)


def question_digest(made: ReleasePlan) -> str:
    """Of what is measured, but for the noise: names, intervals and what is shown do not matter."""
    measured = [
        {name: fact for name, fact in part.items() if name not in ("epsilon", "scale")}
        for part in derived(made)["measurements"]
    ]
    bounded = [encode(statement.bounding) for statement in made.statements()]
    of, by = encode(made.query.of), [encode(key.of) for key in made.query.keys]
    return _digest({"of": of, "by": by, "at most": bounded, "what": measured})


def _digest(tree: Any) -> str:
    return hashlib.sha256(canonical(tree).encode()).hexdigest()


def recalled(made: ReleasePlan, text: str, remaining: PureDP | ApproxDP | None = None) -> Release:
    """The answer to a plan from the certificate of an earlier one that measured the same, with its noise."""
    certificate = Certificate.from_json(text)
    event = events.from_tree(certificate.document["derived"]["event"])
    assert isinstance(event, events.Composed)
    noised = []
    for part, drawn in zip(made.noised, event.events, strict=True):
        if not isinstance(drawn, events.Laplace) or drawn.sensitivity != part.sensitivity:
            raise InternalError("the stored answer is not one to this question. This is a bug in Privet.")
        noised.append(replace(part, epsilon=drawn.sensitivity / drawn.scale))
    price = sum((part.epsilon for part in noised), 0 * made.epsilon)
    raised_to = made.raised_to if price == made.epsilon else None
    plan = replace(made, noised=tuple(noised), epsilon=price, raised_to=raised_to)
    noisy = tuple(tuple(tuple(vector) for vector in part) for part in certificate.document["noisy"])
    return Release(plan, noisy, PureDP.ZERO, remaining, certificate)


def paid_before(
    made: ReleasePlan, ledger: Ledger, *, dataset: str, analyst: str, version: str, share: bool = True
) -> PureDP | None:
    """What the stored answer cost that asking would return; None if asking would have to be paid for.

    Claim: it is found by the rule of `Ledger.reserve`, so it tells an analyst nothing that asking would not.
    """
    found = ledger.stored(
        dataset=dataset,
        analyst=analyst,
        events=[made.event()],
        question=question_digest(made),
        version=version,
        share=share,
    )
    if found is None or found.answer is None or not made.noised:
        return None
    return recalled(made, found.answer, PureDP.ZERO).guarantee


def stored_line(before: PureDP | None, *, fresh: bool) -> list[str]:
    """What `explain` says about an answer that is stored, if one is."""
    if before is None:
        return []
    if fresh:
        return [f"{'Stored':<11}An answer at {before} is stored and would be free; a fresh one is paid for."]
    return [f"{'Stored':<11}Paid for already, at {before}: asking returns the stored answer and spends nothing."]


def recalled_value(text: str, *, like: Any) -> tuple[Any, Certificate]:
    """A stated value from its certificate, in the form in which it was given: an array if it was one."""
    certificate = Certificate.from_json(text)
    released = certificate.document["answer"]
    if not isinstance(like, np.ndarray):
        return released, certificate
    found = np.array(released, dtype=object)
    numbers = found.ravel().tolist()
    whole = all(isinstance(x, int) for x in numbers)
    kind: Any = np.float64 if not whole else np.int64 if all(-(2**63) <= x < 2**63 for x in numbers) else object
    return found.astype(kind).reshape(like.shape), certificate
