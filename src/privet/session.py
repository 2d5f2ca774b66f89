"""The only place where data, budget and noise meet.

A question goes: plan, price, debit, execute, noise, settle. Before the debit nothing was read; after it nothing that
an analyst can see depends on a row, but for the noisy numbers.
"""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from privet import events
from privet.distances import Person
from privet.engine import DuckDB
from privet.errors import InternalError, NoAnswer, QueryError, UserError
from privet.exact import Number, whole
from privet.guarantees import ApproxDP, PureDP
from privet.ledger import Balance, Budget, Dataset, Ledger, MemoryLedger
from privet.mechanisms import Laplace
from privet.noise import DiscreteLaplace
from privet.noise.entropy import SystemBits
from privet.planner import ReleasePlan, plan
from privet.query import PublicTable, Query, Table
from privet.relation import operators
from privet.relation.schema import called
from privet.release import Certificate, Release
from privet.release.certificate import certify, of_query, of_value
from privet.release.signing import SigningKey, signer

_SESSION = "pv.Session([people], budget=pv.PureDP(3), ledger=None)"
_FAILED = "The question could not be answered. It was paid for, and nothing was released."
_T = TypeVar("_T")


@cache
def _version() -> str:
    return version("privet")


@dataclass(frozen=True, slots=True)
class ReleasedValue:
    """A user's own statistic with noise, what it cost, and what is left."""

    value: Any
    mechanism: Laplace = field(repr=False)
    spent: PureDP
    remaining: Budget
    certificate: Certificate = field(repr=False)

    def interval(self, confidence: Number = 0.95) -> tuple[Any, Any]:
        """The interval that holds the true value with this confidence."""
        return self.mechanism.interval(self.value, confidence)


