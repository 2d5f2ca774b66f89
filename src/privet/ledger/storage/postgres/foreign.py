"""Objects on our tables in Postgres that Privet did not create: a trigger, for example, could undo a write."""

from __future__ import annotations

from collections.abc import Sequence


def places(names: Sequence[str]) -> str:
    """The tables with these names, for a SELECT or an IN; NULL for one that does not exist."""
    return ", ".join(f"to_regclass('{name}')" for name in names)


def suspect(names: Sequence[str]) -> str:
    """A quick query for every transaction: whether our tables could have foreign objects, or are not all there."""
    return (
        f"SELECT count(*) <> {len(names)} OR bool_or(relkind <> 'r' OR relpersistence <> 'p' OR relhastriggers OR "
        "relhasrules OR relrowsecurity OR relhassubclass OR relispartition OR relchecks > 0 OR "
        "EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND atthasdef) OR "
        "EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND NOT indisprimary)) "
        f"FROM pg_class c WHERE oid IN ({places(names)})"
    )


def foreign(names: Sequence[str]) -> str:
    """A query for the foreign objects on our tables: what each is, and its table."""
    return f"""
        WITH ours AS (
            SELECT oid, relname, relkind, relpersistence, relrowsecurity FROM pg_class WHERE oid IN ({places(names)})
        )
        SELECT 'trigger ' || tgname, relname FROM pg_trigger t JOIN ours ON tgrelid = ours.oid WHERE NOT tgisinternal
        UNION ALL SELECT 'rule ' || rulename, relname FROM pg_rewrite r JOIN ours ON ev_class = ours.oid
        UNION ALL SELECT 'policy ' || polname, relname FROM pg_policy p JOIN ours ON polrelid = ours.oid
        UNION ALL SELECT 'table ' || inhrelid::regclass, relname FROM pg_inherits
            JOIN ours ON ours.oid IN (inhparent, inhrelid)
        UNION ALL SELECT 'constraint ' || conname, relname FROM pg_constraint c JOIN ours ON conrelid = ours.oid
            WHERE contype NOT IN ('p', 'n')
        UNION ALL SELECT 'index ' || indexrelid::regclass, relname FROM pg_index JOIN ours ON indrelid = ours.oid
            WHERE NOT indisprimary
        UNION ALL SELECT 'default of ' || attname, relname FROM pg_attribute JOIN ours ON attrelid = ours.oid
            WHERE atthasdef
        UNION ALL SELECT 'column ' || attname, relname FROM pg_attribute JOIN ours ON attrelid = ours.oid
            WHERE attnum > 0 AND NOT attisdropped
                AND atttypid NOT IN ('int4'::regtype, 'int8'::regtype, 'text'::regtype)
        UNION ALL SELECT 'kind of table', relname FROM ours
            WHERE relkind <> 'r' OR relpersistence <> 'p' OR relrowsecurity
    """
