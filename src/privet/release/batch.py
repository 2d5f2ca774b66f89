"""Answers that were planned, paid for and given together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from privet.codec import canonical, parsed
from privet.errors import NotChecked, VerificationError, install
from privet.ledger import Charge, Ledger, Remaining
from privet.planner import ReleasePlan
from privet.planner.batch import BatchPlan
from privet.privacy import events, pld
from privet.privacy.accounting import guarantee_of
from privet.privacy.guarantees import Guarantee
from privet.release.answer import Release
from privet.release.recall import asked_digest, question_digest, recalled


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedBatch(Mapping[str, Release]):
    """The answers to a batch of questions, by name.

    The guarantee of all of them together can be much better than the sum of theirs; each has its own as well.
    """

    releases: Mapping[str, Release]
    guarantee: Guarantee
    """Of all answers together, which is also what the batch cost, whether paid now or before."""
    paid_before: bool
    """Whether the answers were already stored, so that nothing was spent now."""
    remaining: Remaining | None = None
    """The budget that remains afterwards; None if unknown."""

    def __getitem__(self, name: str) -> Release:
        return self.releases[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.releases)

    def __len__(self) -> int:
        return len(self.releases)

    def __repr__(self) -> str:
        before = ", paid for before" if self.paid_before else ""
        return f"<ReleasedBatch of {', '.join(self)}: {self.guarantee}{before}>"

    def __str__(self) -> str:
        return "\n\n".join([*(f"{name}\n\n{release}" for name, release in self.items()), *self._below()])

    def _repr_html_(self) -> str:
        parts = [f"<h4>{escape(name)}</h4>\n{release._repr_html_()}" for name, release in self.items()]
        return "\n".join([*parts, *(f"<p>{escape(line)}</p>" for line in self._below())])

    def _below(self) -> list[str]:
        """What all answers cost together, and what is left."""
        before = "Paid for before" if self.paid_before else "Spent"
        left = "" if self.remaining is None else f"; {self.remaining} left"
        return [f"{before}, for all together: {self.guarantee}{left}."]


# --- in the ledger and in certificates --------------------------------------------------------------


def digests(batch: BatchPlan) -> tuple[str, str]:
    """The digest of the whole request, and that of what is measured, which names and noise do not change."""
    parts = list(batch.parts)
    return (
        asked_digest({"batch": [[name, asked_digest(plan)] for name, plan in batch.items()], "parts": parts}),
        asked_digest({"batch": [question_digest(plan) for plan in batch.values()], "parts": parts}),
    )


def linked(link: Mapping[str, Any], event: events.PrivacyEvent, part: int) -> dict[str, Any]:
    """How the certificate of a part refers to the debit of the whole."""
    return {**link, "batch": {"event": events.to_tree(event), "part": part}}


def packed(texts: Sequence[str]) -> str:
    """The certificates of a batch as one answer, for the ledger."""
    return canonical({"batch": list(texts)})


def recalled_batch(plans: Mapping[str, ReleasePlan], text: str) -> ReleasedBatch:
    """The answers of a batch from the ledger, for questions that measure the same."""
    texts = parsed(text)["batch"]
    releases = {name: recalled(plan, each) for (name, plan), each in zip(plans.items(), texts, strict=True)}
    first = next(iter(releases.values())).certificate.document["ledger"]["batch"]
    return ReleasedBatch(releases, guarantee_of([events.from_tree(first["event"])]), paid_before=True)


def batch_before(batch: BatchPlan, stored: Charge | None) -> Guarantee | None:
    """The cost of the stored answer that asking would return, as `recall.paid_before` has it for one question."""
    return None if stored is None or stored.answer is None else recalled_batch(batch, stored.answer).guarantee


# --- verification -----------------------------------------------------------------------------------


def batch_of(document: dict[str, Any]) -> events.Composed | events.FixedBatch | None:
    """The batch that a certificate refers to, which has its event as a part; None if it stands alone."""
    link = document["ledger"]
    if "batch" not in link:
        return None
    batch, part = events.from_tree(link["batch"]["event"]), link["batch"]["part"]
    if not isinstance(batch, events.Composed | events.FixedBatch) or set(link["batch"]) != {"event", "part"}:
        raise VerificationError("ledger.batch: must be a batch of events, and a part of it")
    if isinstance(batch, events.Composed) and any(map(_has_batch, batch.events)):
        raise VerificationError("ledger.batch: a batch can't have another one inside")
    if type(part) is not int or not 0 <= part < len(batch.events):
        raise VerificationError("ledger.batch.part: there is no such part")
    if batch.events[part] != events.from_tree(document["derived"]["event"]):
        raise VerificationError("ledger.batch: this part is another question")
    return batch


def _has_batch(event: events.PrivacyEvent) -> bool:
    """Whether there is a fixed batch inside, which would be taken at its word."""
    if isinstance(event, events.Composed):
        return any(map(_has_batch, event.events))
    if isinstance(event, events.Repeated):
        return _has_batch(event.event)
    return isinstance(event, events.FixedBatch)


def checked_batch(document: dict[str, Any]) -> str:
    """What a certificate promises of its batch, in words; raises if it promises too much."""
    batch = batch_of(document)
    if batch is None:
        return ""
    parts = f"{len(batch.events)} part{'' if len(batch.events) == 1 else 's'}"
    together = f". In its batch of {parts}: {guarantee_of([batch])} together"
    if isinstance(batch, events.Composed) or not pld.installed():
        return together
    if pld.batch_delta(batch) > batch.delta:
        raise VerificationError("ledger.batch: delta is too small for these events and this epsilon")
    return f"{together} (computed anew)"


def check_computed(document: dict[str, Any]) -> None:
    """Refuse to call a batch checked whose privacy loss can't be computed here; nothing else was wrong with it."""
    batch = batch_of(document)
    if isinstance(batch, events.FixedBatch) and not pld.installed():
        raise NotChecked(
            f"not checked: the guarantee of its batch, {guarantee_of([batch])}, is computed from the privacy loss of "
            "all questions, which needs dp-accounting",
            remedy=install("pld"),
        )


def holds(ledger: Ledger, dataset: str, number: int, digest: str, text: str) -> bool:
    """Whether a ledger's entry was answered with a batch that has this certificate."""
    answer = ledger.answer(dataset, number)
    if answer is None or hashlib.sha256(answer.encode()).hexdigest() != digest:
        return False
    return text in parsed(answer)["batch"]
