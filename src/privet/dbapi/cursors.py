"""Cursors: statements are asked, and the rows of their answers fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from privet.allowance import LimitedSession
from privet.dbapi.errors import InterfaceError, NotSupportedError, ProgrammingError, translated
from privet.dbapi.types import BOOLEAN, DATETIME, NUMBER, STRING, TypeObject
from privet.errors import QueryError, write
from privet.exact import Exact
from privet.release import Release
from privet.sql.binding import bound

if TYPE_CHECKING:
    from privet.dbapi.connections import Connection

Row = tuple[Any, ...]
Described = tuple[str, TypeObject, None, None, None, None, bool]

_CONSTANT = re.compile(r"\s*SELECT\s+(\d{1,9})(?:\s+AS\s+(\w+))?\s*;?\s*", re.IGNORECASE | re.ASCII)


class Cursor:
    """A cursor. Asking costs epsilon; the same statement again is free."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.release: Release | None = None
        """The last answer: its notes, its certificate, and what it cost."""
        self.description: list[Described] | None = None
        self.rowcount = -1
        self._rows: Iterator[Row] | None = None
        self._closed = False

    # --- asking ---------------------------------------------------------------------------------

    def execute(self, operation: str, parameters: Any = ()) -> Cursor:
        """Ask a SELECT with aggregates, and pay for it. A number alone, such as SELECT 1, is returned as it is."""
        limited = self._session()
        self._forget()
        parameters = () if parameters is None else parameters
        if not isinstance(parameters, Sequence) or isinstance(parameters, str | bytes):
            raise ProgrammingError("parameters must be a sequence, one for each question mark")
        if not isinstance(operation, str):
            raise ProgrammingError("a statement must be a string")
        if not parameters and (constant := _CONSTANT.fullmatch(operation)) is not None:
            number, name = constant.groups()
            self._show([(name or number, NUMBER, None, None, None, None, False)], [(int(number),)])
            return self
        with translated():
            statement = bound(operation, parameters) if parameters else operation
            released = limited.release(statement, **_price(limited, statement, self.connection.epsilon))
            table = released.to_arrow(intervals=self.connection.intervals)
        self.release = released
        described: list[Described] = [
            (field.name, _type(field.type), None, None, None, None, True) for field in table.schema
        ]
        self._show(described, [tuple(row.values()) for row in table.to_pylist()])
        return self

    def executemany(self, operation: str, seq_of_parameters: object) -> NoReturn:
        """Refused: each of them would be paid for."""
        self._session()
        raise NotSupportedError(
            "executemany is not supported: each statement would be paid for. Nothing was spent. Ask one question with "
            "GROUP BY"
        )

    # --- fetching -------------------------------------------------------------------------------

    def fetchone(self) -> Row | None:
        """The next row; None after the last."""
        return next(self._fetched(), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows."""
        rows = self._fetched()
        wanted = range(self.arraysize if size is None else size)
        return [row for _, row in zip(wanted, rows, strict=False)]

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return list(self._fetched())

    def __iter__(self) -> Iterator[Row]:
        return self._fetched()

    def _fetched(self) -> Iterator[Row]:
        self._session()
        if self._rows is None:
            raise ProgrammingError("nothing was asked yet")
        return self._rows

    # --- the rest of PEP 249 ----------------------------------------------------------------------

    def setinputsizes(self, sizes: object) -> None:
        """Do nothing."""

    def setoutputsize(self, size: object, column: object = None) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Let go of the answer."""
        self._closed = True
        self._rows = None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    # --- inside ---------------------------------------------------------------------------------

    def _session(self) -> LimitedSession:
        if self._closed:
            raise InterfaceError("this cursor is closed")
        return self.connection.limited

    def _forget(self) -> None:
        self.release, self.description, self.rowcount, self._rows = None, None, -1, None

    def _show(self, described: list[Described], rows: list[Row]) -> None:
        self.description, self.rowcount, self._rows = described, len(rows), iter(rows)


def _price(limited: LimitedSession, statement: str, epsilon: Exact | None) -> dict[str, Any]:
    """The price of a statement: its own, or that of the connection."""
    named = limited.session.dataset.asked(statement).price
    if {"epsilon", "rho"} & named.keys():
        return {}
    if epsilon is None:
        raise QueryError(
            "neither the statement nor the connection says what to pay. Nothing was spent",
            remedy=write(sql="SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.1) COUNT(*) FROM people"),
        )
    return {"epsilon": epsilon}


def _type(of: pa.DataType) -> TypeObject:
    if pa.types.is_boolean(of):
        return BOOLEAN
    if pa.types.is_temporal(of):
        return DATETIME
    return STRING if pa.types.is_string(of) or pa.types.is_large_string(of) else NUMBER
