"""The keys of `[server]`: where `privet serve` listens, how many questions it runs, and when answers leave."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from privet.errors import UserError, argument
from privet.exact import Exact
from privet.policy import fields, toml
from privet.policy.fields import Part
from privet.policy.openid_shape import OpenIDShape
from privet.system.addresses import masked

_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")


def checked_listen(text: str) -> str:
    """An address and a port to listen on."""
    match = _LISTEN.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise UserError(
            f"listen must be an address and a port, not {toml.text(text)}", remedy=argument("listen", "127.0.0.1:8765")
        )
    return text


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    plain = f"{parts.scheme}://{host}{'' if port is None else f':{port}'}"
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host) or text.lower().rstrip("/") != plain:
        given = toml.text(masked(text))
        raise UserError(f"address must be the address that browsers use, without a path, not {given}")
    return plain


def _proxy(text: str) -> str:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise UserError(f"a proxy is an IP address or a network, not {toml.text(text)}") from None
    return text


class ServerShape(Part):
    """How `privet serve` serves the datasets."""

    listen: Annotated[str, AfterValidator(checked_listen)] = "127.0.0.1:8765"
    """The address and port to listen on. By default only this machine can connect."""
    address: Annotated[str, AfterValidator(_address)] | None = None
    """The address that browsers use, such as https://privet.example.org, if a proxy with TLS is in front."""
    proxies: list[Annotated[str, AfterValidator(_proxy)]] = Field(default=[])
    """IP addresses or networks of proxies whose X-Forwarded-For is believed. By default none."""
    accounts: str | None = Field(default=None, repr=False)
    """Where accounts are: a file, relative to the policy, or a postgresql:// address; by default with the ledger."""
    workers: fields.Whole = 1
    """The number of processes."""
    running: fields.Whole = 4
    """The number of questions that a process answers at the same time; they have equal shares of the memory."""
    waiting: fields.Whole = 64
    """The number of questions that wait in a process; one more is refused."""
    waiting_each: fields.Whole = 8
    """How many of these may be one analyst's."""
    wait: fields.Step = Exact(30)
    """Seconds that a request waits for its answer; then it is told where to ask for it."""
    deadline: fields.Step = Exact(600)
    """Seconds that a question may take once it is paid for. After that it fails, and stays paid."""
    pace: fields.Epsilon = Exact(1, 4)
    """Seconds of the first step of the ladder, which doubles: new answers leave only at its steps. 0 turns it off."""
    passwords: bool = True
    """Whether people may sign in with a password. Without, they sign in by `[server.openid]` or a one-time link."""
    openid: OpenIDShape | None = None
    """The provider of OpenID Connect by which people can sign in."""

    @model_validator(mode="after")
    def _has_a_way_in(self) -> Self:
        if not self.passwords and self.openid is None:
            raise UserError("without passwords, people need another way to sign in: [server.openid]")
        return self


SERVER_LINES: dict[str, str] = {
    "listen": '"127.0.0.1:8765"',
    "address": '"https://privet.example.org"',
    "proxies": '["127.0.0.1"]',
    "accounts": '"people.accounts"',
    "workers": "2",
    "running": "4",
    "waiting": "64",
    "waiting_each": "8",
    "wait": "30",
    "deadline": "600",
    "pace": "0.25",
    "passwords": "false",
    "openid": '{ issuer = "https://login.example.org", client_id = "privet" }',
}
"""For each key of the server."""
