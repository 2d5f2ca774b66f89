"""What may be said about a picture: its title, other texts for its names, and the order of its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from privet.errors import QueryError, Remedy, write
from privet.release.render import periods
from privet.tables.aggregates import Histogram
from privet.tables.expressions.nodes import Types
from privet.tables.query import Key, Query
from privet.tables.types import KeyValue, TimeType, Unit

Order = Literal["ascending", "descending"] | Sequence[Any]
"""The order of groups: by value, or these keys first."""


@dataclass(frozen=True, slots=True)
class Style:
    """What may be said about a picture: its title, texts to show for columns and keys, and the order of groups."""

    title: str | None = None
    labels: Mapping[Any, str] = field(default_factory=dict)
    order: Order | None = None

    def check(self, query: Query) -> None:
        """Refuse names that the answer will not have: known from the query alone, so before anything is paid."""
        line = write(
            'plot(title="People by region", labels={"n": "People"}, order="descending")',
            terminal='--title "People by region" --label n=People --order descending',
        )
        if self.title is not None and not isinstance(self.title, str):
            raise QueryError(f"title must be text, not {self.title!r}", remedy=line)
        given: Any = self.labels
        if not isinstance(given, Mapping) or not all(isinstance(text, str) for text in given.values()):
            raise QueryError(f"labels must map columns and keys to texts, not {self.labels!r}", remedy=line)
        known = keyed(query)
        columns = [column for names in query.columns().values() for column in names]
        names = [*(key.name for key, _ in known), *dict(query.aggregates), *columns, *map(str, _bins(query))]
        texts = [text for _, pairs in known for text, _ in pairs]
        values = {*texts, *(value for _, pairs in known for _, value in pairs)}
        for name in self.labels:
            if name not in values and name not in names:
                raise QueryError(
                    f"labels name {name!r}, which is neither a column nor a key",
                    allowed=f"The columns and keys are: {_some([*names, *texts])}",
                )
        if self.order is None or self.order in ("ascending", "descending"):
            wanted: Sequence[Any] = ()
        elif isinstance(self.order, str) or not isinstance(self.order, Sequence):
            raise QueryError(
                f'order must be "ascending", "descending" or a list of keys, not {self.order!r}', remedy=line
            )
        else:
            wanted = self.order
        if self.order is not None and not query.keys:
            raise QueryError("order is for groups, and this answer has none", remedy=Remedy("Leave it out"))
        for key in wanted:
            if not isinstance(key, str | int | date) or key not in values:
                raise QueryError(f"order names {key!r}, which is not a key", allowed=f"The keys are: {_some(texts)}")

    def text(self, name: str, value: Any = None) -> str:
        """What is shown for a name, or for a key of this text and value."""
        if name in self.labels:
            return self.labels[name]
        return self.labels[value] if value is not None and value in self.labels else name


def units(query: Query) -> dict[str, Unit | None]:
    """The same for every key, by name."""
    return {key.name: unit(key, query.input.types()) for key in query.keys}


def unit(key: Key, types: Types) -> Unit | None:
    """What the dates of a key are cut to, if they are."""
    kind = key.expression.type(types)
    return kind.unit if isinstance(kind, TimeType) else None


def keyed(query: Query) -> list[tuple[Key, list[tuple[str, KeyValue]]]]:
    """Every key with the texts and values of its groups."""
    types = query.input.types()
    return [
        (key, list(zip(periods.texts(values, unit(key, types)), values, strict=True)))
        for key, values in zip(query.keys, query.domains(), strict=True)
    ]


def _bins(query: Query) -> list[KeyValue]:
    types = query.input.types()
    binned = [what.expression.type(types) for _, what in query.aggregates if isinstance(what, Histogram)]
    return [label for kind in binned for label in kind.keys()]  # noqa: SIM118


def _some(names: Sequence[str]) -> str:
    texts = list(dict.fromkeys(names))
    return ", ".join(texts[:12]) + (f", ... {len(texts) - 12} more" if len(texts) > 12 else "")
