"""What engines do alike whose private tables are in a server, to which public tables are sent with each question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from privet.engines.base import ArrowRows, Private, Public, Resources, Source
from privet.engines.sql.dialect import Dialect
from privet.engines.sql.engine import SQLEngine
from privet.engines.sql.relations import Stored
from privet.errors import Remedy, UserError
from privet.tables.stored_types import StoredType


class ServerTable(Protocol):
    """A table in a server."""

    @property
    def server(self) -> str:
        """What its client connects to."""

    @property
    def rows(self) -> str:
        """What is read of it, as a subquery."""

    def types(self) -> Mapping[str, StoredType]:
        """The columns and their types."""


class SentTable(Protocol):
    """A public table as it is sent."""

    @property
    def rows(self) -> str:
        """Its rows, as a subquery."""

    @property
    def types(self) -> Mapping[str, StoredType]:
        """The columns and their types."""


_Table = TypeVar("_Table", bound=ServerTable)
_Sent = TypeVar("_Sent", bound=SentTable)


class ServerEngine(SQLEngine, Generic[_Table, _Sent]):
    """An `SQLEngine` over private tables of one server."""

    table: ClassVar[type[Any]]
    """What it reads, beside rows of public tables."""
    where: ClassVar[str]
    """What its private tables have in common, for people."""

    @classmethod
    def reads(cls, source: Source) -> bool:
        """Whether it can read a source; rows in memory only of public tables."""
        return isinstance(source, (cls.table, ArrowRows))

    def __init__(
        self,
        tables: Private,
        public: Public,
        dialect: Dialect,
        send: Callable[[Source, int], _Sent],
        *,
        salt: bytes,
        resources: Resources,
    ) -> None:
        sources: list[_Table] = [source for _, source in tables.values() if isinstance(source, self.table)]
        if len(sources) < len(tables) or len({source.server for source in sources}) != 1:
            raise UserError(
                f"the engine {self.name!r} reads private tables of {self.where}, under one address",
                remedy=Remedy("Name the same address for each table, with its own name after #"),
            )
        self._sources = sources
        self._sent = [send(source, i) for i, (_, source) in enumerate(public.values())]
        super().__init__(
            {s.name: Stored(s, each.rows, each.types()) for (s, _), each in zip(tables.values(), sources, strict=True)},
            {s.name: Stored(s, e.rows, e.types) for (s, _), e in zip(public.values(), self._sent, strict=True)},
            dialect,
            salt=salt,
            progress=resources.get("progress", False),
        )


def in_python(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows as a driver returns them, with integers for decimals, which are sums.

    Example:
        >>> in_python([(Decimal(2**70), "north", None)])
        [(1180591620717411303424, 'north', None)]
    """
    return [tuple(int(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in rows]
