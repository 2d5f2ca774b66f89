"""The questions of `privet init`: what the flags do not say is asked, or, where nobody can be asked, proposed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:  # loaded when the command runs: `privet --help` is quick
    from privet.policy.catalog import Found
    from privet.policy.draft import DraftColumn, DraftTable
    from privet.policy.proposals import Proposal

_EACH = "each row"


class Steward:
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
        self.guessed: list[str] = []
        """What neither a flag nor a person has said."""
        folded = [each.name.casefold() for each in found]
        for each in found:
            if folded.count(each.name.casefold()) > 1:
                raise UserError(
                    f"two tables would be called {each.name!r}. Give one a name: privet init {each.name}_2={each.path}"
                )
        if persons and each_row:
            raise UserError(
                "choose one: --person COLUMN for rows grouped by a person column, or --each-row for one row per person."
            )
        self.each_row = each_row
        names = {each.name for each in found}
        self.persons = _by_table(persons or [], names)
        self.named = names if "" in self.persons else {*self.persons}
        self.max_rows = _by_table(max_rows or [], names)
        self.columns = self._flags(columns or [])

    def _flags(self, given: list[str]) -> dict[tuple[str, str], str]:
        """The declarations on the command line, each for the tables that have such a column."""
        from privet.errors import UserError
        from privet.spelling import there_are

        made: dict[tuple[str, str], str] = {}
        for each in given:
            name, sign, line = each.partition("=")
            places = [(t.name, c) for t in self.found for c in t.columns if name in (c, f"{t.name}.{c}")]
            if not sign or not line.strip():
                raise UserError(f"{each!r} declares no column. Write, for example: --column 'age=integer 0 110'")
            if not places:
                known = dict.fromkeys(c for t in self.found for c in t.columns)
                raise UserError(f"there is no column {name!r}. {there_are(name.rpartition('.')[2], known)}")
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
                if not self.ask:
                    self.guessed.append("budget: epsilon 1, for all questions together, for ever")
                if self.ask:
                    typer.echo("Epsilon is the budget of all questions together, for ever. Less is more private.")
                    typed = str(typer.prompt("Epsilon", default=typed))
            try:
                made = PureDP(typed) if delta is None else ApproxDP(typed, delta)
            except UserError as error:
                if epsilon is not None or not self.ask or delta is not None:
                    raise
                typer.echo(_at_prompt(error, "Write a number, such as 0.5."), err=True)
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
        guessed = self._guess(found, protect)
        return DraftTable(found.name, _source(found, target), protect, _told_apart(columns), notes, guessed)

    def _guess(self, found: Found, protect: Any) -> str:
        """What of the protection of a table was taken from names, or is only a default."""
        if self.ask or not isinstance(protect, dict):
            return ""
        cap = not (found.name in self.max_rows or "" in self.max_rows)
        parts = ["person"] * (found.name not in self.named) + ["max_rows"] * cap
        return f"{' and '.join(parts)} guessed" if parts else ""

    def import_line(self, found: Found, target: Path) -> str:
        """The command that imports a CSV."""
        import shlex

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
                self.guessed.append(f"{found.name}: {person} tells whose row it is")
            if given is None:
                self.guessed.append(f"{found.name}: an answer uses at most 1 row per {person} (max_rows)")
        self.persons[found.name] = person
        while True:
            typed = given or "1"
            if given is None and self.ask:
                typed = str(typer.prompt("Maximum rows per person in an answer", default=typed))
            try:
                from privet.distances import Person

                return {"person": person, "max_rows": Person(person, max_rows=_count(typed)).max_rows}
            except UserError as error:
                if given is not None or not self.ask:
                    raise
                typer.echo(_at_prompt(error, "Write a whole number, such as 3."), err=True)

    def _person(self, found: Found) -> str | None:
        """The column of the person; None if each row is another's."""
        from privet.errors import UserError
        from privet.policy.proposals import person
        from privet.sources.kinds import missing_column
        from privet.spelling import there_are

        given = self.persons.get(found.name) or self.persons.get("")
        if given is not None:
            if given not in found.columns:
                line = f" Write, for this table: --person {found.name}=COLUMN"
                raise missing_column(given, list(found.columns), f"{found.name!r} ({found.path})", line)
            return given
        proposed, sure = person(found.columns.items())
        if not self.ask:
            if proposed is None or not sure:
                which = proposed or f"COLUMN, one of {', '.join(found.columns)}"
                raise UserError(
                    f"which column identifies the person in {found.name!r}? Write: --person {which}. "
                    "If every row is a different person, write: --each-row"
                )
            return proposed
        typer.echo(f'Which column tells whose row it is? Or "{_EACH}", if no person has two.')
        while True:
            typed = str(typer.prompt("Person", default=proposed or _EACH))
            if typed in found.columns or typed == _EACH:
                return None if typed == _EACH else typed
            typer.echo(f"There is no column {typed!r}. {there_are(typed, found.columns)}", err=True)

    def _column(self, found: Found, name: str) -> DraftColumn:
        from datetime import date

        from privet.errors import UserError
        from privet.policy import toml
        from privet.policy.draft import DraftColumn
        from privet.policy.proposals import proposal
        from privet.policy.shorthand import EXAMPLES, SKIP, shorthand
        from privet.sql.quoting import quoted

        made = proposal(name, found.columns[name], date.today())
        given = self.columns.get((found.name, name))
        if not _usable(name):
            return DraftColumn(name, None, "", "a name that can't be used: give it another in the source")
        ask = self.ask and given is None and bool(made.form)
        while True:
            line = given or made.line or SKIP
            if ask:
                line = _asked(name, found, made, line)
            if line == "?":
                typer.echo("  " + "\n  ".join((*EXAMPLES, "or only the values: 0 110, or north, south", SKIP)))
                continue
            try:
                value = shorthand(name, line, family=found.columns[name])
                _fitting(name, value, found)
            except UserError as error:
                if not ask:
                    raise
                typer.echo(str(error), err=True)
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
            return DraftColumn(name, value, note="; ".join(notes))


