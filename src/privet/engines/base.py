"""The contract of an engine: statements in, exact integers by group out; and where the rows are that it reads.

An engine never sees noise, epsilon or a ledger. Whatever it is, a guarantee stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypedDict, Unpack

from privet.engines.object_store import StoredObject
from privet.system.identity import Identity, of_files
from privet.tables.holders import Held, Holders
from privet.tables.schema import PublicSchema, Schema
from privet.tables.statement import Buckets, Statement
from privet.tables.stored_types import StoredType

FAILED = "the engine could not compute the answer. What was spent stays spent"
"""The text of every failure: what went wrong could tell of a row."""


class Unsupported(Exception):
    """Why an engine can't compute a statement. It follows from the statement and the sources' types, not from rows."""


class Source(Protocol):
    """Where the rows of a table are; only the declared columns, and the id of the person, can be seen."""

    def types(self) -> Mapping[str, StoredType]:
        """The columns and their types."""

    def files(self) -> Sequence[str]:
        """The absolute paths of the files that must stay readable."""

    @property
    def identities(self) -> tuple[Identity, ...]:
        """Which files or tables the rows are in, as far as that can be known."""


Private = Mapping[str, tuple[Schema, Source]]
Public = Mapping[str, tuple[PublicSchema, Source]]
"""Tables by name: their declarations, and where their rows are."""


class Looks(Protocol):
    """What the rows of some tables can be asked."""

    def answer(self, statement: Statement) -> list[list[int]]:
        """An integer for each tally, for each group, in the order of `itertools.product`."""

    def histograms(self, statement: Statement, buckets: Buckets) -> list[dict[int, int]]:
        """For each group, the number of rows in each of these buckets of codes that has any.

        Claim: of the rows that `answer` counts for this statement, which must count the rows of one code.
        """

    def holders(self, statement: Holders) -> list[Held]:
        """How many people hold each private key, in the order of keys. What it lists is private, and so is its size."""


class Engine(Looks, Protocol):
    """Exact integers for statements over some tables.

    Claim: the size and the order of an answer follow from the statement. No row can cause an error, and every failure
    is the same `NoAnswer(FAILED)`, with nothing of the engine's own error attached. What survives bounding of a
    person depends on that person's rows and the salt alone. Threads may ask at the same time.
    """

    name: ClassVar[str]
    """What it is called in the registry."""

    @classmethod
    def reads(cls, source: Source) -> bool:
        """Whether it can read rows that are there."""

    def supports(self, statement: Statement | Holders) -> str | None:
        """Why it can't compute this statement; None if it can. No row is read. To be asked before a debit."""

    def snapshot(self) -> AbstractContextManager[Looks]:
        """Looks that belong together, such as those of one question.

        Claim: all of them see the tables in one state, or one of them fails with `NoAnswer(FAILED)`, and so do all that
        follow it. A look outside of a snapshot sees a state of its own. One thread uses a snapshot.
        """

    def ready(self) -> None:
        """Make sure that this process can ask; nothing is read. To be called before a debit."""

    def stop(self) -> None:
        """The process ends: every question, running or new, ends with `SystemExit`.

        One question alone is stopped by its `Stoppable`, if it runs in one: it ends like any failure.
        """

    def close(self) -> None:
        """Let go of everything, after the questions that are running."""


MEMORY = r"[1-9][0-9]*(\.[0-9]+)? ?([KMGT]i?)?B"
"""An amount of memory."""


def in_bytes(memory: str) -> int:
    """An amount of memory as a number of bytes.

    Example:
        >>> in_bytes("1.5 GB"), in_bytes("2MiB"), in_bytes("100B")
        (1500000000, 2097152, 100)
    """
    number = memory.rstrip(" KMGTiB")
    unit = memory.removeprefix(number).strip()
    return int(Fraction(number) * (1024 if "i" in unit else 1000) ** "BKMGT".index(unit[0]))


class Resources(TypedDict, total=False):
    """What an engine may use; what it has no use for, it ignores."""

    memory: str | None
    """Such as "2GB"."""
    apart: bool
    """Whether each question has this memory for itself. By default, those that run at the same time share it."""
    threads: int | None
    spill: Path | None
    """A folder for what does not fit into memory."""
    progress: bool
    """Whether to show a progress bar."""


class OpensEngine(Protocol):
    """How an engine is opened: what the registry leads to."""

    def __call__(
        self,
        tables: Private,
        public: Public,
        *,
        salt: bytes,
        **resources: Unpack[Resources],
    ) -> Engine:
        """An engine over these tables; the salt chooses whose rows survive bounding."""

    def reads(self, source: Source) -> bool:
        """Whether it can read rows that are there."""


# --- sources that every engine can read -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Rows in memory, as an Arrow table that nobody else holds."""

    rows: Any = field(repr=False)
    identities: tuple[Identity, ...] = ()
    """The files or tables they were read from, as far as that is known. A frame in memory has no identity."""

    def types(self) -> Mapping[str, StoredType]:
        """The columns and their types."""
        from privet.engines.arrow_types import stored

        return {column.name: stored(column.type) for column in self.rows.schema}

    def files(self) -> Sequence[str]:
        """No files."""
        return ()


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Rows in Parquet files, read where they are. A person's id that is NaN is missing."""

    paths: tuple[str, ...]
    columns: tuple[tuple[str, StoredType], ...]
    person: str | None
    check: Callable[[], None] | None = field(default=None, compare=False, repr=False)
    """Fails if the files can't be read any more as they were declared; quick, unless one has changed."""

    def types(self) -> Mapping[str, StoredType]:
        """The columns and their types."""
        return dict(self.columns)

    def files(self) -> Sequence[str]:
        """The absolute paths of the files."""
        return self.paths

    @property
    def identities(self) -> tuple[Identity, ...]:
        """One for each file."""
        return of_files(self.paths)


@dataclass(frozen=True, slots=True)
class ParquetObjects:
    """Rows in Parquet files in object storage, as they were at registration. Otherwise like `ParquetFiles`."""

    objects: tuple[StoredObject, ...]
    columns: tuple[tuple[str, StoredType], ...]
    person: str | None

    def types(self) -> Mapping[str, StoredType]:
        """The columns and their types."""
        return dict(self.columns)

    @property
    def protocol(self) -> str:
        """A name for these objects, unique in this process."""
        listed = [(str(each.address), each.size, each.tag) for each in self.objects]
        return f"privet-{sha256(repr(listed).encode()).hexdigest()[:32]}"

    def files(self) -> Sequence[str]:
        """The names that an engine gives them."""
        protocol = self.protocol
        return [f"{protocol}://{place}" for place in range(len(self.objects))]

    @property
    def identities(self) -> tuple[Identity, ...]:
        """One for each object. The server is not part of it: a bucket under another endpoint counts as the same."""
        return tuple(Identity(str(each.address)) for each in self.objects)


def objects_of(tables: Private) -> dict[str, tuple[StoredObject, ...]]:
    """The tables whose rows are in object storage, and their objects."""
    sources = {name: source for name, (_, source) in tables.items()}
    return {name: source.objects for name, source in sources.items() if isinstance(source, ParquetObjects)}
