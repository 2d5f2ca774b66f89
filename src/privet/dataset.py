"""Tables about the same people, with their engine, ledger and policy: opened once and shared.

Each analyst has a session. The engine is not locked: it can answer several questions at the same time.
"""

from __future__ import annotations

import atexit
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, SupportsIndex, TypedDict
from weakref import WeakSet

from privet import ledger as ledgers
from privet.connection import Connection
from privet.engines.base import MEMORY, Engine
from privet.errors import QueryError, Remedy, UserError, argument
from privet.exact import Number, whole
from privet.ledger import Caps, Ledger
from privet.names.required import needs
from privet.planner.choice import Accounting
from privet.privacy.accounting import accountant_for
from privet.privacy.adjacency import Person
from privet.privacy.guarantees import Budget
from privet.privacy.guarantees.budgets import DELTA_SHARE, MIN_EPSILON
from privet.questions import Questions
from privet.release.signing import SigningKey, signer
from privet.system.closing import Closing
from privet.system.processes import Gate, era
from privet.tables.catalog import OPEN, Catalog
from privet.tables.holders import Holders
from privet.tables.relation import PublicTable, Table
from privet.tables.schema import check_name
from privet.tables.statement import Statement

if TYPE_CHECKING:  # pydantic takes its time, and most datasets need none of it
    from privet.policy import Policy
    from privet.policy.policy import DatasetPolicy
    from privet.session import Session

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
    """The options of a dataset besides its tables, budget and ledger."""

    public: Sequence[PublicTable]
    name: str | None
    version: str
    signing_key: SigningKey | None
    memory: str | None
    threads: int | None
    spill: str | Path | None
    min_epsilon: Number
    delta_share: Number
    share_answers: bool
    accountant: str
    engine: str


