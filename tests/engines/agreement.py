"""What a session asks of its engine, taken down while the reference answers it, to be asked of every other engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tests.movers import opened

import privet as pv
from privet.tables.holders import Holders
from privet.tables.relation import PublicTable, Table
from privet.tables.statement import AtMostGroups, AtMostRows, Bounding, PeopleInGroups, Rows, Statement, Unbounded

_MANY = 10**6


@dataclass(frozen=True)
class Asked:
    """One call of an engine."""

    question: str
    how: str
    statement: Statement | Holders
    more: tuple[Any, ...] = ()

    def of(self, engine: Any) -> Any:
        """What an engine finds."""
        return getattr(engine, self.how)(self.statement, *self.more)


class _Taken:
    """An engine that takes down what it is asked."""

    def __init__(self, engine: Any, asked: list[Any]) -> None:
        self._engine, self.asked = engine, asked

    @contextmanager
    def snapshot(self) -> Iterator[_Taken]:
        with self._engine.snapshot() as looks:
            yield _Taken(looks, self.asked)

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._engine, name)
        if name not in ("answer", "histograms", "holders"):
            return real

        def call(statement: Any, *more: Any) -> Any:
            self.asked.append((name, statement, more))
            return real(statement, *more)

        return call


def noted(session: pv.Session, questions: Sequence[tuple[str, Any, dict[str, Any]]]) -> list[Asked]:
    """What a session asks its engine for these questions: a name, the question, and options of the release."""
    found: dict[Any, Asked] = {}
    notes: Any = _Taken(session.dataset.engine, [])
    session.dataset.engine = notes
    for name, question, options in questions:
        session.release(question, **options)
        for how, statement, more in notes.asked:
            found.setdefault((how, statement, str(more)), Asked(name, how, statement, more))
        notes.asked.clear()
    return list(found.values())


def taken(
    tables: Sequence[Table], public: Sequence[PublicTable], questions: Sequence[tuple[str, Any, dict[str, Any]]]
) -> list[Asked]:
    """The same, of a session of these tables on the reference engine."""
    budget = pv.ApproxDP(10**9, "1/2")
    with pv.Session(tables, public=public, budget=budget, ledger=None, engine="reference") as session:
        return noted(session, questions)


def determined(reference: Any, asked: Asked) -> bool:
    """Whether nobody has more than the caps let through, so that every engine keeps the same rows: all of them."""
    bounding = asked.statement.bounding
    if isinstance(bounding, Unbounded):
        return True
    if isinstance(asked.statement, Holders):
        loose = replace(asked.statement, bounding=PeopleInGroups(_MANY))
        return bool(reference.holders(loose) == reference.holders(asked.statement))
    counting = replace(asked.statement, tallies=(Rows(),))
    return bool(reference.answer(counting) == reference.answer(replace(counting, bounding=_loose(bounding))))


def _loose(bounding: Bounding) -> Bounding:
    match bounding:
        case AtMostRows():
            return AtMostRows(_MANY)
        case AtMostGroups():
            return AtMostGroups(_MANY, _MANY)
        case PeopleInGroups():
            return PeopleInGroups(_MANY)
    return bounding


@dataclass(frozen=True)
class Expected:
    """A call, and what the reference finds."""

    asked: Asked
    integers: Any


def expected(
    tables: Sequence[Table], public: Sequence[PublicTable], asked: Sequence[Asked], *, equal: bool = False
) -> list[Expected]:
    """What the reference finds, of calls whose survivors are determined; all are, if a person's rows are `equal`."""
    reference = opened("reference", *tables, public=public)
    return [Expected(each, each.of(reference)) for each in asked if equal or determined(reference, each)]


def differences(
    name: str, tables: Sequence[Table], public: Sequence[PublicTable], asked: Sequence[Expected]
) -> Iterator[str]:
    """Where an engine finds other integers than the reference, or refuses what the reference computes."""
    engine = opened(name, *tables, public=public)
    try:
        for each in asked:
            reason = engine.supports(each.asked.statement)
            if reason is not None:
                yield f"{each.asked.question}: refused, since {reason}"
            elif (found := each.asked.of(engine)) != each.integers:
                yield f"{each.asked.question}: {each.asked.how} found {found}, not {each.integers}"
    finally:
        engine.close()
