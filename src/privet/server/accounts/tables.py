"""The tables of the account store. Secrets are stored as hashes only; times are whole seconds since 1970."""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 1

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

NAMES = tuple(metadata.tables)