def _asked(name: str, found: Found, made: Proposal, line: str) -> str:
    family = found.columns[name]
    told = "" if family == "anything" else f" ({family})"
    note = f"; {made.note}" if made.note and made.line is None else ""
    if family in ("anything", "nothing"):
        note = "; its type is not known: integer, number, keys, date or another"
    return str(typer.prompt(f"{name}{told}{note}; ? for forms", default=line)).strip()


def _at_prompt(error: Exception, write: str) -> str:
    """What is wrong with an answer, and what to type: neither Python nor flags."""
    from privet.policy.problems import without_advice

    return f"{without_advice(str(error))} {write}"


def _fitting(name: str, value: Any, found: Found) -> None:
    """Refuse a kind that the column can't hold. Of a CSV, only what no notation of its values could make right."""
    from privet.errors import UserError
    from privet.policy import toml
    from privet.policy.columns import kind
    from privet.policy.shorthand import EXAMPLES
    from privet.sources.kinds import HOLD

    family, said = found.columns[name], value if isinstance(value, str) else kind(value)
    if value is None or family in ("anything", "nothing"):
        return
    if said == "type":
        said = str(value["type"])
    if said in ("keys", "keys_from"):
        said = "key" if said == "keys" and all(isinstance(each, int) for each in value["keys"]) else "text"
    if said not in HOLD or family in HOLD[said]:
        return
    if found.csv is not None and (family in ("text", "boolean", "integer") or said in ("text", "key")):
        return
    proper = {"float": "number", "decimal": "number", "text": "keys"}.get(family, family)
    form = next((line for line in EXAMPLES if line.split()[0] == proper), "text")
    held = {"date": "dates", "timestamp": "timestamps", "text": "texts", "boolean": "booleans"}.get(family, "numbers")
    raise UserError(
        f"{toml.key(name)}: the column holds {held}, which can't be read as {said}. Write, for example: {form}"
    )


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
