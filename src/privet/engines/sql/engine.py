"""What every engine that speaks SQL does alike: statements are compiled, asked, and read; a failure tells nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from hashlib import sha256
from typing import Any, ClassVar, TypeVar

from privet.engines.base import FAILED, Unsupported
from privet.engines.sql.buckets import compiled_buckets
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
_Rows = list[tuple[Any, ...]]
_T = TypeVar("_T")


class SQLEngine(Closing):
    """An `Engine` that compiles statements with a dialect.

    Claim: that of `Engine`, if `_ask` returns what a SELECT finds, or raises an error, or never returns a part.
    An engine adds `_ask`, `ready`, `stop` and `close`.
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
    def _ask(self, sql: str, context: Context) -> _Rows | None:
        """The rows of a SELECT. Whatever error it raises, or None, is told as `FAILED`."""

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

    def _check_public(self, rows: Callable[[str, Context], _Rows]) -> None:
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

    def _compile_holders(self, statement: Holders) -> CompiledHolders:
        return compiled_holders(statement, self._tables, self._public, self._dialect, self._key)

    def supports(self, statement: Statement | Holders) -> str | None:
        """Why it can't compute this statement; None if it can."""
        try:
            if isinstance(statement, Holders):
                self._compile_holders(statement)
            else:
                self.compile(statement)
        except Unsupported as reason:
            return str(reason)
        return None

    def answer(self, statement: Statement) -> list[list[int]]:
        """What the statement counts: a list for each group, in the order of `itertools.product`, of exact integers."""
        program = self.compile(statement)
        return program.read(self._fetched(program.sql, program.context))

    def histograms(self, statement: Statement, buckets: Buckets) -> list[dict[int, int]]:
        """For each group, the number of rows in each of these buckets of codes that has any."""
        program = compiled_buckets(statement, buckets, self._tables, self._public, self._dialect, self._key)
        return program.read(self._fetched(program.sql, program.context), buckets)

    def holders(self, statement: Holders) -> list[Held]:
        """How many people hold each private key."""
        program = self._compile_holders(statement)
        return program.read(self._fetched(program.sql, program.context))

    def _fetched(self, sql: str, context: Context) -> _Rows:
        found: _Rows | None = None
        self._prepare()
        if self._stopped:
            raise SystemExit
        with suppress(Exception):
            check_not_stopped()
            found = None if self._closed else self._ask(sql, context)
        if found is None and self._stopped:
            raise SystemExit
        if found is None:  # raised out here, so that nothing of the database's own error is attached
            raise NoAnswer(FAILED)
        return found
