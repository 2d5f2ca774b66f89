"""`privet serve`: the datasets of a policy, for analysts who can't reach the data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from privet.cli.options import PolicyFile


def serve(
    policy: PolicyFile = Path("privet.toml"),
    listen: Annotated[
        str | None, typer.Option(metavar="ADDRESS:PORT", help="Where to listen; by default, as the policy says.")
    ] = None,
) -> None:
    """Serve the datasets of a policy: a page and an API, with accounts.

    At the first start it prints a link, which works once, with which the steward sets a password.

    Example: privet serve --policy privet.toml
    """
    from privet.errors import UserError, install
    from privet.policy import load
    from privet.policy.server_shape import checked_listen

    try:
        import argon2  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UserError("privet serve needs more packages", remedy=install("server")) from error
    from privet.server.accounts import Accounts
    from privet.server.serving import serve as run
    from privet.server.settings import Settings

    settings = Settings.of(load(policy), listen=None if listen is None else checked_listen(listen))
    with Accounts.open(settings.accounts) as accounts:
        secret = accounts.first_steward()

    def ready() -> None:
        print(f"Privet serves {policy} at {settings.origin}", file=sys.stderr)
        if secret is not None:
            print(f"No steward has a password yet. Set one: {settings.origin}/welcome/{secret}", file=sys.stderr)
        sys.stderr.flush()

    run(policy.absolute(), settings, listen=listen, ready=ready)
