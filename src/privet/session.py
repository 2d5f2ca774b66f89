"""The only place where data, budget and noise meet.

A question goes: plan, price, debit, execute, noise, settle. Before the debit nothing was read; after it nothing that
an analyst can see depends on a row, but for the noisy numbers.
"""

from __future__ import annotations

import atexit
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypedDict, TypeVar, Unpack
from weakref import WeakSet

from privet import events
from privet.distances import Person
from privet.engine import DuckDB
from privet.errors import InternalError, LedgerError, QueryError, UserError
from privet.exact import Number, positive, whole
from privet.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
from privet.guarantees.least import MIN_EPSILON, least_price
from privet.ledger import Balance, Budget, Caps, Charge, Dataset, Ledger, MemoryLedger, TableFacts, open_ledger, words
from privet.mechanisms import Laplace
from privet.noise import DiscreteLaplace
from privet.payment import paid
from privet.planner import ReleasePlan, plan
from privet.planner.arguments import check_arguments, check_price
from privet.planner.wording import worded
from privet.processes import Gate, era
from privet.query import PublicTable, Query, Table
from privet.relation import operators
from privet.relation.schema import called
from privet.release import Certificate, Release, recall
from privet.release.certificate import certify, of_query, of_value
from privet.release.recall import asked_digest, question_digest, recalled, recalled_value
from privet.release.signing import SigningKey, signer
from privet.release.value import ReleasedValue

if TYPE_CHECKING:  # pydantic takes its time, and most sessions need none of it
    from privet.policy import Policy

_SESSION = 'pv.Session([people], budget=pv.PureDP(3), ledger="people.ledger")'
_CLOSED = f"this session is closed. Write, for example: session = {_SESSION}"
_UNSEEN = (
    "this session was opened by another process, and Python was not told of the fork. Nothing was spent. Open a "
    "session after the fork: with gunicorn in post_fork, with uwsgi in a function with @postfork, with multiprocessing "
    "in the initializer"
)
_COPIED = (
    "a session can't be copied or sent to another process: it holds the data and one budget. Send its tables, which "
    "can be pickled, and open a session there, with the same ledger"
)
_PATIENCE = 5.0  # seconds that the exit of the interpreter waits for questions, and then for their end
_T = TypeVar("_T", bound=Release | ReleasedValue)


class How(TypedDict, total=False):
    """How a question is asked: an epsilon, or errors to keep `within`, and what the intervals are to be."""

    epsilon: Number | None
    within: Mapping[str, Number] | None
    confidence: Number
    simultaneous: bool
    assuming: int | None
    weights: Mapping[str, Number] | None


@cache
def _version() -> str:
    return version("privet")


