"""Who are you: people, passwords, sessions of the page, API tokens, one-time links and device logins."""

from privet.server.accounts.accounts import Accounts
from privet.server.accounts.errors import AccountError, NotLetIn, StoreBusy, StoreError, Throttled, WrongPassword
from privet.server.accounts.records import (
    DeviceCodes,
    DeviceRequest,
    DeviceResult,
    DeviceState,
    Identity,
    Person,
    Role,
    Token,
)

__all__ = [
    "AccountError",
    "Accounts",
    "DeviceCodes",
    "DeviceRequest",
    "DeviceResult",
    "DeviceState",
    "Identity",
    "NotLetIn",
    "Person",
    "Role",
    "StoreBusy",
    "StoreError",
    "Throttled",
    "Token",
    "WrongPassword",
]
