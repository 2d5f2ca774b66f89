"""The questions of `privet init`: what the options leave open is asked, or guessed if nobody can be asked."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:  # loaded when the command runs: `privet --help` is quick
    from privet.errors import UserError
    from privet.policy.catalog import Found
    from privet.policy.proposals import Proposal
    from privet.policy.template import ColumnTemplate, TableTemplate

_EACH = "each row"


class Steward:
    """Who answers: the options, a person at the terminal, or else a guess."""

    def __init__(
        self,
        found: list[Found],
        *,
        ask: bool,
        persons: list[str] | None,
        each_row: bool,
        max_rows: list[str] | None,
        columns: list[str] | None,
    ) -> None:
        from privet.errors import UserError, write

        self.found, self.ask = found, ask
        self.guessed: list[str] = []
        """What was guessed."""
        self.doubts: list[str] = []
        """Tables that protect each row, although a column may tell whose row it is."""
        folded = [each.name.casefold() for each in found]
        for each in found:
            if folded.count(each.name.casefold()) > 1:
                line = write(terminal=shlex.quote(f"{each.name}_2={each.path}"), advice="Give one another name")
                raise UserError(f"two tables would be named {each.name!r}", remedy=line)
        if persons and each_row:
            raise UserError(
                "--person and --each-row contradict each other",
                allowed="Use --person COLUMN if a column identifies the person, or --each-row if every row belongs to "
                "a different person",
            )
        self.each_row = each_row
        names = {each.name for each in found}
        self.persons = _by_table(persons or [], names)
        self.named = names if "" in self.persons else {*self.persons}
        self.max_rows = _by_table(max_rows or [], names)
        self.columns = self._flags(columns or [])

    def _flags(self, given: list[str]) -> dict[tuple[str, str], str]:
        """The declarations in the options, each for the tables that have such a column."""
        from privet.errors import Remedy, UserError, write
        from privet.names.spelling import nearest

        made: dict[tuple[str, str], str] = {}
        for each in given:
            name, sign, line = each.partition("=")
            places = [(t.name, c) for t in self.found for c in t.columns if name in (c, f"{t.name}.{c}")]
            if not sign or not line.strip():
                example = write(terminal="--column 'age=integer 0 110'")
                raise UserError(f"{each!r} does not declare a column", remedy=example)
            if not places:
                known = dict.fromkeys(c for t in self.found for c in t.columns)
                near = nearest(name.rpartition(".")[2], known)
                raise UserError(
                    f"there is no column {name!r}",
                    allowed=f"The columns are: {', '.join(known)}",
                    remedy=None if near is None else Remedy(f"Did you mean {near!r}?"),
                )
            made.update(dict.fromkeys(places, line.strip()))
        return made

    # --- the dataset ----------------------------------------------------------------------------

    def name(self, given: str | None) -> str:
        """The name of the dataset."""
        from privet.tables.schema import check_name

        proposed = self.found[0].name
        if given is None and self.ask and len(self.found) > 1:
            given = str(typer.prompt("Name of the dataset (all tables about the same people)", default=proposed))
        return check_name(given or proposed, "dataset")

    def budget(self, epsilon: str | None, delta: str | None, rho: str | None = None) -> dict[str, Any]:
        """The budget."""
        from privet.errors import UserError
        from privet.privacy.guarantees.budgets import budget_of, kind_of, numbers

        kind = kind_of(delta=delta, rho=rho)
        while True:
            typed = epsilon
            if typed is None and rho is None:
                typed = "1"
                if not self.ask:
                    self.guessed.append(
                        "budget: epsilon 1, for all questions together, for the whole life of the dataset"
                    )
                if self.ask:
                    typer.echo("Epsilon is the budget for all questions together, for ever. Smaller is more private.")
                    typed = str(typer.prompt("Epsilon", default=typed))
            try:
                return numbers(budget_of(kind, epsilon=typed, delta=delta, rho=rho))
            except UserError as error:
                if epsilon is not None or not self.ask or delta is not None or rho is not None:
                    raise
                typer.echo(_at_prompt(error, "Type a number, such as 0.5."), err=True)

    def adjacency(self, given: str | None) -> str:
        """How neighbouring tables differ."""
        from privet.privacy.adjacency import Adjacency

        if given is None and self.ask:
            typer.echo("Neighbouring tables differ in one person, who is added or removed, or replaced by another.")
            while True:
                given = str(typer.prompt("add/remove or replace", default="add/remove")).strip().lower()
                if given in ("add/remove", "replace"):
                    break
                typer.echo(f'"{given}" is neither of them. Type add/remove, or replace.', err=True)
        return str(Adjacency(given or "add/remove"))

    # --- a table --------------------------------------------------------------------------------

    def table(self, found: Found, target: Path) -> TableTemplate:
        """A table, with everything that its policy needs."""
        from privet.policy import toml
        from privet.policy.template import TableTemplate

        if self.ask:
            typer.echo(f"\n{found.name}: {', '.join(found.columns)}")
        protect = self._protect(found)
        person = protect["person"] if isinstance(protect, dict) else None
        columns = [
            self._column(found, name) for name in found.columns if name != person or (found.name, name) in self.columns
        ]
        notes: tuple[str, ...] = ()
        if found.csv is not None:
            line = self.import_line(found, target)
            notes = (f"{found.path} is imported into this file: {line}",)
        if person is None and (ids := self._ids(found)):
            instead = f"protect = {{ person = {toml.text(ids[0])}, max_rows = 1 }}"
            told = f"If a person can have several rows, {' or '.join(ids)} may tell whose they are: {instead}"
            notes += (f"each row is protected on its own. {told}",)
            self.doubts.append(f"{found.name}: each row is protected, not the person ({', '.join(ids)})")
        guessed = self._guess(found, protect)
        return TableTemplate(found.name, _source(found, target), protect, _told_apart(columns), notes, guessed)

    def _ids(self, found: Found) -> list[str]:
        """The columns that may tell whose row it is."""
        from privet.policy.proposals import doubtful

        return doubtful(found.columns.items())

    def _guess(self, found: Found, protect: Any) -> str:
        """Which parts of a table's protection are guesses."""
        if self.ask or not isinstance(protect, dict):
            return ""
        cap = not (found.name in self.max_rows or "" in self.max_rows)
        parts = ["person"] * (found.name not in self.named) + ["max_rows"] * cap
        return f"{' and '.join(parts)} guessed" if parts else ""

    def import_line(self, found: Found, target: Path) -> str:
        """The command that imports a CSV."""
        words = ["privet", "import", found.path, "-o", _snapshot(found.path), "--policy", str(target)]
        if found.csv is not None and found.csv.separator != ",":
            words += ["--separator", found.csv.separator.replace("\t", "tab")]
        if found.csv is not None and found.csv.encoding != "utf-8":
            words += ["--encoding", found.csv.encoding]
        for option in found.options:
            words += shlex.split(option.flag())
        person = self.persons.get(found.name) or self.persons.get("")
        if person is not None and found.columns.get(person) == "integer":
            words += ["--id-type", "integer"]
        return shlex.join(words)

    def _protect(self, found: Found) -> Any:
        from privet.errors import UserError

        person = None if self.each_row else self._person(found)
        if person is None:
            return _EACH
        given = self.max_rows.get(found.name) or self.max_rows.get("")
        if not self.ask:
            if found.name not in self.named:
                self.guessed.append(f"{found.name}: {person} identifies the person")
            if given is None:
                self.guessed.append(f"{found.name}: an answer uses at most 1 row per {person} (max_rows)")
        self.persons[found.name] = person
        while True:
            typed = given or "1"
            if given is None and self.ask:
                typed = str(typer.prompt("Maximum rows per person in an answer", default=typed))
            try:
                from privet.privacy.adjacency import Person

                return {"person": person, "max_rows": Person(person, max_rows=_count(typed)).max_rows}
            except UserError as error:
                if given is not None or not self.ask:
                    raise
                typer.echo(_at_prompt(error, "Type a whole number, such as 3."), err=True)

    def _person(self, found: Found) -> str | None:
        """The column that identifies the person; None if every row belongs to a different person."""
        from privet.errors import UserError, write
        from privet.names.spelling import nearest, there_are
        from privet.policy.proposals import person
        from privet.sources.readings import missing_column

        given = self.persons.get(found.name) or self.persons.get("")
        if given is not None:
            if given not in found.columns:
                near = nearest(given, found.columns) or "COLUMN"
                one = f"{found.name}={near}" if len(self.found) > 1 else near
                line = write("", terminal=f"--person {shlex.quote(one)}")
                raise missing_column(given, list(found.columns), f"{found.name!r} ({found.path})", line=line)
            return given
        proposed, sure = person(found.columns.items())
        if not self.ask:
            if proposed is None or not sure:
                raise UserError(
                    f"which column identifies the person in {found.name!r}?",
                    allowed=f"The columns are: {', '.join(found.columns)}. If every row belongs to a different person, "
                    "use --each-row",
                    remedy=write(terminal=f"--person {proposed or 'COLUMN'}", exact=True),
                )
            return proposed
        typer.echo(f'Which column identifies the person? Type "{_EACH}" if every row belongs to a different person.')
        default = proposed or (None if self._ids(found) else _EACH)  # in doubt, the steward decides
        while True:
            typed = str(typer.prompt("Person", default=default))
            if typed in found.columns or typed == _EACH:
                return None if typed == _EACH else typed
            typer.echo(f"There is no column {typed!r}. {there_are(typed, found.columns)}", err=True)

    def _column(self, found: Found, name: str) -> ColumnTemplate:
        from datetime import date

        from privet.errors import UserError
        from privet.policy import toml
        from privet.policy.proposals import proposal
        from privet.policy.shorthand import SKIP, examples, shorthand
        from privet.policy.template import ColumnTemplate
        from privet.sql.quoting import quoted

        made = proposal(name, found.columns[name], date.today())
        given = self.columns.get((found.name, name))
        if not _usable(name):
            return ColumnTemplate(name, None, "", "this name can't be used: rename the column in the source")
        ask = self.ask and given is None and bool(made.form)
        while True:
            line = given or made.line or SKIP
            if ask:
                line = _asked(name, found, made, line)
            if line == "?":
                typer.echo("  " + "\n  ".join((*examples(), "or just the values: 0 110, or north, south", SKIP)))
                continue
            try:
                value = shorthand(name, line, family=found.columns[name])
                _fitting(name, value, found)
            except UserError as error:
                if not ask:
                    raise
                typer.echo(error.render("terminal"), err=True)
                continue
            if value is None:
                return _left_out(name, made)
            if ask and line != made.line:
                typer.echo(f"  {toml.key(name)} = {toml.value(value)}")
            notes = []
            if not ask and given is None and not isinstance(value, str):
                self.guessed.append(f"{found.name}: {toml.key(name)} = {toml.value(value)}")
                notes.append("guessed: check it")
            if quoted(name) != name:
                notes.append(f"in SQL: {quoted(name)}")
            return ColumnTemplate(name, value, note="; ".join(notes))


