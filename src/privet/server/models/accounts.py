"""Accounts, tokens, and login by device code (RFC 8628)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from privet.server.accounts.grants import MOST_DAYS
from privet.server.models.base import Model, Name, Number

Role = Literal["steward", "analyst"]
Claim = Annotated[str, Field(max_length=255)]


class Person(Model):
    """An account."""

    name: str
    role: Role
    datasets: list[str] | None
    """The datasets that they may ask; null for all."""
    disabled: bool
    has_password: bool
    openid: str | None
    """What a provider of OpenID Connect must call them at their first sign-in, such as an e-mail address."""
    linked: bool
    """Whether they have signed in by OpenID Connect; from then on only the same person can."""


class People(Model):
    """All accounts."""

    people: list[Person]


class NewPerson(Model):
    """An account to add."""

    name: Name
    role: Role = "analyst"
    datasets: list[Name] | None
    """The datasets that they may ask; null for all. It can't be left out."""
    openid: Claim | None = None
    """What the provider of OpenID Connect calls them, such as an e-mail address."""


class ChangePerson(Model):
    """What to change of an account; what is left out stays."""

    role: Role | None = None
    datasets: list[Name] | None = None
    all_datasets: bool = False
    """Whether they may ask every dataset; not together with `datasets`."""
    openid: Claim | None = None
    """What the provider of OpenID Connect calls them. A new or empty one ends the link to a person there."""
    disabled: bool | None = None
    """True ends sessions and tokens at once."""
    invite: bool = False
    """Whether to make a new one-time link to set a password."""


class ChangedPerson(Model):
    """An account, and the one-time link if one was made."""

    person: Person
    invitation: str | None
    """A link to set a password, once. It is shown only here."""


class Token(Model):
    """An API token, without its secret."""

    id: str
    name: str
    """Whose it is."""
    label: str
    role: Role
    datasets: list[str] | None
    max_epsilon: str | None
    """What may be spent with it, in all."""
    spent: str
    created: str
    expires: str | None
    revoked: bool
    last_used: str | None


class Tokens(Model):
    """Your tokens; for stewards, everybody's."""

    tokens: list[Token]


class NewToken(Model):
    """An API token to make."""

    label: Name
    name: Name | None = None
    """Whose token; stewards may name others. By default, your own."""
    role: Role = "analyst"
    datasets: list[Name] | None = None
    """The datasets that it may ask; null for all that its owner may."""
    max_epsilon: Number | None = None
    """What may be spent with it, in all; of a budget's delta, no larger share than of its epsilon."""
    days: Annotated[int, Field(ge=1, le=MOST_DAYS)] = 90
    """After how many days it expires."""


class CreatedToken(Model):
    """A new token. Its text is shown only here."""

    text: str
    token: Token


class Me(Model):
    """Who you are to the server."""

    name: str
    role: Role
    datasets: list[str] | None
    token: Token | None
    """The token of this request, if it has one."""
    csrf: str | None
    """For the header X-CSRF-Token; null with a token."""


class DeviceCode(Model):
    """A program asks to be allowed in."""

    label: Name = "privet"
    """What the token will be called."""


class DeviceCodes(Model):
    """The code to type in, and where."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int
    """Seconds between questions for the token."""


class DeviceToken(Model):
    """A program asks whether it was allowed in."""

    device_code: Name
    grant_type: Literal["urn:ietf:params:oauth:grant-type:device_code"] = "urn:ietf:params:oauth:grant-type:device_code"


class AccessToken(Model):
    """The token. It is shown only here."""

    access_token: str
    token_type: Literal["Bearer"] = "Bearer"
