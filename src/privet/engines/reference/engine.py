"""The reference engine: every statement computed row by row, in Python, in fractions. Slow, and obvious.

It shares no code with the SQL compiler, so that other engines can be compared with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import ClassVar, Unpack

from privet.engines import object_store
from privet.engines.base import (
    FAILED,
    ArrowRows,
    ParquetFiles,
    ParquetObjects,
    Private,
    Public,
    Resources,
    Source,
    Unsupported,
    objects_of,
)
from privet.engines.reference.bounding import Row, few_keys, kept
from privet.engines.reference.expressions import adds, evaluate, reading
from privet.engines.reference.rows import Lines, Stored, value_of
from privet.engines.unchanged import SameFiles
from privet.errors import NoAnswer, SourceError
from privet.system.closing import Closing
from privet.system.stopping import check_not_stopped
from privet.tables.holders import Held, Holders, can_appear, is_held
from privet.tables.schema import PublicSchema
from privet.tables.statement import Buckets, Distinct, Statement, counted_code


class Reference(Closing):
    """Exact integers for statements over some tables, in memory or in Parquet files.

    Claim: that of `Engine`. What would take an SQL engine more than 126 bits is not supported.
    """

    name: ClassVar[str] = "reference"

    @classmethod
    def reads(cls, source: Source) -> bool:
        """Whether it can read a source."""
        return isinstance(source, ArrowRows | ParquetFiles | ParquetObjects)

    def __init__(
        self,
        tables: Private,
        public: Public = MappingProxyType({}),
        *,
        salt: bytes,
        **resources: Unpack[Resources],
    ) -> None:
        self._salt = salt
        self._objects = objects_of(tables)
        self._sources = [source for each in (tables, public) for _, source in each.values()]
        self._lines = Lines(
            {name: Stored.of(schema, source) for name, (schema, source) in tables.items()},
            {name: Stored.of(schema, source) for name, (schema, source) in public.items()},
        )
        self._closed = self._stopped = False
        for schema, _ in public.values():
            self._check_public(schema)

    def _check_public(self, schema: PublicSchema) -> None:
        keys = [key for key, _ in self._lines.keys(schema) if key is not None]
        if len(set(keys)) < len(keys):
            raise SourceError(f"the key {schema.key!r} of the public table {schema.name!r} appears twice in it")

    def supports(self, statement: Statement | Holders) -> str | None:
        """Why it can't compute this statement; None if it can: seen with a row in which everything is missing."""
        tables, public = self._lines.tables, self._lines.public
        missing = Lines(
            {name: table.nothing() for name, table in tables.items()},
            {name: table.nothing() for name, table in public.items()},
            every=True,
        )
        types = statement.input.types()
        try:
            for _, read in missing.of(statement.input):
                for key in statement.keys:
                    evaluate(key, read, "key", types)
                for tally in getattr(statement, "tallies", ()):
                    reading(tally, read, types)
        except Unsupported as reason:
            return str(reason)
        return None

    def _failure(self, statement: Statement | Holders) -> Exception:
        """Why there is no answer. Of a statement that is not supported no row is the reason."""
        reason = self.supports(statement)
        return NoAnswer(FAILED) if reason is None else Unsupported(reason)

    @contextmanager
    def snapshot(self) -> Iterator[SameFiles]:
        """Looks at files that stay as they are."""
        yield SameFiles(self, self._sources)

    def answer(self, statement: Statement) -> list[list[int]]:
        """What the statement counts, for each group, in the order of `itertools.product`."""
        counts: list[list[int]] | None = None
        if not self._closed:
            with suppress(Exception):
                counts = self._counted(statement)
        if counts is None:  # raised out here, so that nothing of what went wrong is attached
            raise self._failure(statement)
        return counts

    def histograms(self, statement: Statement, buckets: Buckets) -> list[dict[int, int]]:
        """For each group, the number of rows in each of these buckets of codes that has any."""
        counts: list[dict[int, int]] | None = None
        if not self._closed:
            with suppress(Exception):
                counts = self._in_buckets(statement, buckets)
        if counts is None:
            raise self._failure(statement)
        return counts

    def _in_buckets(self, statement: Statement, buckets: Buckets) -> list[dict[int, int]]:
        counted_code(statement)
        counted: list[dict[int, int]] = [{} for _ in range(statement.groups)]
        for row in self._kept(statement):
            (code,) = row.values
            if code is None or (buckets.only is not None and (row.group, code >> buckets.coarse) not in buckets.only):
                continue
            bucket = code >> buckets.shift
            counted[row.group][bucket] = counted[row.group].get(bucket, 0) + 1
        return counted

    def _counted(self, statement: Statement) -> list[list[int]]:
        counted = [[0] * len(statement.tallies) for _ in range(statement.groups)]
        values: set[tuple[int, int, int | None]] = set()
        for row in self._kept(statement):
            for column, tally in enumerate(statement.tallies):
                value = row.values[column]
                if isinstance(tally, Distinct):
                    is_new = value is not None and (row.group, column, value) not in values
                    values.add((row.group, column, value))
                    counted[row.group][column] += int(is_new)
                else:
                    counted[row.group][column] += adds(tally, value)
        return counted

    def _kept(self, statement: Statement) -> list[Row]:
        """The rows that survive bounding."""
        places = {group: place for place, group in enumerate(statement.listed)}
        types, rows = statement.input.types(), []
        for who, read in self._lines.of(statement.input):
            check_not_stopped()
            if self._stopped:
                raise SystemExit
            place = places.get(tuple(value_of(evaluate(key, read, "key", types)) for key in statement.keys))
            if place is not None:
                rows.append(Row(who, place, tuple(reading(tally, read, types) for tally in statement.tallies)))
        if statement.is_distinct:
            rows = [row for row in dict.fromkeys(rows) if any(value is not None for value in row.values)]
        return kept(rows, statement.bounding, self._salt)

    def holders(self, statement: Holders) -> list[Held]:
        """How many people hold each private key."""
        held: list[Held] | None = None
        if not self._closed:
            with suppress(Exception):
                held = self._held(statement)
        if held is None:
            raise self._failure(statement)
        return held

    def _held(self, statement: Holders) -> list[Held]:
        types, own = statement.input.types(), []
        for who, read in self._lines.of(statement.input):
            check_not_stopped()
            if self._stopped:
                raise SystemExit
            values = (value_of(evaluate(key, read, "key", types)) for key in statement.keys)
            key = tuple(value if value is None or isinstance(value, str) else int(value) for value in values)
            if all(map(is_held, key)):
                own.append((who, key))
        counts = Counter(
            (key, many if statement.weighed else statement.most)
            for key, many in few_keys(own, statement.bounding, self._salt)
        )
        counted = (Held(key, many, people) for (key, many), people in counts.items())
        return sorted(each for each in counted if all(map(can_appear, each.key)))

    def ready(self) -> None:
        """Make sure that objects are what they were."""
        object_store.check_before_debit(self._objects)

    def stop(self) -> None:
        """Every question, running or new, ends with `SystemExit`."""
        self._stopped = True

    def close(self) -> None:
        """Answers nothing any more."""
        self._closed = True
