"""Addresses of servers: https, or http to this machine."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from privet.errors import Remedy, UserError, write

_EXAMPLE = write('pv.connect("https://privet.example.org")', terminal="--server https://privet.example.org")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server, without a slash at its end."""

    text: str
    secure: bool
    """Whether it is https."""

    def __str__(self) -> str:
        return self.text

    def path(self, *parts: str) -> str:
        """The whole address of a route of the API."""
        return "/".join((self.text, "api", "v1", *parts))


def address(url: object, *, insecure: bool = False) -> Address:
    """The address of a server; refused if a token sent there could be read on the way.

    Example:
        >>> str(address("HTTPS://Privet.Example.org/")), str(address("http://localhost:8000"))
        ('https://privet.example.org', 'http://localhost:8000')
        >>> address("http://privet.example.org")
        Traceback (most recent call last):
        privet.errors.UserError: http:// sends the token and the answers in clear text. Use https://
    """
    parts = _split(url)
    host, secure = parts.hostname or "", parts.scheme.lower() == "https"
    if not secure and not insecure and not is_local(host):
        raise UserError(
            "http:// sends the token and the answers in clear text",
            remedy=Remedy("Use https://"),
        )
    try:
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        raise UserError("the port of the server's address is not a number", remedy=_EXAMPLE) from None
    name = f"[{host}]" if ":" in host else host
    return Address(f"{parts.scheme.lower()}://{name}{port}{parts.path.rstrip('/')}", secure)


def _split(url: object) -> SplitResult:
    try:
        if not isinstance(url, str) or not url.isprintable() or not url.isascii() or " " in url.strip():
            raise ValueError
        parts = urlsplit(url.strip())
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            raise ValueError
    except ValueError:
        raise UserError(
            "the address of a server begins with https://, or with http:// on your own machine", remedy=_EXAMPLE
        ) from None
    if parts.username is not None or parts.password is not None:
        raise UserError("an address must not contain a name or a password", remedy=Remedy("Pass the token as token="))
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise UserError("the address of a server has no ? and no #", remedy=_EXAMPLE)
    return parts


def is_local(host: str) -> bool:
    """Whether a host is this machine.

    Example:
        >>> [is_local(host) for host in ("localhost", "127.0.0.2", "::1", "localhost.example.org", "10.0.0.1")]
        [True, True, True, False, False]
    """
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