class Session:
    """Private tables about the same people, one budget for all questions about them, and a ledger that keeps count.

    `ledger` is a file, a postgresql:// address, or an open ledger. `ledger=None` must be written: debits are then kept
    in memory, and forgotten when the process ends. `version` names the data: answers are kept for each version, and
    a new one does not renew the budget. `min_epsilon` is the least price of a question: it bounds how often one can be
    asked. With `share_answers=False` an answer that somebody else paid for is not free: nobody learns who asked what.
    `caps` are those of a policy: of them and the ledger's, the smaller hold.

    Threads may share a session; so may the children of a fork, if the ledger is not in memory.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        *,
        budget: Budget,
        ledger: Ledger | str | Path | None,
        public: Sequence[PublicTable] = (),
        name: str | None = None,
        analyst: str = "analyst",
        version: str = "1",
        signing_key: SigningKey | None = None,
        memory: str | None = None,
        threads: int | None = None,
        spill: str | Path | None = None,
        min_epsilon: Number = MIN_EPSILON,
        share_answers: bool = True,
        caps: Caps | None = None,
    ) -> None:
        if memory is not None and not re.fullmatch(r"[1-9][0-9]*(\.[0-9]+)? ?([KMGT]i?)?B", str(memory)):
            raise UserError(f'memory must be a size, not {memory!r}. Write, for example: memory="2GB"')
        if spill is not None and not Path(spill).is_dir():
            raise UserError(f"spill must be a folder that exists, not {str(spill)!r}. Leave it out for a temporary one")
        if threads is not None:
            threads = whole(threads, name="threads", example="threads=2")
        self.tables = _tables(tables)
        self.public = _named(public, PublicTable, "public")
        if isinstance(budget, ZeroConcentratedDP):
            raise UserError(
                f"a budget is pv.PureDP(epsilon) or pv.ApproxDP(epsilon, delta). Budgets in rho, such as {budget!r}, "
                f"are not supported yet. Write, for example: {_SESSION}"
            )
        if not isinstance(budget, PureDP | ApproxDP):
            raise UserError(f"budget must be a guarantee, not {budget!r}. Write, for example: {_SESSION}")
        if ledger is not None and not isinstance(ledger, str | Path) and not hasattr(ledger, "reserve"):
            raise UserError(f"ledger must be a file, an address, or None for memory. Write, for example: {_SESSION}")
        first = next(iter(self.tables.values())).schema
        self.name = first.name if name is None else called(name, "dataset")
        self.analyst = called(analyst, "analyst")
        self.version = called(version, "version")
        self._caps = Caps() if caps is None else caps
        if not isinstance(share_answers, bool):
            raise UserError(f"share_answers must be True or False, not {share_answers!r}. Write: share_answers=False")
        self._share = share_answers
        least = least_price(budget, positive(min_epsilon, name="min_epsilon", example="min_epsilon=0.001"))
        assert isinstance(least, PureDP | ApproxDP)  # as the budget
        self._least = least.epsilon
        self._gate = Gate(_CLOSED)
        self._era = era()
        self.debited = False
        """Whether a question was paid for in this session."""
        self._key = None if signing_key is None else signer(signing_key)
        self._opened = open_ledger(ledger) if isinstance(ledger, str | Path) else None
        self._ledger: Ledger = self._opened or ledger or MemoryLedger()  # type: ignore[assignment]
        unit = "person" if isinstance(first.protect, Person) else "row"
        try:
            dataset = Dataset(self.name, unit, first.adjacency, budget)  # type: ignore[arg-type]
            salt = self._ledger.create(dataset, tables=_kept(self.tables.values()), same_budget=caps is None)
            self._ledger.declare(self.name, self.version)
            self._engine = DuckDB(
                {table.name: (table.schema, table.source) for table in self.tables.values()},
                {table.name: (table.schema, table.source) for table in self.public.values()},
                salt=salt,
                memory=memory,
                threads=threads,
                spill=None if spill is None else Path(spill),
                progress=sys.stderr.isatty(),
            )
        except BaseException:
            if self._opened is not None:
                self._opened.close()
            raise
        _OPEN.add(self)

    @classmethod
    def open(
        cls, policy: Policy | str | Path, *, dataset: str | None = None, analyst: str = "analyst", asking: str = ""
    ) -> Session:
        """A session by the steward's policy, which says all but who asks.

        With several datasets, name one; or give the statement that is `asking`, whose tables tell.
        """
        from privet.policy import agreement, load

        found = load(policy) if isinstance(policy, str | Path) else policy
        chosen = found.chosen(dataset, asking)
        session = cls(
            chosen.tables(),
            budget=chosen.budget,
            ledger=found.ledger,
            public=chosen.public(),
            name=chosen.name,
            analyst=analyst,
            version=chosen.version,
            signing_key=chosen.signing_key,
            memory=chosen.memory,
            threads=chosen.threads,
            min_epsilon=chosen.min_epsilon,
            share_answers=chosen.share_answers,
            caps=agreement.caps(chosen, analyst),
        )
        try:
            agreement.grant(chosen, session.ledger)
        except BaseException:
            session.close()
            raise
        return session

    # --- the budget -----------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The ledger, for `verify` and for the steward."""
        self._check_era()
        return self._ledger

    @property
    def balance(self) -> Balance:
        """What was granted and what is spent; for an analyst with a cap, of that too."""
        return self._caps.lower(self.ledger.balance(self.name, self.analyst))

    @property
    def spent(self) -> Budget:
        """What is spent."""
        return self.balance.spent

    @property
    def remaining(self) -> Budget:
        """What is left."""
        return self.balance.remaining

    def reopen(self, reason: str) -> None:
        """Open the dataset again after failures: for the steward, with a reason, as an entry of the ledger."""
        self.ledger.reopen(self.name, reason)

    # --- asking ---------------------------------------------------------------------------------

    def parse(self, text: str) -> Query:
        """The question that a SELECT asks: the same value that the fluent language makes."""
        from privet.sql import parse

        return parse(text, self.tables, self.public)

    def plan(self, query: Query | str, **how: Unpack[How]) -> ReleasePlan:
        """How a query, or a SELECT, would be answered, and what it would cost. Nothing is read and nothing is spent."""
        check_arguments(how, How.__annotations__)
        asked = self.parse(query) if isinstance(query, str) else query
        made = plan(asked, min_epsilon=self._least, **how)
        self._knows(asked)
        return made

    def paid_before(self, query: Query | str, **how: Unpack[How]) -> PureDP | None:
        """What the stored answer cost that `release` would return for nothing; None if there is none."""
        return self._before(self.plan(query, **how))

    def explain(self, query: Query | str, *, fresh: bool = False, **how: Unpack[How]) -> str:
        """The plan in words, and whether it is paid for already. Nothing is read and nothing is spent."""
        made = self.plan(query, **how)
        before = self._before(made)
        balance = self.balance
        fits = balance.covers(made.guarantee()) or (before is not None and not fresh)
        nearest = min(balance.limits(self.analyst), key=lambda limit: limit.left.epsilon)
        left = f"{words(nearest.left)} is left of {nearest.what}{'' if fits else ': not enough'}."
        return "\n".join([made.explain(), *recall.stored_line(before, fresh=fresh), f"{'Budget':<11}{left}"])

    def release(
        self, query: Query | str, *, request_id: str | None = None, fresh: bool = False, **how: Unpack[How]
    ) -> Release:
        """A private answer to a query or a SELECT, at an epsilon for all of it or within errors for its columns.

        What was measured before, of this version of the data and with no more noise, is answered from the ledger and
        costs nothing; `fresh=True` pays for a new draw. A request id makes a retry safe: it is answered once.
        """
        if not isinstance(fresh, bool):
            raise UserError(f"fresh must be True or False, not {fresh!r}. Write, for example: fresh=True")
        made = self.plan(query, **how)
        event = made.event()
        compiled = [self._engine.compile(statement) for statement in made.statements()]  # refused here, or not at all

        def answer(link: dict[str, Any]) -> Release:
            exact = made.coordinates([self._engine.answer(each) for each in compiled])
            noisy, drawn = add_noise(made, exact)
            if drawn != event:
                raise InternalError("the noise that was drawn is not what was paid for")
            cells = made.cells(noisy)
            certificate = self._certify(of_query(made, noisy, cells), link)
            return Release(made, noisy, made.guarantee(), None, certificate, cells)

        def again(text: str) -> Release:
            return recalled(made, text, None)

        asked = asked_digest(made)
        statement = query if isinstance(query, str) else worded(made.query)
        digest = question_digest(made)
        self._ready()
        return self._paid(event, answer, again, asked, request_id, statement, question=digest, fresh=fresh)

    def release_value(
        self,
        value: Any,
        *,
        sensitivity: Number,
        epsilon: Number,
        label: str,
        request_id: str | None = None,
    ) -> ReleasedValue:
        """Pay for a statistic of your own: a number, list or array whose sensitivity you know, with Laplace noise."""
        if not str(label or "").strip():
            raise UserError('label must say what the value is. Write, for example: label="median of the waiting times"')
        called(label, "label")
        mechanism = Laplace(sensitivity=sensitivity, epsilon=epsilon).fit(value)
        check_price(mechanism.epsilon, self._least)

        def answer(link: dict[str, Any]) -> ReleasedValue:
            released = mechanism.release(value)
            plain = released.tolist() if hasattr(released, "tolist") else released
            certificate = self._certify(of_value(mechanism, plain, label), link)
            return ReleasedValue(released, mechanism, mechanism.guarantee(), None, certificate)

        def again(text: str) -> ReleasedValue:
            released, certificate = recalled_value(text, like=value)
            return ReleasedValue(released, mechanism, PureDP.ZERO, None, certificate)

        form = [type(value).__name__, list(getattr(value, "shape", ()))]
        asked = asked_digest({**of_value(mechanism, None, label)["asked"], "form": form})
        return self._paid(mechanism.event(), answer, again, asked, request_id, f"release_value: {label}")

    # --- inside ---------------------------------------------------------------------------------

    def _before(self, made: ReleasePlan) -> PureDP | None:
        """What the stored answer cost that this analyst would be given."""
        where = {"dataset": self.name, "version": self.version, "analyst": self.analyst}
        return recall.paid_before(made, self.ledger, **where, share=self._share)

    def _ready(self) -> None:
        """Refuse, before anything is paid for, what this process could not answer."""
        self._gate.check()
        self._check_era()
        self._engine.ready()

    def _check_era(self) -> None:
        if era() != self._era:
            raise UserError(_UNSEEN)

    def _paid(
        self,
        event: events.PrivacyEvent,
        answer: Callable[[dict[str, Any]], _T],
        again: Callable[[str], _T],
        asked: str,
        request_id: str | None,
        statement: str,
        *,
        question: str = "",
        fresh: bool = False,
    ) -> _T:
        """Debit, answer, settle; or what was answered before."""
        reserve = partial(
            self.ledger.reserve,
            dataset=self.name,
            analyst=self.analyst,
            request_id=None if request_id is None else called(request_id, "request id"),
            events=[event],
            asked=asked,
            question=question,
            statement=statement,
            version=self.version,
            fresh=fresh,
            caps=self._caps,
            share=self._share,
        )
        made = paid(self.ledger, self._gate.through(), reserve, self._debit, answer, again)
        with suppress(LedgerError):  # the answer is there, whatever is left
            return replace(made, remaining=self.remaining)
        return made

    def _debit(self, charge: Charge) -> dict[str, Any]:
        """A debit was made: how a certificate refers to it."""
        self.debited = True
        return {
            "entry": charge.number,
            "hash": charge.hash,
            "request_id": charge.request_id,
            "analyst": self.analyst,
        }

    def _certify(self, body: dict[str, Any], link: dict[str, Any]) -> Certificate:
        return certify(body, dataset=self.name, link=link, version=_version(), key=self._key)

    def _knows(self, query: Query) -> None:
        for schema in operators.tables(query.of):
            known = self.tables.get(schema.name)
            if known is None or known.schema != schema:
                raise QueryError(f"the session has no such table {schema.name!r}. It has: {', '.join(self.tables)}")
        for public in operators.public_tables(query.of):
            table = self.public.get(public.name)
            if table is None or table.schema != public:
                raise QueryError(
                    f"the session does not know the public table {public.name!r}. "
                    f"Write, for example: pv.Session([people], public=[{public.name}], ...)"
                )

    def close(self) -> None:
        """Let go of the data, and of a ledger that the session opened; questions that were paid for end first."""
        self._gate.shut()
        self._engine.close()
        if self._opened is not None and era() == self._era:
            self._opened.close()

    def _end(self) -> None:
        """The interpreter ends: a thread that is still in the middle of a question settles it first."""
        if not self._gate.shut(_PATIENCE):
            self._engine.stop()
            self._gate.shut(_PATIENCE)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UserError(_COPIED)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({', '.join(self.tables)}; {self.balance.left} left of {self.balance.budget})"


