"""The one schema of a Postgres database that has the ledger, and connections that are fit for it.

Claim: an address leads every user to the same ledger, or is refused. The default search path begins with `"$user"`, and
leaves out schemas that a user may not use. So a ledger is looked for in all schemas of the database, unless the address
itself names exactly one schema.
"""

from __future__ import annotations

from typing import Any

from privet.errors import LedgerError, Remedy
from privet.ledger.storage import database, tables

_DURABLE = "fsync", "full_page_writes", "synchronous_commit"
LONGEST = 60
"""Seconds that a statement may take, and that a writer that blocks others may be idle."""

_SETTINGS = """
    SELECT name, setting, source FROM pg_catalog.pg_settings
    WHERE name OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.text[])
"""
_RESETS = {
    "user": "ALTER ROLE {user} RESET {setting}",
    "database": "ALTER DATABASE {database} RESET {setting}",
    "database user": "ALTER ROLE {user} IN DATABASE {database} RESET {setting}",
}
"""By the source of a setting: the command that removes it."""
_LEDGERS = """
    SELECT nspname, nspname OPERATOR(pg_catalog.=) ANY (pg_catalog.current_schemas(false))
        OR n.oid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema(),
        pg_catalog.has_schema_privilege(n.oid, 'USAGE')
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE relname OPERATOR(pg_catalog.=) %s::pg_catalog.name AND reltype OPERATOR(pg_catalog.<>) 0::pg_catalog.oid
        AND NOT pg_catalog.pg_is_other_temp_schema(n.oid)
"""
"""The schemas with a ledger, whether they are on the search path, and whether this user may use them."""


def names_schema(options: str) -> bool:
    """Whether the options in an address set the search path."""
    return "search_path" in options.replace("-", "_").lower()


def check_schema(connection: Any, *, named: bool) -> None:
    """Refuse a connection that could lead to another ledger than the same address does for another user."""
    ((_, path, source),) = connection.execute(_SETTINGS, [["search_path"]]).fetchall()
    named = named and source == "client" and not {",", "$"} & {*path}
    if named and not connection.execute("SELECT pg_catalog.current_schema()").fetchone()[0]:
        raise LedgerError(
            f"the address names the schema {path!r}, which does not exist or which this user may not use",
            remedy=Remedy(f"Run in Postgres: CREATE SCHEMA {path}, or {_usage(connection, path)}"),
        )
    ledgers = sorted(connection.execute(_LEDGERS, [tables.ledger.name]).fetchall())
    if named:
        ledgers = [ledger for ledger in ledgers if ledger[1]]
    if len(ledgers) > 1:
        raise LedgerError(
            f"this database has two ledgers, in the schemas {ledgers[0][0]!r} and {ledgers[1][0]!r}, and the address "
            "does not say which one is meant",
            remedy=Remedy("Name its schema in the address: ?options=-csearch_path%3Done_schema"),
        )
    for schema, visible, usable in ledgers:
        if not visible:
            raise LedgerError(
                f"the ledger of this database is in the schema {schema!r}, "
                + ("which is not on this user's search path" if usable else "which this user may not use")
                + ". A second ledger would have a second budget",
                remedy=Remedy(
                    f"Name the schema in the address: ?options=-csearch_path%3D{schema}"
                    if usable
                    else f"Connect as the role that owns the ledger, or run in Postgres: {_usage(connection, schema)}"
                ),
            )


def _usage(connection: Any, schema: str) -> str:
    """The statement that lets this user use a schema."""
    ((granted,),) = connection.execute(
        "SELECT pg_catalog.format('GRANT USAGE ON SCHEMA %%I TO %%I', %s::pg_catalog.text, current_user)",
        [schema],
    ).fetchall()
    return str(granted)


def configure(connection: Any, *, named: bool) -> None:
    """Configure a new connection: commits wait for the disk, statements time out, and there is one ledger."""
    try:
        _configure(connection, named=named)
    except BaseException:
        connection.close()
        raise


def _configure(connection: Any, *, named: bool) -> None:
    settings = connection.execute(_SETTINGS, [list(_DURABLE)]).fetchall()
    for setting, value, source in settings:
        if value == "off":
            raise _not_durable(connection, setting, source)
    check_schema(connection, named=named)
    session = {setting: value for setting, value, _ in settings if setting == "synchronous_commit"}
    session |= {
        "lock_timeout": f"{database.PATIENCE}s",
        "statement_timeout": f"{LONGEST}s",
        "idle_in_transaction_session_timeout": f"{LONGEST}s",
    }
    for setting, value in session.items():
        connection.execute("SELECT set_config(%s, %s, false)", [setting, value])
    connection.commit()


def _not_durable(connection: Any, setting: str, source: str) -> LedgerError:
    user, base = connection.execute("SELECT current_user, pg_catalog.current_database()").fetchone()
    if source == "client":
        remedy = Remedy(f"Remove {setting} from the options of the address, or from PGOPTIONS")
    else:
        command = _RESETS.get(source, "ALTER SYSTEM SET {setting} = on; SELECT pg_reload_conf()")
        remedy = Remedy(f"Run in Postgres: {command.format(user=user, database=base, setting=setting)}")
    return LedgerError(f"{setting} is off in Postgres, so a debit could be lost in a crash", remedy=remedy)
