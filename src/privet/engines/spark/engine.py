"""Spark, asked where the rows are: one SELECT for a statement, and only integers by group come back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Condition, Lock, local
from types import MappingProxyType
from typing import Any, ClassVar, Unpack
from uuid import uuid4

from privet.engines.base import Private, Public, Resources
from privet.engines.spark import sessions
from privet.engines.spark.dialect import SparkDialect
from privet.engines.spark.listings import Listing, listed
from privet.engines.spark.pins import Pin, pinned
from privet.engines.spark.public import Shipped, shipped
from privet.engines.spark.sessions import Session
from privet.engines.spark.tables import SparkTable
from privet.engines.sql.engine import Ask, Rows
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
    pins: dict[str, Pin] = field(default_factory=dict)
    """By the names of views."""
    opening: Lock = field(default_factory=Lock)
    running: int = 0
    changed: Condition = field(default_factory=Condition)


class Spark(ServerEngine[SparkTable, Shipped]):
    """Exact integers for statements over tables of one Spark.

    Claim: that of `Engine`. Each look is one SELECT in a session of our own, whose settings are fixed: nothing depends
    on those of the cluster or of other sessions. A table that was changed since it was declared is noticed before a
    debit. If its files are not the same before a question and after each of its looks, there is no answer.

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
        names = (f"privet_{uuid4().hex}" for _ in tables)
        viewed = {
            name: (schema, replace(source, view=view) if isinstance(source, SparkTable) else source)
            for (name, (schema, source)), view in zip(tables.items(), names, strict=False)
        }
        super().__init__(viewed, public, SparkDialect(), shipped, salt=salt, resources=resources)
        self._address = self._sources[0].address
        self._homes = {os.getpid(): _Home()}
        self._next = local()
        try:
            with self._used() as session:
                self._pinned(session)
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

    def _pinned(self, session: Session) -> list[Pin]:
        """The tables as they are now, in views of this session."""
        home, found = self._home(), list[Pin]()
        for source in self._sources:
            try:
                pin = pinned(session, source, home.pins.pop(source.view, None))
            except UserError:
                raise
            except Exception as error:
                session.lost = True
                raise SourceError(f"{source} can't be read: {sessions.told(self._address, error)}") from None
            if pin is None:
                raise SourceError(_CHANGED)
            home.pins[source.view] = pin
            found.append(pin)
        return found

    def ready(self) -> None:
        """Make sure that Spark can be asked, and that the tables are what they were. Before a debit."""
        if self._closed or self._stopped:
            return
        try:
            with self._used() as session:
                self._next.pins = self._pinned(session)
        except SourceError:
            session_ = self._home().session
            if session_ is None or not session_.lost:
                raise
            with self._used() as session:  # one that was lost while nobody used it
                self._next.pins = self._pinned(session)

    # --- questions --------------------------------------------------------------------------------

    @contextmanager
    def _looking(self) -> Iterator[Ask]:
        """Looks at the files that `ready` found in this thread, or at those that are there at the first look."""
        process, home = os.getpid(), self._home()
        with self._used() as session:
            pins: list[Pin] = self._next.__dict__.pop("pins", [])
            if not pins or any(pin.opened is not session.opened for pin in pins):
                pins = self._pinned(session)
            files = [pin.listing for pin in pins]

            def ask(sql: str, context: Context) -> Rows | None:
                tag = sessions.new_tag()

                def look() -> tuple[Rows, list[Listing]]:
                    found = self._rows(session, sql, context, tag)
                    return found, [listed(session, source, tag) for source in self._sources]

                with home.changed:
                    home.running += 1
                failed = True
                try:
                    found, now = self._interruptible(look, lambda: session.cancel(tag))
                    failed = False
                    return found if now == files else None
                finally:
                    if os.getpid() == process:  # else a signal handler forked: it is the parent's
                        session.lost |= failed
                        with home.changed:
                            home.running -= 1
                            home.changed.notify_all()

            yield ask

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
            if not home.session.lost:
                for source in self._sources:
                    sessions.drop_view(home.session, source.view)
            home.session.close()
            home.session = None
