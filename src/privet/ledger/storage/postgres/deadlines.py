"""The ledger's connections to Postgres, which do not wait forever.

Claim: whoever waits for a server that sends nothing gets an error after a limited time. Such a connection is closed for
good: whether its last transaction was committed is not known, so the ledger has to be opened again, and nothing is
answered before that.
"""

from __future__ import annotations

from privet.ledger.storage.postgres.settings import LONGEST
from privet.system import postgres

SILENCE = LONGEST + 5.0
"""Seconds in which a server must send something. Its own timeouts are shorter."""


class LimitedConnection(postgres.LimitedConnection):
    """A connection that is closed if the server sends nothing for `silence` seconds."""

    silence = SILENCE
