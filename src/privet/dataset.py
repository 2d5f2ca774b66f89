"""Tables about the same people, their engine, their ledger and what the steward decided: opened once, shared by all.

Every analyst asks through a session of their own. A dataset has no lock around its engine: as many questions are
answered at a time as the engine can take.
"""

from __future__ import annotations

import atexit
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsIndex, TypedDict
from weakref import WeakSet, WeakValueDictionary

from privet import ledger as ledgers
from privet.engines import open_engine
from privet.engines.base import MEMORY, Engine
from privet.errors import QueryError, Remedy, Subject, UserError, argument, write
from privet.exact import Number, positive, whole
from privet.ledger import Caps, Ledger, TableFacts, memory_ledger, open_ledger
from privet.ledger.opening import existing_ledger
from privet.planner import ReleasePlan, plan
from privet.privacy.accounting import accountant_for
from privet.privacy.adjacency import Person
from privet.privacy.guarantees import Budget
from privet.privacy.guarantees.budgets import MIN_EPSILON
from privet.release.signing import SigningKey, signer
from privet.system.closing import Closing
from privet.system.identity import Identity
from privet.system.processes import Gate, era
from privet.tables import operators
from privet.tables.query import Query
from privet.tables.relation import PublicTable, Table
from privet.tables.schema import check_name
from privet.tables.statement import Statement

if TYPE_CHECKING:  # pydantic takes its time, and most datasets need none of it
    from privet.policy import Policy
    from privet.policy.policy import DatasetPolicy
    from privet.session import Session

_OPENED = write('pv.Session([people], budget=pv.PureDP(3), ledger="people.ledger")')
_CLOSED = "this dataset is closed, and so are its sessions. Open it again to ask further questions"
_UNSEEN = (
    "this dataset was opened by another process, and Python was not told of the fork. Nothing was spent. Open it "
    "after the fork: with gunicorn in post_fork, with uwsgi in a function with @postfork, with multiprocessing in the "
    "initializer"
)
COPIED = (
    "can't be copied or sent to another process: it holds the data and one budget. Send its tables, which can be "
    "pickled, and open them there with the same ledger"
)
_PATIENCE = 5.0  # seconds that the exit of the interpreter waits for questions, and then for their end


class DatasetOptions(TypedDict, total=False):
    """What can be said about a dataset besides its tables, its budget and its ledger."""

    public: Sequence[PublicTable]
    name: str | None
    version: str
    signing_key: SigningKey | None
    memory: str | None
    threads: int | None
    spill: str | Path | None
    min_epsilon: Number
    share_answers: bool
    accountant: str
    engine: str


