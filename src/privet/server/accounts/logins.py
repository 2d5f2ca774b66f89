"""Signing in with a password, and the sessions of the page.

A session is a row behind a signed cookie. The cookie has a secret of which the row has the hash, so neither a copy of
the store nor its signing key opens a session.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from itsdangerous import BadSignature, Signer

from privet.names.lookalikes import normalised
from privet.server.accounts import hashing, throttle
from privet.server.accounts.base import Base, find, person_of
from privet.server.accounts.errors import AccountError, StoreBusy, WrongPassword
from privet.server.accounts.passwords import check_new
from privet.server.accounts.records import Identity, Person, Role
from privet.server.accounts.store import changed
from privet.server.accounts.tables import attempts, invitations, people, sessions, store
from privet.server.accounts.throttle import Rule

IDLE, LONGEST = 12 * 3600, 7 * 24 * 3600
"""Seconds after which a session ends: without a request, and in any case."""
REMEMBERED = 90 * 24 * 3600
"""Seconds for which a browser counts as known after the last request of its session."""
_TOUCH = 300  # seconds: how exactly the time of the last request is stored
_BY_ID = sa.select(sessions).where(sessions.c.id == sa.bindparam("n"))
_MARK = re.compile(r"[0-9a-f]{16}\.[0-9a-f]{64}")
_COOKIE = re.compile(r"([0-9a-f]{16})\.([0-9a-f]{64})\.[\w-]{20,100}")


class Logins(Base):
    """The operations on passwords and sessions."""

    def sign_in(self, name: str, password: str, *, address: str, mark: str | None = None) -> tuple[str, Identity]:
        """Begin a new session; returns the value of its cookie, and whose it is.

        Claim: an unknown name, a wrong password, a disabled account and one without a password raise the same
        WrongPassword after the same work. Each sign-in makes a new session. Too many attempts, for a name or from an
        address, raise Throttled(retry_after). A browser that sends the `mark` of an earlier session of the same person,
        ended or not, has an allowance of its own, so nobody else can lock it out by guessing.
        """
        row, charges = self._checked(name, password, address, mark)
        renewed = self._passwords.hashed(password) if self._passwords.is_outdated(row.password) else row.password
        with self._store.writing() as connection:
            now = find(connection, row.name)
            if now is None or now.disabled or now.password != row.password:  # changed while the hash was compared
                raise WrongPassword
            if renewed != row.password:
                connection.execute(sa.update(people).where(people.c.name == row.name).values(password=renewed))
            self._succeed(connection, row.name, charges)
            return self._begin(connection, now)

    def check_password(self, name: str, password: str, *, address: str, mark: str | None = None) -> Person:
        """Check a password as `sign_in` does, and begin no session: before a change that needs it again."""
        row, charges = self._checked(name, password, address, mark)
        with self._store.writing() as connection:
            self._succeed(connection, row.name, charges)
        return person_of(row)

    def _succeed(self, connection: sa.Connection, name: str, charges: list[tuple[str, Rule]]) -> None:
        """Give back the attempts of a right password; too many of these are refused, and use up attempts."""
        self._charge_right(connection, name)
        throttle.refund(connection, charges)

    def _charge_right(self, connection: sa.Connection, name: str) -> None:
        throttle.charge(connection, self._clock(), [(self._key("right", name), throttle.SIGN_INS)])

    def _checked(self, name: str, password: str, address: str, mark: str | None) -> tuple[Any, list[tuple[str, Rule]]]:
        """The person's row, and the attempts that were charged; WrongPassword if it is not the password."""
        name = normalised(name[:1000])
        with self._store.writing() as connection:
            row, browser = find(connection, name), known_browser(connection, mark or "", name)
            if browser is not None:
                charges = [(self._key("browser", browser), throttle.BY_BROWSER)]
            else:
                charges = [
                    (self._key("name", name), throttle.BY_NAME),
                    (self._key("address", throttle.network(address)), throttle.BY_ADDRESS),
                ]
            throttle.charge(connection, self._clock(), charges)
        usable = row is not None and not row.disabled
        if not self._passwords.matches(row.password if usable else None, password):
            raise WrongPassword
        return row, charges

    def begin_session(self, name: str) -> tuple[str, Identity]:
        """Begin a session for a person whom somebody else has checked, such as a company's identity provider."""
        with self._store.writing() as connection:
            row = self._existing(connection, name)
            if row.disabled:
                raise AccountError(f"{name!r} is disabled")
            return self._begin(connection, row)

    def _begin(self, connection: sa.Connection, person: Any) -> tuple[str, Identity]:
        now, key, secret = self._now(), hashing.new_id(), hashing.new_secret()
        connection.execute(sa.delete(sessions).where(sessions.c.seen < now - REMEMBERED))
        value = self._signer().sign(f"{key}.{secret}").decode()
        row = {
            "id": key,
            "hash": hashing.digest(secret),
            "mark": hashing.digest(browser_mark(value)),
            "name": person.name,
            "created": now,
            "seen": now,
            "ended": 0,
        }
        changed(connection.execute(sa.insert(sessions).values(row)), self._store)
        return value, _identity(person, key, secret)

    def session(self, cookie_value: str) -> Identity | None:
        """Whose session a cookie belongs to; None if it is forged, expired or ended, or the person is disabled."""
        with self._store.reading() as connection:
            row = self._cookie_row(connection, cookie_value)
            person = None if row is None else find(connection, row.name)
        now = self._now()
        if row is None or row.ended or person is None or person.disabled:
            return None
        if now >= row.seen + IDLE or now >= row.created + LONGEST:
            return None
        if now >= row.seen + _TOUCH:
            with suppress(StoreBusy), self._store.writing(alone=False) as connection:
                live = (sessions.c.id == row.id) & (sessions.c.ended == 0)
                connection.execute(sa.update(sessions).where(live).values(seen=now))
        return _identity(person, row.id, cookie_value.split(".")[1])

    def sign_out(self, cookie_value: str) -> None:
        """End a session, if there is one."""
        with self._store.writing() as connection:
            row = self._cookie_row(connection, cookie_value)
            if row is not None:
                ended = sa.update(sessions).where(sessions.c.id == row.id).values(ended=1)
                changed(connection.execute(ended), self._store)

    def set_password(self, name: str, password: str, *, keep: str | None = None) -> None:
        """Set a password and end the person's sessions, except the one with the id `keep`, and their one-time link."""
        check_new(name, password)
        hashed = self._passwords.hashed(password)
        with self._store.writing() as connection:
            self._set_password(connection, self._existing(connection, name), hashed, keep)

    def _set_password(self, connection: sa.Connection, row: Any, hashed: str, keep: str | None = None) -> None:
        update = sa.update(people).where(people.c.name == row.name).values(password=hashed)
        changed(connection.execute(update), self._store)
        others = (sessions.c.name == row.name) & (sessions.c.id != (keep or ""))
        connection.execute(sa.delete(sessions).where(others))
        connection.execute(sa.delete(invitations).where(invitations.c.name == row.name))
        connection.execute(sa.delete(attempts).where(attempts.c.key == self._key("name", row.name)))
        if row.role == Role.STEWARD:
            connection.execute(sa.update(store).values(started=1))

    def csrf_ok(self, identity: Identity, value: str) -> bool:
        """Whether a form of this session sent the right value; compared in constant time. False for tokens."""
        return bool(identity.csrf) and hashing.same(identity.csrf, value)

    def _cookie_row(self, connection: sa.Connection, value: str) -> Any:
        """The session of a cookie, ended or not, if its signature and its secret are right."""
        parts = _COOKIE.fullmatch(value) if value.isascii() else None
        try:
            if parts is None:
                return None
            self._signer().unsign(value)
        except BadSignature:
            return None
        row = connection.execute(_BY_ID, {"n": parts[1]}).one_or_none()
        return row if row is not None and hashing.same(row.hash, hashing.digest(parts[2])) else None

    def _key(self, *parts: str) -> str:
        """A stored key that does not show a name: somebody may have typed their password there."""
        return hashing.keyed(self._store.key, *parts)

    def _signer(self) -> Signer:
        return Signer(self._store.key, salt="privet session", digest_method=hashlib.sha256)


def browser_mark(cookie_value: str) -> str:
    """What a browser keeps for `REMEMBERED` seconds after a session, to show that it is known. It opens nothing."""
    key, secret, _ = cookie_value.split(".")
    return f"{key}.{hashing.keyed(secret.encode(), 'browser')}"


def known_browser(connection: sa.Connection, mark: str, name: str | None = None) -> str | None:
    """The id of the session that left this mark, if it was a session of this person, or of anybody."""
    if _MARK.fullmatch(mark) is None or not mark.isascii():
        return None
    key = mark.partition(".")[0]
    row = connection.execute(_BY_ID, {"n": key}).one_or_none()
    known = row is not None and name in (None, row.name) and hashing.same(row.mark, hashing.digest(mark))
    return key if known else None


def _identity(row: Any, key: str, secret: str) -> Identity:
    person = person_of(row)
    csrf = hmac.new(secret.encode(), b"csrf", hashlib.sha256).hexdigest()
    return Identity(person, person.role, person.datasets, session=key, csrf=csrf)
