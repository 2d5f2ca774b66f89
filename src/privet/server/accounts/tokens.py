"""API tokens: `privet_<id>_<secret>`, shown once and stored as a hash."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

from privet.errors import BudgetError, Subject
from privet.exact import Exact, nonnegative, show
from privet.server.accounts import hashing
from privet.server.accounts.base import Base, find, label_of, moment, person_of, token_of
from privet.server.accounts.errors import AccountError, StoreBusy
from privet.server.accounts.grants import Grant
from privet.server.accounts.records import Identity, Role, Token, both
from privet.server.accounts.store import changed
from privet.server.accounts.tables import tokens

_TEXT = re.compile(r"privet_([0-9a-f]{16})_([0-9a-f]{64})")
_TOUCH = 60  # seconds: how exactly the time of the last use is stored
_BITS = 512  # of a denominator: sums of odd fractions would grow without limit

_BY_ID = sa.select(tokens).where(tokens.c.id == sa.bindparam("n"))
_LOCKED = _BY_ID.with_for_update()


class Tokens(Base):
    """The operations on tokens."""

    def create_token(
        self,
        name: str,
        label: str,
        *,
        role: Role = Role.ANALYST,
        datasets: Collection[str] | None = None,
        max_epsilon: Exact | None = None,
        days: int = 90,
    ) -> tuple[str, Token]:
        """Create a token of a person; returns its text, which is never shown again, once it is on disk.

        Refused with an AccountError: a role or datasets that the person does not have. `datasets=None` means all that
        the person may ask, now or later.
        """
        label_of(label, "token")
        with self._store.writing() as connection:
            person = self._existing(connection, name)
            grant = Grant.to(person, role=role, datasets=datasets, max_epsilon=max_epsilon, days=days)
            text, key = grant.store(connection, self._store, person.name, label, self._now())
            token = token_of(_find(connection, key))
        return text, token

    def bearer(self, token_text: str) -> Identity | None:
        """Who makes a request with this token; None if it is wrong, expired or revoked, or its owner is disabled."""
        parts = _TEXT.fullmatch(token_text) if token_text.isascii() else None
        if parts is None:
            return None
        with self._store.reading() as connection:
            row = _find(connection, parts[1])
            owner = None if row is None else find(connection, row.name)
        if not hashing.same(hashing.digest(parts[2]), "" if row is None else row.hash):
            return None
        now, token = self._now(), token_of(row)
        if owner is None or owner.disabled or not token.is_live(moment(now)):
            return None
        if row.used is None or now >= row.used + _TOUCH:
            with suppress(StoreBusy), self._store.writing(alone=False) as connection:
                connection.execute(sa.update(tokens).where(tokens.c.id == row.id).values(used=now))
        person = person_of(owner)
        return Identity(person, token.role.at_most(person.role), both(person.datasets, token.datasets), token=token)

    def still_asks(self, identity: Identity, dataset: str) -> bool:
        """Whether somebody who has waited for their turn may still ask: nothing was revoked or disabled meanwhile."""
        with self._store.reading() as connection:
            row = find(connection, identity.person.name)
            token = None if identity.token is None else _find(connection, identity.token.id)
        if row is None or row.disabled:
            return False
        person = person_of(row)
        if identity.token is None:
            return Identity(person, person.role, person.datasets).may_ask(dataset)
        if token is None or not token_of(token).is_live(moment(self._now())):
            return False
        return Identity(person, person.role, both(person.datasets, token_of(token).datasets)).may_ask(dataset)

    def token(self, token_id: str) -> Token | None:
        """The token with this id."""
        with self._store.reading() as connection:
            row = _find(connection, token_id)
        return None if row is None else token_of(row)

    def tokens(self, name: str | None = None) -> list[Token]:
        """The tokens of a person, or all of them, newest first; revoked and expired ones too."""
        with self._store.reading() as connection:
            if name is not None and find(connection, name) is None:
                return []
            chosen = sa.select(tokens) if name is None else sa.select(tokens).where(tokens.c.name == name)
            rows = connection.execute(chosen.order_by(tokens.c.created.desc(), tokens.c.id)).all()
        return [token_of(row) for row in rows]

    def revoke_token(self, token_id: str) -> Token:
        """Revoke a token at once; AccountError if there is none. Revoking twice changes nothing."""
        with self._store.writing() as connection:
            row = _find(connection, token_id)
            if row is None:
                raise _no_such_token()
            if row.revoked is None:
                update = sa.update(tokens).where(tokens.c.id == row.id).values(revoked=self._now())
                changed(connection.execute(update), self._store)
            return token_of(_find(connection, row.id))

    def hold(self, token_id: str, epsilon: Exact) -> None:
        """Add to what a token has spent, on disk, BEFORE the ledger's debit.

        Claim: concurrent holds never pass max_epsilon together. Raises BudgetError if this one would, and AccountError
        if the token is not live any more; then nothing was held.
        """
        amount = nonnegative(epsilon, name="epsilon")
        with self._store.writing(alone=False) as connection:
            row = _find(connection, token_id, lock=True)
            if row is None or not (token := token_of(row)).is_live(moment(self._now())):
                raise _no_such_token()
            total = _shorter_up(token.spent + amount)
            if token.max_epsilon is not None and total > token.max_epsilon:
                error = BudgetError(
                    f"this question costs epsilon {show(amount)}, but its token may spend {show(token.max_epsilon)} "
                    f"and has {show(max(token.max_epsilon - token.spent, Exact(0)))} left. Nothing was spent",
                    subject=Subject("argument", "epsilon"),
                )
                error.spent = {"epsilon": "0"}
                raise error
            self._spend(connection, row, total)

    def give_back(self, token_id: str, epsilon: Exact) -> None:
        """Undo one `hold`, only where nothing was debited. What was spent never becomes negative."""
        amount = nonnegative(epsilon, name="epsilon")
        with self._store.writing(alone=False) as connection:
            row = _find(connection, token_id, lock=True)
            if row is None:
                raise _no_such_token()
            self._spend(connection, row, _shorter_up(max(Exact(row.spent) - amount, Exact(0))))

    def _spend(self, connection: sa.Connection, row: Any, total: Exact) -> None:
        update = sa.update(tokens).where(tokens.c.id == row.id).values(spent=str(total))
        changed(connection.execute(update), self._store)


def _find(connection: sa.Connection, key: str, *, lock: bool = False) -> Any:
    if re.fullmatch(r"[0-9a-f]{16}", key) is None:
        return None
    return connection.execute(_LOCKED if lock else _BY_ID, {"n": key}).one_or_none()


def _no_such_token() -> AccountError:
    return AccountError("there is no such token, or it is no longer valid")


def _shorter_up(total: Exact) -> Exact:
    """The same number, or a slightly larger one if its denominator is very long.

    Example:
        >>> _shorter_up(Exact(1, 3)), 0 < _shorter_up(Exact(1, 3**400)) - Exact(1, 3**400) < Exact(1, 2**500)
        (Fraction(1, 3), True)
    """
    if total.denominator.bit_length() <= _BITS:
        return total
    return Exact(-(-total.numerator * 2**_BITS // total.denominator), 2**_BITS)
