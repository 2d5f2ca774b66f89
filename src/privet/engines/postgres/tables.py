"""Tables and views in Postgres, as sources: their columns, who else is in them, and that they can be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from privet.engines.postgres.addresses import Address
from privet.engines.postgres.connections import reading, rows, told
from privet.engines.postgres.types import as_id, exposed, identifier, literal, stored
from privet.errors import Remedy, SourceError, Subject
from privet.names.spelling import listed, nearest
from privet.system.identity import Identity, of_database, table_name
from privet.tables.stored_types import StoredType

_KINDS = {"f": "a foreign table", "S": "a sequence", "i": "an index", "c": "a type"}
_HERE = ("/", "@", "localhost", "127.", "::1")
_FIND = """
    SELECT c.oid::bigint, c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::text AND c.relname = $2::text
"""
_TABLES = """
    SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition AND n.nspname !~ '^(pg_|information_schema$)'
        AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
    ORDER BY 1, 2
"""
_COLUMNS = """
    WITH RECURSIVE plain(number, name, type, modifier) AS (
        SELECT attnum, attname, atttypid, atttypmod FROM pg_attribute
        WHERE attrelid = $1::bigint::oid AND attnum > 0 AND NOT attisdropped
        UNION ALL
        SELECT number, name, typbasetype, CASE WHEN typtypmod >= 0 THEN typtypmod ELSE modifier END
        FROM plain JOIN pg_type ON oid = type WHERE typtype = 'd'
    )
    SELECT name::text, format_type(type, modifier), CASE
        WHEN EXISTS (SELECT FROM pg_cast WHERE castsource = type AND castfunc >= 16384
            AND casttarget IN ('text'::regtype, 'varchar'::regtype)) THEN 'f'
        WHEN typname = 'citext' AND typtype = 'b' AND EXISTS (SELECT FROM pg_depend d JOIN pg_extension e
            ON e.oid = d.refobjid WHERE d.classid = 'pg_type'::regclass AND d.objid = type AND d.deptype = 'e'
            AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'citext') THEN 't'
        ELSE typtype::text END
    FROM plain JOIN pg_type ON oid = type WHERE typtype <> 'd' ORDER BY number
