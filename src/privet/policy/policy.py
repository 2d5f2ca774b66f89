"""A policy that was read: what a session and a ledger need from it. Data are opened only when tables are asked for."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from privet.errors import PolicyError, Remedy, Subject, UserError, argument
from privet.ledger import Dataset
from privet.policy import mismatches, problems
from privet.policy.positions import Place
from privet.policy.problems import Problem
from privet.policy.shape import DatasetShape, DuckDBShape, FileShape, TableShape
from privet.privacy.adjacency import Adjacency, Protected
from privet.privacy.guarantees import Budget
from privet.sources.paths import fits
from privet.system.addresses import is_address, is_served
from privet.system.files import among
from privet.system.object_addresses import is_object_address
from privet.tables.relation import PublicTable, Table
from privet.tables.schema import Column

_TEXTS = re.compile(r"'(?:[^']|'')*'")
_READ = re.compile(r'\b(?:FROM|JOIN)\s+("[^"]*"|\w+)', re.IGNORECASE)
"""The tables of a statement, near enough to choose a dataset by."""
_OF_LEDGER = ("", "-journal", "-wal", "-shm", ".new", ".lock", ".accounts", ".accounts-journal")
"""The endings of a ledger's own files, and of the accounts beside it."""


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a policy: where it is, what it holds, and on which lines."""

    where: str
    """As it was named."""
    folder: Path
    tree: Mapping[str, Any] = field(repr=False)
    lines: dict[Place, int] = field(repr=False)

    def refusal(self, wrong: Sequence[Problem]) -> PolicyError:
        """The error that names all of these."""
        return problems.refusal(self.where, wrong, self.lines)

    def resolve(self, path: str) -> str:
        """A path of the policy as one that can be opened from anywhere; the address of objects as it is."""
        if is_object_address(path):
            return path.strip()
        try:
            return str(self.folder / Path(path).expanduser())
        except RuntimeError:  # ~nobody
            return str(self.folder / path)


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """A private table of a policy, before it is opened."""

    name: str
    adjacency: Adjacency
    protect: Protected
    place: Place
    document: Document = field(repr=False)
    shape: TableShape = field(repr=False)

    @property
    def files(self) -> tuple[str, ...]:
        """The paths or patterns of its source; none for a table in Postgres or Spark."""
        given = self.shape.source
        if isinstance(given, str) and is_served(given):
            return ()
        paths = [given.duckdb] if isinstance(given, DuckDBShape) else [given] if isinstance(given, str) else given
        return tuple(map(self.document.resolve, paths))

    def columns(self) -> dict[str, Column]:
        """The declared columns; only `keys_from` reads a file, a public one."""
        columns: dict[str, Column] = {}
        wrong: list[Problem] = []
        for name, shape in self.shape.columns.items():
            try:
                columns[name] = shape.column(self.document.resolve)
            except UserError as error:
                wrong.append(mismatches.column(error, (*self.place, "columns", name), self.document.tree))
        if wrong:
            raise self.document.refusal(wrong)
        return columns

    def table(self) -> Table:
        """The table, its source checked against what is declared."""
        from privet.sources import duckdb_file, table

        columns = self.columns()
        if not columns:
            what = "no column is declared, so no question can be asked"
            place = (*self.place, "columns")
            raise self.document.refusal([Problem(place, what, "age = { integer = [0, 110] }")])
        given, files = self.shape.source, list(self.files)
        source: Any = files or given
        if isinstance(given, DuckDBShape):
            source = duckdb_file(files[0], given.table, schema=given.schema_)
        try:
            return table(
                self.name,
                source,
                protect=self.protect,
                columns=columns,
                adjacency=self.adjacency,
                rows=self.shape.rows,
            )
        except UserError as error:
            raise self.document.refusal([mismatches.table(error, self.place, self.shape, self.document.tree)]) from None


@dataclass(frozen=True, slots=True)
class DatasetPolicy:
    """All tables about the same people, and what may be spent on them."""

    name: str
    budget: Budget
    adjacency: Adjacency
    protects: Literal["person", "row"]
    version: str
    accountant: str
    """The accountant's name; by default the one of the budget's kind."""
    analysts: Mapping[str, Budget]
    """How much each named analyst may spend."""
    per_analyst: Budget | None
    """How much every other analyst may spend."""
    per_query: Budget | None
    """The cost allowed for one question."""
    signing_key: Path | None
    settings: DatasetShape = field(repr=False)
    """All keys as the policy has them: `settings.min_epsilon`, `settings.threads` and so on."""
    declared: Mapping[str, TablePolicy] = field(repr=False)
    """The tables, before they are opened."""
    _public: Callable[[], tuple[PublicTable, ...]] = field(repr=False)

    def tables(self) -> tuple[Table, ...]:
        """The private tables, their sources checked; the error lists every mismatch."""
        tables: list[Table] = []
        errors: list[PolicyError] = []
        for one in self.declared.values():
            try:
                tables.append(one.table())
            except PolicyError as error:
                errors.append(error)
        if errors:
            document = next(iter(self.declared.values())).document
            raise problems.joined(document.where, [problem for error in errors for problem in error.problems])
        return tuple(tables)

    def public(self) -> tuple[PublicTable, ...]:
        """The public tables of the policy."""
        return self._public()

    def facts(self) -> Dataset:
        """What a ledger keeps of the dataset."""
        return Dataset(self.name, self.protects, self.adjacency, self.budget, self.accountant)


@dataclass(frozen=True, slots=True)
class Policy:
    """What the steward decides, and no analyst can change."""

    path: Path
    ledger: str = field(repr=False)
    """A file that can be opened from anywhere, or a Postgres address; perhaps with a password in it."""
    datasets: Mapping[str, DatasetPolicy]
    document: Document = field(repr=False)
    shape: FileShape = field(repr=False)

    def public(self) -> tuple[PublicTable, ...]:
        """The public tables, read now."""
        return read_public(self.document, self.shape)

    def files(self) -> list[str]:
        """Every file that the policy is made of or names, or a pattern of such files."""
        tables = [each for dataset in self.datasets.values() for each in dataset.declared.values()]
        named = [str(self.path), *(file for each in tables for file in each.files)]
        named += [self.document.resolve(each.source) for each in self.shape.public.values()]
        columns = [shape for each in tables for shape in each.shape.columns.values()]
        named += [self.document.resolve(each.file) for each in columns if each.file is not None]
        if not is_address(self.ledger):
            named += [self.ledger + end for end in _OF_LEDGER]
        keys = [each.signing_key for each in self.datasets.values() if each.signing_key is not None]
        return [*named, *(f"{key}{end}" for key in keys for end in ("", ".pub"))]

    def owns(self, path: Path) -> bool:
        """Whether a file is one of these, under any name, or would be one: nothing else may be written there."""
        return any(holds(named, path) for named in self.files())

    def table(self, name: str) -> TablePolicy:
        """A private table, before it is opened; capital letters don't matter."""
        known = [each for dataset in self.datasets.values() for each in dataset.declared.values()]
        for each in known:
            if each.name.casefold() == name.casefold():
                return each
        names = [each.name for each in known]
        near = get_close_matches(name, names, n=1)
        raise UserError(
            f"{self.document.where} declares no table {name!r}",
            allowed=f"The tables are: {', '.join(names)}",
            subject=Subject("table", name),
            remedy=Remedy(f"Did you mean {near[0]!r}?") if near else None,
        )

    def dataset_of(self, table: str) -> DatasetPolicy:
        """The dataset that a private table belongs to."""
        return self.datasets[str(self.table(table).place[1])]

    def chosen(self, dataset: str | None = None, asking: str = "") -> DatasetPolicy:
        """The dataset of this name; or the only one; or the one whose tables a statement reads."""
        names = ", ".join(self.datasets)
        if dataset is not None:
            if dataset not in self.datasets:
                raise UserError(
                    f"{self.document.where} has no dataset {dataset!r}",
                    allowed=f"The datasets are: {names}",
                    subject=Subject("dataset", dataset),
                )
            return self.datasets[dataset]
        if len(self.datasets) == 1:
            return next(iter(self.datasets.values()))
        read = named_tables(asking)
        meant = [each for each in self.datasets.values() if any(name.casefold() in read for name in each.declared)]
        if len(meant) == 1:
            return meant[0]
        what = "the question uses tables of several datasets" if meant else "the question uses no table of any dataset"
        raise UserError(
            what,
            allowed=f"The datasets of {self.document.where} are: {names}",
            subject=Subject("dataset"),
            remedy=argument("dataset", next(iter(self.datasets)), advice="Choose one dataset"),
        )


def named_tables(asking: str) -> set[str]:
    """The names after FROM and JOIN in a statement, in small letters."""
    from privet.sql.comments import blanked  # the parser takes its time to load

    return {name.strip('"').casefold() for name in _READ.findall(_TEXTS.sub("''", blanked(asking)))}


def holds(named: str, path: Path) -> bool:
    """Whether a file is the one that is named, or would be one of those that a pattern names."""
    if is_object_address(named):
        return False
    place = path.parent.resolve() / path.name
    return among(path, _matched(named)) or fits(place.parts, Path(named).resolve().parts)


def _matched(name: str) -> list[str]:
    return [name, *glob.glob(name, recursive=True)]  # noqa: PTH207 (patterns are absolute)


def read_public(document: Document, shape: FileShape) -> tuple[PublicTable, ...]:
    """The public tables of a policy; the error lists every mismatch."""
    from privet.sources import public_table

    tables: list[PublicTable] = []
    wrong: list[Problem] = []
    for name, each in shape.public.items():
        try:
            tables.append(public_table(name, document.resolve(each.source), key=each.key))
        except UserError as error:
            wrong.append(mismatches.public(error, ("public", name)))
    if wrong:
        raise document.refusal(wrong)
    return tuple(tables)
