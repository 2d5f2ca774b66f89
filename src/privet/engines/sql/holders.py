"""How many people hold each private key, as one SELECT: a row for each key that somebody holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privet.engines.sql.dialect import Dialect
from privet.engines.sql.expressions import Compiler
from privet.engines.sql.relations import Relations, Stored
from privet.engines.sql.text import Context, Layers
from privet.tables.holders import MOST_BYTES, Held, Holders, can_appear
from privet.tables.statement import PeopleInGroups


@dataclass(slots=True)
class CompiledHolders:
    """SQL with its parameters; each row of its result has the values of a key, and what `Held` has besides."""

    sql: str
    context: Context

    def read(self, rows: list[tuple[Any, ...]]) -> list[Held]:
        """What was counted, in the order of keys, of those that can appear."""
        held = (Held(tuple(key), int(keys), int(people)) for *key, keys, people in rows)
        return sorted(each for each in held if all(map(can_appear, each.key)))


def compiled_holders(
    statement: Holders, tables: Mapping[str, Stored], public: Mapping[str, Stored], dialect: Dialect, key: int
) -> CompiledHolders:
    """The statement as SQL; `key` is that of the hash which chooses the keys that count for a person."""
    context = Context(dialect)
    person = isinstance(statement.bounding, PeopleInGroups)
    relations = Relations(context, tables, public)
    rows = relations.start(statement.input, person=person)
    layers = Layers(context)
    compiler = Compiler(layers, statement.input.types(), rows.ask)
    values = [layers.named(compiler.value(each, "key")) for each in statement.keys]
    layers.source = f"({rows.select()})"
    names = [f"k{i}" for i in range(len(values))]
    texts = [name for value, name in zip(values, names, strict=True) if value.kind == "text"]
    known = [dialect.is_short(v.sql, MOST_BYTES) if v.kind == "text" else f"{v.sql} IS NOT NULL" for v in values]
    read = [f"{value.sql} AS {name}" for value, name in zip(values, names, strict=True)]
    by = ", ".join(names)
    sent = [condition for condition in map(dialect.can_be_sent, texts) if condition is not None]
    where = dialect.where(" AND ".join(sent)) if sent else ""
    if not person:
        own = layers.select(read, " AND ".join(known))
        return CompiledHolders(f"SELECT {by}, 1, count(*) FROM ({own}){where} GROUP BY {by}", context)
    own = layers.select(["u", *read], " AND ".join([*known, "u IS NOT NULL"]))
    hashed = [relations.who, *(dialect.bytewise(name) if name in texts else name for name in names)]
    order = f"{dialect.hashed(key, hashed)}, {by}"
    rank = f"row_number() OVER (PARTITION BY u ORDER BY {order})"
    kept = dialect.ranked(dialect.once(own, "u", by), rank, f"<= {statement.most}")
    if not statement.weighed or statement.most == 1:
        return CompiledHolders(f"SELECT {by}, {statement.most}, count(*) FROM ({kept}){where} GROUP BY {by}", context)
    counted = f"SELECT {by}, count(*) OVER (PARTITION BY u) AS held FROM ({kept})"
    return CompiledHolders(f"SELECT {by}, held, count(*) FROM ({counted}){where} GROUP BY {by}, held", context)
