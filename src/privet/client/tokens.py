"""Tokens of servers: given, from the environment, or stored by `privet login` in a file that only its owner reads."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from privet.client.addresses import Address
from privet.errors import Remedy, UserError, write

_TOKEN = re.compile(r"[\x21-\x7e]{1,500}", re.ASCII)


class Token:
    """The text of a token; it is never shown.

    Example:
        >>> Token("privet_1_secret")
        Token(***)
    """

    __slots__ = ("_text",)

    def __init__(self, text: object) -> None:
        if not isinstance(text, str) or not _TOKEN.fullmatch(text.strip()):
            raise UserError(
                "a token is a text without spaces, as the server showed it",
                remedy=Remedy("Make a new one on the server, or sign in with privet login"),
            )
        self._text = text.strip()

    def header(self) -> str:
        """The value of the header Authorization."""
        return f"Bearer {self._text}"

    def hidden_in(self, content: bytes) -> bytes:
        """A server's text without the token, should it send it back."""
        return content.replace(self._text.encode(), b"***")

    def __repr__(self) -> str:
        return "Token(***)"

    def __reduce__(self) -> str:
        raise UserError("a token can't be copied or pickled")


def token_for(address: Address, given: str | None = None) -> Token:
    """The token to use: the one that is given, that of PRIVET_TOKEN, or the stored one."""
    text = given if given is not None else os.environ.get("PRIVET_TOKEN") or _stored().get(str(address))
    if text is None:
        raise UserError(
            f"there is no token for {address}",
            remedy=write(
                f'pv.connect("{address}", token=...)',
                terminal=f"privet login {address}",
                advice=f"Sign in with privet login {address}, or set PRIVET_TOKEN",
            ),
        )
    return Token(text)


def stored(address: Address) -> Token | None:
    """The stored token of a server; None if there is none."""
    text = _stored().get(str(address))
    return None if text is None else Token(text)


def store(address: Address, text: str) -> Path:
    """Store a token, in place of an earlier one for the same server."""
    Token(text)
    return _write({**_stored(), str(address): text})


def forget(address: Address) -> bool:
    """Remove the stored token of a server; returns whether there was one."""
    known = _stored()
    if str(address) not in known:
        return False
    del known[str(address)]
    _write(known)
    return True


def file() -> Path:
    """The file of stored tokens."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".config"
    return folder / "privet" / "tokens.json"


def _stored() -> dict[str, str]:
    path = file()
    try:
        with path.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            raw = opened.read(1_000_000)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(f"the stored tokens can't be read: {error.strerror}") from None
    if mode & 0o077:
        raise UserError(
            f"others can read your tokens in {str(path)!r}",
            remedy=Remedy(f"Revoke them on their servers, then run: chmod 600 {path}"),
        )
    try:
        tree = json.loads(raw)
    except ValueError:
        tree = None
    if not isinstance(tree, dict) or not all(isinstance(text, str) for text in tree.values()):
        raise UserError(
            f"the file of stored tokens, {str(path)!r}, is damaged", remedy=Remedy("Remove it, and sign in")
        )
    return tree


def _write(tokens: dict[str, str]) -> Path:
    """Replace the file: written beside it and renamed, so that it is never half written."""
    path = file()
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch.unlink(missing_ok=True)
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            json.dump(tokens, opened, indent=2)
            opened.flush()
            os.fsync(opened.fileno())
        scratch.replace(path)
    except OSError as error:
        raise UserError(f"the token can't be stored in {str(path)!r}: {error.strerror}") from None
    return path