_OPEN: WeakSet[Session] = WeakSet()


@atexit.register
def _end_all() -> None:
    for session in list(_OPEN):
        session._end()


def add_noise(
    made: ReleasePlan, exact: Sequence[Sequence[tuple[int, ...]]]
) -> tuple[tuple[tuple[tuple[int, ...], ...], ...], events.PrivacyEvent]:
    """Noise on every coordinate, and the event of the noise that was drawn."""
    noisy, drawn = [], []
    for part, vectors in zip(made.noised, exact, strict=True):
        noise = DiscreteLaplace(part.scale)
        size = part.measurement.size
        draws = noise.sample(len(vectors) * size).tolist()
        drawn.append(events.Laplace(sensitivity=part.sensitivity, scale=noise.scale))
        noisy.append(
            tuple(
                tuple(x + y for x, y in zip(vector, draws[i * size : (i + 1) * size], strict=True))
                for i, vector in enumerate(vectors)
            )
        )
    return tuple(noisy), events.Composed(drawn)


def _kept(tables: Iterable[Table]) -> list[TableFacts]:
    """What a ledger keeps of tables: whose each row is, and where they are."""
    kept = []
    for table in tables:
        protect = table.schema.protect
        person = protect.id if isinstance(protect, Person) else ""
        kept.append(TableFacts(table.name, person, table.identities))
    return kept


def _named(tables: Any, kind: Any, what: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if not isinstance(tables, list | tuple):
        raise UserError(f"{what} must be a list. Write, for example: {_SESSION}")
    for table in tables:
        if not isinstance(table, kind):
            made = "pv.public_table" if kind is PublicTable else "pv.table"
            raise UserError(f"{what} holds {type(table).__name__}; its tables are made with {made}(...)")
        if table.name in found:
            raise UserError(f"two tables are called {table.name!r}. Give one of them another name")
        found[table.name] = table
    return found


def _tables(tables: Sequence[Table]) -> dict[str, Table]:
    found: dict[str, Table] = _named(tables, Table, "tables")
    if not found:
        raise UserError(f"a session needs a table. Write, for example: {_SESSION}")
    units = {type(table.schema.protect) for table in found.values()}
    kinds = {table.schema.adjacency for table in found.values()}
    if len(units) > 1 or len(kinds) > 1:
        raise UserError(
            "all tables of a session are about the same people: they protect the same (each row, or persons), with the "
            "same adjacency. Make another session for tables about others"
        )
    return found
