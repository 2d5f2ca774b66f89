"""`privet init`: a policy from names and types, and from what the steward knows. No value is ever shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # loaded when the command runs: `privet --help` is quick
    from privet.policy.catalog import Found
    from privet.policy.draft import DraftColumn, DraftTable
    from privet.policy.proposals import Proposal

_EACH = "each row"


def init(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Parquet files or patterns, DuckDB files (people.duckdb or people.duckdb:table), CSV files; NAME=DATA "
            "gives a table its name.",
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The policy to write.")] = "privet.toml",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing: take what is given, and what is proposed.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a policy that exists.")] = False,
    dataset: Annotated[str | None, typer.Option(help="The name for all tables about the same people.")] = None,
    person: Annotated[
        list[str] | None,
        typer.Option(help="The column that tells whose row it is; TABLE=COLUMN for one table. May be repeated."),
    ] = None,
    each_row: Annotated[bool, typer.Option("--each-row", help="Each row is another person's.")] = False,
    max_rows: Annotated[
        list[str] | None,
        typer.Option(
            help="How many rows of a person take part in an answer; TABLE=ROWS for one table. May be repeated."
        ),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="The budget of the dataset's whole life, such as 3 or 1/3.")
    ] = None,
    delta: Annotated[str | None, typer.Option(help="Its delta; without it the promise is pure.")] = None,
    adjacency: Annotated[str | None, typer.Option(help="add/remove or replace.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="A column, such as 'age=integer 0 110', 'region=keys north south other elsewhere', 'note=skip'; "
            "TABLE.COLUMN=... for one table. May be repeated."
        ),
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger: a file, or a postgresql:// address.")] = None,
    sniff: Annotated[
        bool,
        typer.Option("--sniff", help="Read the values of a CSV to propose types; they are read, and never shown."),
    ] = False,
    separator: Annotated[str | None, typer.Option(help="What stands between the fields of a CSV.")] = None,
) -> None:
    """Write a policy: who is protected, what may be asked, what it may cost. Names and types are read, no values.

    Example: privet init people.parquet --person person_id --max-rows 1 --epsilon 3
    """
    from privet.errors import InternalError, PrivetError
    from privet.policy import parse
    from privet.policy.catalog import find, is_csv
    from privet.policy.draft import Draft

    target = Path(output)
    _writable(target, force)
    found: list[Found] = []
    for given in data:
        look = sniff
        if is_csv(given) and not sniff and not yes:
            typer.echo(f"{given} has no types. Its values can be read to propose some; they are never shown.")
            look = typer.confirm("Read its values?", default=False)
        found += find(given, sniff=look, separator=separator)
    steward = _Steward(found, ask=not yes, persons=person, each_row=each_row, max_rows=max_rows, columns=column)
    name = steward.name(dataset)
    tables = tuple(steward.table(each, target) for each in found)
    draft = Draft(
        name,
        ledger or f"{_file(name)}.ledger",
        steward.budget(epsilon, delta),
        steward.adjacency(adjacency),
        tables,
    )
    text = draft.text()
    try:
        parse(text, target)
    except PrivetError as error:
        raise InternalError(f"the policy that was made does not load, and was not written:\n{error}") from None
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        from privet.errors import UserError

        raise UserError(f"{output!r} can't be written: {error.strerror}") from None
    _tell(found, steward, tables, target)


def _writable(target: Path, force: bool) -> None:
    from privet.errors import UserError

    if target.exists() and not force:
        raise UserError(f"{str(target)!r} exists already. Write, to replace it: --force")
    if not target.absolute().parent.is_dir():
        raise UserError(f"there is no folder {str(target.absolute().parent)!r} to write to.")


def _file(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in name)


def _tell(found: list[Found], steward: _Steward, tables: tuple[DraftTable, ...], target: Path) -> None:
    left = [f"{table.name}.{one.name}" for table in tables for one in table.columns if one.value is None]
    typer.echo(str(target))
    if left:
        typer.echo(f"Left out, as comments to fill in: {', '.join(left)}", err=True)
    for each in found:
        if each.csv is not None:
            typer.echo(f"Next: {steward.import_line(each, target)}", err=True)


class _Steward:
    """Who answers: the flags, or a person at the terminal, or, where both are silent, a proposal."""

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
        from privet.errors import UserError

        self.found, self.ask = found, ask
        folded = [each.name.casefold() for each in found]
        for each in found:
            if folded.count(each.name.casefold()) > 1:
                raise UserError(
                    f"two tables would be called {each.name!r}. Give one a name: privet init {each.name}_2={each.path}"
                )
        if persons and each_row:
            raise UserError("--person or --each-row, not both: a row belongs to a person, or is one.")
        self.each_row = each_row
        names = {each.name for each in found}
        self.persons = _by_table(persons or [], names)
        self.max_rows = _by_table(max_rows or [], names)
        self.columns = self._flags(columns or [])

    def _flags(self, given: list[str]) -> dict[tuple[str, str], str]:
        """The declarations on the command line, each for the tables that have such a column."""
        from privet.errors import UserError

        made: dict[tuple[str, str], str] = {}
        for each in given:
            name, sign, line = each.partition("=")
            places = [(t.name, c) for t in self.found for c in t.columns if name in (c, f"{t.name}.{c}")]
            if not sign or not line.strip():
                raise UserError(f"{each!r} declares no column. Write, for example: --column 'age=integer 0 110'")
            if not places:
                known = ", ".join(dict.fromkeys(c for t in self.found for c in t.columns))
                raise UserError(f"there is no column {name!r}. There are: {known}")
            made.update(dict.fromkeys(places, line.strip()))
        return made

    # --- the dataset ----------------------------------------------------------------------------

    def name(self, given: str | None) -> str:
        """What the dataset is called."""
        from privet.relation.schema import called

        proposed = self.found[0].name
        if given is None and self.ask and len(self.found) > 1:
            given = str(typer.prompt("All tables are about the same people. A name for them", default=proposed))
        return called(given or proposed, "dataset")

    def budget(self, epsilon: str | None, delta: str | None) -> dict[str, Any]:
        """What may be spent."""
        from privet.errors import UserError
        from privet.guarantees import ApproxDP, PureDP

        while True:
            typed = epsilon
            if typed is None:
                typed = "1"
                if self.ask:
                    typer.echo("Epsilon is the budget of all questions together, for ever. Less is more private.")
                    typed = str(typer.prompt("Epsilon", default=typed))
            try:
                made = PureDP(typed) if delta is None else ApproxDP(typed, delta)
            except UserError as error:
                if epsilon is not None or not self.ask or delta is not None:
                    raise
                typer.echo(f"{error}", err=True)
                continue
            return {"epsilon": made.epsilon} | ({"delta": made.delta} if isinstance(made, ApproxDP) else {})

    def adjacency(self, given: str | None) -> str:
        """How neighbours differ."""
        from privet.distances import Adjacency

        if given is None and self.ask:
            typer.echo("Neighbouring tables differ in a person who is added or removed, or replaced by another.")
            while given not in ("add/remove", "replace"):
                given = str(typer.prompt("add/remove or replace", default="add/remove"))
        return str(Adjacency(given or "add/remove"))

    # --- a table --------------------------------------------------------------------------------

    def table(self, found: Found, target: Path) -> DraftTable:
        """A table, with all that must be known about it."""
        from privet.policy.draft import DraftTable

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
            notes = (f"{found.path} is imported into this file, once and strictly: {line}",)
        return DraftTable(found.name, _source(found, target), protect, _told_apart(columns), notes)

    def import_line(self, found: Found, target: Path) -> str:
        """The command that imports a CSV."""
        import shlex

        words = ["privet", "import", found.path, "-o", _snapshot(found.path), "--policy", str(target)]
        if found.csv is not None and found.csv.separator != ",":
            words += ["--separator", found.csv.separator]
        person = self.persons.get(found.name) or self.persons.get("")
        if person is not None and found.columns.get(person) == "integer":
            words += ["--id-type", "integer"]
        return shlex.join(words)

    def _protect(self, found: Found) -> Any:
        from privet.errors import UserError

        person = None if self.each_row else self._person(found)
        if person is None:
            return _EACH
        self.persons[found.name] = person
        given = self.max_rows.get(found.name) or self.max_rows.get("")
        while True:
            typed = given or "1"
            if given is None and self.ask:
                typed = str(typer.prompt("How many rows of one person may take part in an answer", default=typed))
            try:
                from privet.distances import Person

                return {"person": person, "max_rows": Person(person, max_rows=_count(typed)).max_rows}
            except UserError as error:
                if given is not None or not self.ask:
                    raise
                typer.echo(str(error), err=True)

    def _person(self, found: Found) -> str | None:
        """The column of the person; None if each row is another's."""
        from privet.errors import UserError
        from privet.policy.proposals import person
        from privet.sources.kinds import missing_column

        given = self.persons.get(found.name) or self.persons.get("")
        if given is not None:
            if given not in found.columns:
                line = f" Write, for this table: --person {found.name}=COLUMN"
                raise missing_column(given, list(found.columns), f"{found.name!r} ({found.path})", line)
            return given
        proposed, sure = person(found.columns.items())
        if not self.ask:
            if proposed is None or not sure:
                raise UserError(
                    f"whose row is a row of {found.name!r}? Name the column, such as --person "
                    f"{proposed or next(iter(found.columns))}; or, if no person has two rows: --each-row"
                )
            return proposed
        typer.echo(f'Which column tells whose row it is? Or "{_EACH}", if no person has two.')
        while True:
            typed = str(typer.prompt("Person", default=proposed or _EACH))
            if typed in found.columns or typed == _EACH:
                return None if typed == _EACH else typed
            typer.echo(f"There is no column {typed!r}. There are: {', '.join(found.columns)}", err=True)

    def _column(self, found: Found, name: str) -> DraftColumn:
        from datetime import date

        from privet.errors import UserError
        from privet.policy.draft import DraftColumn
        from privet.policy.proposals import proposal
        from privet.policy.shorthand import EXAMPLES, SKIP, shorthand

        made = proposal(name, found.columns[name], date.today())
        textual = {"text": True, "integer": False}.get(found.columns[name])
        given = self.columns.get((found.name, name))
        if not _usable(name):
            return DraftColumn(name, None, "", "a name that can't be used: give it another in the source")
        ask = self.ask and given is None and bool(made.form)
        while True:
            line = given or made.line or SKIP
            if ask:
                line = _asked(name, found, made, line)
            if line == "?":
                typer.echo("  " + "\n  ".join((*EXAMPLES, SKIP)))
                continue
            try:
                value = shorthand(name, line, textual=textual)
            except UserError as error:
                if not ask:
                    raise
                typer.echo(str(error), err=True)
                continue
            if value is not None:
                return DraftColumn(name, value)
            return _left_out(name, made)


