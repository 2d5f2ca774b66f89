"""What no key can tell by itself: names that are given twice, caps that don't fit the budget, units that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from privet.addresses import is_address, is_postgres, masked
from privet.exact import literal, show
from privet.policy import toml
from privet.policy.positions import Place
from privet.policy.problems import Problem
from privet.policy.shape import BudgetShape, DatasetShape, FileShape, PersonShape


def check(policy: FileShape) -> Iterator[Problem]:
    """Everything that does not fit together."""
    names: dict[str, str] = {}
    for dataset, shape in policy.datasets.items():
        place: Place = ("datasets", dataset)
        yield from _budgets(place, shape)
        yield from _tables(place, shape)
        for table in shape.tables:
            yield from _unique(names, table, (*place, "tables", table), f"in the dataset {toml.key(dataset)}")
    for table in policy.public:
        yield from _unique(names, table, ("public", table), "among the public tables")
    if is_address(policy.ledger) and not is_postgres(policy.ledger):
        given = toml.brief(masked(policy.ledger))
        yield Problem(
            ("ledger",), f"a ledger is a file or a Postgres address, not {given}.", 'ledger = "people.ledger"'
        )
    elif not policy.ledger.strip() or not policy.ledger.isprintable():
        yield Problem(("ledger",), "a ledger is a file or a Postgres address.", 'ledger = "people.ledger"')


def _unique(names: dict[str, str], table: str, place: Place, where: str) -> Iterator[Problem]:
    folded = table.casefold()
    if folded in names:
        what = f"a table of this name, but for capital letters, stands {names[folded]}: names are given once."
        yield Problem(place, what, f"[{toml.dotted((*place[:-1], f'{table}_2'))}]")
    names.setdefault(folded, where)


def _budgets(place: Place, shape: DatasetShape) -> Iterator[Problem]:
    budget = shape.budget
    pure = budget.delta is None
    if shape.accountant is not None and (shape.accountant == "pure") is not pure:
        what = "takes no delta" if shape.accountant == "pure" else "needs a delta"
        other = {"epsilon": budget.epsilon} | ({} if budget.delta is not None else {"delta": "1e-6"})
        yield Problem(
            (*place, "accountant"), f"the {shape.accountant} accountant {what} in the budget.", _line("budget", other)
        )
    caps: dict[Place, BudgetShape] = {(*place, "analysts", name): cap for name, cap in shape.analysts.items()}
    for name, each in (("per_query", shape.per_query), ("per_analyst", shape.per_analyst)):
        if each is not None:
            caps[*place, name] = each
    for where, cap in caps.items():
        if pure and cap.delta is not None:
            what = "the budget has no delta, so that a cap can't have one."
            yield Problem(where, what, _line(str(where[-1]), {"epsilon": cap.epsilon}))
    if shape.population is not None and budget.delta is not None and budget.delta * shape.population >= 1:
        what = (
            f"delta {show(budget.delta)} is too much for {shape.population:,} people: someone's data could be shown "
            "as they are. It must be far less than one in so many."
        )
        yield Problem((*place, "budget"), what, _line("budget", {"epsilon": budget.epsilon, "delta": "1e-9"}))


def _line(name: str, budget: Mapping[str, Any]) -> str:
    inside = ", ".join(f"{key} = {one if isinstance(one, str) else literal(one)}" for key, one in budget.items())
    return f"{toml.key(name)} = {{ {inside} }}"


def _tables(place: Place, shape: DatasetShape) -> Iterator[Problem]:
    first, unit = next((name, type(table.protect)) for name, table in shape.tables.items())
    for name, table in shape.tables.items():
        here = (*place, "tables", name)
        if type(table.protect) is not unit:
            what = f"all tables of a dataset are about the same people, and {toml.key(first)} protects "
            what += 'each person, not "each row".' if unit is PersonShape else '"each row", not persons.'
            line = 'protect = { person = "person_id", max_rows = 1 }' if unit is PersonShape else 'protect = "each row"'
            yield Problem((*here, "protect"), what, line)
        if table.rows is not None and (shape.adjacency != "replace" or table.protect != "each row"):
            yield Problem(
                (*here, "rows"),
                'a public number of rows goes with replace and "each row" only: where a row or a person can be added, '
                "the number is private. Leave it out.",
            )
        if table.rows is not None and table.rows > 2**40:
            yield Problem((*here, "rows"), "a table has at most 2^40 rows.", "rows = 10_000")
        folded: dict[str, str] = {}
        for column in table.columns:
            other = folded.setdefault(column.casefold(), column)
            if other != column:
                yield Problem(
                    (*here, "columns", column),
                    f"the columns {toml.key(other)} and {toml.key(column)} differ in capital letters only: engines "
                    "can't tell them apart. Give one of them another name in the source.",
                )
