"""The accounts of a policy, for `privet users` and `privet tokens`. They need no running server."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli.options import PolicyFile
from privet.server.account_json import person_tree, token_tree

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.policy import Policy
    from privet.server.accounts import Accounts, Person, Role

POLICY = Path("privet.toml")
AsName = Annotated[
    str | None,
    typer.Option("--as", metavar="STEWARD", help="The steward who does this, for the ledger; by default cli:USER."),
]
Datasets = Annotated[
    list[str] | None,
    typer.Option("--dataset", help="A dataset that may be asked; by default all of the account's. Can be repeated."),
]
Listen = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS:PORT", help="Where the server listens, if privet serve was started with --listen."),
]
OpenIDClaim = Annotated[
    str | None,
    typer.Option("--openid", help="Their e-mail address, or other claim, at the provider of OpenID Connect."),
]
RoleName = Annotated[str, typer.Option("--role", help="analyst or steward.")]
__all__ = [
    "POLICY",
    "AsName",
    "Datasets",
    "Desk",
    "Listen",
    "OpenIDClaim",
    "PolicyFile",
    "RoleName",
    "desk",
    "person_tree",
    "token_tree",
]


@dataclass(frozen=True, slots=True)
class Desk:
    """The accounts and the ledger of a policy, and who acts on them."""

    policy: Policy
    accounts: Accounts
    origin: str
    """The address of the server."""
    by: str
    named: bool
    """Whether the address was named; otherwise a server that was started with --listen has another."""
    passwords: bool
    """Whether people may sign in with a password."""

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

    def chosen(self, datasets: list[str] | None, every: bool) -> frozenset[str] | None:
        """The datasets that somebody may ask, None for all: nobody gets access that was not named."""
        from privet.errors import Remedy, UserError

        if every and datasets:
            raise UserError("name datasets, or every dataset, not both")
        if not every and not datasets:
            raise UserError(
                "the datasets that they may ask are missing",
                allowed=f"The datasets are: {', '.join(self.policy.datasets)}",
                remedy=Remedy(f"Add --dataset {shlex.quote(next(iter(self.policy.datasets)))}, or --every-dataset"),
            )
        return self.checked(datasets)

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
def desk(
    policy: Path, as_name: str | None = None, *, create: bool = False, listen: str | None = None
) -> Iterator[Desk]:
    """Open the accounts of a policy; with `create`, they are created if they are missing."""
    from privet.errors import UserError, install
    from privet.policy import load
    from privet.policy.server_shape import ServerShape, checked_listen

    try:
        from privet.server.accounts import AccountError, Accounts, Role
        from privet.server.settings import Settings
    except ImportError:
        raise UserError("accounts need the extra 'server'", remedy=install("server")) from None
    read = load(policy)
    settings = Settings.of(read, listen=None if listen is None else checked_listen(listen))
    named = listen is not None or (read.shape.server or ServerShape()).address is not None
    with Accounts.open(settings.accounts, create=create) as accounts:
        by = cli_user() if as_name is None else as_name
        if as_name is not None:
            person = accounts.person(as_name)
            if person is None or person.disabled or person.role is not Role.STEWARD:
                raise AccountError(f"{as_name!r} is not a steward's account, so nothing can be done in its name")
            by = person.name
        yield Desk(read, accounts, settings.origin, by, named, settings.passwords)


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
