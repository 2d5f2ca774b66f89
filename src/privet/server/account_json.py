"""Accounts and tokens as JSON: the API sends, and the command line prints, the same."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line imports this, and `privet --help` is quick
    from privet.server.accounts import Person, Token


def person_tree(person: Person) -> dict[str, Any]:
    """An account."""
    return {
        "name": person.name,
        "role": str(person.role),
        "datasets": None if person.datasets is None else sorted(person.datasets),
        "disabled": person.disabled,
        "has_password": person.has_password,
        "openid": person.openid,
        "linked": person.linked,
    }


def token_tree(token: Token) -> dict[str, Any]:
    """A token without its secret."""
    from privet.exact import literal

    return {
        "id": token.id,
        "name": token.name,
        "label": token.label,
        "role": str(token.role),
        "datasets": None if token.datasets is None else sorted(token.datasets),
        "max_epsilon": None if token.max_epsilon is None else literal(token.max_epsilon).strip('"'),
        "spent": literal(token.spent).strip('"'),
        "created": _time(token.created),
        "expires": _time(token.expires),
        "revoked": token.revoked is not None,
        "last_used": None if token.last_used is None else _time(token.last_used),
    }


def _time(at: datetime) -> str:
    return at.isoformat(timespec="seconds")
