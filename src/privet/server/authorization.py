"""May you: every route has one rule, and this table says whom it admits."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from enum import StrEnum

from privet.server.accounts import Identity, Role
from privet.server.problems import Refusal


class Rule(StrEnum):
    """Who may use a route.

    What is about a dataset admits only those who may ask that dataset; for others it is not found.
    """

    ANYONE = "anyone"
    """No account is needed."""
    SIGNED_IN = "signed in"
    """Any account."""
    ASKS = "asks the dataset"
    """Any account that may ask the dataset of the path."""
    STEWARD_OF = "steward of the dataset"
    """A steward who may ask the dataset of the path."""
    STEWARD = "steward"
    """A steward of all datasets: what concerns the whole ledger."""
    IN_PERSON = "in person"
    """Somebody who has signed in to the page, or a steward's token without any limit: it hands out access."""
    ADMINISTERS = "administers"
    """The same, and a steward of all datasets: it changes accounts."""


def _in_person(identity: Identity) -> bool:
    token = identity.token
    return token is None or (_everywhere(identity) and token.max_epsilon is None)


def _everywhere(identity: Identity) -> bool:
    return identity.role is Role.STEWARD and identity.datasets is None


ADMITS: Mapping[Rule, Callable[[Identity], bool]] = {
    Rule.SIGNED_IN: lambda identity: True,
    Rule.ASKS: lambda identity: True,
    Rule.STEWARD_OF: lambda identity: identity.role is Role.STEWARD,
    Rule.STEWARD: _everywhere,
    Rule.IN_PERSON: _in_person,
    Rule.ADMINISTERS: lambda identity: _everywhere(identity) and _in_person(identity),
}
"""For each rule that needs an account, whether it admits one. Which datasets are in scope is checked besides."""
OF_A_DATASET = frozenset({Rule.ASKS, Rule.STEWARD_OF})
"""The rules of routes with a dataset in their path."""

NOT_FOUND = "There is nothing at this address"


def check(rule: Rule, identity: Identity | None, dataset: str | None, known: Container[str]) -> None:
    """Refuse whom the rule does not admit; a dataset out of scope is not found, whether or not it exists."""
    if rule is Rule.ANYONE:
        return
    if identity is None:
        raise Refusal(401, "Sign in, or send a token", headers={"WWW-Authenticate": 'Bearer realm="privet"'})
    if rule in OF_A_DATASET and (dataset is None or dataset not in known or not identity.may_ask(dataset)):
        raise Refusal(404, NOT_FOUND)
    if not ADMITS[rule](identity):
        raise Refusal(403, "Your account, or this token, may not do this")
