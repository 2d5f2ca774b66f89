"""Signing in with a device code (RFC 8628): a code is shown here, and somebody who is signed in approves it there."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import Any

from privet.client import wire
from privet.client.addresses import Address
from privet.client.problems import clean
from privet.client.tokens import Token
from privet.client.wire import Reply, Wire
from privet.errors import NoConnection, Remedy, UserError

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_SLOWER = 5.0  # seconds more between questions, if the server wants fewer
_ENDED = {"access_denied": "the code was refused", "expired_token": "the code has expired, and nobody approved it"}


@dataclass(frozen=True, slots=True)
class Codes:
    """What the server gave: a code to type in, where, and the secret that waits for it."""

    user_code: str
    where: str
    """The page that takes the code."""
    device_code: str
    until: float
    interval: float

    def __repr__(self) -> str:
        return f"Codes({self.user_code})"


def begin(server: Wire) -> Codes:
    """Ask to be let in."""
    tree = server.post("device", "code", body={"label": label()}).tree
    try:
        seconds, interval = float(tree["expires_in"]), float(tree["interval"])
        codes = Codes(
            clean(tree["user_code"], most=40),
            clean(tree["verification_uri"], most=300),
            str(tree["device_code"]),
            wire.now() + min(max(seconds, 1.0), 3600.0),
            min(max(interval, 1.0), 60.0),
        )
    except (LookupError, TypeError, ValueError):
        raise NoConnection(f"{server.address} did not send a code") from None
    if not re.match(r"https?://\S+$", codes.where) or not codes.user_code:
        raise NoConnection(f"{server.address} did not send a code")
    return codes


def label() -> str:
    """What the token is called on the server: this program, on this machine."""
    return f"privet on {clean(socket.gethostname(), most=100) or 'a machine'}"


def wait(server: Wire, codes: Codes) -> str:
    """The text of the token, once the code is approved."""
    pause, body = codes.interval, {"device_code": codes.device_code, "grant_type": _GRANT}
    while wire.now() + pause < codes.until:
        wire.sleep(pause)
        reply = _asked(server, body)
        if reply is None:
            continue
        if reply.status == 200 and isinstance(reply.tree, dict) and isinstance(reply.tree.get("access_token"), str):
            return str(reply.tree["access_token"])
        error = reply.tree.get("error") if isinstance(reply.tree, dict) else None
        if error in _ENDED:
            raise UserError(f"not signed in: {_ENDED[error]}", remedy=_again(server))
        if error == "slow_down":
            pause += _SLOWER
        elif error != "authorization_pending" and reply.status not in (429, 500, 502, 503, 504):
            raise NoConnection(f"{server.address} did not say whether the code was approved: {reply.status}")
    raise UserError(f"not signed in: {_ENDED['expired_token']}", remedy=_again(server))


def revoke(where: Address, token: Token) -> None:
    """Revoke a token on its server; one that the server no longer takes is revoked already."""
    server = Wire(where, token, timeout=30.0)
    try:
        own = server.get("me").tree["token"]["id"]
        server.delete("tokens", str(own))
    except (LookupError, TypeError):
        raise NoConnection(f"{where} did not say which token this is") from None
    finally:
        server.close()


def _asked(server: Wire, body: Any) -> Reply | None:
    """What the server says now; None if it can't be reached at the moment."""
    try:
        return server.post_once("device", "token", body=body)
    except NoConnection:
        return None


def _again(server: Wire) -> Remedy:
    return Remedy(f"Try again: privet login {server.address}")
