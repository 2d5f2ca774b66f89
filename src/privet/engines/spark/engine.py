"""Spark, asked where the rows are: one SELECT for a statement, and only integers by group come back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Condition, Lock
from types import MappingProxyType
from typing import Any, ClassVar, Unpack

from privet.engines.base import Private, Public, Resources
from privet.engines.spark import sessions
from privet.engines.spark.dialect import SparkDialect
from privet.engines.spark.public import Shipped, shipped
from privet.engines.spark.sessions import Session
from privet.engines.spark.tables import SparkTable, signature
from privet.engines.sql.engine import Ask
from privet.engines.sql.server import ServerEngine, in_python
from privet.engines.sql.text import Context
from privet.errors import SourceError, UserError
from privet.system.processes import forever

_CHANGED = (
    "a table of this session was changed in Spark: a column has another type or is not there any more, or the table "
    "is another one. Nothing was spent. Open the session again"
)
_FORKED = (
    "a child of a fork can't use the Spark of its parent: both would write to one connection. Nothing was spent. "
    "Open the session in the child"
)


@dataclass(slots=True)
class _Home:
    """What one process has of an engine. A child of a fork has locks of its own: a thread it lacks may hold these."""

    session: Session | None = None
    opening: Lock = field(default_factory=Lock)
    running: int = 0
    changed: Condition = field(default_factory=Condition)


class Spark(ServerEngine[SparkTable, Shipped]):
    """Exact integers for statements over tables of one Spark.

    Claim: that of `Engine`. Each question is one SELECT in a session of our own, whose settings are fixed: nothing
    depends on those of the cluster or of other sessions. A table that was changed since it was declared is noticed
    before a debit.

    A child of a fork opens a session of its own with Spark Connect. A Spark in the process itself belongs to the
    parent, and the child is refused.
    """

    name: ClassVar[str] = "spark"

    table: ClassVar[type[SparkTable]] = SparkTable
    where: ClassVar[str] = "one Spark"

    def __init__(
        self,
        tables: Private,
        public: Public = MappingProxyType({}),
        *,
        salt: bytes,
        **resources: Unpack[Resources],
    ) -> None:
        super().__init__(tables, public, SparkDialect(), shipped, salt=salt, resources=resources)
        self._address = self._sources[0].address
        self._homes = {os.getpid(): _Home()}
        try:
            self._check_tables()
            with self._used() as session:
                self._check_public(lambda sql, context: self._rows(session, sql, context))
        except BaseException:
            self.close()
            raise

    # --- the session ------------------------------------------------------------------------------

    def _home(self) -> _Home:
        process = os.getpid()
        if process not in self._homes:
            if not self._address.remote:
                raise SourceError(_FORKED)
            for home in self._homes.values():  # of a parent, whose connection must not be ended
                forever(home)
            self._homes.setdefault(process, _Home())
        return self._homes[process]

    @contextmanager
    def _used(self) -> Iterator[Session]:
        """A session of this process that works, as far as is known.

        Claim: it stays open while this lasts, also if another question fails in it and the next one opens another.
        """
        with self._home().opening:
            session = self._opened().again()
        try:
            yield session
        finally:
            if os.getpid() == session.process:  # else a signal handler forked: it is the parent's
                session.close()

    def _opened(self) -> Session:
        home = self._home()
        if home.session is None or home.session.lost:
            lost, home.session = home.session, None
            if lost is not None:
                lost.close()
            home.session = sessions.opened(self._address)
        return home.session

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
            session = self._home().session
            if session is None or not session.lost:
                raise
            self._check_tables()  # a session that was lost while nobody used it

    # --- questions --------------------------------------------------------------------------------

    @contextmanager
    def _looking(self) -> Iterator[Ask]:
        yield self._ask

    def _ask(self, sql: str, context: Context) -> list[tuple[Any, ...]]:
        process, tag, home = os.getpid(), sessions.new_tag(), self._home()
        with self._used() as session:
            with home.changed:
                home.running += 1
            failed = True
            try:
                found = self._interruptible(lambda: self._rows(session, sql, context, tag), lambda: session.cancel(tag))
                failed = False
                return found
            finally:
                if os.getpid() == process:  # else a signal handler forked: it is the parent's
                    session.lost |= failed
                    with home.changed:
                        home.running -= 1
                        home.changed.notify_all()

    def _rows(self, session: Session, sql: str, context: Context, tag: str = "") -> list[tuple[Any, ...]]:
        bound = {f"p{i}": text for i, text in enumerate(context.parameters, 1)}
        bound |= {each.parameter: each.text for each in self._sent if f":{each.parameter}," in sql}
        return in_python(sessions.run(session, sql, bound, tag=tag))

    # --- the end ----------------------------------------------------------------------------------

    def stop(self) -> None:
        """The process ends: what is running is ended too, and its thread with it."""
        self._stopped = True
        home = self._homes.get(os.getpid())
        if home is not None and home.session is not None:
            with suppress(Exception):
                home.session.cancel()

    def close(self) -> None:
        """Lets go of the session; what is running ends first."""
        self._closed = True
        home = self._homes.get(os.getpid())
        if home is None:
            return
        with home.changed:
            home.changed.wait_for(lambda: not home.running)
        if home.session is not None:
            home.session.close()
            home.session = None
