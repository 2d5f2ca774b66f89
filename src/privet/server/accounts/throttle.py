"""Throttling: how many attempts a name, an address or a browser has.

Each key has an allowance of some attempts that fills up again at a constant rate. It is stored as one number, the time
at which it is full (the generic cell rate algorithm). It survives restarts, and all processes share it.

Claim: an attempt is charged before it is made, so racing attempts can't exceed the allowance. An attempt that is
refused is not charged, so every wait is bounded by one interval of each rule.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from privet.server.accounts.errors import Throttled
from privet.server.accounts.tables import attempts

_MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Rule:
    """An allowance: so many attempts at once, and one more after each interval."""

    burst: int
    seconds: int


BY_NAME = Rule(10, 120)
"""Sign-ins to one account from unknown browsers."""
BY_ADDRESS = Rule(30, 15)
"""Sign-ins from one address, which an office may share."""
BY_BROWSER = Rule(10, 60)
"""Sign-ins to one account from a browser in which this person has signed in before."""
SIGN_INS = Rule(100, 60)
"""Sign-ins of one person, with the right password or by OpenID Connect: each makes a session."""
TOKENS = Rule(100, 600)
"""New tokens of one person."""
BY_OPENID = Rule(30, 15)
"""Sign-ins by OpenID Connect that one address begins and does not complete."""
DEVICES = Rule(20, 15)
"""Device logins that one address begins."""
USER_CODES = Rule(10, 60)
"""Codes of device logins that one person types, found or not."""


def charge(connection: sa.Connection, now: float, charges: Sequence[tuple[str, Rule]]) -> None:
    """Take one attempt from each allowance; Throttled, and nothing taken, if one is used up."""
    moment = math.floor(now * _MICRO)
    connection.execute(sa.delete(attempts).where(attempts.c.full <= moment))
    full = {}
    for key, rule in charges:
        stored = connection.execute(sa.select(attempts.c.full).where(attempts.c.key == key)).scalar()
        step, most = rule.seconds * _MICRO, moment + rule.burst * rule.seconds * _MICRO
        was = moment if stored is None else min(max(stored, moment), most)  # a clock that was set back locks nobody out
        if was + step > most:
            raise Throttled(math.ceil((was + step - most) / _MICRO))
        full[key] = was + step
    for key, until in full.items():
        _put(connection, key, until)


def refund(connection: sa.Connection, charges: Sequence[tuple[str, Rule]]) -> None:
    """Give back one attempt to each allowance."""
    for key, rule in charges:
        less = attempts.c.full - rule.seconds * _MICRO
        connection.execute(sa.update(attempts).where(attempts.c.key == key).values(full=less))


def _put(connection: sa.Connection, key: str, full: int) -> None:
    updated = connection.execute(sa.update(attempts).where(attempts.c.key == key).values(full=full))
    if not updated.rowcount:
        connection.execute(sa.insert(attempts).values(key=key, full=full))


def network(address: str) -> str:
    """What counts as one address: an IPv4 address, or the /64 network that one user of IPv6 has.

    Example:
        >>> network("2001:db8::1"), network("::ffff:192.0.2.1"), network("unix")
        ('2001:db8::/64', '192.0.2.1', 'unix')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is None:
            return str(ipaddress.ip_network((parsed, 64), strict=False))
        return str(parsed.ipv4_mapped)
    return str(parsed)
