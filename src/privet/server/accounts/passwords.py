"""Passwords: which are allowed, and how they are hashed (argon2id, the low-memory profile of RFC 9106)."""

from __future__ import annotations

import threading
import unicodedata

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

from privet.names.lookalikes import skeletons
from privet.server.accounts import hashing
from privet.server.accounts.errors import AccountError

SHORTEST, LONGEST = 12, 1000
"""Characters of a password."""
_DISTINCT = 5  # characters that a password must have at least
_AT_ONCE = 4  # verifications in a process, which need 64 MiB each


def production() -> PasswordHasher:
    """The parameters for real passwords."""
    return PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)


class Passwords:
    """Hashes and verifies passwords.

    Claim: `matches` verifies exactly one hash, whether there is an account, a password, or neither.
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self.hasher = hasher or production()
        self._decoy: str | None = None
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._first = threading.Lock()

    def hashed(self, password: str) -> str:
        """What is stored of a password."""
        with self._turns:
            return self.hasher.hash(_bytes(password))

    def matches(self, stored: str | None, password: str) -> bool:
        """Whether this is the password; without a stored one, the same work is done for nothing."""
        decoy = self._ready()
        text = _bytes(password) if len(password) <= LONGEST else b""
        with self._turns:
            try:
                self.hasher.verify(decoy if stored is None else stored, text)
            except (VerificationError, InvalidHashError):
                return False
        return stored is not None and bool(text)

    def _ready(self) -> str:
        """A hash that no password has. It is made before the first comparison, whoever tries to sign in."""
        with self._first:
            if self._decoy is None:
                self._decoy = self.hashed(hashing.new_secret())
            return self._decoy

    def is_outdated(self, stored: str) -> bool:
        """Whether a hash was made with other parameters than new ones are."""
        return self.hasher.check_needs_rehash(stored)


def _bytes(password: str) -> bytes:
    """The same bytes for the same characters, however a keyboard composes them."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")


def check_new(name: str, password: str) -> None:
    """Refuse a password that is too short, too long or too easily guessed."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise AccountError(f"a password has {SHORTEST} to {LONGEST} characters. Several words are easy to remember")
    if len(set(password)) < _DISTINCT:
        raise AccountError(f"this password is easily guessed: it has fewer than {_DISTINCT} different characters")
    if any(skeleton and not password_without(skeleton, password) for skeleton in skeletons(name)):
        raise AccountError("this password is easily guessed: it is made of the name")


def password_without(skeleton: str, password: str) -> str:
    """The longest rest of a password when all occurrences of a name are removed, as a reader sees them."""
    return max((each.replace(skeleton, "") for each in skeletons(password)), key=len)
