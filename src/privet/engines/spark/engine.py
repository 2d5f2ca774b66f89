"""Spark, asked where the rows are: one SELECT for a statement, and only integers by group come back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from threading import Condition, Lock
from types import MappingProxyType
from typing import Any, ClassVar, Unpack

from privet.engines.base import ArrowRows, Private, Public, Resources, Source
from privet.engines.spark import sessions
from privet.engines.spark.dialect import SparkDialect
from privet.engines.spark.public import shipped
from privet.engines.spark.sessions import Session
from privet.engines.spark.tables import SparkTable, signature
from privet.engines.sql.engine import SQLEngine
from privet.engines.sql.relations import Stored
from privet.engines.sql.text import Context
from privet.errors import Remedy, SourceError, UserError

_CHANGED = (
    "a table of this session was changed in Spark: a column has another type or is not there any more, or the table "
    "is another one. Nothing was spent. Open the session again"
)
_FORKED = (
    "a child of a fork can't use the Spark of its parent: both would write to one connection. Nothing was spent. "
    "Open the session in the child"
)


class Spark(SQLEngine):
    """Exact integers for statements over tables of one Spark.

    Claim: that of `Engine`. Each question is one SELECT in a session of our own, whose settings are fixed: nothing
    depends on those of the cluster or of other sessions. A table that was changed since it was declared is noticed
    before a debit.

    A child of a fork opens a session of its own with Spark Connect. A Spark in the process itself belongs to the
    parent, and the child is refused.
    """

    name: ClassVar[str] = "spark"

    @classmethod
    def reads(cls, source: Source) -> bool:
        """Whether it can read a source; rows in memory only of public tables."""
        return isinstance(source, SparkTable | ArrowRows)

    def __init__(
        self,
        tables: Private,
        public: Public = MappingProxyType({}),
        *,
        salt: bytes,
        **resources: Unpack[Resources],
    ) -> None:
        sources = [source for _, source in tables.values() if isinstance(source, SparkTable)]
        if len(sources) < len(tables) or len({source.address.remote for source in sources}) != 1:
            raise UserError(
                "the engine 'spark' reads private tables of one Spark, under one address",
                remedy=Remedy("Name the same address for each table, with its own name after #"),
            )
        self._shipped = [shipped(source, i) for i, (_, source) in enumerate(public.values())]
        super().__init__(
            {s.name: Stored(s, each.rows, each.types()) for (s, _), each in zip(tables.values(), sources, strict=True)},
            {s.name: Stored(s, e.rows, e.types) for (s, _), e in zip(public.values(), self._shipped, strict=True)},
            SparkDialect(),
            salt=salt,
            progress=resources.get("progress", False),
        )
        self._sources = sources
        self._address = sources[0].address
        self._process = os.getpid()
        self._opening = Lock()
        self._session: Session | None = None
        self._running = 0
        self._changed = Condition()
        try:
            self._check_tables()
            with self._used() as session:
                self._check_public(lambda sql, context: self._rows(session, sql, context))
        except BaseException:
            self.close()
            raise

    # --- the session ------------------------------------------------------------------------------

    @contextmanager
    def _used(self) -> Iterator[Session]:
        """A session of this process that works, as far as is known.

        Claim: it stays open while this lasts, also if another question fails in it and the next one opens another.
        """
        with self._opening:
            session = self._opened().again()
        try:
            yield session
        finally:
            if os.getpid() == session.process:  # else a signal handler forked: it is the parent's
                session.close()

    def _opened(self) -> Session:
        if os.getpid() != self._process:
            if not self._address.remote:
                raise SourceError(_FORKED)
            self._session, self._process = None, os.getpid()  # the parent's is left alone
            self._running, self._changed = 0, Condition()
        if self._session is None or self._session.lost:
            lost, self._session = self._session, None
            if lost is not None:
                lost.close()
            self._session = sessions.opened(self._address)
        return self._session

    def _check_tables(self) -> None:
        for source in self._sources:
            with self._used() as session:
                try:
                    same = signature(session, source) == source.signature
                except UserError:
                    raise
                except Exception as error:
                    session.lost = True
                    raise SourceError(f"{source} can't be read: {sessions.told(self._address, error)}") from None
            if not same:
                raise SourceError(_CHANGED)

    def ready(self) -> None:
        """Make sure that Spark can be asked, and that the tables are what they were. Before a debit."""
        if self._closed or self._stopped:
            return
        try:
            self._check_tables()
        except SourceError:
            if self._session is None or not self._session.lost:
                raise
            self._check_tables()  # a session that was lost while nobody used it

    # --- questions --------------------------------------------------------------------------------

    def _ask(self, sql: str, context: Context) -> list[tuple[Any, ...]]:
        process, tag = os.getpid(), sessions.new_tag()
        with self._used() as session:
            with self._changed:
                self._running += 1
            failed = True
            try:
                found = self._interruptible(lambda: self._rows(session, sql, context, tag), lambda: session.cancel(tag))
                failed = False
                return found
            finally:
                if os.getpid() == process:  # else a signal handler forked: it is the parent's
                    session.lost |= failed
                    with self._changed:
                        self._running -= 1
                        self._changed.notify_all()

    def _rows(self, session: Session, sql: str, context: Context, tag: str = "") -> list[tuple[Any, ...]]:
        bound = {f"p{i}": text for i, text in enumerate(context.parameters, 1)}
        bound |= {each.parameter: each.text for each in self._shipped if f":{each.parameter}," in sql}
        found = sessions.run(session, sql, bound, tag=tag)
        return [tuple(int(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in found]

    # --- the end ----------------------------------------------------------------------------------

    def stop(self) -> None:
        """The process ends: what is running is ended too, and its thread with it."""
        self._stopped = True
        if self._session is not None and self._process == os.getpid():
            with suppress(Exception):
                self._session.cancel()

    def close(self) -> None:
        """Lets go of the session; what is running ends first."""
        self._closed = True
        if self._process != os.getpid():
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._running)
        if self._session is not None:
            self._session.close()
            self._session = None
