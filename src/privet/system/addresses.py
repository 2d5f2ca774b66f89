"""Addresses of databases: recognised, and shown without passwords."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from privet.errors import Remedy, Subject, UserError

HIDDEN = "***"
SOURCES = (
    "Sources are Parquet files and patterns of them, here or at s3:// and gs://, DuckDB files, tables at "
    "postgresql://, and tables in Spark (spark:sales.people, sc://host:15002#sales.people)"
)
"""What a private table can be read from, for refusals."""
COPY = "Copy its rows to one of these first"
"""What to do with any other."""

_PUBLIC = frozenset(
    {"host", "hostaddr", "port", "dbname", "user", "sslmode"}
    | {"application_name", "connect_timeout", "target_session_attrs"}
)
_LIBPQ = {*_PUBLIC, "password", "passfile", "service", "options", "sslpassword", "sslkey", "sslcert", "sslrootcert"}
_KEPT = _PUBLIC | frozenset(
    {"service", "passfile", "options", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir", "sslnegotiation"}
    | {"ssl_min_protocol_version", "ssl_max_protocol_version", "channel_binding", "require_auth", "gssencmode"}
    | {"krbsrvname", "load_balance_hosts", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"}
    | {"tcp_user_timeout", "client_encoding", "fallback_application_name", "requirepeer", "sslsni", "replication"}
)
"""Parameters of libpq whose values are no secrets."""
_POSTGRES = re.compile(r"\s*(?:postgresql|postgres|postgresql\+psycopg)://", re.IGNORECASE)
_SPARK = re.compile(r"\s*(?:spark:|sc://)", re.IGNORECASE)
_SCHEMED = re.compile(
    r"\s*(?:(?:postgres|spark|jdbc|odbc|duckdb|md|motherduck|sqlite|mysql|mariadb|mssql|oracle)[\w+.-]*:|[a-z][\w+.-]+:/)",
    re.IGNORECASE,
)
_WITH_PARAMETER = re.compile(r"(?:\?|/;)[\w%.-]+=")
_DRIVE = re.compile(r"\s*[A-Za-z]:[\\/]")
_FIRST_KEY = re.compile(r"\s*(\w{1,40})\s*=")

_PARAMETER = re.compile(r"(\?(?=[\w%])|&)")
_KEY = re.compile(r"[^\s=&?;,:/'\"(){}\[\]]*\Z")
_LONGEST = 100  # characters: a longer value is not shown, so that no text takes long to mask
_VALUE = re.compile(rf"\s*(?:'([^']{{0,{_LONGEST + 1}}})|([^\s'\"&?]{{0,{_LONGEST + 1}}}))")
_COMPOUND = re.compile(r"[:@=\s]|%3a|%3d|%40", re.IGNORECASE)  # in a value, it may separate a secret
_SPELT_OUT = re.compile(r"(?:pass|pwd|secret|token)\w{0,20}['\"]?\s{0,9}[:=]", re.IGNORECASE)
_INSIDE = re.compile(r":(?=[^\s])")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,40}\Z")
_AUTHORITY = re.compile(r"(?<=:/)/?([^\s/?#'\"]*)|(?<![\w+.-])postgres[\w+.-]{0,40}:(?!/)(\S*)", re.IGNORECASE)
_SECRET_USER = re.compile(r"[:=\s]")
_SERVER = r"(?:\[[^\]]*\]|[^:\[\],]*)(?::\d*)?"
_SERVERS = re.compile(rf"(?:\*\*\*@)?{_SERVER}(?:,{_SERVER})*")


def is_postgres(text: str) -> bool:
    """Whether this is the address of a ledger in Postgres.

    Example:
        >>> is_postgres(" PostgreSQL://host/base"), is_postgres("mysql://host/base")
        (True, False)
    """
    return _POSTGRES.match(text) is not None


def is_spark(text: str) -> bool:
    """Whether this is the address of a table in Spark.

    Example:
        >>> is_spark("spark:sales.people"), is_spark("sc://host#sales.people"), is_spark("people.parquet")
        (True, True, False)
    """
    return _SPARK.match(text) is not None


def is_served(text: str) -> bool:
    """Whether this is the address of rows that an engine reads where they are, and no file."""
    return is_postgres(text) or is_spark(text)


def is_address(text: str) -> bool:
    """Whether this text is meant as the address of a database, valid or not, rather than as a file.

    Example:
        >>> [is_address(text) for text in ("mysql://host", "postgresql:/me@host", "me:secret@host", "host=x user=me")]
        [True, True, True, True]
        >>> [is_address(text) for text in ("//me:secret@host/base", "duckdb:md:base", "people?token=x")]
        [True, True, True]
        >>> is_address("sc//host/;token=x")
        True
        >>> [is_address(text) for text in ("people.ledger", "/data/10:30@lab/people.ledger", "year=2024/people.ledger")]
        [False, False, False]
    """
    if "://" in text or _SCHEMED.match(text):
        return True
    has_password = ":" in text[: text.rfind("@") + 1]
    if has_password and text.lstrip().startswith("//"):  # without a scheme
        return True
    if Path(text).is_absolute() or _DRIVE.match(text):
        return False
    key = _FIRST_KEY.match(text)
    return has_password or _WITH_PARAMETER.search(text) is not None or (key is not None and key[1].lower() in _LIBPQ)


def is_public(parameter: str, value: str = "") -> bool:
    """Whether the value of a connection parameter may be shown.

    Example:
        >>> is_public("user", "me"), is_public("user", "me:secret"), is_public("password", "secret")
        (True, False, False)
    """
    name = parameter.lower()
    harmless = len(value) <= _LONGEST and _COMPOUND.search(value) is None
    return name in _PUBLIC and (name in ("host", "hostaddr") or harmless)


def without_password(text: str) -> str:
    """The address of a database in Postgres without its password and other secrets, to be written in a policy.

    Claim: the result leads to the same database, once libpq finds the password elsewhere. Only parameters that are
    known to be harmless stay.

    Example:
        >>> without_password("postgresql://me:hush@host/base?password=hush&sslmode=require")
        'postgresql://me@host/base?sslmode=require'
        >>> without_password("postgresql:///base?host=/run/postgresql")
        'postgresql:///base?host=/run/postgresql'
    """
    scheme, slashes, rest = text.strip().partition("://")
    head, at, tail = rest.rpartition("@")
    if {*head} & {*"@?#"} or ("/" in head and ":" in head):
        raise UserError(
            "it is not clear where the password in this address ends",
            subject=Subject("ledger"),
            remedy=Remedy("In the password, write %40 for @, %3F for ?, %23 for # and %2F for /"),
        )
    if "/" in head:  # the @ is in the name of the database
        head, at, tail = "", "", rest
    base, mark, query = tail.partition("?")
    if not _SERVERS.fullmatch(base.partition("/")[0]):
        raise UserError(
            "this is not a valid Postgres address",
            allowed="An address looks like postgresql://user@host/database",
            subject=Subject("ledger"),
        )
    user = head.partition(":")[0]
    user = "" if _SECRET_USER.search(unquote(user)) else user
    kept = "&".join(each for each in query.split("&") if _is_kept(*each.partition("=")[::2]))
    return f"{scheme}{slashes}{user}{at if user else ''}{base}{mark if kept else ''}{kept}"


def _is_kept(name: str, value: str) -> bool:
    """Whether a parameter of an address may be in a policy."""
    value = unquote(value)
    if name == "user" or name == "dbname":
        return _SECRET_USER.search(value) is None
    return name in _KEPT and "://" not in value and _SPELT_OUT.search(value) is None


def shown(text: str) -> str:
    """A file name unchanged, an address without its secrets."""
    return masked(text) if is_address(text) else text


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """A text without the passwords of addresses in it, and without the given secrets.

    It hides too much rather than too little: everything between a scheme and the last @, and every parameter that is
    not known to be harmless, with everything after it.

    Example:
        >>> masked("can't reach PostgreSQL://me:p@ss@host:5432/base?password=hush&sslmode=require")
        "can't reach PostgreSQL://***@host:5432/base?***&sslmode=require"
        >>> masked("host=x password='hush hush' user=me")
        'host=x ***'
        >>> masked("host=x user='me hush' port=5432"), masked("dbname=x user=me:hush.duckdb")
        ('host=x ***', 'dbname=x ***')
    """
    for secret in sorted({secret for secret in secrets if secret}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _without_servers(_without_users(_without_values(text)))


def _without_values(text: str) -> str:
    """Hide the values of parameters, in a URL or for libpq: `key=value`."""
    first, *others = _PARAMETER.split(text)
    parts = [_until_secret(first)]
    for sign, part in zip(others[::2], others[1::2], strict=True):
        key, equals, value = part.partition("=")
        parts += sign, _until_secret(part) if equals and is_public(key, _value(value, 0)) else _hidden(part)
    return "".join(parts)


def _value(text: str, start: int) -> str:
    """The value that begins there, or as much of it as matters."""
    match = _VALUE.match(text, start)
    assert match is not None  # it may be empty
    return match[1] or match[2] or ""


def _hidden(part: str) -> str:
    """Stars in place of a secret; an @ stays, because a password may end there."""
    return f"{HIDDEN}@" if "@" in part else HIDDEN


def _until_secret(part: str) -> str:
    secret = _SPELT_OUT.search(part)
    end = len(part) if secret is None else secret.start()
    at = part.find("=")
    while at >= 0:
        start = max(0, at - 64)
        before = part[start:at].rstrip()
        key = _KEY.search(before)
        assert key is not None  # it may be empty
        if not is_public(key[0], _value(part, at + 1)):
            end = min(end, start + key.start())
            break
        at = part.find("=", at + 1)
    return part if end == len(part) else part[:end] + _hidden(part[end:])


def _without_users(text: str) -> str:
    """Hide users and passwords: `scheme://user:password@`."""
    last = text.rfind("@")
    match = _INSIDE.search(text, 0, max(last, 0))
    if match is None:
        return text
    colon = match.start()
    scheme = _SCHEME.search(text[max(0, colon - 41) : colon])
    name = "" if scheme is None else scheme[0]
    slashes = len(text[colon + 1 : colon + 3]) - len(text[colon + 1 : colon + 3].lstrip("/"))
    if name and (slashes or name.lower().startswith("postgres")):
        return text[: colon + 1 + slashes] + HIDDEN + text[last:]
    return text[: colon - len(name)] + HIDDEN + text[last:]


def _without_servers(text: str) -> str:
    """Hide text in the place of a server that is not a server: `scheme://user:password`, with nothing after it."""
    for match in _AUTHORITY.finditer(text):
        group = 1 if match[1] is not None else 2
        if match[2] or not _SERVERS.fullmatch(match[group]):
            return text[: match.start(group)] + HIDDEN
    return text
