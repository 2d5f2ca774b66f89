"""What the rest of the server knows of an account: frozen records without secrets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from privet.exact import Exact


class Role(StrEnum):
    """What a person, or a token, may do at most."""

    STEWARD = "steward"
    ANALYST = "analyst"

    def at_most(self, other: Role) -> Role:
        """The lower of two roles.

        Example:
            >>> Role.STEWARD.at_most(Role.ANALYST)
            <Role.ANALYST: 'analyst'>
        """
        return Role.STEWARD if self is other is Role.STEWARD else Role.ANALYST


def both(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """The datasets in both scopes, where None is every dataset.

    Example:
        >>> sorted(both(frozenset({"a", "b"}), frozenset({"b", "c"}))), both(None, None)
        (['b'], None)
    """
    if one is None or other is None:
        return other if one is None else one
    return one & other


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with an account. The name is the analyst's name in the ledger."""

    name: str
    role: Role
    datasets: frozenset[str] | None
    """The datasets that they may ask; None means every dataset."""
    disabled: bool
    has_password: bool
    created: datetime
    openid: str | None = None
    """What a provider of OpenID Connect must call them at their first sign-in, such as an e-mail address."""
    linked: bool = False
    """Whether they have signed in by OpenID Connect: then only this person at the provider is let in."""


@dataclass(frozen=True, slots=True)
class Token:
    """An API token, without its secret."""

    id: str
    name: str
    """The name of its owner."""
    label: str
    role: Role
    datasets: frozenset[str] | None
    max_epsilon: Exact | None
    """The most that questions with this token may spend together; None means no limit of its own."""
    spent: Exact
    """What was held for its questions, if it has a largest epsilon; never less than what they spent."""
    created: datetime
    expires: datetime
    revoked: datetime | None
    last_used: datetime | None
    """To the minute."""

    def is_live(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired. Its owner may still be disabled."""
        return self.revoked is None and now < self.expires


@dataclass(frozen=True, slots=True)
class Identity:
    """Who makes a request, and what the request may do at most."""

    person: Person
    role: Role
    """The lower of the person's role and the token's."""
    datasets: frozenset[str] | None
    """The datasets that both the person and the token may ask; None means every dataset."""
    token: Token | None = None
    """The token of the request, or None for a session of the page."""
    session: str | None = None
    """The id of the page's session (not a secret), or None for a token."""
    csrf: str = field(default="", repr=False)
    """What forms of this session must send back; empty for a token."""

    def may_ask(self, dataset: str) -> bool:
        """Whether the dataset is in scope."""
        return self.datasets is None or dataset in self.datasets


@dataclass(frozen=True, slots=True)
class DeviceCodes:
    """The start of a device login (RFC 8628)."""

    device_code: str = field(repr=False)
    """The secret with which the device asks for its token."""
    user_code: str = field(repr=False)
    """What the person types into the page, such as WDJB-MJHT."""
    expires_in: int
    """Seconds until both codes expire."""
    interval: int
    """Seconds that the device waits between two requests."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A device login that waits for a person's decision."""

    label: str
    """What the device says of itself."""
    created: datetime
    expires: datetime


class DeviceState(StrEnum):
    """The state of a device login; all except GRANTED are error codes of RFC 8628."""

    PENDING = "authorization_pending"
    SLOW_DOWN = "slow_down"
    DENIED = "access_denied"
    EXPIRED = "expired_token"
    GRANTED = "granted"


@dataclass(frozen=True, slots=True)
class DeviceResult:
    """What a device gets when it asks for its token."""

    state: DeviceState
    text: str = field(default="", repr=False)
    """The token's text if it was granted; it is shown only this once."""
    token: Token | None = None