"""
"""The columns of a table; the type of a domain is the one below it. Postgres's own functions are below 16384."""
READ = """
    WITH RECURSIVE read(oid) AS (
        SELECT {}
        UNION
        SELECT below FROM read CROSS JOIN LATERAL (
            SELECT inhrelid FROM pg_inherits WHERE inhparent = read.oid
            UNION ALL SELECT d.refobjid FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
                JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
                AND d.refclassid = 'pg_class'::regclass WHERE r.ev_class = read.oid
        ) AS edge(below)
    )
"""
"""The tables that are read with one: its partitions and children, and what a view reads, but no view that is stored."""
_FOREIGN = f"""
    {READ.format("$1::bigint::oid")} SELECT n.nspname::text, c.relname::text FROM read JOIN pg_class c USING (oid)
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'f' ORDER BY 1, 2
"""
_RELATED = """
    WITH RECURSIVE related(oid) AS (
        SELECT $1::bigint::oid
        UNION
        SELECT other FROM related JOIN (
            SELECT inhrelid AS one, inhparent AS other FROM pg_inherits
            UNION ALL SELECT inhparent, inhrelid FROM pg_inherits
            UNION ALL SELECT r.ev_class, d.refobjid FROM pg_rewrite r JOIN pg_depend d
                ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
        ) AS edge ON one = oid
    )
    SELECT n.nspname::text, c.relname::text FROM related JOIN pg_class c USING (oid)
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY c.oid <> $1::bigint::oid, 1, 2
"""
"""A table, its partitions and those it is one of, and what a view reads."""
_SERVER = """
    SELECT system_identifier::text, (SELECT oid::text FROM pg_database WHERE datname = current_database())
    FROM pg_control_system()
"""


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table or a view in Postgres. Its rows stay there: only integers by group leave it."""

    address: Address = field(repr=False)
    schema: str
    table: str
    columns: tuple[tuple[str, StoredType], ...] = ()
    person: str | None = None
    lockable: bool = True
    """Whether this user can lock it by name: not a materialized view, nor with rights for single columns."""
    identities: tuple[Identity, ...] = ()
    """Its own, and those of its partitions and of what a view reads; by its address, and by its server."""

    def types(self) -> Mapping[str, StoredType]:
        """The columns and their types."""
        return dict(self.columns)

    def files(self) -> Sequence[str]:
        """No files."""
        return ()

    @property
    def server(self) -> str:
        """The database that it is in."""
        return self.address.url

    @property
    def name(self) -> str:
        """Its name in SQL."""
        return f"{identifier(self.schema)}.{identifier(self.table)}"

    @property
    def rows(self) -> str:
        """What is read of it, as a subquery."""
        columns = ", ".join(exposed(name, kind) for name, kind in self.columns)
        return f"(SELECT {columns or '1 AS one'} FROM {self.name})"

    def __str__(self) -> str:
        return f"table {self.schema}.{self.table} of {self.address.shown}"

    def keeping(self, columns: Iterable[str], person: str | None) -> PostgresTable:
        """The same with these columns alone, after a look whether they can be read."""
        types = self.types()
        chosen = [(name, as_id(types[name]) if name == person else types[name]) for name in columns]
        kept = replace(self, columns=tuple(chosen), person=person)
        with reading(self.address) as connection:
            lockable = _can_lock(connection, kept)
            _asked(connection, f"SELECT * FROM {kept.rows} LIMIT 0", (), kept)
        return replace(kept, lockable=lockable)


def opened(address: Address, default: str) -> PostgresTable:
    """A table with all of its columns; without a name in the address, the one of this name in the schema public."""
    schema, table = (address.schema, address.table) if address.table else ("public", default)
    source = PostgresTable(address, schema, table)
    with reading(address) as connection:
        found = _asked(connection, _FIND, [schema, table], source)
        if not found:
            raise _absent(source, _asked(connection, _TABLES, (), source))
        oid, kind = found[0]
        if kind in _KINDS:
            raise SourceError(
                f"{source} is {_KINDS[kind]}",
                allowed="Tables, views and materialized views can be read",
                subject=Subject("table", table),
                remedy=Remedy("Copy its rows, for example into a materialized view") if kind == "f" else None,
            )
        for foreign in _asked(connection, _FOREIGN, [oid], source):
            raise SourceError(
                f"{source} reads {'.'.join(foreign)}, a foreign table",
                allowed="Tables, views and materialized views can be read",
                subject=Subject("table", table),
                remedy=Remedy("Copy its rows, for example into a materialized view"),
            )
        columns = described(connection, oid, source)
        related = _asked(connection, _RELATED, [oid], source)
        ((system, database),) = _asked(connection, _SERVER, (), source)
        host, port, base = connection.info.host, connection.info.port, connection.info.dbname
    names = [table_name(*each) for each in related]
    known = [Identity(f"postgresql://server-{system}/{database}", table=name) for name in names]
    if not host.startswith(_HERE):  # there, the number of the server alone says which one it is
        where = f"postgresql://{host}:{port}/{base}"
        known = [of_database(where, table=name) for name in names] + known
    return replace(source, columns=tuple(columns.items()), identities=tuple(known))


def described(connection: Any, oid: int, source: PostgresTable) -> dict[str, StoredType]:
    """The columns of a table, and their types."""
    return {name: stored(kind, sort) for name, kind, sort in _asked(connection, _COLUMNS, [oid], source)}


def is_as_declared(connection: Any, source: PostgresTable) -> bool:
    """Whether the columns still have the types with which a table was declared."""
    ((oid,),) = rows(connection, f"SELECT {literal(source.name)}::regclass::oid::bigint")
    now = described(connection, oid, source)
    return all(
        name in now and kind == (as_id(now[name]) if name == source.person else now[name])
        for name, kind in source.columns
    )


def every(address: Address) -> list[PostgresTable]:
    """The tables and views of a database that this user may read, with their columns; one, if the address names it."""
    if address.table:
        return [opened(address, "")]
    with reading(address) as connection:
        found = _asked(connection, _TABLES, (), PostgresTable(address, "", ""))
    names = [each for each in found if all(map(str.isprintable, each))]  # no address has another
    return [opened(replace(address, schema=schema, table=table), "") for schema, table in names]


def count(source: PostgresTable) -> int:
    """The number of rows."""
    with reading(source.address) as connection:
        return int(_asked(connection, f"SELECT count(*) FROM {source.name}", (), source)[0][0])


def _can_lock(connection: Any, source: PostgresTable) -> bool:
    import psycopg

    connection.execute("SAVEPOINT locking")
    try:
        connection.execute(f"LOCK TABLE {source.name} IN ACCESS SHARE MODE")
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.WrongObjectType):
        connection.execute("ROLLBACK TO SAVEPOINT locking")
        return False
    except psycopg.Error as error:
        what = f"{source} can't be read: {told(source.address, error)}"
        raise SourceError(what, subject=Subject("table", source.table)) from None
    return True


def _absent(source: PostgresTable, names: list[tuple[Any, ...]]) -> SourceError:
    known = [table if schema == "public" else f"{schema}.{table}" for schema, table in names]
    wanted = source.table if source.schema == "public" else f"{source.schema}.{source.table}"
    near = nearest(wanted, known)
    return SourceError(
        f"there is no {source}, or this user may not see it",
        allowed=listed(known, "tables") if known else "This user may read no table there",
        subject=Subject("table", source.table),
        remedy=Remedy(f"Did you mean {near!r}? Name it after #, as in {source.address.shown}#{near}") if near else None,
    )


def _asked(connection: Any, sql: str, parameters: Sequence[Any], source: PostgresTable) -> list[tuple[Any, ...]]:
    import psycopg

    try:
        return rows(connection, sql, parameters)
    except psycopg.Error as error:
        what = f"{source} can't be read: {told(source.address, error)}"
    raise SourceError(what, subject=Subject("table", source.table))