def _asked(name: str, found: Found, made: Proposal, line: str) -> str:
    family = found.columns[name]
    told = "" if family == "anything" else f" ({family})"
    note = f"; {made.note}" if made.note and made.line is None else ""
    if family in ("anything", "nothing"):
        note = "; its type is unknown: integer, number, keys, date or another"
    return str(typer.prompt(f"{name}{told}{note}; ? for examples", default=line)).strip()


def _at_prompt(error: UserError, type_: str) -> str:
    """What is wrong with an answer, and what to type instead."""
    from privet.errors import Remedy, UserError

    return UserError(error.what, allowed=error.allowed, remedy=Remedy(type_)).render("terminal")


def _fitting(name: str, value: Any, found: Found) -> None:
    """Refuse a kind that the column can't be read as; for a CSV, only one that no notation could make possible."""
    from privet.errors import UserError, write
    from privet.policy import toml
    from privet.policy.columns import declaration
    from privet.policy.shorthand import SKIP
    from privet.sources.readings import HOLD, NAMES, reading_of
    from privet.tables.kinds import usual

    family = found.columns[name]
    if value is None or family in ("anything", "nothing"):
        return
    said = declaration(value)
    read = reading_of(said.kind.base if said.file else said.column(str))
    if family in HOLD[read]:
        return
    if found.csv is not None and (family in ("text", "boolean", "integer") or read in ("text", "key")):
        return
    proper = usual(family)
    line = SKIP if proper is None else proper.line
    if family == "integer" and said.kind.name == "boolean":
        line = "integer 0 1"
    held = "numbers" if family in ("integer", "float", "decimal") else NAMES.get(family, "values")
    what = f"{toml.key(name)}: the column contains {held}, which can't be read as {said.kind.name}"
    raise UserError(what, remedy=write(line, terminal=line))


