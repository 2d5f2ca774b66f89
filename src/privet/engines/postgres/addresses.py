"""The address of a table in Postgres: postgresql://user@host/database#schema.table.

Claim: `shown` contains no secret. The rest of an address goes to libpq and nowhere else.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, unquote, urlsplit

from privet.errors import SourceError, Subject, write
from privet.system.addresses import is_public, masked, without_password

_EXAMPLE = "postgresql://reader@db.example.org/health#public.people"
LIKE = f"An address looks like {_EXAMPLE}"
_WRITE = write(f'pv.table("people", "{_EXAMPLE}", ...)', policy=f'source = "{_EXAMPLE}"')
_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


@dataclass(frozen=True, slots=True)
class Address:
    """A database, and perhaps a table in it."""

    url: str = field(repr=False)
    """What libpq connects to; perhaps with a password."""
    schema: str = ""
    table: str = ""

    @property
    def shown(self) -> str:
        """The database, without secrets."""
        return masked(self.url)

    @property
    def plain(self) -> str:
        """The database without password and other secrets, for a policy: libpq finds them elsewhere."""
        return without_password(self.url)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no text may contain."""
        parts = urlsplit(self.url)
        values = [value for key, value in parse_qsl(parts.query) if not is_public(key, value)]
        given = [*values, parts.password or "", parts.netloc.rpartition("@")[0].partition(":")[2]]
        return tuple({text for each in given if each for text in (each, unquote(each))})


def parsed(text: str) -> Address:
    """The parts of an address; the table is what follows #.

    Example:
        >>> parsed("postgres://reader@db/health#clinic.visits")
        Address(schema='clinic', table='visits')
        >>> parsed('postgresql://db/health#"Odd.name"')
        Address(schema='public', table='Odd.name')
    """
    given = text.strip()
    head, at, tail = given.rpartition("@")
    url, _, name = tail.partition("#")
    if "#" in head or "@" in head or "?" in head or "@" in name:
        raise SourceError(
            "it is not clear where the password in this address ends",
            remedy=replace(_WRITE, advice="In the password, write %40 for @, %3F for ? and %23 for #"),
        )
    url = re.sub(r"^[\w+]+://", "postgresql://", head + at + url)
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise SourceError("this is not a valid Postgres address", allowed=LIKE, remedy=_WRITE) from None
    if not parts.path.strip("/") and not {"dbname", "service"} & query.keys():
        raise SourceError("this address does not name a database", allowed=LIKE, remedy=_WRITE)
    return Address(url, *(_names(name) if name else ("", "")))


def _names(text: str) -> tuple[str, str]:
    """A schema and a table; a name with a dot or a quote in it is in double quotes."""
    names: list[str] = []
    at = 0
    name = unquote(text)
    while match := _PART.match(name, at):
        names.append(match[1].replace('""', '"') if match[1] else match[2])
        at = match.end() + 1
        if match.end() == len(name) or name[match.end()] != ".":
            break
    if at != len(name) + 1 or not 1 <= len(names) <= 2 or not name.isprintable():
        raise SourceError(
            f"{masked(text)!r} is not the name of a table",
            allowed="A table is named as schema.table, or as table in the schema public, with printable characters",
            subject=Subject("table", masked(text)),
            remedy=replace(_WRITE, terminal=shlex.quote(_EXAMPLE)),
        )
    return ("public", names[0]) if len(names) == 1 else (names[0], names[1])


def written(url: str, schema: str, table: str) -> str:
    """The address of a table, as a policy has it.

    Example:
        >>> written("postgresql://db/health", "clinic", "Odd.name")
        'postgresql://db/health#clinic."Odd.name"'
        >>> written("postgresql://db/health", "clinic", "at@t")
        'postgresql://db/health#clinic."at%40t"'
    """
    parts = ['"' + each.replace('"', '""') + '"' if re.search(r"[.\"#%@ ]", each) else each for each in (schema, table)]
    return f"{url}#{'.'.join(parts).replace('%', '%25').replace('@', '%40')}"
