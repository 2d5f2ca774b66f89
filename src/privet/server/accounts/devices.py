"""Device logins: a program shows a code, a person approves it on the page, and the program gets a token.

Reference: RFC 8628.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from privet.errors import Remedy
from privet.exact import Exact
from privet.server.accounts import hashing, throttle
from privet.server.accounts.base import Base, find, label_of, moment, token_of
from privet.server.accounts.errors import AccountError
from privet.server.accounts.grants import Grant
from privet.server.accounts.records import DeviceCodes, DeviceRequest, DeviceResult, DeviceState, Identity, Role
from privet.server.accounts.store import changed, make_room
from privet.server.accounts.tables import devices, tokens

LIFETIME, PAUSE = 600, 5
"""Seconds until a login expires, and between two requests of a device."""
_MORE = 5  # seconds that a device which asks too often has to wait longer
_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels: a code is no word, and has no characters that look alike
_LENGTH = 8
_PENDING, _APPROVED, _DENIED = "pending", "approved", "denied"


class Devices(Base):
    """The operations on device logins."""

    def begin_device(self, client_label: str, *, address: str) -> DeviceCodes:
        """Begin a device login; Throttled if there were too many from this address."""
        label_of(client_label, "device")
        now, secret = self._now(), hashing.new_secret()
        code = hashing.new_code(_ALPHABET, _LENGTH)
        with self._store.writing() as connection:
            key = hashing.keyed(self._store.key, "device", throttle.network(address))
            throttle.charge(connection, self._clock(), [(key, throttle.DEVICES)])
            make_room(connection, devices, now)
            row = {
                "hash": hashing.digest(secret),
                "user_hash": self._user_hash(code),
                "label": client_label,
                "created": now,
                "expires": now + LIFETIME,
                "polled": 0,
                "pause": PAUSE,
                "state": _PENDING,
            }
            if self._waiting(connection, code) is not None:  # so unlikely that it means a broken source of randomness
                raise self._store.damaged("has the same random code twice")
            changed(connection.execute(sa.insert(devices).values(row)), self._store)
        half = _LENGTH // 2
        return DeviceCodes(secret, f"{code[:half]}-{code[half:]}", LIFETIME, PAUSE)

    def device(self, user_code: str, identity: Identity) -> DeviceRequest | None:
        """The login that waits for this code, to show before it is approved; None if there is none.

        A code may be typed in lower case and without its hyphen. Throttled after too many wrong codes by one person.
        """
        with self._store.writing() as connection:
            row = self._typed(connection, user_code, identity)
        return None if row is None else _request(row)

    def approve_device(
        self,
        user_code: str,
        identity: Identity,
        *,
        role: Role = Role.ANALYST,
        datasets: Collection[str] | None = None,
        max_epsilon: Exact | None = None,
        days: int = 30,
    ) -> DeviceRequest:
        """Grant the device a token of this person; AccountError if the code is wrong, used or expired.

        Only a session of the page can approve: a token can't make further tokens.
        """
        with self._store.writing() as connection:
            row = self._typed(connection, user_code, identity)
            if row is not None:
                person = self._existing(connection, identity.person.name)
                grant = Grant.to(person, role=role, datasets=datasets, max_epsilon=max_epsilon, days=days)
                self._decide(
                    connection,
                    row,
                    state=_APPROVED,
                    name=person.name,
                    role=grant.role,
                    datasets=grant.datasets,
                    max_epsilon=grant.max_epsilon,
                    days=grant.days,
                )
        if row is None:
            raise _no_such_code()
        return _request(row)

    def deny_device(self, user_code: str, identity: Identity) -> None:
        """Refuse the device; AccountError if the code is wrong, used or expired."""
        with self._store.writing() as connection:
            row = self._typed(connection, user_code, identity)
            if row is not None:
                self._decide(connection, row, state=_DENIED)
        if row is None:
            raise _no_such_code()

    def finish_device(self, device_code: str) -> DeviceResult:
        """The token of an approved login, once and only once; otherwise its state."""
        now = self._now()
        with self._store.writing() as connection:
            chosen = (devices.c.hash == hashing.digest(device_code)) & (devices.c.expires > now)
            row = connection.execute(sa.select(devices).where(chosen)).one_or_none()
            if row is None:
                return DeviceResult(DeviceState.EXPIRED)
            if now - row.polled < row.pause - 1:  # a second of tolerance
                self._decide(connection, row, polled=now, pause=row.pause + _MORE)
                return DeviceResult(DeviceState.SLOW_DOWN)
            if row.state != _APPROVED:
                self._decide(connection, row, polled=now)
                return DeviceResult(DeviceState.DENIED if row.state == _DENIED else DeviceState.PENDING)
            changed(connection.execute(sa.delete(devices).where(devices.c.hash == row.hash)), self._store)
            person = find(connection, row.name)
            if person is None or person.disabled:
                return DeviceResult(DeviceState.DENIED)
            grant = Grant(Role(row.role), row.datasets, row.max_epsilon, row.days)
            text, key = grant.store(connection, self._store, row.name, row.label, now)
            token = token_of(connection.execute(sa.select(tokens).where(tokens.c.id == key)).one())
        return DeviceResult(DeviceState.GRANTED, text, token)

    def _typed(self, connection: sa.Connection, user_code: str, identity: Identity) -> Any:
        """The login with this code, or None; then one attempt of this person is used."""
        if identity.session is None:
            raise AccountError("a token can't approve a device", remedy=Remedy("Sign in to the page"))
        charges = [(hashing.keyed(self._store.key, "user code", identity.person.name), throttle.USER_CODES)]
        throttle.charge(connection, self._clock(), charges)
        row = self._waiting(connection, user_code)
        if row is not None:
            throttle.refund(connection, charges)
        return row

    def _waiting(self, connection: sa.Connection, user_code: str) -> Any:
        chosen = (devices.c.user_hash == self._user_hash(user_code)) & (devices.c.expires > self._now())
        return connection.execute(sa.select(devices).where(chosen & (devices.c.state == _PENDING))).one_or_none()

    def _decide(self, connection: sa.Connection, row: Any, **values: Any) -> None:
        changed(connection.execute(sa.update(devices).where(devices.c.hash == row.hash).values(values)), self._store)

    def _user_hash(self, code: str) -> str:
        return hashing.keyed(self._store.key, "code", code[:100].upper().replace("-", "").replace(" ", ""))


def _request(row: Any) -> DeviceRequest:
    return DeviceRequest(row.label, moment(row.created), moment(row.expires))


def _no_such_code() -> AccountError:
    return AccountError("this code is wrong, was used already or has expired", remedy=Remedy("Start the login again"))
