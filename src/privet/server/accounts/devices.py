"""Device logins: a program shows a code, a person approves it on the page, and the program gets a token.

Reference: RFC 8628.
"""

from __future__ import annotations

from collections.abc import Collection

from privet.exact import Exact
from privet.server.accounts.base import Base
from privet.server.accounts.records import DeviceCodes, DeviceRequest, DeviceResult, Identity, Role


class Devices(Base):
    """The operations on device logins."""

    def begin_device(self, client_label: str, *, address: str) -> DeviceCodes:
        """Begin a device login; Throttled if there were too many from this address."""
        raise NotImplementedError

    def device(self, user_code: str, identity: Identity) -> DeviceRequest | None:
        """The login that waits for this code, to show before it is approved; None if there is none.

        A code may be typed in lower case and without its hyphen. Throttled after too many wrong codes by one person.
        """
        raise NotImplementedError

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
        raise NotImplementedError

    def deny_device(self, user_code: str, identity: Identity) -> None:
        """Refuse the device; AccountError if the code is wrong, used or expired."""
        raise NotImplementedError

    def finish_device(self, device_code: str) -> DeviceResult:
        """The token of an approved login, once and only once; otherwise its state."""
        raise NotImplementedError