class Dataset(Closing):
    """Private tables about the same people, one budget for all questions about them, and a ledger that keeps count.

    `ledger` is a file, a postgresql:// address, or an open ledger. `ledger=None` must be written: debits are then kept
    in memory, and forgotten when the process ends. `version` names the data: answers are kept for each version, and
    a new one does not renew the budget. `min_epsilon` is the least price of a question: it bounds how often one can be
    asked. With `share_answers=False` an answer that somebody else paid for is not free: nobody learns who asked what.
    `caps` says what a policy allows to each analyst: of that and the ledger's caps, the smaller hold. `accountant`
    names the one that keeps the budget; by default the kind of the budget decides. `engine` names the one that
    computes; by default the first that can read all sources. With `connect=False` the ledger is only looked at, and not
    created, until a question is to be paid for.

    Threads may share a dataset; so may the children of a fork, if the ledger is not in memory.

    Example:
        >>> import pyarrow as pa
        >>> import privet as pv
        >>> rows = pa.table({"age": [31, 45]})
        >>> ages = pv.table("ages", rows, protect=pv.each_row(), columns={"age": pv.integer(0, 110)})
        >>> with pv.Dataset([ages], budget=pv.PureDP(3), ledger=None) as dataset:
        ...     ann, bob = dataset.session(analyst="ann"), dataset.session(analyst="bob")
        ...     spent = ann.release(ages.agg(n=pv.count()), epsilon=1).spent
        ...     print(bob.remaining)
        epsilon 2
    """

    def __init__(
        self,
        tables: Sequence[Table],
        *,
        budget: Budget,
        ledger: Ledger | str | Path | None,
        public: Sequence[PublicTable] = (),
        name: str | None = None,
        version: str = "1",
        signing_key: SigningKey | None = None,
        memory: str | None = None,
        threads: int | None = None,
        spill: str | Path | None = None,
        min_epsilon: Number = MIN_EPSILON,
        share_answers: bool = True,
        caps: Callable[[str], Caps] | None = None,
        accountant: str = "",
        engine: str = "",
        connect: bool = True,
    ) -> None:
        if memory is not None and not re.fullmatch(MEMORY, str(memory)):
            raise UserError(f"memory must be a size, not {memory!r}", remedy=argument("memory", "2GB"))
        if spill is not None and not Path(spill).is_dir():
            advice = Remedy("Leave it out to use a temporary folder")
            raise UserError(f"spill must be a folder that exists, not {str(spill)!r}", remedy=advice)
        if threads is not None:
            threads = whole(threads, name="threads", example="threads=2")
        self.tables = _tables(tables)
        self.public: dict[str, PublicTable] = _named(public, PublicTable, "public")
        accountant = accountant_for(budget, accountant).name
        if ledger is not None and not isinstance(ledger, str | Path) and not hasattr(ledger, "reserve"):
            raise UserError("ledger must be a file, an address, or None for memory", remedy=_OPENED)
        first = next(iter(self.tables.values())).schema
        self.name = first.name if name is None else check_name(name, "dataset")
        self.version = check_name(version, "version")
        self._caps = caps
        if not isinstance(share_answers, bool):
            raise UserError(
                f"share_answers must be True or False, not {share_answers!r}", remedy=argument("share_answers", False)
            )
        self.share_answers = share_answers
        """Whether an answer that somebody else paid for is free."""
        self.min_epsilon = positive(min_epsilon, name="min_epsilon", example="min_epsilon=0.001")
        """The least price of a question."""
        self._gate = Gate(_CLOSED)
        self._era = era()
        self._plans: WeakValueDictionary[int, ReleasePlan] = WeakValueDictionary()
        self.signing_key = None if signing_key is None else signer(signing_key)
        self._where = ledger
        self._opened: Ledger | None = None
        self._ledger: Ledger | None = None
        self._looked: Ledger | None = None
        self._engine: Engine | None = None
        self._connecting = RLock()
        unit: Literal["person", "row"] = "person" if isinstance(first.protect, Person) else "row"
        self._facts = ledgers.Dataset(self.name, unit, first.adjacency, budget, accountant)
        self._engine_options: dict[str, Any] = {
            "name": engine,
            "memory": memory,
            "threads": threads,
            "spill": None if spill is None else Path(spill),
        }
        self._grant: Callable[[Ledger], None] = lambda ledger: None
        if connect or not isinstance(ledger, str | Path):
            self.connect()

    def connect(self) -> None:
        """Open the ledger, which is created if it is missing, and the engine; does nothing if they are open."""
        with self._connecting:
            if self._engine is not None:
                return
            if self._looked is not None:
                self._looked.close()
                self._looked = None
            self._opened = open_ledger(self._where) if isinstance(self._where, str | Path) else None
            ledger: Ledger = self._opened or self._where or memory_ledger()  # type: ignore[assignment]
            try:
                salt = self.record(ledger)
                self._engine = open_engine(
                    {table.name: (table.schema, table.source) for table in self.tables.values()},
                    {table.name: (table.schema, table.source) for table in self.public.values()},
                    salt=salt,
                    progress=sys.stderr.isatty(),
                    **self._engine_options,
                )
            except BaseException:
                if self._opened is not None:
                    self._opened.close()
                raise
            self._ledger = ledger
            _OPEN.add(self)

    def record(self, ledger: Ledger) -> bytes:
        """Record the dataset in a ledger, or check that it is the recorded one; returns its salt."""
        salt = ledger.create(
            self._facts,
            tables=_kept(self.tables.values()),
            public=_public(self.tables.values(), self.public.values()),
            same_budget=self._caps is None,
        )
        ledger.declare(self.name, self.version)
        self._grant(ledger)
        return salt

    def _look(self) -> Ledger:
        """A ledger to look at before the dataset is connected: the present one, or one in which nothing is spent."""
        with self._connecting:
            if self._looked is None:
                assert isinstance(self._where, str | Path)
                present = existing_ledger(self._where)
                if present is not None and self.name not in present.datasets():
                    present.close()
                    present = None
                self._looked = present or memory_ledger()
                if present is None:
                    self.record(self._looked)
            return self._looked

    @classmethod
    def open(
        cls, policy: Policy | str | Path, *, dataset: str | None = None, asking: str = "", connect: bool = True
    ) -> Dataset:
        """A dataset by the steward's policy.

        If the policy has several, name one, or give the statement that is `asking`: its tables tell which one it is.
        With `connect=False`, the ledger is only looked at until a question is to be paid for.
        """
        from privet.policy import agreement, load

        whole_policy = load(policy) if isinstance(policy, str | Path) else policy
        chosen: DatasetPolicy = whole_policy.chosen(dataset, asking)
        opened = cls(
            chosen.tables(),
            budget=chosen.budget,
            ledger=whole_policy.ledger,
            public=chosen.public(),
            name=chosen.name,
            version=chosen.version,
            signing_key=chosen.signing_key,
            memory=chosen.settings.memory,
            threads=chosen.settings.threads,
            min_epsilon=chosen.settings.min_epsilon,
            share_answers=chosen.settings.share_answers,
            caps=lambda analyst: agreement.caps(chosen, analyst),
            accountant=chosen.accountant,
            engine=chosen.settings.engine or "",
            connect=False,
        )
        opened._grant = lambda ledger: agreement.grant(chosen, ledger)
        if connect:
            opened.connect()
        return opened

    def session(self, *, analyst: str = "analyst") -> Session:
        """One analyst's view of the dataset. Closing it leaves the dataset open."""
        from privet.session import Session

        return Session.of(self, analyst=analyst)

    # --- for its sessions -----------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The ledger, for `verify` and for the steward."""
        self._check_era()
        return self._ledger or self._look()

    @property
    def engine(self) -> Engine:
        """The engine that reads the tables."""
        if self._engine is None:
            self.connect()
        assert self._engine is not None
        return self._engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self._engine = engine

    def caps(self, analyst: str) -> Caps:
        """What the policy allows to an analyst; nothing is said if there is no policy."""
        return Caps() if self._caps is None else self._caps(analyst)

    def parse(self, text: str) -> Query:
        """The question that a SELECT asks: the same value that the fluent language makes."""
        from privet.sql import parse

        return parse(text, self.tables, self.public)

    def plan(self, query: Query | str | ReleasePlan, **options: Any) -> ReleasePlan:
        """The plan for a question; a plan that another dataset made is checked, and not believed.

        Claim: what is returned is what the planner makes of the question, at no less than the least price.
        """
        if isinstance(query, ReleasePlan):
            return self._planned(query)
        asked = self.parse(query) if isinstance(query, str) else query
        planned = plan(asked, min_epsilon=self.min_epsilon, text=query if isinstance(query, str) else "", **options)
        self._check_tables(asked)
        self._plans[id(planned)] = planned
        return planned

    def _planned(self, given: ReleasePlan) -> ReleasePlan:
        if self._plans.get(id(given)) is given:
            return given
        self._check_tables(given.query)
        options = {
            "epsilon": given.asked,
            "within": None if given.within is None else dict(given.within),
            "confidence": given.confidence,
            "simultaneous": given.simultaneous,
            "assuming": given.assuming,
            "weights": dict(given.weights) or None,
            "mechanism": given.mechanism.name,
        }
        planned = plan(given.query, min_epsilon=self.min_epsilon, text=given.text, **options)  # type: ignore[arg-type]
        if planned != given:
            raise QueryError(
                "this plan was not made for this dataset: here the same question has another plan. Nothing was spent",
                remedy=write("plan = session.plan(question, epsilon=0.5)"),
            )
        self._plans[id(planned)] = planned
        return planned

    def _check_tables(self, query: Query) -> None:
        for schema in operators.tables(query.input):
            known = self.tables.get(schema.name)
            if known is None or known.schema != schema:
                raise QueryError(
                    f"the session has no table {schema.name!r}"
                    if known is None
                    else f"the session's table {schema.name!r} is declared differently from the one in the question",
                    allowed=f"It has: {', '.join(self.tables)}" if known is None else "",
                    subject=Subject("table", schema.name),
                )
        for public in operators.public_tables(query.input):
            table = self.public.get(public.name)
            if table is None or table.schema != public:
                raise QueryError(
                    f"the session does not have the public table {public.name!r}",
                    subject=Subject("table", public.name),
                    remedy=write(f"pv.Session([people], public=[{public.name}], ...)"),
                )

    def ready(self, statements: Iterable[Statement] = ()) -> None:
        """Refuse, before anything is paid for, what this process or its engine could not answer."""
        for statement in statements:
            reason = self.engine.supports(statement)
            if reason is not None:
                raise QueryError(
                    f"the engine {self.engine.name!r} can't compute this: {reason}. Nothing was spent",
                    remedy=Remedy("Change the question, or open the dataset with another engine"),
                )
        self._gate.check()
        self._check_era()
        self.engine.ready()

    def turn(self) -> AbstractContextManager[None]:
        """Held while a question is paid for and answered: whoever closes the dataset waits for it."""
        return self._gate.through()

    def _check_era(self) -> None:
        if era() != self._era:
            raise UserError(_UNSEEN)

    # --- its end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the data, and of a ledger that the dataset opened; questions that were paid for end first."""
        self._gate.shut()
        if self._looked is not None:
            self._looked.close()
        if self._engine is not None:
            self._engine.close()
        if self._opened is not None and era() == self._era:
            self._opened.close()

    def _end(self) -> None:
        """The interpreter ends: a thread that is still in the middle of a question settles it first."""
        if not self._gate.shut(_PATIENCE) and self._engine is not None:
            self._engine.stop()
            self._gate.shut(_PATIENCE)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UserError(f"a dataset {COPIED}")

    def __repr__(self) -> str:
        return f"Dataset({self.name}: {', '.join(self.tables)})"


