"""Checks across keys: duplicate names, caps that do not fit the budget, different units of protection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from privet.exact import literal, show
from privet.policy import toml
from privet.policy.positions import Place
from privet.policy.problems import Problem
from privet.policy.shape import BudgetShape, DatasetShape, FileShape, PersonShape
from privet.privacy.accounting import ACCOUNTANTS
from privet.privacy.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
from privet.privacy.guarantees.budgets import FIELDS as _NUMBERS
from privet.system.addresses import is_address, is_postgres, masked


def check(policy: FileShape) -> Iterator[Problem]:
    """Every contradiction between keys."""
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
        address = toml.brief(masked(policy.ledger))
        yield Problem(
            ("ledger",), f"a ledger must be a file or a Postgres address, not {address}", 'ledger = "people.ledger"'
        )
    elif not policy.ledger.strip() or not policy.ledger.isprintable():
        yield Problem(("ledger",), "a ledger must be a file or a Postgres address", 'ledger = "people.ledger"')


def _unique(names: dict[str, str], table: str, place: Place, where: str) -> Iterator[Problem]:
    folded = table.casefold()
    if folded in names:
        what = f"the name of this table is already used {names[folded]} (case is ignored)"
        yield Problem(place, what, f"[{toml.dotted((*place[:-1], f'{table}_2'))}]")
    names.setdefault(folded, where)


def _budgets(place: Place, shape: DatasetShape) -> Iterator[Problem]:
    budget = shape.budget
    kind = budget.kind
    if shape.accountant is not None and not ACCOUNTANTS[shape.accountant].adaptive:
        what = f"the {shape.accountant} accountant is for fixed batches: it can't keep a budget"
        keeps = next(name for name, each in ACCOUNTANTS.items() if each.adaptive and each.promises is kind)
        yield Problem((*place, "accountant"), what, f'accountant = "{keeps}"')
    elif shape.accountant is not None and ACCOUNTANTS[shape.accountant].promises is not kind:
        promised = ACCOUNTANTS[shape.accountant].promises
        what = f"the {shape.accountant} accountant needs a budget in {' and '.join(_NUMBERS[promised])}"
        examples = {"epsilon": budget.epsilon or "3", "delta": "1e-6", "rho": "0.1"}
        yield Problem(
            (*place, "accountant"), what, _line("budget", {name: examples[name] for name in _NUMBERS[promised]})
        )
    caps: dict[Place, BudgetShape] = {(*place, "analysts", name): cap for name, cap in shape.analysts.items()}
    for name, each in (("per_query", shape.per_query), ("per_analyst", shape.per_analyst)):
        if each is not None:
            caps[*place, name] = each
    for where, cap in caps.items():
        if kind is PureDP and cap.kind is ApproxDP:
            what = "the budget has no delta, so a cap can't have one"
            yield Problem(where, what, _line(str(where[-1]), {"epsilon": cap.epsilon}))
        elif (kind is ZeroConcentratedDP) != (cap.kind is ZeroConcentratedDP):
            what = f"the budget is in {_NUMBERS[kind][0]}, so a cap must be too"
            yield Problem(where, what, _line(str(where[-1]), {_NUMBERS[kind][0]: "0.1" if cap.rho is None else "1"}))
    if shape.population is not None and budget.delta is not None and budget.delta * shape.population >= 1:
        what = (
            f"delta {show(budget.delta)} is too large for {shape.population:,} people: someone's data could be "
            "published unchanged"
        )
        line = _line("budget", {"epsilon": budget.epsilon or "3", "delta": "1e-9"})
        allowed = f"It must be far less than 1/{shape.population:,}"
        yield Problem((*place, "budget"), what, line, allowed=allowed)


def _line(name: str, budget: Mapping[str, Any]) -> str:
    inside = ", ".join(f"{key} = {one if isinstance(one, str) else literal(one)}" for key, one in budget.items())
    return f"{toml.key(name)} = {{ {inside} }}"


def _tables(place: Place, shape: DatasetShape) -> Iterator[Problem]:
    first, unit = next((name, type(table.protect)) for name, table in shape.tables.items())
    for name, table in shape.tables.items():
        where = (*place, "tables", name)
        if type(table.protect) is not unit:
            what = f"all tables of a dataset must protect the same unit, but {toml.key(first)} protects "
            what += 'each person, not "each row"' if unit is PersonShape else '"each row", not people'
            line = 'protect = { person = "person_id", max_rows = 1 }' if unit is PersonShape else 'protect = "each row"'
            yield Problem((*where, "protect"), what, line)
        if table.rows is not None and (shape.adjacency != "replace" or table.protect != "each row"):
            yield Problem(
                (*where, "rows"),
                "a public number of rows is allowed only if rows are neither added nor removed: with adjacency replace "
                'and protect "each row"',
                advice="Remove this line",
            )
        if table.rows is not None and table.rows > 2**40:
            yield Problem((*where, "rows"), "a table can have at most 2^40 rows", "rows = 10_000")
        folded: dict[str, str] = {}
        for column in table.columns:
            other = folded.setdefault(column.casefold(), column)
            if other != column:
                yield Problem(
                    (*where, "columns", column),
                    f"the columns {toml.key(other)} and {toml.key(column)} differ only in case, so engines "
                    "can't tell them apart",
                    advice="Rename one of them in the source",
                )
