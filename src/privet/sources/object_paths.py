"""Objects by their addresses, patterns and lists of them: found once, at registration."""

from __future__ import annotations

import glob
from collections import Counter
from typing import Any

from privet.engines.object_store import listed
from privet.errors import Remedy, SourceError, Subject
from privet.sources.paths import fits
from privet.system.addresses import shown
from privet.system.object_addresses import ObjectAddress, is_object_address

_OTHERS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".duckdb", ".ddb", ".db")


def objects_of(source: Any) -> tuple[ObjectAddress, ...]:
    """The objects that an address, a pattern or a list of them names, in order."""
    found: list[ObjectAddress] = []
    for each in source if isinstance(source, list | tuple) else [source]:
        found += _named(str(each))
    for address, times in Counter(found).items():
        if times > 1:
            raise SourceError(
                f"{str(address)!r} is listed twice, so its rows would count twice",
                subject=Subject("file", str(address)),
                remedy=Remedy("List each object once"),
            )
    return tuple(found)


def _named(text: str) -> list[ObjectAddress]:
    if not is_object_address(text):
        raise SourceError(
            f"{shown(text)!r} is a file, and others of this table are objects in a store",
            allowed="All files of a table are on this machine, or all are objects",
            subject=Subject("file", shown(text)),
        )
    address = ObjectAddress.parse(text)
    if address.key.lower().endswith(_OTHERS):
        raise SourceError(
            f"{str(address)!r} is not a Parquet file",
            allowed="In object storage, Privet reads Parquet files",
            subject=Subject("file", str(address)),
            remedy=Remedy("Copy it to this machine. A CSV is imported into a Parquet file, which can be put back"),
        )
    if not address.is_pattern:
        return [address]
    matched = _matched(address)
    if not matched:
        raise SourceError(f"no object matches {str(address)!r}", subject=Subject("file", str(address)))
    return matched


def _matched(pattern: ObjectAddress) -> list[ObjectAddress]:
    """What matches as it does for files: * and ? within one part of the key, ** for any number; no hidden parts."""
    parts = pattern.key.split("/")
    fixed = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    deep = len(parts) > fixed + 1 or parts[fixed] == "**"
    found = listed(pattern, "/".join(parts[:fixed]), deep=deep)
    return [each for each in found if fits(each.key.split("/"), parts) and not _is_hidden(each.key.split("/")[fixed:])]


def _is_hidden(parts: list[str]) -> bool:
    return any(part.startswith(".") for part in parts)
