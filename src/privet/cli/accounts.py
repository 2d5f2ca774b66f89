"""The accounts of a policy, for `privet users` and `privet tokens`. They need no running server."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli.options import PolicyFile

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.policy import Policy
    from privet.server.accounts import Accounts, Person, Role, Token

POLICY = Path("privet.toml")
AsName = Annotated[
    str | None,
    typer.Option("--as", metavar="STEWARD", help="The steward who does this, for the ledger; by default cli:USER."),
]
Datasets = Annotated[
    list[str] | None, typer.Option("--dataset", help="A dataset that may be asked; by default all. Can be repeated.")
]
RoleName = Annotated[str, typer.Option("--role", help="analyst or steward.")]
__all__ = ["POLICY", "AsName", "Datasets", "Desk", "PolicyFile", "RoleName", "desk", "person_tree", "token_tree"]


@dataclass(frozen=True, slots=True)
class Desk:
    """The accounts and the ledger of a policy, and who acts on them."""

    policy: Policy
    accounts: Accounts
    origin: str
    """The address of the server."""
    by: str

    def recording(self, note: str, datasets: Collection[str] | None) -> AbstractContextManager[None]:
        """Within this block, an act is written into the ledger just before it is done: for some datasets, or all."""
        return self.accounts.noting(lambda: self._record(note, datasets))

    def _record(self, note: str, datasets: Collection[str] | None) -> None:
        from privet.ledger import open_ledger
        from privet.ledger.storage.database import NoLedger

        try:
            ledger = open_ledger(self.policy.ledger, create=False)
        except NoLedger:
            known = set[str]()
        else:
            try:
                all_ = set(ledger.datasets()) & set(self.policy.datasets)
                known = (all_ & set(datasets) if datasets else all_) or all_
                if known:
                    ledger.administer(known, note, by=self.by)
            finally:
                ledger.close()
        if not known:
            print("Not recorded in the ledger, which has no dataset yet.", file=sys.stderr)

    def checked(self, datasets: list[str] | None) -> frozenset[str] | None:
        """The datasets that were named, if the policy has all of them; None for all."""
        from privet.errors import Subject, UserError

        for name in datasets or ():
            if name not in self.policy.datasets:
                raise UserError(
                    f"there is no dataset {name!r}",
                    allowed=f"The datasets are: {', '.join(self.policy.datasets)}",
                    subject=Subject("dataset", name),
                )
        return frozenset(datasets) if datasets else None

    def link(self, secret: str) -> str:
        """The one-time link with this secret."""
        return f"{self.origin}/welcome/{secret}"

    def person(self, name: str) -> Person:
        """The person with this name; an error if there is none."""
        from privet.server.accounts.base import no_such_person

        person = self.accounts.person(name)
        if person is None:
            raise no_such_person(name)
        return person


@contextmanager
def desk(policy: Path, as_name: str | None = None, *, create: bool = False) -> Iterator[Desk]:
    """Open the accounts of a policy; with `create`, they are created if they are missing."""
    from privet.errors import UserError, install
    from privet.policy import load

    try:
        from privet.server.accounts import AccountError, Accounts, Role
        from privet.server.settings import Settings
    except ImportError:
        raise UserError("accounts need the extra 'server'", remedy=install("server")) from None
    read = load(policy)
    settings = Settings.of(read)
    with Accounts.open(settings.accounts, create=create) as accounts:
        by = cli_user() if as_name is None else as_name
        if as_name is not None:
            person = accounts.person(as_name)
            if person is None or person.disabled or person.role is not Role.STEWARD:
                raise AccountError(f"{as_name!r} is not a steward's account, so nothing can be done in its name")
            by = person.name
        yield Desk(read, accounts, settings.origin, by)


def cli_user() -> str:
    """Who acts on the command line, for the ledger: the operating system's user."""
    try:
        import pwd

        return f"cli:{pwd.getpwuid(os.getuid()).pw_name}"
    except (ImportError, KeyError):  # Windows, or a user without a name
        name = os.environ.get("USERNAME") or (str(os.getuid()) if hasattr(os, "getuid") else "unknown")
        return f"cli:{name}"


def role_of(text: str) -> Role:
    """The role with this name."""
    from privet.errors import UserError, argument
    from privet.server.accounts import Role

    if text not in [*Role]:
        roles = ", ".join(Role)
        raise UserError(
            f"there is no role {text!r}", allowed=f"The roles are: {roles}", remedy=argument("role", "analyst")
        )
    return Role(text)


def in_words(datasets: Collection[str] | None) -> str:
    """Which datasets, in words.

    Example:
        >>> in_words(None), in_words(["b", "a"])
        ('every dataset', 'a, b')
    """
    return "every dataset" if datasets is None else ", ".join(sorted(datasets)) or "no dataset"


def person_tree(person: Person) -> dict[str, Any]:
    """A person, for programs."""
    return {
        "name": person.name,
        "role": str(person.role),
        "datasets": None if person.datasets is None else sorted(person.datasets),
        "disabled": person.disabled,
        "has_password": person.has_password,
    }


def token_tree(token: Token) -> dict[str, Any]:
    """A token without its secret, for programs."""
    from privet.exact import literal

    return {
        "id": token.id,
        "name": token.name,
        "label": token.label,
        "role": str(token.role),
        "datasets": None if token.datasets is None else sorted(token.datasets),
        "max_epsilon": None if token.max_epsilon is None else literal(token.max_epsilon).strip('"'),
        "spent": literal(token.spent).strip('"'),
        "created": token.created.isoformat(),
        "expires": token.expires.isoformat(),
        "revoked": token.revoked is not None,
        "last_used": None if token.last_used is None else token.last_used.isoformat(),
    }
