"""The tables of the account store. Secrets are stored as hashes only; times are whole seconds since 1970."""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 2
"""Version 1 had no tables for OpenID Connect; `upgrade` adds them."""

metadata = sa.MetaData()


def _text(name: str, *, key: bool = False, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=key, nullable=null)


def _whole(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=null)


store = sa.Table(
    "privet_accounts",
    metadata,
    _whole("version"),
    _text("key"),  # signs cookies; without the secret of a session, a signature opens nothing
    _whole("started"),  # 1 once a steward has set a password: from then on an empty store is not a new one
)
"""One row. Writers lock it."""
people = sa.Table(
    "privet_accounts_people",
    metadata,
    _text("name", key=True),
    _text("role"),
    _text("datasets", null=True),
    _whole("disabled"),
    _text("password", null=True),
    _whole("created"),
)
sessions = sa.Table(
    "privet_accounts_sessions",
    metadata,
    _text("id", key=True),
    _text("hash"),
    _text("mark"),
    _text("name"),
    _whole("created"),
    _whole("seen"),
    _whole("ended"),
)
invitations = sa.Table(
    "privet_accounts_invitations", metadata, _text("name", key=True), _text("hash"), _whole("expires")
)
tokens = sa.Table(
    "privet_accounts_tokens",
    metadata,
    _text("id", key=True),
    _text("hash"),
    _text("name"),
    _text("label"),
    _text("role"),
    _text("datasets", null=True),
    _text("max_epsilon", null=True),
    _text("spent"),
    _whole("created"),
    _whole("expires"),
    _whole("revoked", null=True),
    _whole("used", null=True),
)
devices = sa.Table(
    "privet_accounts_devices",
    metadata,
    _text("hash", key=True),
    _text("user_hash"),
    _text("label"),
    _whole("created"),
    _whole("expires"),
    _whole("polled"),
    _whole("pause"),
    _text("state"),
    _text("name", null=True),
    _text("role", null=True),
    _text("datasets", null=True),
    _text("max_epsilon", null=True),
    _whole("days", null=True),
)
attempts = sa.Table("privet_accounts_attempts", metadata, _text("key", key=True), _whole("full"))
"""For throttling: by hashed name or address, the time in microseconds at which its allowance is full again."""
openid = sa.Table(
    "privet_accounts_openid",
    metadata,
    _text("name", key=True),
    _text("awaits", null=True),  # the e-mail address, or another claim, of the first sign-in
    _text("issuer", null=True),  # set together with the subject at the first sign-in; from then on only they count
    _text("subject", null=True),
)
"""How people sign in by OpenID Connect."""
openid_logins = sa.Table(
    "privet_accounts_openid_logins",
    metadata,
    _text("hash", key=True),
    _whole("expires"),
    _text("target"),
    _text("invitation", null=True),
    _text("charged"),
)
"""Sign-ins that have begun, by the hash of the secret that the browser has."""

NAMES = tuple(metadata.tables)
ADDED: tuple[sa.Table, ...] = (openid, openid_logins)
"""What version 1 did not have."""


def upgrade(connection: sa.Connection) -> None:
    """Make a store of version 1 one of version 2."""
    metadata.create_all(connection, tables=[*ADDED], checkfirst=False)
    connection.execute(sa.update(store).values(version=VERSION))