def _asked(name: str, found: Found, made: Proposal, line: str) -> str:
    family = found.columns[name]
    told = "" if family == "anything" else f" ({family})"
    note = f"; {made.note}" if made.note and made.line is None else ""
    return str(typer.prompt(f"{name}{told}{note}; ? for forms", default=line)).strip()


def _left_out(name: str, made: Proposal) -> DraftColumn:
    from privet.policy import toml
    from privet.policy.draft import DraftColumn
    from privet.policy.shorthand import shorthand

    form = made.form if made.line is None else toml.value(shorthand(name, made.line))
    return DraftColumn(name, None, form, made.note)


def _told_apart(columns: list[DraftColumn]) -> tuple[DraftColumn, ...]:
    """Columns whose names differ in capital letters only can't both be declared: the first one is."""
    from dataclasses import replace

    seen: set[str] = set()
    made = []
    for column in columns:
        if column.value is not None and column.name.casefold() in seen:
            column = replace(column, value=None, form="", note="another column has this name, but for capital letters")
        if column.value is not None:
            seen.add(column.name.casefold())
        made.append(column)
    return tuple(made)


def _usable(name: str) -> bool:
    from privet.errors import UserError
    from privet.relation.schema import called

    try:
        called(name, "column")
    except UserError:
        return False
    return True


def _count(typed: str) -> int:
    from privet.exact import whole

    return whole(typed, name="max_rows", example="--max-rows 3")


def _by_table(given: list[str], names: set[str]) -> dict[str, str]:
    """What was said for single tables, and, under no name, for all."""
    made = {}
    for each in given:
        table, sign, rest = each.partition("=")
        made[table if sign and table in names else ""] = rest if sign and table in names else each
    return made


def _snapshot(path: str) -> str:
    return str(Path(path).with_suffix(".parquet"))


def _source(found: Found, target: Path) -> Any:
    """Where the rows are, relative to the policy."""
    path = _snapshot(found.path) if found.csv is not None else found.path
    file = Path(path).expanduser()
    relative = Path(os.path.relpath(file.absolute(), target.absolute().parent)).as_posix()
    if found.table is None:
        return relative
    schema = {} if found.schema == "main" else {"schema": found.schema}
    return {"duckdb": relative, "table": found.table, **schema}