class Session:
    """Private tables about the same people, one budget for all questions about them, and a ledger that keeps count.

    `ledger=None` must be written: debits are then kept in memory, and forgotten when the process ends.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        *,
        budget: Budget,
        ledger: Ledger | None,
        public: Sequence[PublicTable] = (),
        name: str | None = None,
        analyst: str = "analyst",
        signing_key: SigningKey | None = None,
        memory: str | None = None,
        threads: int | None = None,
        spill: str | Path | None = None,
    ) -> None:
        if memory is not None and not re.fullmatch(r"[1-9][0-9]*(\.[0-9]+)? ?([KMGT]i?)?B", str(memory)):
            raise UserError(f'memory must be a size, not {memory!r}. Write, for example: memory="2GB"')
        if spill is not None and not Path(spill).is_dir():
            raise UserError(f"spill must be a folder that exists, not {str(spill)!r}. Leave it out for a temporary one")
        if threads is not None:
            threads = whole(threads, name="threads", example="threads=2")
        self.tables = _tables(tables)
        self.public = _named(public, PublicTable, "public")
        if not isinstance(budget, PureDP | ApproxDP):
            raise UserError(f"budget must be a guarantee, not {budget!r}. Write, for example: {_SESSION}")
        if isinstance(ledger, str | Path):
            raise UserError(f"a ledger in a file is not there yet. Write ledger=None to keep it in memory: {_SESSION}")
        if ledger is not None and not hasattr(ledger, "reserve"):
            raise UserError(f"ledger must be a ledger, or None to keep it in memory. Write, for example: {_SESSION}")
        first = next(iter(self.tables.values())).schema
        self.name = first.name if name is None else called(name, "dataset")
        self.analyst = called(analyst, "analyst")
        self._closed = False
        self._key = None if signing_key is None else signer(signing_key)
        self._ledger: Ledger = MemoryLedger() if ledger is None else ledger
        unit = "person" if isinstance(first.protect, Person) else "row"
        self._ledger.create(Dataset(self.name, unit, first.adjacency, budget))  # type: ignore[arg-type]
        self._engine = DuckDB(
            {table.name: (table.schema, table.source) for table in self.tables.values()},
            {table.name: (table.schema, table.source) for table in self.public.values()},
            salt=SystemBits().take(16),
            memory=memory,
            threads=threads,
            spill=None if spill is None else Path(spill),
            progress=sys.stderr.isatty(),
        )

    # --- the budget -----------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The ledger, for `verify` and for the steward."""
        return self._ledger

    @property
    def balance(self) -> Balance:
        """What was granted and what is spent."""
        return self._ledger.balance(self.name)

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
        self._ledger.reopen(self.name, reason)

    # --- asking ---------------------------------------------------------------------------------

    def plan(
        self,
        query: Query,
        *,
        epsilon: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
        assuming: int | None = None,
        weights: Mapping[str, Number] | None = None,
    ) -> ReleasePlan:
        """How a query would be answered, and what it would cost. Nothing is read and nothing is spent."""
        made = plan(
            query,
            epsilon=epsilon,
            within=within,
            confidence=confidence,
            simultaneous=simultaneous,
            assuming=assuming,
            weights=weights,
        )
        self._knows(query)
        return made

    def explain(self, query: Query, **how: Any) -> str:
        """The plan in words; takes what `plan` takes."""
        made = self.plan(query, **how)
        fits = self.balance.covers(made.guarantee())
        left = f"{self.balance.left} is left of {self.balance.budget}{'' if fits else ': not enough'}."
        return f"{made.explain()}\n{'Budget':<11}{left}"

    def release(
        self,
        query: Query,
        *,
        epsilon: Number | None = None,
        within: Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
        assuming: int | None = None,
        weights: Mapping[str, Number] | None = None,
        request_id: str | None = None,
    ) -> Release:
        """A private answer, at an epsilon for the whole query or within errors for its columns."""
        made = self.plan(
            query,
            epsilon=epsilon,
            within=within,
            confidence=confidence,
            simultaneous=simultaneous,
            assuming=assuming,
            weights=weights,
        )
        event = made.event()
        compiled = [self._engine.compile(statement) for statement in made.statements()]  # refused here, or not at all

        def answer(link: dict[str, Any]) -> Release:
            exact = made.coordinates([self._engine.answer(each) for each in compiled])
            noisy, drawn = add_noise(made, exact)
            if drawn != event:
                raise InternalError("the noise that was drawn is not what was paid for")
            cells = made.cells(noisy)
            certificate = self._certify(of_query(made, noisy, cells), link)
            return Release(made, noisy, made.guarantee(), self.remaining, certificate, cells)

        return self._paid(event, request_id, answer)

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

        def answer(link: dict[str, Any]) -> ReleasedValue:
            released = mechanism.release(value)
            plain = released.tolist() if hasattr(released, "tolist") else released
            certificate = self._certify(of_value(mechanism, plain, label), link)
            return ReleasedValue(released, mechanism, mechanism.guarantee(), self.remaining, certificate)

        return self._paid(mechanism.event(), request_id, answer)

    # --- inside ---------------------------------------------------------------------------------

    def _paid(
        self,
        event: events.PrivacyEvent,
        request_id: str | None,
        answer: Callable[[dict[str, Any]], _T],
    ) -> _T:
        """Debit, answer, settle. Whatever goes wrong after the debit looks the same from outside."""
        if self._closed:
            raise UserError(f"this session is closed. Write, for example: session = {_SESSION}")
        request = uuid.uuid4().hex if request_id is None else called(request_id, "request id")
        charge = self._ledger.reserve(dataset=self.name, analyst=self.analyst, request_id=request, events=[event])
        link = {"entry": charge.number, "request_id": request, "analyst": self.analyst}
        try:
            made = answer(link)
            self._ledger.settle(charge, "answered", made.certificate.digest)  # type: ignore[attr-defined]
        except BaseException as error:
            self._ledger.settle(charge, "failed")
            if not isinstance(error, Exception):
                raise
        else:
            return made
        raise NoAnswer(_FAILED)

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
        """Let go of the data."""
        self._closed = True
        self._engine.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({', '.join(self.tables)}; {self.balance.left} left of {self.balance.budget})"


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
