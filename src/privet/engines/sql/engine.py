"""What every engine that speaks SQL does alike: statements are compiled, asked, and read; a failure tells nothing."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from hashlib import sha256
from typing import Any, ClassVar, TypeVar

from privet.engines.base import FAILED, Unsupported
from privet.engines.sql.buckets import CompiledBuckets, compiled_buckets
from privet.engines.sql.dialect import Dialect
from privet.engines.sql.holders import CompiledHolders, compiled_holders
from privet.engines.sql.leaves import read
from privet.engines.sql.relations import Stored
from privet.engines.sql.statements import Compiled, compiled
from privet.engines.sql.text import Context
from privet.errors import NoAnswer, SourceError
from privet.system.closing import Closing
from privet.system.interrupts import interruptible
from privet.system.progress import Progress
from privet.system.stopping import check_not_stopped, current
from privet.tables.holders import Held, Holders
from privet.tables.schema import Column, PublicSchema
from privet.tables.statement import Buckets, Statement

_KEPT = 256  # compiled statements
Rows = list[tuple[Any, ...]]
Ask = Callable[[str, Context], Rows | None]
"""The rows of a SELECT with its parameters."""
_T = TypeVar("_T")


class SQLEngine(Closing):
    """An `Engine` that compiles statements with a dialect.

    Claim: that of `Engine`, if `_looking` asks for all that a SELECT finds, or fails, and never returns a part.
    An engine adds `_looking`, `ready`, `stop` and `close`.
    """

    name: ClassVar[str]

    def __init__(
        self,
        tables: Mapping[str, Stored],
        public: Mapping[str, Stored],
        dialect: Dialect,
        *,
        salt: bytes,
        progress: bool = False,
    ) -> None:
        self._tables, self._public, self._dialect = tables, public, dialect
        self._key = int.from_bytes(sha256(b"privet bounding\x00" + salt).digest()[:8])
        self._compiled: dict[int, tuple[Statement, Compiled]] = {}
        self._closed = self._stopped = False
        self._progress = progress

    @abstractmethod
    def _looking(self) -> AbstractContextManager[Ask]:
        """Asks for the rows of a SELECT, of one state of the tables while this lasts.

        Whatever error it raises, or None, is told as `FAILED`. If it can't tell that the state is still the same, it
        has to fail.
        """

    def _interruptible(
        self, work: Callable[[], _T], stop: Callable[[], object], share: Callable[[], float | None] = lambda: None
    ) -> _T:
        """What some work in the database finds; `share` tells how much is done.

        Ctrl-C ends it there, by `stop`, and so does whoever stops this question alone.
        """
        question = current()
        with nullcontext() if question is None else question.ended_by(stop):
            if not self._progress:
                return interruptible(work, stop)
            with Progress(share) as progress:
                return interruptible(work, stop, progress.tick)

    def _prepare(self) -> None:
        """Whatever a process needs before its first question; its errors are told as they are."""

    def _check_public(self, rows: Callable[[str, Context], Rows]) -> None:
        """The key of a public table is unique as it is read: else a join could make many rows of one."""
        for stored in self._public.values():
            assert isinstance(stored.schema, PublicSchema)
            key = stored.schema.key
            context = Context(self._dialect)
            kind, quoted = dict(stored.schema.columns)[key], self._dialect.name(key)
            value = read(Column(kind), stored.types[key], quoted, "key", context)
            sql = f"SELECT count(k) - count(DISTINCT k) FROM (SELECT {value.sql} AS k FROM {stored.name})"
            if rows(sql, context)[0][0]:
                raise SourceError(f"the key {key!r} of the public table {stored.schema.name!r} appears twice in it")

    def compile(self, statement: Statement) -> Compiled:
        """The statement as SQL; no data are read."""
        known = self._compiled.get(id(statement))
        if known is None or known[0] is not statement:
            if len(self._compiled) >= _KEPT:
                self._compiled.clear()
            program = compiled(statement, self._tables, self._public, self._dialect, self._key)
            self._compiled[id(statement)] = known = statement, program
        return known[1]

    def compile_buckets(self, statement: Statement, buckets: Buckets) -> CompiledBuckets:
        """The codes of a statement by buckets, as SQL."""
        return compiled_buckets(statement, buckets, self._tables, self._public, self._dialect, self._key)

    def compile_holders(self, statement: Holders) -> CompiledHolders:
        """Who holds which keys, as SQL."""
        return compiled_holders(statement, self._tables, self._public, self._dialect, self._key)

    def supports(self, statement: Statement | Holders) -> str | None:
        """Why it can't compute this statement; None if it can."""
        try:
            if isinstance(statement, Holders):
                self.compile_holders(statement).context.check()
            else:
                self.compile(statement).context.check()
        except Unsupported as reason:
            return str(reason)
        return None

    @contextmanager
    def snapshot(self) -> Iterator[SQLLooks]:
        """Looks at one state of the tables."""
        with ExitStack() as stack:
            yield SQLLooks(self, stack)

    def answer(self, statement: Statement) -> list[list[int]]:
        """What the statement counts: a list for each group, in the order of `itertools.product`, of exact integers."""
        with self.snapshot() as looks:
            return looks.answer(statement)

    def histograms(self, statement: Statement, buckets: Buckets) -> list[dict[int, int]]:
        """For each group, the number of rows in each of these buckets of codes that has any."""
        with self.snapshot() as looks:
            return looks.histograms(statement, buckets)

    def holders(self, statement: Holders) -> list[Held]:
        """How many people hold each private key."""
        with self.snapshot() as looks:
            return looks.holders(statement)


class SQLLooks:
    """Looks of an `SQLEngine` at one state of its tables.

    Claim: nothing is asked after a look has failed, nor in a child of a fork, whose parent the transaction belongs to.
    """

    def __init__(self, engine: SQLEngine, stack: ExitStack) -> None:
        self._engine, self._stack = engine, stack
        self._ask: Ask | None = None  # until the first look
        self._failed, self._process = False, os.getpid()

    def answer(self, statement: Statement) -> list[list[int]]:
        """What the statement counts: a list for each group, in the order of `itertools.product`, of exact integers."""
        program = self._engine.compile(statement)
        return program.read(self._fetched(program.sql, program.context))

    def histograms(self, statement: Statement, buckets: Buckets) -> list[dict[int, int]]:
        """For each group, the number of rows in each of these buckets of codes that has any."""
        program = self._engine.compile_buckets(statement, buckets)
        return program.read(self._fetched(program.sql, program.context), buckets)

    def holders(self, statement: Holders) -> list[Held]:
        """How many people hold each private key."""
        program = self._engine.compile_holders(statement)
        return program.read(self._fetched(program.sql, program.context))

    def _fetched(self, sql: str, context: Context) -> Rows:
        found: Rows | None = None
        self._engine._prepare()
        if self._engine._stopped:
            raise SystemExit
        with suppress(Exception):
            check_not_stopped()
            found = self._asked(sql, context)
        if found is None:
            self._failed = True
            if self._engine._stopped:
                raise SystemExit
            raise NoAnswer(FAILED)  # out here, so that nothing of the database's own error is attached
        return found

    def _asked(self, sql: str, context: Context) -> Rows | None:
        if self._failed or self._engine._closed or os.getpid() != self._process:
            return None
        if self._ask is None:
            self._ask = self._stack.enter_context(self._engine._looking())
        return self._ask(sql, context)