_OPEN: WeakSet[Dataset] = WeakSet()


@atexit.register
def _end_all() -> None:
    for dataset in list(_OPEN):
        dataset._end()


def _kept(tables: Iterable[Table]) -> list[TableFacts]:
    """What a ledger keeps of tables: whose each row is, and where they are."""
    kept = []
    for table in tables:
        protect = table.schema.protect
        person = protect.id if isinstance(protect, Person) else ""
        kept.append(TableFacts(table.name, person, table.identities))
    return kept


def _public(tables: Iterable[Table], public: Iterable[PublicTable]) -> list[Identity]:
    """What is used as public: the public tables, and the files that gave private tables their keys."""
    keys = [one for table in tables for _, column in table.schema.columns for one in column.public]
    return [*keys, *(one for table in public for one in table.identities)]


def _named(tables: Any, kind: Any, what: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    if not isinstance(tables, list | tuple):
        raise UserError(f"{what} must be a list", remedy=_OPENED)
    for table in tables:
        if not isinstance(table, kind):
            maker = "pv.public_table" if kind is PublicTable else "pv.table"
            raise UserError(
                f"{what} contains a {type(table).__module__}.{type(table).__qualname__}",
                allowed="It takes declared tables",
                remedy=write(f"{maker}(...)"),
            )
        if table.name in named:
            raise UserError(f"two tables are called {table.name!r}", remedy=Remedy("Rename one of them"))
        named[table.name] = table
    return named


def _tables(tables: Sequence[Table]) -> dict[str, Table]:
    named: dict[str, Table] = _named(tables, Table, "tables")
    if not named:
        raise UserError("a session needs a table", remedy=_OPENED)
    units = {type(table.schema.protect) for table in named.values()}
    kinds = {table.schema.adjacency for table in named.values()}
    if len(units) > 1 or len(kinds) > 1:
        raise UserError(
            "all tables of a dataset are about the same people: they must protect the same unit (each row, or each "
            "person) with the same adjacency",
            remedy=Remedy("Open another session for tables about other people"),
        )
    return named
