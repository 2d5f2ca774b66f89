"""Which files and which table of a catalogue a source is: the same rows under two names must be known as the same."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from privet.engines.spark import sessions
from privet.engines.spark.addresses import Address
from privet.engines.spark.sessions import Session
from privet.system.identity import Identity, of_files, table_name

_MOST_FILES = 1000


def identities(session: Session, address: Address, location: str, files: Sequence[str]) -> tuple[Identity, ...]:
    """Its name in the catalogue, its folder, and its files."""
    known: list[Identity] = []
    if address.names:
        warehouse = sessions.setting(session, "spark.sql.warehouse.dir")
        known.append(Identity(f"spark://{canonical(warehouse)}", table=table_name(*address.names)))
    here = is_here(session)
    places = [location or address.path, *(files if len(files) <= _MOST_FILES else ())]
    for place in map(canonical, places):
        if "://" in place:
            known.append(Identity(place))
        elif here:
            known.extend(of_files([place]))
        else:
            known.append(Identity(f"{session.address.shown}{place}"))
    return tuple(dict.fromkeys(known))


def is_here(session: Session) -> bool:
    """Whether Spark's files are files of this machine, as far as that can be known."""
    return not session.remote or urlsplit(session.address.remote).hostname in ("localhost", "127.0.0.1", "::1")


def canonical(place: str, *, encoded: bool = True) -> str:
    """A path, or an address of object storage as Privet writes it; `encoded`: Spark wrote % and more as %25.

    Example:
        >>> canonical("file:/data/a%20b"), canonical("/data/"), canonical("s3a://bucket/people/")
        ('/data/a b', '/data', 's3://bucket/people')
        >>> canonical("file:/data/a%20b", encoded=False)
        '/data/a%20b'
    """
    decoded = unquote if encoded else str
    if place.startswith("file:"):
        return "/" + decoded(place.removeprefix("file:")).strip("/")
    scheme, colon, rest = place.partition("://")
    if not colon:
        return place.rstrip("/") or "/"
    return f"{ {'s3a': 's3', 's3n': 's3'}.get(scheme, scheme) }://{decoded(rest).rstrip('/')}"