class Dataset(Questions, Closing):
    """Private tables about the same people, with one budget for all questions and a ledger that records spending.

    - `ledger`: a file, a postgresql:// address, or an open ledger. With `ledger=None`, debits are kept in memory and
      lost when the process ends.
    - `version`: the name of this version of the data. Answers are stored per version; a new version does not renew the
      budget.
    - `min_epsilon`: the minimum price of a question, which limits how often anyone can ask.
    - `delta_share`: the part of the budget's delta that a question with unknown keys costs, unless it names a delta.
    - `share_answers`: whether an answer that someone else paid for is free. If False, nobody learns who asked what.
    - `caps`: what the policy allows each analyst. If the ledger has a smaller cap, the smaller one applies.
    - `accountant`: the accountant that keeps the budget. By default, the kind of budget decides.
    - `engine`: the engine that computes. By default, the first one that can read all sources.
    - `connect`: if False, the ledger is not created until a question costs budget; until then it is only read.

    Threads can share a dataset. So can forked processes, unless the ledger is in memory.

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

    @needs('pv.Dataset([people], budget=pv.PureDP(3), ledger="people.ledger")')
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
        delta_share: Number = DELTA_SHARE,
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
        catalog = Catalog.of(tables, public)
        accountant = accountant_for(budget, accountant).name
        if ledger is not None and not isinstance(ledger, str | Path) and not hasattr(ledger, "reserve"):
            raise UserError("ledger must be a file, an address, or None for memory", remedy=OPEN)
        first = next(iter(catalog.tables.values())).schema
        self.name = first.name if name is None else check_name(name, "dataset")
        self.version = check_name(version, "version")
        self._caps = caps
        if not isinstance(share_answers, bool):
            raise UserError(
                f"share_answers must be True or False, not {share_answers!r}", remedy=argument("share_answers", False)
            )
        self.share_answers = share_answers
        """Whether an answer that someone else paid for is free."""
        super().__init__(catalog, budget, min_epsilon=min_epsilon, delta_share=delta_share)
        self._gate = Gate(_CLOSED)
        self._era = era()
        self.signing_key = None if signing_key is None else signer(signing_key)
        unit: Literal["person", "row"] = "person" if isinstance(first.protect, Person) else "row"
        facts = ledgers.Dataset(self.name, unit, first.adjacency, budget, accountant)
        engine_options = {
            "name": engine,
            "memory": memory,
            "threads": threads,
            "spill": None if spill is None else Path(spill),
        }
        self._connection = Connection(
            facts,
            self.version,
            self.tables,
            self.public,
            where=ledger,
            engine_options=engine_options,
            same_budget=caps is None,
        )
        if connect or not isinstance(ledger, str | Path):
            self.connect()

    def connect(self, rehearse: Callable[[Ledger], object] | None = None) -> None:
        """Open the engine and the ledger, which is created if it is missing. Does nothing if they are open.

        `rehearse` tries in memory what is to be done first in a new ledger. If that is refused, no ledger is created.
        """
        if self._connection.connect(self._gate.check, rehearse):
            _OPEN.add(self)

    def record(self, ledger: Ledger) -> bytes:
        """Record the dataset in a ledger, or check that it is the recorded one; returns its salt."""
        return self._connection.record(ledger)

    @classmethod
    def open(
        cls,
        policy: Policy | str | Path,
        *,
        dataset: str | None = None,
        asking: str = "",
        connect: bool = True,
        memory: str | None = None,
    ) -> Dataset:
        """Open a dataset from the steward's policy.

        If the policy has several, name one, or pass the statement you are `asking`: its tables identify the dataset.
        With `connect=False`, the ledger is only read until a question costs budget. `memory` is for each question
        alone; without it, questions that run at the same time share what the policy says.
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
            memory=memory or chosen.settings.memory,
            threads=chosen.settings.threads,
            min_epsilon=chosen.settings.min_epsilon,
            delta_share=chosen.settings.delta_share,
            share_answers=chosen.settings.share_answers,
            caps=lambda analyst: agreement.caps(chosen, analyst),
            accountant=chosen.accountant,
            engine=chosen.settings.engine or "",
            connect=False,
        )
        opened._connection.engine_options["apart"] = memory is not None
        opened._connection.grant = lambda ledger: agreement.grant(chosen, ledger)
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
        """The ledger, for `verify` and for the steward; before the dataset is connected, to be read only."""
        self._check_era()
        return self._connection.ledger

    @property
    def created_ledger(self) -> bool:
        """Whether connecting the dataset created its ledger."""
        return self._connection.created_ledger

    @property
    def engine(self) -> Engine:
        """The engine that reads the tables."""
        self.connect()
        return self._connection.engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self._connection.present_engine = engine

    def caps(self, analyst: str) -> Caps:
        """What the policy allows an analyst; no limits if there is no policy."""
        return Caps() if self._caps is None else self._caps(analyst)

    @property
    def accounting(self) -> Accounting:
        """The budget that the dataset was created with, and the accountant that keeps it.

        What follows from it, such as the epsilon that a question in rho states, is the same for a retry after the
        steward has changed the budget.
        """
        return Accounting(self.ledger.balance(self.name).accountant, self.ledger.dataset(self.name).budget)

    def ready(self, statements: Iterable[Statement | Holders] = ()) -> None:
        """Refuse what this process or its engine can't answer, before anything is paid for."""
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
        """Held while a question is paid for and answered; `close` waits for it."""
        return self._gate.through()

    def _check_era(self) -> None:
        if era() != self._era:
            raise UserError(_UNSEEN)

    # --- its end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the engine, and the ledger if the dataset opened it. Waits for questions that are paid for."""
        self._gate.shut()
        self._connection.close(same_process=era() == self._era)

    def _end(self) -> None:
        """Called when the interpreter exits: waits until running questions are settled, then stops them."""
        engine = self._connection.present_engine
        if not self._gate.shut(_PATIENCE) and engine is not None:
            engine.stop()
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
