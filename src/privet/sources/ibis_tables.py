"""Which tables of which database an Ibis table reads, from its expression and its connection: no row is read.

Claim: `identities` is total. What a backend does not tell, or tells in another way than here, has no identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from privet.system.identity import Identity, of_database, of_files, table_name

_READ = ("DatabaseTable", "SQLQueryResult")


def identities(expression: Any) -> tuple[Identity, ...]:
    """The identities of all tables that an Ibis expression reads; of SQL in it, its whole database."""
    try:
        read = expression.op().find(lambda node: type(node).__name__ in _READ)
    except Exception:  # a version of Ibis that is built in another way
        return ()
    identities: dict[Identity, None] = {}
    for each in read:
        try:
            identities.update(dict.fromkeys(_of_table(each.source, getattr(each, "name", None), _namespace(each))))
        except Exception:
            continue
    return tuple(identities)


def _namespace(of: Any) -> tuple[str | None, str | None]:
    space = getattr(of, "namespace", None)
    return getattr(space, "catalog", None), getattr(space, "database", None)


def _of_table(backend: Any, name: str | None, namespace: tuple[str | None, str | None]) -> tuple[Identity, ...]:
    catalog, schema = namespace
    match backend.name:
        case "duckdb":
            files = backend.con.execute("SELECT database_name, path FROM duckdb_databases()").fetchall()
            table = "" if name is None else table_name(schema or backend.current_database, name)
            return _in_file(dict(files), catalog or backend.current_catalog, name, table)
        case "sqlite":
            files = [row[1:3] for row in backend.con.execute("PRAGMA database_list").fetchall()]
            table = "" if name is None else table_name("main", name)
            return _in_file(dict(files), schema or "main", name, table)
        case "postgres":
            info = backend.con.info
            address = f"postgresql://{info.host}:{info.port}/{info.dbname}"
            table = "" if name is None else table_name(schema or backend.current_database, name)
            return (of_database(address, table=table),)
    return ()


def _in_file(files: Mapping[str, str | None], database: str, name: str | None, table: str) -> tuple[Identity, ...]:
    """The table in the file of its database; without a name, all files that the connection can read."""
    paths: Iterable[str | None] = files.values() if name is None else [files.get(database)]
    return of_files((path for path in paths if path), table=table)