def _left_out(name: str, made: Proposal) -> ColumnTemplate:
    from privet.policy import toml
    from privet.policy.shorthand import shorthand
    from privet.policy.template import ColumnTemplate

    form = made.form if made.line is None else toml.value(shorthand(name, made.line))
    return ColumnTemplate(name, None, form, made.note)


def _told_apart(columns: list[ColumnTemplate]) -> tuple[ColumnTemplate, ...]:
    """Of columns whose names differ only in upper and lower case, only the first can be declared."""
    from dataclasses import replace

    seen: set[str] = set()
    made = []
    for column in columns:
        if column.value is not None and column.name.casefold() in seen:
            column = replace(column, value=None, form="", note="another column has this name in upper or lower case")
        if column.value is not None:
            seen.add(column.name.casefold())
        made.append(column)
    return tuple(made)


def _usable(name: str) -> bool:
    from privet.errors import UserError
    from privet.tables.schema import check_name

    try:
        check_name(name, "column")
    except UserError:
        return False
    return True


def _count(typed: str) -> int:
    from privet.errors import argument
    from privet.exact import whole

    return whole(typed, name="max_rows", example=argument("max_rows", 3))


def _by_table(given: list[str], names: set[str]) -> dict[str, str]:
    """What was given for single tables and, under the empty name, for all."""
    made = {}
    for each in given:
        table, sign, rest = each.partition("=")
        made[table if sign and table in names else ""] = rest if sign and table in names else each
    return made


def _snapshot(path: str) -> str:
    return str(Path(path).with_suffix(".parquet"))


def _source(found: Found, target: Path) -> Any:
    """Where the rows are, relative to the policy."""
    from privet.system.object_addresses import is_object_address

    if found.engine:
        return found.path
    path = _snapshot(found.path) if found.csv is not None else found.path
    if is_object_address(path):
        return path
    file = Path(path).expanduser()
    relative = Path(os.path.relpath(file.absolute(), target.absolute().parent)).as_posix()
    if found.table is None:
        return relative
    schema = {} if found.schema == "main" else {"schema": found.schema}
    return {"duckdb": relative, "table": found.table, **schema}
