"""Secrets of 256 random bits. Nobody can guess one, so a plain SHA-256 hash is stored of it."""

from __future__ import annotations

import hashlib
import hmac
import secrets


def new_secret() -> str:
    """A secret of 256 bits, in hexadecimal."""
    return secrets.token_hex(32)


def new_code(alphabet: str, length: int) -> str:
    """A secret to be typed: letters of an alphabet, each equally likely."""
    return "".join(secrets.choice(alphabet) for _ in range(length))


def new_id() -> str:
    """A random id that is no secret."""
    return secrets.token_hex(8)


def digest(secret: str) -> str:
    """What is stored of a secret.

    Example:
        >>> len(digest("secret"))
        64
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def keyed(key: bytes, *parts: str) -> str:
    """A keyed hash of several texts, which no other texts have."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two texts are equal, compared in constant time.

    Example:
        >>> same("a", "a"), same("ä", "b")
        (True, False)
    """
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
