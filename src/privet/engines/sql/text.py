"""SQL text: a value, the parameters and names of a statement, and columns that are computed layer by layer.

No text of an analyst is ever part of a statement. Texts are bound as parameters; columns have names of our own, except
for the declared columns of a source, which are quoted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count

from privet.engines.base import Unsupported
from privet.engines.sql.dialect import Dialect, Kind


@dataclass(frozen=True, slots=True)
class Value:
    """SQL of one value: of a `kind`, and over columns that exist from `level` on (see `Layers`).

    Claim: it is total. For no row does it raise an error.
    """

    sql: str
    kind: Kind
    level: int = 0
    atom: bool = False
    """Whether the SQL is so short that it may be written several times."""
    literal: bool = False
    """Whether it is a public constant, and never NULL."""


@dataclass(slots=True)
class Context:
    """What one statement needs beside its text: a dialect, bound parameters, lists of keys, and names that are free."""

    dialect: Dialect
    parameters: list[str] = field(default_factory=list)
    lists: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Lists of public texts that must exist under these names when the statement runs."""
    joined: dict[str, int] = field(default_factory=dict)
    """How many columns the public tables have that are read."""
    _places: dict[str, str] = field(default_factory=dict)
    _names: count[int] = field(default_factory=count)

    def bind(self, text: str) -> str:
        """A placeholder for a text. Equal texts share one, so equal expressions are equal SQL."""
        if text not in self._places:
            self.parameters.append(text)
            self._places[text] = self.dialect.parameter(len(self.parameters))
        return self._places[text]

    def check(self) -> None:
        """Refuse a statement with more parameters than the database takes."""
        many, most = len(self.parameters) + sum(self.joined.values()), self.dialect.most_parameters
        if most is not None and many > most:
            raise Unsupported(f"it has {many:,} texts, such as names of bins, and a statement can have {most:,}")

    def listed(self, values: tuple[str, ...]) -> str:
        """The name of a list of these texts: the same for the same texts, and for no others."""
        if values not in self.lists:
            self.lists[values] = f"list_{sha256(json.dumps(values).encode()).hexdigest()[:40]}"
        return self.lists[values]

    def fresh(self) -> str:
        """A column name that stands nowhere else."""
        return f"c{next(self._names)}"


@dataclass(slots=True)
class Layers:
    """A relation, and columns computed from it step by step: each layer may use those below.

    An expression that uses an operand twice gives it a name first. So the text of a statement grows with the
    question, and never faster.
    """

    context: Context
    source: str = ""
    levels: list[list[tuple[str, str]]] = field(default_factory=list)

    @property
    def dialect(self) -> Dialect:
        """The dialect of the statement."""
        return self.context.dialect

    def named(self, value: Value) -> Value:
        """The same value, short: a column of the layer above its parts."""
        if value.atom:
            return value
        while len(self.levels) <= value.level:
            self.levels.append([])
        for alias, sql in self.levels[value.level]:
            if sql == value.sql:
                return Value(alias, value.kind, value.level + 1, atom=True)
        alias = self.context.fresh()
        self.levels[value.level].append((alias, value.sql))
        return Value(alias, value.kind, value.level + 1, atom=True)

    def select(self, columns: list[str], where: str | None = None) -> str:
        """The SELECT of these columns, over all layers."""
        source = self.source
        for level in self.levels:
            added = ", ".join(f"{sql} AS {alias}" for alias, sql in level)
            source = f"(SELECT *, {added} FROM {source}{self.dialect.fence})"
        filtered = "" if where is None else self.dialect.where(where)
        return f"SELECT {', '.join(columns)} FROM {source}{filtered}"
