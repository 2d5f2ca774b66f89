"""A table in Spark held at one moment: a temporary view of our own session, and the files that it reads.

To name a table in a statement would make Spark list its files, and read one for the types, each time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from privet.engines.spark import catalogue, sessions
from privet.engines.spark.listings import Listing, listed
from privet.engines.spark.sessions import Session
from privet.engines.spark.tables import SparkTable, signature
from privet.errors import Remedy, SourceError

_TRIES = 3
_LATER = Remedy("Ask again when they are written")


@dataclass(frozen=True, slots=True)
class Pin:
    """What a view was made of."""

    listing: Listing
    about: str
    """What the catalogue says of the table."""
    opened: object = field(compare=False)
    """The session that has the view."""


def pinned(session: Session, source: SparkTable, known: Pin | None) -> Pin | None:
    """The table as it is now; None if it is not as it was declared. `known` is what was pinned last.

    Claim: if the files are still those of the listing after a question, the view had read them, and their types.
    """
    now = catalogue.looked(session, source.address, lambda: _now(session, source))
    if known is not None and known.opened is now.opened and known == now:
        return known
    sql = f"SELECT * FROM {source.name}"
    catalogue.looked(session, source.address, lambda: sessions.make_view(session, source.view, sql))
    return now if signature(session, source) == source.signature else None


def _now(session: Session, source: SparkTable) -> Pin:
    for _ in range(_TRIES):
        listing = listed(session, source)
        if not listing.wait:
            return Pin(listing, catalogue.about(session, source.address), session.opened)
        time.sleep(listing.wait / 1000)
    raise SourceError(f"{source} can't be read: its files change all the time", remedy=_LATER)
