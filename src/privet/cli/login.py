"""Signing in to a server from the terminal: `privet login` and `privet logout`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from privet.cli.interrupts import stopped

Url = Annotated[str, typer.Argument(metavar="URL", help="The address of the server.")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Allow http:// to another machine; anyone on the way can read the token.")
]


def login(url: Url, insecure: Insecure = False) -> None:
    """Sign in to a server: approve a code on its page, and the token is stored for your account on this machine.

    Example: privet login https://privet.example.org
    """
    from privet.client import login as device
    from privet.client.addresses import address
    from privet.client.problems import clean
    from privet.client.tokens import Token, store
    from privet.client.wire import Wire

    where = address(url, insecure=insecure)
    server = Wire(where, None)
    with stopped(lambda: "not signed in"):
        try:
            codes = device.begin(server)
            print(f"Open {codes.where} and enter the code {codes.user_code}", file=sys.stderr, flush=True)
            text = device.wait(server, codes)
        finally:
            server.close()
        signed_in = Wire(where, Token(text))
        try:
            name = clean(signed_in.get("me").tree["name"], most=120)
        finally:
            signed_in.close()
        file = store(where, text)
    print(f"Signed in to {where} as {name}. The token is stored in {file}")


def logout(url: Url, insecure: Insecure = False) -> None:
    """Remove the stored token of a server, and revoke it there.

    Example: privet logout https://privet.example.org
    """
    from privet.client.addresses import address
    from privet.client.login import revoke
    from privet.client.tokens import forget, stored
    from privet.errors import PrivetError, UserError

    where = address(url, insecure=insecure)
    token = stored(where)
    if token is None:
        raise UserError(f"there is no stored token for {where}")
    try:
        revoke(where, token)
    except PrivetError as error:
        forget(where)
        print(f"Signed out of {where} on this machine.")
        print(f"The token was not revoked there: {error.render('terminal')}", file=sys.stderr)
        return
    forget(where)
    print(f"Signed out of {where}.")
