"""What a transaction can do with the tables: read entries, add one at the end, open and close leases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple, get_args

import sqlalchemy as sa

from privet.errors import LedgerError, UserError
from privet.ledger import chain, tables
from privet.ledger.entries import Dataset, Entry, Kind, Outcome, Ration, Receipt, Totals, nothing
from privet.ledger.leases import Place
from privet.noise.entropy import SystemBits

_CANDIDATES = 100  # so many answers to the same question are looked at, the newest first
_ANALYSTS = 1000  # of so many it is remembered what they have spent
_CREATING = 7236839  # the number of an advisory lock

_entries, _answers, _leases, _datasets = tables.entries, tables.answers, tables.leases, tables.datasets
_D: sa.BindParameter[str] = sa.bindparam("d")
_N: sa.BindParameter[int] = sa.bindparam("n")
_HERE = _entries.c.dataset == _D
_NAMES = sa.select(_datasets.c.name).order_by(_datasets.c.name)
_LISTED = sa.select(_datasets.c.name, _datasets.c.head, _datasets.c.hash).order_by(_datasets.c.name)
_NAMED = [
    (least := sa.select(sa.func.min(table.c.dataset)), least.where(table.c.dataset > _D))
    for table in (_entries, _answers, _leases)
]  # the first name in a table, and the one after a name: by its index, however many rows there are
_SALT = sa.select(_datasets.c.salt).where(_datasets.c.name == _D)
_AT = _entries.alias()
_THERE = sa.select(_AT.c.hash).where(_AT.c.dataset == _datasets.c.name, _AT.c.number == _datasets.c.head)
_HEAD = sa.select(_datasets.c.head, _datasets.c.hash, _THERE.scalar_subquery()).where(_datasets.c.name == _D)
_LOCK = _HEAD.with_for_update()
_MOVE = sa.update(_datasets).where(_datasets.c.name == _D).values(head=sa.bindparam("h"), hash=sa.bindparam("x"))
_TEXT = sa.select(_entries.c.text).where(_HERE, _entries.c.number == _N)
_ENTRY = sa.select(_entries.c.text, _entries.c.hash).where(_HERE, _entries.c.number == _N)
_ROWS = sa.select(*_entries.c[1:]).where(_HERE).order_by(_entries.c.number)
_OF_REQUEST = sa.select(_entries.c.text).where(_HERE, _entries.c.request == sa.bindparam("r"))
_OF_KIND = sa.select(_entries.c.text).where(_HERE, _entries.c.kind == sa.bindparam("k"))
_BY_ANALYST = sa.select(sa.func.max(_entries.c.number)).where(_HERE, _entries.c.analyst == sa.bindparam("a"))
_OF_ANALYST = sa.select(_entries.c.text).where(_HERE, _entries.c.number == _BY_ANALYST.scalar_subquery())
_EACH_ANALYST = sa.select(_entries.c.text).where(
    _HERE,
    _entries.c.number.in_(
        sa.select(sa.func.max(_entries.c.number))
        .where(_HERE, _entries.c.analyst.is_not(None))
        .group_by(_entries.c.analyst)
    ),
)
_SETTLING = sa.select(_entries.c.text).where(
    _HERE, _entries.c.refers == _N, sa.or_(*(_entries.c.kind == kind for kind in get_args(Outcome)))
)
_ANSWER = sa.select(_answers.c.text).where(_answers.c.dataset == _D, _answers.c.number == _N)
_ANSWERS = sa.select(_answers.c.number, _answers.c.text).where(_answers.c.dataset == _D)
_ANSWERED = sa.select(_answers.c.number).where(_answers.c.dataset == _D)
_SAME_QUESTION = (
    sa.select(_entries.c.text)
    .join(_answers, (_answers.c.dataset == _entries.c.dataset) & (_answers.c.number == _entries.c.number))
    .where(_HERE, _entries.c.question == sa.bindparam("q"))
    .order_by(_entries.c.number.desc())
    .limit(_CANDIDATES)
)
_OWN_QUESTION = _SAME_QUESTION.where(_entries.c.analyst == sa.bindparam("a"))
_OPEN = sa.select(_leases.c.number, _leases.c.beats).where(_leases.c.dataset == _D)
_IS_OPEN = sa.select(_leases.c.number).where(_leases.c.dataset == _D, _leases.c.number == _N)
_CLOSE = sa.delete(_leases).where(_leases.c.dataset == _D, _leases.c.number == _N)
_RENEW = sa.update(_leases).where(_leases.c.dataset == _D, _leases.c.number == _N).values(beats=_leases.c.beats + 1)


_INSERT_DATASET, _INSERT_ENTRY = sa.insert(_datasets), sa.insert(_entries)
_INSERT_ANSWER, _INSERT_LEASE = sa.insert(_answers), sa.insert(_leases)


class State(NamedTuple):
    """What follows from the entries up to one. Its hash stands for all of them, so it can be remembered by that."""

    hash: str
    totals: Totals
    rations: dict[str, Ration]
    """Of the analysts that were asked for."""


class Journal:
    """The tables of a ledger within one transaction.

    Statements are compiled once for each database, and run by its driver: SQLAlchemy's own way to run them would take
    longer than the disk.
    """

    _compiled: ClassVar[dict[tuple[str, sa.ClauseElement], tuple[str, dict[str, Any]]]] = {}
    """The text for a database, and the constants in it."""

    def __init__(self, connection: Any, dialect: sa.Dialect, known: dict[str, State]) -> None:
        self._connection = connection
        self._dialect = dialect
        self._known = known
        self._heads: dict[str, Receipt] = {}  # of the datasets that are locked
        self._appended: list[Any] = []

    def _run(self, statement: sa.ClauseElement, **values: Any) -> Any:
        place = self._dialect.name, statement
        found = self._compiled.get(place)
        if found is None:
            made = statement.compile(dialect=self._dialect)
            constants = {name: value for name, value in made.params.items() if value is not None}
            found = self._compiled[place] = str(made), constants
        return self._connection.execute(found[0], found[1] | values)

    def _first(self, statement: sa.ClauseElement, **values: Any) -> Any:
        row = self._run(statement, **values).fetchone()
        return None if row is None else row[0]

    def _column(self, statement: sa.ClauseElement, **values: Any) -> list[Any]:
        return [row[0] for row in self._run(statement, **values).fetchall()]

    def _read(self, statement: sa.ClauseElement, **values: Any) -> Entry | None:
        text = self._first(statement, **values)
        return None if text is None else chain.read(text)

    # --- datasets -------------------------------------------------------------------------------

    def names(self) -> tuple[str, ...]:
        """The names of all datasets."""
        return tuple(self._column(_NAMES))

    def listed(self) -> list[Receipt]:
        """Every dataset, and where its chain should end."""
        return [Receipt(*row) for row in self._run(_LISTED).fetchall()]

    def strays(self) -> str | None:
        """A dataset that has rows and is not listed, if there is one."""
        known = {*self.names()}
        for least, following in _NAMED:
            name: str | None = self._first(least)
            while name is not None:
                if name not in known:
                    return name
                name = self._first(following, d=name)
        return None

    def first(self, dataset: Dataset) -> bytes:
        """The salt of a dataset, which is made if there is none; writers come one after the other."""
        if self._dialect.name == "postgresql":
            self._connection.execute(f"SELECT pg_advisory_xact_lock({_CREATING})")
        salt: str | None = self._first(_SALT, d=dataset.name)
        if salt is None:
            salt = SystemBits().take(16).hex()
            self._run(_INSERT_DATASET, name=dataset.name, salt=salt, head=0, hash=chain.GENESIS)
            self.append(dataset.name, "created", Totals(dataset.budget, nothing(dataset.budget)), facts=dataset)
        try:
            return bytes.fromhex(salt)
        except (TypeError, ValueError):
            raise LedgerError(f"the salt of the dataset {dataset.name!r} was tampered with") from None

    def facts(self, dataset: str) -> Dataset:
        """What is fixed about a dataset: its first entry says so."""
        found = self._read(_TEXT, d=dataset, n=1)
        if found is None or found.facts is None:
            raise UserError(f"there is no dataset {dataset!r}. There are: {', '.join(self.names()) or 'none'}")
        return found.facts

    def head(self, dataset: str, *, lock: bool = False) -> Receipt:
        """Where the chain ends; locked, nobody else adds an entry until this transaction ends."""
        if dataset in self._heads:
            return self._heads[dataset]
        row = self._run(_LOCK if lock else _HEAD, d=dataset).fetchone()
        if row is not None and row[1] != row[2]:  # Postgres waited for the lock, and looks for the entry as before it
            row = self._run(_HEAD, d=dataset).fetchone()
        if row is None or (row[0] and row[1] != row[2]):
            raise LedgerError(f"the newest entry of the dataset {dataset!r} is gone: the ledger was tampered with")
        head = Receipt(dataset, row[0], row[1])
        if lock:
            self._heads[dataset] = head
        return head

    # --- entries --------------------------------------------------------------------------------

    def totals(self, dataset: str, *, lock: bool = False) -> Totals:
        """What holds after the newest entry."""
        return self._state(dataset, self.head(dataset, lock=lock)).totals

    def _state(self, dataset: str, head: Receipt) -> State:
        known = self._known.get(dataset)
        if known is None or known.hash != head.hash:
            totals = chain.totals_of(self._first(_TEXT, d=dataset, n=head.number))
            known = self._known[dataset] = State(head.hash, totals, {})
        return known

    def ration(self, dataset: str, analyst: str) -> Ration:
        """What holds for an analyst after the newest entry that is about one."""
        state = self._state(dataset, self.head(dataset))
        if analyst not in state.rations:
            if len(state.rations) >= _ANALYSTS:
                state.rations.clear()
            text = self._first(_OF_ANALYST, d=dataset, a=analyst)
            state.rations[analyst] = Ration(nothing(state.totals.budget)) if text is None else chain.ration_of(text)
        return state.rations[analyst]

    def rations(self, dataset: str) -> dict[str, Ration]:
        """The same for every analyst."""
        found = [chain.read(text) for text in self._column(_EACH_ANALYST, d=dataset)]
        return {e.analyst: e.ration for e in sorted(found, key=lambda e: e.analyst) if e.ration is not None}

    def of_request(self, dataset: str, request_id: str) -> Entry | None:
        """The entry of a request id."""
        return self._read(_OF_REQUEST, d=dataset, r=request_id)

    def entry(self, dataset: str, number: int) -> Entry | None:
        """The entry of this number, with its hash."""
        row = self._run(_ENTRY, d=dataset, n=number).fetchone()
        return None if row is None else chain.read(row[0], row[1])

    def settling(self, dataset: str, number: int) -> Entry | None:
        """How a reservation ended, if it did."""
        return self._read(_SETTLING, d=dataset, n=number)

    def same_question(self, dataset: str, question: str, analyst: str | None = None) -> list[Entry]:
        """Reservations of the same question that were answered, the newest first; by one analyst, if one is named."""
        if analyst is None:
            return [chain.read(text) for text in self._column(_SAME_QUESTION, d=dataset, q=question)]
        return [chain.read(text) for text in self._column(_OWN_QUESTION, d=dataset, q=question, a=analyst)]

    def of_kind(self, dataset: str, kind: Kind) -> list[Entry]:
        """All entries of a kind."""
        return [chain.read(text) for text in self._column(_OF_KIND, d=dataset, k=kind)]

    def rows(self, dataset: str) -> Iterator[tuple[int, str, str, str, str, int, str, str]]:
        """Every entry as it is stored, oldest first: number, kind, analyst, request, question, refers, text, hash."""
        return iter(self._run(_ROWS, d=dataset))

    def append(self, dataset: str, kind: Kind, totals: Totals, **fields: Any) -> Receipt:
        """One more entry, at the end of the chain; the dataset is locked."""
        head = self.head(dataset, lock=True)
        number, now = head.number + 1, datetime.now(UTC).isoformat(timespec="seconds")
        entry = Entry(number=number, dataset=dataset, kind=kind, time=now, totals=totals, **fields)
        text = chain.write(entry)
        found = chain.link(head.hash, text)
        inserted = self._run(
            _INSERT_ENTRY,
            dataset=dataset,
            number=number,
            kind=kind,
            analyst=entry.analyst or None,
            request=entry.request_id or None,
            question=entry.question or None,
            refers=entry.refers,
            text=text,
            hash=found,
        )
        self._appended += inserted, self._run(_MOVE, d=dataset, h=number, x=found)
        known = self._known.get(dataset)
        rations = known.rations if known is not None and known.hash == head.hash else {}
        if entry.ration is not None:
            rations = {**rations, entry.analyst: entry.ration}
        self._known[dataset] = State(found, totals, rations)
        self._heads[dataset] = Receipt(dataset, number, found)
        return self._heads[dataset]

    def confirm(self) -> None:
        """After the transaction: every entry that was added is there. A trigger can leave out a row without a word."""
        if any(each.rowcount != 1 for each in self._appended):
            raise LedgerError("the database did not store an entry. Look for triggers and rules on its tables")

    # --- answers --------------------------------------------------------------------------------

    def answer(self, dataset: str, number: int) -> str | None:
        """The answer of a reservation."""
        text: str | None = self._first(_ANSWER, d=dataset, n=number)
        return text

    def keep(self, dataset: str, number: int, text: str) -> None:
        """Store an answer."""
        self._run(_INSERT_ANSWER, dataset=dataset, number=number, text=text)

    def answers(self, dataset: str) -> dict[int, str]:
        """The hash of every answer that is stored."""
        return {number: chain.digest(text) for number, text in self._run(_ANSWERS, d=dataset)}

    def answered(self, dataset: str) -> set[int]:
        """Which reservations have an answer."""
        return set(self._column(_ANSWERED, d=dataset))

    # --- leases ---------------------------------------------------------------------------------

    def lease(self, dataset: str, number: int) -> None:
        """A reservation is open."""
        self._run(_INSERT_LEASE, dataset=dataset, number=number, beats=0)

    def release(self, dataset: str, number: int) -> bool:
        """It is no longer; says whether it was."""
        if self._first(_IS_OPEN, d=dataset, n=number) is None:
            return False
        self._run(_CLOSE, d=dataset, n=number)
        return True

    def renew(self, places: list[Place]) -> None:
        """Count up."""
        for dataset, number in places:
            self._run(_RENEW, d=dataset, n=number)

    def beats(self, dataset: str) -> dict[int, int]:
        """What is open, and how often each was renewed."""
        return dict(self._run(_OPEN, d=dataset).fetchall())
