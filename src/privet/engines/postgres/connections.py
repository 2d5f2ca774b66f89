"""Connections to Postgres for reading: transactions that write nothing, see one snapshot, and depend on no setting.

All settings are those of a transaction, set in its first message: a pooler that lends one connection to several clients
changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from privet.engines.postgres.addresses import Address
from privet.errors import Remedy, SourceError, UserError, install
from privet.system.addresses import masked

LONGEST = 3600
"""Seconds that a question may take, unless the server, the database or the role sets less."""
PATIENCE = 10
"""Seconds to wait for somebody who changes a table."""
OLDEST = 160000
"""The oldest version: before, a subquery needs a name."""

_ATTEMPT = re.compile(
    r"(?:connection (?:failed|is bad): )?connection to server (?:at|on socket) .*? failed: (?:[A-Z]+:  )?|"
    r"connection (?:failed|is bad): (?:[A-Z]+:  )?"
)
"""What the driver and libpq put before the words of a server, or of a network."""
_SEVERAL = "Multiple connection attempts failed"

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SETTINGS: Mapping[str, str] = {
    "search_path": "pg_catalog, pg_temp",  # or tables and functions of others could take the place of ours
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "row_security": "off",  # an error instead of rows that are left out
    "jit": "off",
    "array_nulls": "on",
    "quote_all_identifiers": "off",
    "lock_timeout": f"{PATIENCE}s",
    "idle_in_transaction_session_timeout": f"{PATIENCE}min",
    "constraint_exclusion": "partition",
    "work_mem": "64MB",
}


def beginning(settings: Mapping[str, str | int] | None = None) -> str:
    """The first message of a transaction: it takes no snapshot, so that a lock can come before one."""
    set_ = {**_SETTINGS, **(settings or {})}
    return f"{_BEGIN}; " + "; ".join(f"SET LOCAL {name} = {_setting(name, value)}" for name, value in set_.items())


def _setting(name: str, value: str | int) -> str:
    return str(value) if name == "search_path" else f"'{value}'"


def connect(address: Address, *, longest: float = LONGEST) -> Any:
    """A connection that is fit for reading; refused if the server is too old, or does not store UTF-8."""
    try:
        from privet.system.postgres import NETWORK, LimitedConnection
    except ImportError:
        raise UserError("a table in Postgres needs psycopg", remedy=install("postgres")) from None
    import psycopg

    network: dict[str, Any] = {
        name: value for name, value in NETWORK.items() if not re.search(rf"[?&]{name}=", address.url)
    }
    try:
        connection = LimitedConnection.connect(
            address.url, autocommit=True, prepare_threshold=None, cursor_factory=psycopg.RawCursor, **network
        )
    except psycopg.Error as error:
        what = told(address, error)
        raise SourceError(f"can't connect to {address.shown}: {what}", remedy=_remedy(what)) from None
    try:
        version, encoding = connection.info.server_version, connection.info.parameter_status("server_encoding")
        if version < OLDEST:
            raise SourceError(
                f"{address.shown} is Postgres {version // 10000}", allowed=f"{OLDEST // 10000} and newer are supported"
            )
        if encoding != "UTF8":
            raise SourceError(
                f"the database at {address.shown} stores texts as {encoding}", allowed="It has to store them as UTF8"
            )
        ((limit,),) = connection.execute(
            "SELECT setting FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'statement_timeout'"
        ).fetchall()
        connection.limit = min(int(limit) / 1000 or longest, longest)
        connection.silence = connection.limit + PATIENCE
        connection.add_notice_handler(lambda _: None)
    except psycopg.Error as error:
        connection.close()
        raise SourceError(f"can't ask {address.shown}: {told(address, error)}") from None
    except BaseException:
        connection.close()
        raise
    return connection


def _remedy(what: str) -> Remedy:
    """What helps if nobody could connect; a server may say it in another language."""
    if "password" in what:
        return Remedy("Set PGPASSWORD, or write the password to ~/.pgpass")
    if "refused" in what or "No such file" in what:
        return Remedy(
            "Check that Postgres is running there, and the host and the port: postgresql://USER@HOST:PORT/DATABASE"
        )
    return Remedy("Check the host, the user and the database in the address: postgresql://USER@HOST:PORT/DATABASE")


def told(address: Address, error: BaseException) -> str:
    """What a driver's error says, without secrets; for the steward, before any question."""
    diagnosis = getattr(getattr(error, "diag", None), "message_primary", None)
    said = diagnosis or str(error).partition(_SEVERAL)[0]
    tried = [line for line in said.splitlines() if _ATTEMPT.match(line)] or said.strip().splitlines()[:1]
    words = dict.fromkeys(_ATTEMPT.sub("", line).strip() for line in tried)
    return masked("; ".join(filter(None, words)) or type(error).__name__, address.secrets)


@contextmanager
def reading(address: Address) -> Iterator[Any]:
    """A connection in a transaction that reads, closed at the end; for looking at tables, not for questions."""
    connection = connect(address)
    try:
        connection.execute(f"{beginning()}; SET LOCAL statement_timeout = '{LONGEST}s'")
        yield connection
    finally:
        connection.close()


def rows(connection: Any, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    found: list[tuple[Any, ...]] = connection.execute(sql, list(parameters)).fetchall()
    return found
