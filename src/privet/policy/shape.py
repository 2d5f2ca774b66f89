"""The shape of a policy file: every key, what it means, and which values it takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema, model_validator

from privet.engines.base import MEMORY
from privet.engines.postgres import addresses as postgres
from privet.engines.registry import ENGINES
from privet.engines.spark import addresses as spark
from privet.errors import UserError
from privet.policy import fields, toml
from privet.policy.columns import ColumnShape, schemas
from privet.policy.fields import Part
from privet.policy.server_shape import ServerShape
from privet.privacy.accounting import ACCOUNTANTS
from privet.privacy.adjacency import Person, Protected, each_row
from privet.privacy.guarantees import Budget, budget_of
from privet.privacy.guarantees.budgets import DELTA_SHARE, MIN_EPSILON, kind_of
from privet.system.addresses import is_postgres, is_spark
from privet.system.object_addresses import is_object_address

TAG = "\x00"
"""Marks the parts of pydantic's locations that are not keys."""

_CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_DATABASE = (".duckdb", ".ddb")


class BudgetShape(Part):
    """An amount of privacy loss. Numbers are exact: 0.1 is 1/10, and "1/3" is allowed."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["epsilon"]}, {"required": ["rho"]}]})
    epsilon: fields.Epsilon | None = None
    """The privacy loss."""
    delta: fields.Delta | None = None
    """The probability that the loss is greater; without it, the guarantee is pure."""
    rho: fields.Epsilon | None = None
    """The loss of zero-concentrated differential privacy, in place of epsilon and delta."""

    @model_validator(mode="after")
    def _check(self) -> BudgetShape:
        self.guarantee(self.kind)
        return self

    @property
    def kind(self) -> type[Budget]:
        """The kind of guarantee that these numbers belong to."""
        return kind_of(delta=self.delta, rho=self.rho)

    def guarantee(self, kind: type[Budget]) -> Budget:
        """The amount, as a guarantee of a kind; where that has a delta, an amount without one allows none."""
        return budget_of(kind, epsilon=self.epsilon, delta=self.delta, rho=self.rho)


class PersonShape(Part):
    """All rows of a person are protected together; an answer uses no more of them than the cap."""

    person: str
    """The column that identifies the person."""
    max_rows: fields.Whole | None = None
    """Maximum rows per person in an answer."""
    max_groups: fields.Whole | None = None
    """Maximum groups per person in an answer; needs max_rows_per_group."""
    max_rows_per_group: fields.Whole | None = None
    """Maximum rows per person in each of these groups."""

    @model_validator(mode="after")
    def _check(self) -> PersonShape:
        self.protected()
        return self

    def protected(self) -> Person:
        """What is protected."""
        return Person(
            self.person,
            max_rows=self.max_rows,
            max_groups=self.max_groups,
            max_rows_per_group=self.max_rows_per_group,
        )


class DuckDBShape(Part):
    """A table in a DuckDB file."""

    duckdb: fields.FilePath
    """The file."""
    table: str
    """The table in it."""
    schema_: str = fields.aliased("schema", "main")
    """The schema that the table is in."""


def _no_csv(path: str) -> str:
    if is_object_address(path):
        return path  # refused when it is opened
    if path.lower().endswith(_CSV):
        snapshot = re.sub(r"\.[ct]sv(\.gz)?$", ".parquet", path, flags=re.IGNORECASE)
        raise fields.Wrong(
            f"a CSV must be imported into a Parquet file once: privet import {path} -o {snapshot}", snapshot
        )
    if path.lower().endswith(_DATABASE):
        raise fields.Wrong(f"{toml.text(path)} is a database", {"duckdb": path, "table": "people"})
    return path


Rows = Annotated[fields.RowsPath, AfterValidator(_no_csv)]


def _rows_or_address(source: str) -> str:
    if is_postgres(source):
        postgres.parsed(source)
    elif is_spark(source):
        spark.parsed(source)
    else:
        return _no_csv(fields.path_or_objects(source))
    return source.strip()


RowsOrAddress = Annotated[str, AfterValidator(_rows_or_address)]


def _by_form(value: Any) -> str | None:
    match value:
        case str():
            return TAG + "text"
        case list():
            return TAG + "list"
        case Mapping():
            return TAG + "table"
    return None


SourceShape = Annotated[
    Annotated[RowsOrAddress, Tag(TAG + "text")]
    | Annotated[list[Rows], Field(min_length=1), Tag(TAG + "list")]
    | Annotated[DuckDBShape, Tag(TAG + "table")],
    Discriminator(_by_form),
]
ProtectShape = Annotated[
    Annotated[Literal["each row"], Tag(TAG + "text")] | Annotated[PersonShape, Tag(TAG + "table")],
    Discriminator(_by_form),
]


class TableShape(Part):
    """A private table. Analysts can use only the columns that are declared here."""

    source: SourceShape
    """Parquet files (a path, a pattern or a list; also s3:// or gs://), a DuckDB table, or one in Postgres or Spark."""
    protect: ProtectShape
    """What is protected: each person, with a cap on rows, or "each row" if no person has two."""
    rows: fields.Whole | None = None
    """The number of rows, if it is public: only with replace and "each row"."""
    columns: dict[fields.Name, ColumnShape] = Field(default={})
    """The columns that analysts may use, with public ranges: from what you know, never from the data."""

    def protected(self) -> Protected:
        """What is protected."""
        return self.protect.protected() if isinstance(self.protect, PersonShape) else each_row()


TABLE_LINES: dict[str, str] = {
    "source": '"people.parquet"',
    "protect": '{ person = "person_id", max_rows = 1 }',
    "rows": "10_000",
}
"""For each key of a table."""


def _known(what: str, registry: Mapping[str, object]) -> Callable[[str], str]:
    def check(name: str) -> str:
        if name not in registry:
            usable = [each for each, entry in registry.items() if getattr(entry, "adaptive", True)]
            raise UserError(f"there is no {what} {toml.text(name)}", allowed=f"The {what}s are: {', '.join(usable)}")
        return name

    return check


def _memory(size: str) -> str:
    if not re.fullmatch(MEMORY, size):
        raise UserError(f"memory must be a size, not {toml.text(size)}")
    return size


class DatasetShape(Part):
    """All tables about the same people; they share one budget."""

    budget: BudgetShape
    """The cost allowed for all questions together, for the whole life of the dataset."""
    adjacency: Literal["add/remove", "replace"]
    """How neighbouring tables differ: a person is added or removed, or replaced. It can never change."""
    version: fields.Version = "1"
    """The version of the data; change it when rows or sources change. This does not renew the budget."""
    accountant: (
        Annotated[
            str,
            AfterValidator(_known("accountant", ACCOUNTANTS)),
            WithJsonSchema({"type": "string", "enum": [name for name, each in ACCOUNTANTS.items() if each.adaptive]}),
        ]
        | None
    ) = None
    """How costs are added up; by default, chosen by the kind of budget. It can never change."""
    per_query: BudgetShape | None = None
    """The cost allowed for one question."""
    min_epsilon: fields.Step = MIN_EPSILON
    """The minimum cost of a question, which limits how many can be asked. By default 0.001."""
    delta_share: fields.Share = DELTA_SHARE
    """The part of the budget's delta that a question with unknown keys costs, unless it names one. By default 0.01."""
    analysts: dict[fields.Name, BudgetShape] = Field(default={})
    """How much of the budget each named analyst may spend."""
    per_analyst: BudgetShape | None = None
    """How much every other analyst may spend."""
    share_answers: bool = True
    """Whether an answer that one analyst paid for is free for others; if not, a price tells nothing about others."""
    signing_key: fields.FilePath | None = None
    """The steward's private key, which signs certificates; relative to the policy."""
    population: fields.Whole | None = None
    """The number of people in the data, if it is public: delta must be less than 1 divided by it."""
    engine: (
        Annotated[
            str, AfterValidator(_known("engine", ENGINES)), WithJsonSchema({"type": "string", "enum": list(ENGINES)})
        ]
        | None
    ) = None
    """What computes answers; by default, the first engine that can read all sources: DuckDB."""
    memory: (
        Annotated[str, AfterValidator(_memory), WithJsonSchema({"type": "string", "pattern": f"^{MEMORY}$"})] | None
    ) = None
    """The memory that the engine may use; on a server, questions that run at the same time have equal shares of it."""
    threads: fields.Whole | None = None
    """The number of threads that the engine may use; on a server, for each question."""
    tables: dict[fields.Name, TableShape] = Field(min_length=1)
    """The private tables."""


DATASET_LINES: dict[str, str] = {
    "budget": "{ epsilon = 3 }",
    "adjacency": '"add/remove"',
    "version": '"1"',
    "accountant": '"pure"',
    "per_query": "{ epsilon = 0.5 }",
    "min_epsilon": "0.001",
    "delta_share": "0.01",
    "analysts": "{ research = { epsilon = 1 } }",
    "per_analyst": "{ epsilon = 1 }",
    "share_answers": "false",
    "signing_key": '"steward.key"',
    "population": "100_000",
    "engine": '"duckdb"',
    "memory": '"2GB"',
    "threads": "2",
}
"""For each key of a dataset, the value that an error suggests."""


class PublicShape(Part):
    """A public table to join with; its types and ranges are read from it."""

    source: fields.FilePath
    """A CSV or Parquet file; relative to the policy."""
    key: str
    """The column on which it is joined; it has a different value in each row."""


PUBLIC_LINES: dict[str, str] = {"source": '"regions.csv"', "key": '"region"'}
"""For each key of a public table."""


class FileShape(Part):
    """What the steward decides: datasets, tables, bounds, keys and budgets. Analysts can't change any of it."""

    ledger: str = Field(repr=False)
    """Where debits are recorded: a file, relative to the policy, or a postgresql:// address."""
    datasets: dict[fields.Name, DatasetShape] = Field(min_length=1)
    """The datasets, by name."""
    public: dict[fields.Name, PublicShape] = Field(default={})
    """Public tables, by name."""
    server: ServerShape | None = None
    """How `privet serve` serves the datasets."""


def schema() -> dict[str, Any]:
    """The JSON Schema of a policy, for editors.

    Example:
        >>> schema()["required"]
        ['ledger', 'datasets']
    """
    schema = FileShape.model_json_schema()
    schema["$defs"]["TableShape"]["properties"]["columns"]["additionalProperties"] = {"$ref": "#/$defs/Column"}
    schema["$defs"] = {name.removesuffix("Shape"): part for name, part in schema["$defs"].items()} | schemas()
    tidy: dict[str, Any] = _tidy(schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **tidy, "title": "privet.toml"}


def _tidy(part: Any) -> Any:
    """The schema without null, which TOML does not have; the title of a field is its key."""
    if isinstance(part, list):
        return [_tidy(one) for one in part]
    if not isinstance(part, dict):
        return part.replace("Shape", "") if isinstance(part, str) and part.startswith("#/$defs/") else part
    tidy = {name: _tidy(one) for name, one in part.items() if name != "default" or one}
    if {"type": "null"} in tidy.get("anyOf", ()):
        forms = [form for form in tidy.pop("anyOf") if form != {"type": "null"}]
        tidy = {**tidy, **(forms[0] if len(forms) == 1 else {"anyOf": forms})}
    if isinstance(tidy.get("properties"), dict):
        tidy["properties"] = {name: {**one, "title": name} for name, one in tidy["properties"].items()}
        if "title" in tidy:
            tidy["title"] = tidy["title"].removesuffix("Shape")
    return tidy
