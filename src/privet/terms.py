"""The public terms of a dataset as JSON: its tables, its prices and its balance.

Whoever has the terms can read and plan questions without the data. A server sends them; a client reads them, strictly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privet.codec import ratio, read_amount
from privet.errors import UserError
from privet.exact import Exact
from privet.ledger import Balance, Ration
from privet.planner.choice import Accounting
from privet.privacy.accounting import registry
from privet.privacy.guarantees import Budget, budgets
from privet.tables.codec import decode, encode
from privet.tables.relation import PublicTable, Table
from privet.tables.schema import PublicSchema, Schema, check_name

if TYPE_CHECKING:
    from privet.questions import Questions

_FIELDS = {
    "name",
    "version",
    "tables",
    "public",
    "budget",
    "accountant",
    "created_with",
    "min_epsilon",
    "delta_share",
}


@dataclass(frozen=True, slots=True)
class Terms:
    """What an analyst may know of a dataset before asking anything.

    Claim: `Terms.from_tree(terms.to_tree()) == terms`. Questions that are planned with the terms have the same plans as
    with the dataset itself.
    """

    name: str
    version: str
    tables: tuple[Schema, ...]
    public: tuple[PublicSchema, ...]
    budget: Budget
    """The budget that the policy states."""
    accounting: Accounting
    """The budget that the dataset was created with, and the accountant that keeps it."""
    min_epsilon: Exact
    delta_share: Exact

    @classmethod
    def of(cls, name: str, version: str, dataset: Questions) -> Terms:
        """The terms of an open dataset."""
        return cls(
            name,
            version,
            tuple(table.schema for table in dataset.tables.values()),
            tuple(table.schema for table in dataset.public.values()),
            dataset.budget,
            dataset.accounting,
            dataset.min_epsilon,
            dataset.delta_share,
        )

    def to_tree(self) -> dict[str, Any]:
        """The terms for JSON, exactly."""
        return {
            "name": self.name,
            "version": self.version,
            "tables": [encode(schema) for schema in self.tables],
            "public": [encode(schema) for schema in self.public],
            "budget": budgets.to_tree(self.budget),
            "accountant": registry.to_tree(self.accounting.accountant),
            "created_with": budgets.to_tree(self.accounting.budget),
            "min_epsilon": ratio(self.min_epsilon),
            "delta_share": ratio(self.delta_share),
        }

    @classmethod
    def from_tree(cls, tree: Any) -> Terms:
        """The inverse of `to_tree`; a `UserError` or a `ValueError` for anything else."""
        if not isinstance(tree, dict) or set(tree) != _FIELDS:
            raise UserError(f"terms: must have the fields {', '.join(sorted(_FIELDS))}")
        return cls(
            check_name(tree["name"], "dataset"),
            check_name(tree["version"], "version"),
            _schemas(tree["tables"], Schema),
            _schemas(tree["public"], PublicSchema),
            budgets.from_tree(tree["budget"]),
            Accounting(registry.from_tree(tree["accountant"]), budgets.from_tree(tree["created_with"])),
            read_amount(tree["min_epsilon"]),
            read_amount(tree["delta_share"]),
        )

    def private_tables(self) -> list[Table]:
        """The private tables, to build questions with; their rows are elsewhere."""
        return [Table(schema, None) for schema in self.tables]

    def public_tables(self) -> list[PublicTable]:
        """The public tables, likewise."""
        return [PublicTable(schema, None) for schema in self.public]


def _schemas(trees: Any, kind: type) -> tuple[Any, ...]:
    if not isinstance(trees, list):
        raise UserError("terms: tables must be a list")
    schemas = tuple(decode(tree) for tree in trees)
    if not all(isinstance(schema, kind) for schema in schemas):
        raise UserError("terms: every table must have its schema")
    return schemas


# --- balances -------------------------------------------------------------------------------------


def balance_to_tree(balance: Balance) -> dict[str, Any]:
    """A balance for JSON, exactly.

    Example:
        >>> from privet.privacy.accounting import PureAccountant
        >>> from privet.privacy.guarantees import PureDP
        >>> tree = balance_to_tree(Balance(PureAccountant(), PureDP(3), PureDP(0.5)))
        >>> balance_from_tree(tree).remaining.guarantee
        PureDP(2.5)
    """
    accountant, ration = balance.accountant, balance.ration
    return {
        "accountant": registry.to_tree(accountant),
        "budget": budgets.to_tree(balance.budget),
        "total": accountant.to_json(balance.total),
        "ration": None
        if ration is None
        else {"spent": accountant.to_json(ration.spent), "cap": _maybe(ration.cap), "failures": ration.failures},
        "per_query": _maybe(balance.per_query),
    }


def balance_from_tree(tree: Any) -> Balance:
    """The inverse of `balance_to_tree`; a `UserError` or a `ValueError` for anything else."""
    if not isinstance(tree, dict) or set(tree) != {"accountant", "budget", "total", "ration", "per_query"}:
        raise ValueError("this is not a balance")
    accountant, ration = registry.from_tree(tree["accountant"]), tree["ration"]
    if ration is not None:
        if not isinstance(ration, dict) or set(ration) != {"spent", "cap", "failures"}:
            raise ValueError("this is not a ration")
        if type(ration["failures"]) is not int:
            raise ValueError("failures must be a whole number")
        ration = Ration(accountant.from_json(ration["spent"]), _budget(ration["cap"]), ration["failures"])
    return Balance(
        accountant,
        budgets.from_tree(tree["budget"]),
        accountant.from_json(tree["total"]),
        ration,
        _budget(tree["per_query"]),
    )


def _maybe(budget: Budget | None) -> dict[str, str] | None:
    return None if budget is None else budgets.to_tree(budget)


def _budget(tree: Any) -> Budget | None:
    return None if tree is None else budgets.from_tree(tree)
