"""`privet serve`: the datasets of a policy, for analysts who can't reach the data."""

from __future__ import annotations

import shlex
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

    At the first start in a terminal it prints a link, which works once, with which the steward sets a password.

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
    from privet.server.openid import client_secret
    from privet.server.serving import serve as run
    from privet.server.settings import Settings

    settings = Settings.of(load(policy), listen=None if listen is None else checked_listen(listen))
    if settings.openid is not None:
        client_secret(settings.openid.secret_file)  # a process that fails later would only be started again
    terminal = sys.stdout.isatty()
    with Accounts.open(settings.accounts) as accounts:
        first = accounts.first_steward(invite=terminal)

    def ready() -> None:
        print(f"Privet serves {policy} at {settings.origin}", file=sys.stderr, flush=True)
        lacks = "has a password" if settings.passwords else "has signed in"
        if first is not None and terminal:  # apart from the log, which is on stderr
            does = "Set one" if settings.passwords else "Sign in once"
            print(f"No steward {lacks} yet. {does}: {settings.origin}/welcome/{first[1]}", flush=True)
        elif first is not None:
            command = shlex.join(["privet", "users", "invite", first[0], "--policy", str(policy)])
            command += "" if listen is None else f" --listen {listen}"
            does = "set one" if settings.passwords else "sign in once"
            print(f"No steward {lacks} yet. For a link to {does}: {command}", file=sys.stderr, flush=True)

    run(policy.absolute(), settings, listen=listen, ready=ready)
