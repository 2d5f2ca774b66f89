"""The client secret: in an environment variable or a file, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

from privet.errors import Remedy, UserError
from privet.policy.openid_shape import SECRET

_LONGEST = 2000  # characters


def client_secret(file: str | None) -> str:
    """The secret with which the server shows the provider that it is the server. No error contains it."""
    where = f"the environment variable {SECRET}" if file is None else f"the file {file!r}"
    try:
        text = os.environ.get(SECRET, "") if file is None else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    secret = text.strip()
    if not secret or len(secret) > _LONGEST or not secret.isascii() or not secret.isprintable():
        what = "has no client secret of one line" if secret else "is missing or empty"
        raise UserError(
            f"[server.openid] needs a client secret, but {where} {what}",
            remedy=Remedy(f"Set {SECRET}, or name a file with secret_file"),
        )
    return secret
