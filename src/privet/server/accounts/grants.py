"""What a new token may do at most: checked against its owner, then stored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa

from privet.errors import Subject
from privet.exact import Exact, positive, whole
from privet.server.accounts import hashing, throttle
from privet.server.accounts.base import person_of, scope_of, scope_text
from privet.server.accounts.errors import AccountError
from privet.server.accounts.records import Role
from privet.server.accounts.store import Store, changed
from privet.server.accounts.tables import tokens

MOST_DAYS = 366
"""The longest life of a token."""
MOST_TOKENS = 100
"""The most live tokens of a person."""
_DAY = 24 * 3600


@dataclass(frozen=True, slots=True)
class Grant:
    """The role, the datasets, the largest epsilon and the lifetime of a token."""

    role: Role
    datasets: str | None
    """As stored."""
    max_epsilon: str | None
    days: int

    @classmethod
    def to(
        cls, person: Any, *, role: Role, datasets: Collection[str] | None, max_epsilon: Exact | None, days: int
    ) -> Self:
        """A grant to a person; refused if it is more than they have themselves."""
        owner, text = person_of(person), scope_text(datasets)
        role, wanted = Role(role), scope_of(text)
        if owner.disabled:
            raise AccountError(f"{owner.name!r} is disabled")
        if role.at_most(owner.role) is not role:
            raise AccountError(
                f"{owner.name!r} is an analyst and can't have a steward's token", subject=Subject("argument", "role")
            )
        more = sorted(wanted - owner.datasets) if wanted is not None and owner.datasets is not None else []
        if more:
            raise AccountError(
                f"{owner.name!r} may not ask the dataset {more[0]!r}", subject=Subject("argument", "datasets")
            )
        if whole(days, name="days") > MOST_DAYS:
            raise AccountError(f"a token lasts at most {MOST_DAYS} days", subject=Subject("argument", "days"))
        most = None if max_epsilon is None else str(positive(max_epsilon, name="max_epsilon"))
        return cls(role, text, most, whole(days, name="days"))

    def store(self, connection: sa.Connection, where: Store, name: str, label: str, now: int) -> tuple[str, str]:
        """Store a new token with this grant; returns its text and its id."""
        live = (tokens.c.name == name) & tokens.c.revoked.is_(None) & (tokens.c.expires > now)
        count = connection.execute(sa.select(sa.func.count()).select_from(tokens).where(live)).scalar() or 0
        if count >= MOST_TOKENS:
            raise AccountError(f"{name!r} has {count} tokens, which is the maximum. Revoke one first")
        throttle.charge(connection, now, [(hashing.keyed(where.key, "tokens", name), throttle.TOKENS)])
        key, secret = hashing.new_id(), hashing.new_secret()
        row = {
            "id": key,
            "hash": hashing.digest(secret),
            "name": name,
            "label": label,
            "role": self.role,
            "datasets": self.datasets,
            "max_epsilon": self.max_epsilon,
            "spent": "0",
            "created": now,
            "expires": now + self.days * _DAY,
        }
        changed(connection.execute(sa.insert(tokens).values(row)), where)
        return f"privet_{key}_{secret}", key
