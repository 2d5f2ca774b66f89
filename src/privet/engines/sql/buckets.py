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
_COMPARED = 8
"""So many runs of buckets that follow each other are compared with; for more, each bucket is listed."""


@dataclass(slots=True)
class CompiledBuckets:
    """SQL with its parameters: rows of (group, bucket, number of rows), NULL for what has none."""

    sql: str
    context: Context
    groups: int

    def read(self, rows: list[tuple[int | None, ...]], buckets: Buckets) -> list[dict[int, int]]:
        """For each group, the number of rows by bucket; of those that were asked for, if more were fetched."""
        counts: list[dict[int, int]] = [{} for _ in range(self.groups)]
        only, finer = buckets.only, buckets.coarse - buckets.shift
        if self.groups == 1 and only is None:  # thousands of buckets, where Python is the slower part
            return [{int(b): int(n) for g, b, n in rows if g == 0 and b is not None and n is not None}]
        for group, bucket, many in rows:
            # rows without a group or a code are counted together, which is quicker than a filter
            if group is None or bucket is None or many is None or not 0 <= group < self.groups:
                continue
            if only is None or (group, bucket >> finer) in only:
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
    person = not isinstance(statement.bounding, Unbounded)
    relations = Relations(context, tables, public)
    rows = relations.start(statement.input, person=person)
    layers = Layers(context)
    compiler = Compiler(layers, statement.input.types(), rows.ask)
    group = layers.named(group_number(compiler, statement))
    reduced = Reduced(compiler, key)
    code = reduced.code(counted_code(statement))
    layers.source = f"({rows.select()})"
    kept = survivors(statement, layers, group, reduced, Bounds(dialect, key, relations.who))
    bucket = dialect.shifted(code, buckets.shift) if buckets.shift else code
    where = ""
    if buckets.only is not None and len(buckets.only) <= _LISTED:
        where = f"{'' if person else dialect.fence}){dialect.where(_chosen(statement, buckets, dialect, code))}"
    sql = f"SELECT g, {bucket} AS b FROM ({kept}{where or ')'}"
    if statement.keys:
        sql = f"SELECT g, b, count(*) FROM ({sql}) GROUP BY g, b"
    else:  # one column less to group by
        sql = f"SELECT 0, b, count(*) FROM ({sql}) GROUP BY b"
    return CompiledBuckets(sql, context, statement.groups)


def _chosen(statement: Statement, buckets: Buckets, dialect: Dialect, code: str) -> str:
    """Whether a row is in one of the buckets that were asked for."""
    each = (counted_code(statement).width >> buckets.coarse) + 1  # buckets of one group: both numbers in one
    some = sorted(number * each + one for number, one in buckets.only or () if one < each)
    runs: list[list[int]] = []
    for place in some:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    if not runs:
        return "false"
    if not statement.keys and len(runs) <= _COMPARED:
        ends = [(first << buckets.coarse, (last + 1 << buckets.coarse) - 1) for first, last in runs]
        return " OR ".join(f"{code} BETWEEN {first} AND {last}" for first, last in ends)
    both = f"{dialect.cast('g', dialect.types['narrow'])} * {each} + {dialect.shifted(code, buckets.coarse)}"
    if len(runs) <= _COMPARED:
        return " OR ".join(f"{both} BETWEEN {first} AND {last}" for first, last in runs)
    return f"{both} IN ({', '.join(map(str, some))})"
