"""Datasets, budgets and histories."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict

from privet.server.models.base import Amount, Model


class Standing(Model):
    """What is left of a budget."""

    left: Amount
    """What one more question may cost, under every cap that applies to you."""
    share: float
    """The share that is left of the tightest cap, from 0 to 1."""
    text: str
    """What is left, in words."""
    questions: str | None
    """For how many questions like the latest it is enough, in words."""


class DatasetSummary(Model):
    """A dataset that you may ask."""

    dataset: str
    version: str
    tables: list[str]
    budget: Standing


class Datasets(Model):
    """The datasets that you may ask."""

    datasets: list[DatasetSummary]


class Column(Model):
    """A column: its kind, its public bounds or keys, and the same in words."""

    model_config = ConfigDict(extra="allow")
    kind: str
    words: str


class Table(Model):
    """A private table."""

    protects: dict[str, Any]
    """What is protected, and the caps: {"unit": "person", "id": "person_id", "max_rows": 3}."""
    columns: dict[str, Column]


class PublicTable(Model):
    """A public table to join with."""

    key: str
    columns: dict[str, Column]


class Dataset(Model):
    """A dataset, as `privet schema --json` prints it."""

    dataset: str
    budget: Amount
    """What was granted for all questions together."""
    adjacency: str
    version: str
    tables: dict[str, Table]
    public: dict[str, PublicTable]
    terms: dict[str, Any]
    """The same for the Python client, exactly, with the prices: it plans questions by itself. From `Terms.to_tree`."""


class BudgetRow(Model):
    """A line of `privet budget`."""

    dataset: str
    analyst: str | None
    granted: Amount | None
    spent: Amount | None
    left: Amount | None
    per_analyst: Amount | None = None


class Budget(Model):
    """Your budget in a dataset; for stewards, everybody's."""

    dataset: str
    analyst: str
    granted: Amount
    """Your cap, or the budget of the dataset if you have none."""
    spent: Amount | None
    """What you have spent; under meters, the share of the budget."""
    per_query: Amount | None
    """What one question may cost."""
    standing: Standing
    balance: dict[str, Any]
    """The same for the Python client, exactly. From `balance_to_tree`."""
    rows: list[BudgetRow] | None
    """For stewards: the dataset and every analyst."""
    failures: int | None
    """For stewards: questions that failed since the dataset was last opened."""
    closed: bool | None
    """For stewards: whether the dataset is closed after failures."""


class Entry(Model):
    """An entry of the ledger, as `privet ledger history --json` prints it."""

    number: int
    time: str
    kind: str
    refers: int | None
    """The number of the debit that this entry settles, or whose answer it serves."""
    analyst: str | None
    by: str | None
    """The steward who did it."""
    request_id: str | None
    version: str | None
    cost: Amount | None
    spent: Amount | None
    """The total after the entry: the dataset's for stewards, your own for analysts."""
    question: str | None
    note: str | None
    answer: str | None
    """The SHA-256 of the answer."""
    hash: str
    state: Literal["running", "answered", "failed", "interrupted"] | None
    """Of a question: how it ended."""


class History(Model):
    """Entries of a ledger, newest first."""

    entries: list[Entry]
    next: int | None
    """For the next page: `?before=` this number; null at the end."""
