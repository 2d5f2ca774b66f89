"""The keys of `[server.openid]`: the provider of OpenID Connect by which people sign in to `privet serve`."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from privet.errors import UserError
from privet.policy import toml
from privet.policy.fields import Part
from privet.system.addresses import masked

SECRET = "PRIVET_OPENID_SECRET"
"""The environment variable with the client secret, if no file is named."""
_CLAIM = re.compile(r"[A-Za-z0-9_.:/-]{1,100}")


def is_loopback(host: str) -> bool:
    """Whether this is a name of the machine itself: then nobody is in between.

    Example:
        >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("example.org")
        (True, True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_safe_url(text: str) -> bool:
    """Whether this is an https:// address without a user or a fragment; on this machine, http:// will do.

    Example:
        >>> [is_safe_url(each) for each in ("https://a.example/x", "http://a.example", "http://localhost:1", "ftp://a.example")]
        [True, False, True, False]
    """
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    plain = text.isascii() and text.isprintable() and not {" ", "\\", '"', "<", ">"} & {*text} and len(text) <= 2000
    inside = parts.username is None and parts.password is None and "#" not in text and bool(host)
    return plain and inside and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def _issuer(text: str) -> str:
    if not is_safe_url(text) or "?" in text:
        raise UserError(f"issuer must be the https:// address of the provider, not {toml.text(masked(text))}")
    return text


def _printable(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > 200:
        raise UserError("this must be a text of 1 to 200 characters")
    return text.strip()


def _claim(text: str) -> str:
    if not _CLAIM.fullmatch(text):
        raise UserError(f"claim must be the name of a claim, not {toml.text(text)}")
    return text


class OpenIDShape(Part):
    """The provider of OpenID Connect. Its client secret is in an environment variable or a file, never here."""

    issuer: Annotated[str, AfterValidator(_issuer)]
    """The address of the provider, exactly as its discovery document has it; https://, except on this machine."""
    client_id: Annotated[str, AfterValidator(_printable)]
    """The name under which the provider knows this server."""
    secret_file: str | None = None
    """The file with the client secret, relative to the policy; by default the variable PRIVET_OPENID_SECRET has it."""
    name: Annotated[str, AfterValidator(_printable)] = "OpenID"
    """What the button says: Sign in with NAME."""
    claim: Annotated[str, AfterValidator(_claim)] = "email"
    """By which claim people are recognised at their first sign-in: email, if the provider verified it, or another."""


OPENID_LINES: dict[str, str] = {
    "issuer": '"https://login.example.org"',
    "client_id": '"privet"',
    "secret_file": '"openid.secret"',
    "name": '"Example"',
    "claim": '"email"',
}
"""For each key of the provider."""
