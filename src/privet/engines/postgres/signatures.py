"""What the tables of a session are in Postgres's catalogue: a text that changes if what is read of them does.

Claim: while the text is the same, the declared columns have the types they had, views the definitions and virtual
generated columns the expressions, no foreign table was added below a table, and no cast to text runs a function that
was not there.
"""

from __future__ import annotations

from privet.engines.postgres.tables import READ, PostgresTable
from privet.engines.postgres.types import literal

_SIGNATURE = """
    SELECT concat_ws(';',
        (SELECT string_agg(concat_ws(' ', attrelid, attname, atttypid, atttypmod), ',' ORDER BY attrelid, attnum)
            FROM pg_attribute WHERE attnum > 0 AND ({columns})),
        (SELECT string_agg(concat_ws(' ', attrelid, attname, sha256(convert_to(adbin::text, 'UTF8'))), ','
                ORDER BY attrelid, attnum)
            FROM pg_attribute JOIN read ON attrelid = read.oid
                LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
            WHERE attgenerated = 'v'),
        (SELECT string_agg(concat_ws(' ', ev_class, sha256(convert_to(ev_action::text, 'UTF8'))), ',' ORDER BY ev_class)
            FROM pg_rewrite JOIN read ON ev_class = read.oid WHERE ev_type = '1'),
        (SELECT string_agg(c.oid::text, ',' ORDER BY c.oid) FROM pg_class c JOIN read USING (oid) WHERE relkind = 'f'),
        (SELECT string_agg(concat_ws(' ', castsource, casttarget, castfunc), ',' ORDER BY castsource, casttarget)
            FROM pg_cast WHERE castfunc >= 16384 AND casttarget IN ('text'::regtype, 'varchar'::regtype))
    )
"""


def locks(sources: list[PostgresTable]) -> str:
    """Statements that keep tables as they are for a transaction.

    A lock comes before the first snapshot, where Postgres allows one: who changes a table has finished, or waits for
    us. A SELECT of no rows locks the others, right after the snapshot.
    """
    named = sorted({source.name for source in sources if source.lockable})
    others = [source for source in sources if not source.lockable]
    return "; ".join([*(f"LOCK TABLE {name} IN ACCESS SHARE MODE" for name in named), *looks(others)])


def looks(sources: list[PostgresTable]) -> list[str]:
    """Statements that read no rows; Postgres refuses them if a row-level policy would leave rows out."""
    return [f"SELECT * FROM {rows} LIMIT 0" for rows in sorted({source.rows for source in sources})]


def signature(sources: list[PostgresTable]) -> str:
    """A SELECT of the text."""
    tables = ", ".join(sorted({literal(source.name) for source in sources}))
    columns = " OR ".join(
        f"attrelid = {literal(source.name)}::regclass AND attname IN "
        f"({', '.join(literal(name) for name, _ in source.columns) or 'NULL'})"
        for source in sources
    )
    return READ.format(f"unnest(ARRAY[{tables}]::regclass[])::oid") + _SIGNATURE.format(columns=columns)
