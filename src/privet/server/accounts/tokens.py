"""API tokens: `privet_<id>_<secret>`, shown once and stored as a hash."""

from __future__ import annotations

from collections.abc import Collection

from privet.exact import Exact
from privet.server.accounts.base import Base
from privet.server.accounts.records import Identity, Role, Token


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
        raise NotImplementedError

    def bearer(self, token_text: str) -> Identity | None:
        """Who makes a request with this token; None if it is wrong, expired or revoked, or its owner is disabled."""
        raise NotImplementedError

    def token(self, token_id: str) -> Token | None:
        """The token with this id."""
        raise NotImplementedError

    def tokens(self, name: str | None = None) -> list[Token]:
        """The tokens of a person, or all of them, newest first; revoked and expired ones too."""
        raise NotImplementedError

    def revoke_token(self, token_id: str) -> Token:
        """Revoke a token at once; AccountError if there is none. Revoking twice changes nothing."""
        raise NotImplementedError

    def hold(self, token_id: str, epsilon: Exact) -> None:
        """Add to what a token has spent, on disk, BEFORE the ledger's debit.

        Claim: concurrent holds never pass max_epsilon together. Raises BudgetError if this one would, and AccountError
        if the token is not live any more; then nothing was held.
        """
        raise NotImplementedError

    def give_back(self, token_id: str, epsilon: Exact) -> None:
        """Undo one `hold`, only where nothing was debited. What was spent never becomes negative."""
        raise NotImplementedError
