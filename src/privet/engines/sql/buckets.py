"""The codes of a statement as one SELECT: how many rows that survive have a code in which bucket, in each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privet.engines.sql.bounding import Bounds
from privet.engines.sql.dialect import Dialect
from privet.engines.sql.expressions import Compiler
from privet.engines.sql.relations import Relations, Stored
from privet.engines.sql.statements import Reduced, group_number, survivors
from privet.engines.sql.text import Context, Layers
from privet.tables.statement import Buckets, Statement, Unbounded, counted_code

_LISTED = 1 << 16
"""So many buckets are listed in the text; for more, all are fetched."""


@dataclass(slots=True)
class CompiledBuckets:
    """SQL with its parameters: rows of (group, bucket, number of rows)."""

    sql: str
    context: Context
    groups: int

    def read(self, rows: list[tuple[int, ...]], buckets: Buckets) -> list[dict[int, int]]:
        """For each group, the number of rows by bucket; of those that were asked for, if more were fetched."""
        counts: list[dict[int, int]] = [{} for _ in range(self.groups)]
        only, finer = buckets.only, buckets.coarse - buckets.shift
        for group, bucket, many in rows:
            if 0 <= group < self.groups and (only is None or (group, bucket >> finer) in only):
                counts[int(group)][int(bucket)] = int(many)
        return counts


def compiled_buckets(
    statement: Statement,
    buckets: Buckets,
    tables: Mapping[str, Stored],
    public: Mapping[str, Stored],
    dialect: Dialect,
    key: int,
) -> CompiledBuckets:
    """The statement as SQL; `key` is that of the hash which chooses whose rows survive.

    Claim: the rows that survive are those of the statement itself, whatever the buckets are: bounding comes first, and
    reads the whole code.
    """
    context = Context(dialect)
    relations = Relations(context, tables, public)
    rows = relations.start(statement.input, person=not isinstance(statement.bounding, Unbounded))
    layers = Layers(context)
    compiler = Compiler(layers, statement.input.types(), rows.ask)
    group = layers.named(group_number(compiler, statement))
    reduced = Reduced(compiler, key)
    code = reduced.code(counted_code(statement))
    layers.source = f"({rows.select()})"
    kept = survivors(statement, layers, group, reduced, Bounds(dialect, key, relations.who))
    bucket = dialect.shifted(code, buckets.shift) if buckets.shift else code
    where = f"{code} IS NOT NULL AND g IS NOT NULL"
    if buckets.only is not None and len(buckets.only) <= _LISTED:
        each = (counted_code(statement).width >> buckets.coarse) + 1  # buckets of one group: both numbers in one
        both = f"{dialect.cast('g', dialect.types['narrow'])} * {each} + {dialect.shifted(code, buckets.coarse)}"
        some = sorted(number * each + one for number, one in buckets.only if one < each)
        where += f" AND {both} IN ({', '.join(map(str, some))})" if some else " AND false"
    sql = f"SELECT g, b, count(*) FROM (SELECT g, {bucket} AS b FROM ({kept}) WHERE {where}) GROUP BY g, b"
    return CompiledBuckets(sql, context, statement.groups)
