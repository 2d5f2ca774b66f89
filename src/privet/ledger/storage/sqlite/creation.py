"""Creating a ledger's file.

Claim: a ledger gets its name when it is complete and on disk, and never replaces or removes another file. If several
processes create the same one, exactly one of them does, and none waits for another. Until then it has a scratch name
that no ledger can have; `system.files` removes those that a killed process left.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from privet.errors import UserError
from privet.ledger.storage import database
from privet.ledger.storage.sqlite.schema import new_ledger
from privet.ledger.storage.turns import Patience
from privet.system import files

_PAUSE = 0.001  # seconds


def create(path: Path) -> bool:
    """Create a ledger that only its owner can use; False if it already exists."""
    files.sweep(path)
    try:
        with files.written(path, overwrite=False, mode=0o600) as file:
            file.write(new_ledger())
    except UserError:
        if os.path.lexists(path):  # another process was first
            return False
        raise
    return True


def wait_for_its_name(path: Path) -> None:
    """Wait until a new ledger has no scratch name any more: its creator removes that, or was killed before."""
    patience = Patience(database.PATIENCE)
    while path.stat().st_nlink > 1 and files.sweep(path).left and patience.lasts(None):
        time.sleep(_PAUSE)
