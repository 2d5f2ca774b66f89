"""An answer that a server sent: verified, and compared with the question that was asked.

Claim: what is returned has a certificate that holds; it is about the asked question, at the asked price or with less
noise; and all numbers in it come from that certificate. A server that invents consistent noisy numbers is noticed only
with the steward's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from privet.client.problems import clean
from privet.codec import canonical
from privet.errors import InternalError, NotChecked, UserError, VerificationError
from privet.ledger.debits import serves
from privet.planner import ReleasePlan
from privet.planner.batch import BatchPlan
from privet.planner.facts import asked
from privet.privacy import events
from privet.privacy.guarantees import PureDP
from privet.release import Release, verify
from privet.release.batch import ReleasedBatch, packed, recalled_batch
from privet.release.certificate import Certificate, plain
from privet.release.recall import planned_again, question_digest, recalled
from privet.release.signing import VerifyingKey

_WRONG = "The server's answer was not accepted. If it was paid for, the debit stays"


@dataclass(frozen=True, slots=True)
class Expected:
    """What an answer must be about, besides its question."""

    dataset: str
    analyst: str
    request_id: str
    fresh: bool
    own: bool
    """Whether this call made the request id, so that nobody can have used it before."""
    key: VerifyingKey | None = None
    """The key that must have signed the certificate; None to take it without."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A certificate that holds, as far as it goes: which question it answers is not compared yet."""

    certificate: Certificate
    text: str
    new: bool
    """Whether it was made for this request; else it was stored before."""

    @property
    def mechanism(self) -> str:
        """The mechanism that it names."""
        return str(self.certificate.document["asked"]["mechanism"])

    @property
    def link(self) -> Mapping[str, Any]:
        """Its reference to the debit."""
        link: Mapping[str, Any] = self.certificate.document["ledger"]
        return link


def arrived(tree: Any, expected: Expected) -> Arrived:
    """The certificate of an answer, verified."""
    sent = _field(tree, "certificate", dict)
    try:
        certificate = Certificate.from_json(canonical(sent))
    except (ValueError, TypeError, RecursionError):
        raise refusal("it has no certificate") from None
    try:
        verify(certificate, key=expected.key)
    except NotChecked:
        raise  # nothing wrong was found: it says what to install
    except VerificationError as error:
        raise refusal(f"its certificate does not hold: {clean(error, most=300)}{_versions(certificate)}") from None
    document = certificate.document
    if document["dataset"] != expected.dataset:
        raise refusal(f"it is about the dataset {clean(document['dataset'], most=60)!r}, not {expected.dataset!r}")
    if document["kind"] != "query":
        raise refusal("it is not the answer to a question about tables")
    link = document["ledger"]
    new = link.get("request_id") == expected.request_id
    if new and link.get("analyst") != expected.analyst:
        raise refusal(f"it was made for {clean(link.get('analyst'), most=60)!r}, not for {expected.analyst!r}")
    return Arrived(certificate, certificate.to_json(), new)


def check_head(tree: Any, expected: Expected) -> bool:
    """Whether the server says that the answer was stored before; its request id must be ours."""
    if _field(tree, "request_id", str) != expected.request_id:
        raise refusal("it has another request id")
    return bool(_field(tree, "paid_before", bool))


def answer(tree: Any, plan: ReleasePlan, expected: Expected, one: Arrived) -> Release:
    """The release of a plan, from its verified certificate."""
    before = check_head(tree, expected)
    _check_time(one, expected, before=before)
    if _field(tree, "entry", int) != one.link.get("entry"):
        raise refusal("its certificate refers to another entry of the ledger")
    _check_question(one, plan)
    try:
        released = recalled(plan, one.text)
    except (InternalError, UserError, LookupError, ValueError):
        raise refusal("its certificate answers another question") from None
    paid_now = one.new and (expected.own or not before)
    return replace(released, spent=released.plan.guarantee() if paid_now else PureDP.ZERO)


def answers(tree: Any, batch: BatchPlan, expected: Expected, certificates: Mapping[str, Arrived]) -> ReleasedBatch:
    """The releases of a batch, from their verified certificates."""
    before = check_head(tree, expected)
    links = [one.link for one in certificates.values()]
    debits = {(link.get("entry"), link.get("hash"), link.get("request_id")) for link in links}
    if list(certificates) != list(batch) or len(debits) != 1:
        raise refusal("its certificates are not those of one batch")
    wholes = {canonical(link.get("batch", {}).get("event")) for link in links}
    first = next(iter(certificates.values()))
    whole = whole_of(first)
    if len(wholes) != 1 or [link["batch"]["part"] for link in links] != list(batch.parts):
        raise refusal("its certificates are not those of one batch")
    for (name, one), plan in zip(certificates.items(), batch.values(), strict=True):
        _check_time(one, expected, before=before)
        _check_question(one, plan, inside=f"question {name!r}: ")
    if whole != batch.whole if first.new else not serves([whole], [batch.whole]):
        raise refusal("its certificates are of a batch with another price")
    try:
        released = recalled_batch(batch, packed([one.text for one in certificates.values()]))
    except (InternalError, UserError, LookupError, ValueError):
        raise refusal("its certificates answer other questions") from None
    paid_now = first.new and (expected.own or not before)
    if not paid_now:
        return released
    spent = {name: replace(each, spent=each.plan.guarantee()) for name, each in released.items()}
    return replace(released, releases=spent, paid_before=False)


def whole_of(one: Arrived) -> events.PrivacyEvent:
    """The event of the batch that a certificate belongs to."""
    try:
        return events.from_tree(one.link["batch"]["event"])
    except (LookupError, TypeError, ValueError):
        raise refusal("its certificate is not of a batch") from None


def _check_time(one: Arrived, expected: Expected, *, before: bool) -> None:
    if not one.new and expected.fresh:
        raise refusal("it is an older answer, and a fresh one was asked for")
    if not one.new and not before:
        raise refusal("its certificate was made for another request")


def check_question(stated: Mapping[str, Any], plan: ReleasePlan, what: str) -> None:
    """Refuse a statement of a question that is not the planned one, in all of its parts."""
    mine = plain(asked(plan))
    different = [name for name in mine if stated.get(name) != mine[name]]
    if different:
        raise refusal(f"{what}: it differs in its {different[0]}")


def _check_question(one: Arrived, plan: ReleasePlan, *, inside: str = "") -> None:
    """Refuse a certificate of another question, or with more noise than was asked for.

    What was made for this request states exactly what was asked. An older answer may have other names, intervals and
    order, and less noise: it measured the same.
    """
    if one.new:
        check_question(one.certificate.document["asked"], plan, f"{inside}its certificate answers another question")
        return
    again = planned_again(one.certificate.document)
    if question_digest(again) != question_digest(plan):
        raise refusal(f"{inside}its certificate answers another question")
    if not serves([again.event()], [plan.event()]):
        raise refusal(f"{inside}it has more noise than was asked for")


def _field(tree: Any, name: str, kind: type) -> Any:
    value = tree.get(name) if isinstance(tree, dict) else None
    if type(value) is not kind:
        raise refusal(f"its {name} is missing")
    return value


def _versions(certificate: Certificate) -> str:
    mine, theirs = version("privet"), clean(certificate.document.get("version"), most=40)
    return "" if theirs == mine else f" (the server has Privet {theirs}, and this is {mine})"


def refusal(why: str) -> VerificationError:
    """The error for what a server sent and should not have."""
    return VerificationError(f"{_WRONG}: {why}")
