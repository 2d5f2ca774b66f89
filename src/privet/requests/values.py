"""Your own statistics and choices: the data stay with you, and only the noise and the price are Privet's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privet.errors import AccountingError, QueryError
from privet.ledger import Balance
from privet.mechanisms.described import Adding, Choosing, payable
from privet.mechanisms.scores import labels_of, pick
from privet.privacy import events
from privet.privacy.guarantees import Budget, Guarantee, PureDP
from privet.privacy.guarantees.budgets import numbers
from privet.release import Certificate
from privet.release.certificate import of_choice, of_value
from privet.release.recall import asked_digest, recalled_value
from privet.release.value import ReleasedValue
from privet.requests.base import Debited, Request


def statistic(value: Any, noise: Adding, label: str, event: events.PrivacyEvent) -> Request[ReleasedValue]:
    """The request for a value with noise; `event` is the noise's, perhaps stated at an epsilon."""

    def answer(debited: Debited) -> tuple[ReleasedValue, str]:
        released = noise.release(value)
        plain = released.tolist() if hasattr(released, "tolist") else released
        level = event.epsilon if isinstance(event, events.GaussianNoise) else None
        certificate, text = debited.certify(of_value(noise, plain, label, stated_at=level))
        return ReleasedValue(released, noise, noise.guarantee(), None, certificate), text

    def again(text: str) -> ReleasedValue:
        released, certificate = recalled_value(text, like=value)
        return ReleasedValue(released, noise, PureDP.ZERO, None, certificate)

    form = [type(value).__name__, list(getattr(value, "shape", ()))]
    asked = asked_digest({**of_value(noise, None, label)["asked"], "form": form})
    return Request(event=event, asked=asked, words=f"release_value: {label}", answer=answer, again=again)


def choice(
    scores: Any, chooser: Choosing, label: str, *, count: int, candidates: Sequence[Any] | None
) -> Request[ReleasedValue]:
    """The request for a choice by `count` scores: one of the candidates, or its position if none are given."""
    listed = None if candidates is None else labels_of(pick(candidates, count))

    def result(position: int | None, spent: Guarantee, certificate: Certificate) -> ReleasedValue:
        chosen = position if listed is None or position is None else listed[position]
        return ReleasedValue(chosen, chooser, spent, None, certificate)

    def answer(debited: Debited) -> tuple[ReleasedValue, str]:
        position: int | None = chooser.select(scores)
        certificate, text = debited.certify(of_choice(chooser, position, label, count=count, candidates=listed))
        return result(position, chooser.guarantee(), certificate), text

    def again(text: str) -> ReleasedValue:
        certificate = Certificate.from_json(text)
        return result(certificate.document["answer"]["position"], PureDP.ZERO, certificate)

    asked = asked_digest(of_choice(chooser, None, label, count=count, candidates=listed)["asked"])
    return Request(event=chooser.event(), asked=asked, words=f"select: {label}", answer=answer, again=again)


def check_payable(mechanism: Adding | Choosing, balance: Balance) -> None:
    """Refuse, before anything is paid for, a mechanism that has no price under this budget."""
    try:
        balance.accountant.price(mechanism.event())
    except AccountingError:
        raise QueryError(
            f"{mechanism!r} has no price in {_names(balance.budget)}, and the budget is {balance.budget}. "
            "Nothing was spent",
            remedy=payable(balance.budget),
        ) from None


def _names(budget: Budget) -> str:
    """The numbers of a budget in words: epsilon alone, or epsilon and delta."""
    names = list(numbers(budget))
    return " and ".join(names) if len(names) > 1 else f"{names[0]} alone"
