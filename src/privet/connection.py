"""The ledger and the engine of a dataset, opened together.

A dataset that is not connected only reads its ledger, and creates none. The first question that costs budget connects
it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from threading import RLock
from typing import Any

from privet import ledger as ledgers
from privet.engines import choose, open_engine
from privet.engines.base import Engine
from privet.ledger import Ledger, TableFacts, memory_ledger, open_ledger
from privet.ledger.opening import existing_ledger
from privet.ledger.storage.database import NoLedger
from privet.privacy.adjacency import Person
from privet.system.identity import Identity
from privet.tables.relation import PublicTable, Table


class Connection:
    """The open ledger and engine of a dataset, or a ledger that is only read.

    `where` is the ledger's file or address, an open ledger, or None for memory. `grant` records in the ledger what a
    policy allows. A ledger that was given open stays open when the connection is closed.
    """

    def __init__(
        self,
        facts: ledgers.Dataset,
        version: str,
        tables: Mapping[str, Table],
        public: Mapping[str, PublicTable],
        *,
        where: Ledger | str | Path | None,
        engine_options: Mapping[str, Any],
        same_budget: bool,
    ) -> None:
        self.grant: Callable[[Ledger], None] = lambda ledger: None
        self._facts, self._version, self._same_budget = facts, version, same_budget
        self._tables, self._public = tables, public
        self._where, self.engine_options = where, dict(engine_options)
        sources = [*(table.source for table in tables.values()), *(table.source for table in public.values())]
        choose(sources, self.engine_options.get("name", ""))
        self._own: Ledger | None = None  # opened here, so closed here
        self._read_only: Ledger | None = None
        self._ledger: Ledger | None = None
        self.present_engine: Engine | None = None
        self._changing = RLock()

    @property
    def ledger(self) -> Ledger:
        """The ledger; before the dataset is connected, one to read."""
        return self._ledger or self._before_connecting()

    @property
    def engine(self) -> Engine:
        """The engine; connects if necessary."""
        if self.present_engine is None:
            self.connect()
        assert self.present_engine is not None
        return self.present_engine

    def connect(
        self, check: Callable[[], None] = lambda: None, rehearse: Callable[[Ledger], object] | None = None
    ) -> bool:
        """Open the ledger, which is created if it is missing, and the engine; False if they are open already.

        `check` may refuse first. `rehearse` tries in memory what is to be done first in a new ledger. A ledger that
        was only read stays open until `close`, because another thread may be reading it.
        """
        if self._ledger is not None:
            return False
        with self._changing:
            if self._ledger is not None:  # another thread was first
                return False
            check()
            self._own = self._open(rehearse) if isinstance(self._where, str | Path) else None
            ledger: Ledger = self._own or self._where or memory_ledger()  # type: ignore[assignment]
            try:
                salt = self.record(ledger)
                self.present_engine = open_engine(
                    {table.name: (table.schema, table.source) for table in self._tables.values()},
                    {table.name: (table.schema, table.source) for table in self._public.values()},
                    salt=salt,
                    progress=sys.stderr.isatty(),
                    **self.engine_options,
                )
            except BaseException:
                if self._own is not None:
                    self._own.close()
                raise
            self._ledger = ledger
            return True

    def _open(self, rehearse: Callable[[Ledger], object] | None) -> Ledger:
        assert isinstance(self._where, str | Path)
        try:
            return open_ledger(self._where, create=False)
        except NoLedger:
            if rehearse is not None:
                with closing(memory_ledger()) as scratch:
                    self.record(scratch)
                    rehearse(scratch)
            return open_ledger(self._where)

    @property
    def created_ledger(self) -> bool:
        """Whether connecting created the ledger."""
        return self._own is not None and self._own.created

    def record(self, ledger: Ledger) -> bytes:
        """Record the dataset in a ledger, or check that it is the recorded one; returns its salt."""
        salt = ledger.create(
            self._facts,
            tables=_table_facts(self._tables.values()),
            public=_public_sources(self._tables.values(), self._public.values()),
            same_budget=self._same_budget,
        )
        ledger.declare(self._facts.name, self._version)
        self.grant(ledger)
        return salt

    def _before_connecting(self) -> Ledger:
        """The existing ledger, opened to be read; or one in memory in which nothing is spent."""
        with self._changing:
            if self._ledger is not None:  # another thread has just connected
                return self._ledger
            if self._read_only is None:
                assert isinstance(self._where, str | Path)
                existing = existing_ledger(self._where)
                if existing is not None and self._facts.name not in existing.datasets():
                    existing.close()
                    existing = None
                self._read_only = existing or memory_ledger()
                if existing is None:
                    self.record(self._read_only)
                    self._read_only.freeze()
            return self._read_only

    def close(self, *, same_process: bool) -> None:
        """Close the engine and the ledgers that were opened here; in a copy of the process, not the ledger."""
        if self._read_only is not None:
            self._read_only.close()
        if self.present_engine is not None:
            self.present_engine.close()
        if self._own is not None and same_process:
            self._own.close()


def _table_facts(tables: Iterable[Table]) -> list[TableFacts]:
    """What a ledger records of tables: which column identifies a person, and where the rows are stored."""
    facts = []
    for table in tables:
        protect = table.schema.protect
        person = protect.id if isinstance(protect, Person) else ""
        facts.append(TableFacts(table.name, person, table.identities))
    return facts


def _public_sources(tables: Iterable[Table], public: Iterable[PublicTable]) -> list[Identity]:
    """What is used as public data: the public tables, and the files from which private tables take their keys."""
    keys = [one for table in tables for _, column in table.schema.columns for one in column.public]
    return [*keys, *(one for table in public for one in table.identities)]
