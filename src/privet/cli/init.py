"""`privet init`: write a policy from names, types, and the steward's answers. No value is ever shown."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli.output import Files

if TYPE_CHECKING:  # loaded when the command runs: `privet --help` is quick
    from privet.cli.interview import Steward
    from privet.policy.catalog import Found
    from privet.policy.template import TableTemplate


def init(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="Parquet files or patterns, DuckDB files (people.duckdb or people.duckdb:table), CSV files, or a "
            "database (postgresql://user@host/database, with #schema.table for one table; in Spark, spark:database or "
            "sc://host:15002#database); NAME=DATA names the table.",
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The policy to write.")] = "privet.toml",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask no questions: use the options, and guess the rest.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing policy.")] = False,
    dataset: Annotated[
        str | None, typer.Option(help="The name of the dataset: all tables about the same people.")
    ] = None,
    person: Annotated[
        list[str] | None,
        typer.Option(help="The column that identifies the person; TABLE=COLUMN for one table. Can be repeated."),
    ] = None,
    each_row: Annotated[bool, typer.Option("--each-row", help="Every row belongs to a different person.")] = False,
    max_rows: Annotated[
        list[str] | None,
        typer.Option(help="Maximum rows per person in an answer; TABLE=ROWS for one table. Can be repeated."),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="The budget for the whole life of the dataset, such as 3 or 1/3.")
    ] = None,
    delta: Annotated[str | None, typer.Option(help="The budget's delta; without it, the guarantee is pure.")] = None,
    rho: Annotated[
        str | None, typer.Option(help="The budget in rho (zero-concentrated), instead of epsilon, such as 0.1.")
    ] = None,
    adjacency: Annotated[
        str | None, typer.Option(help="How neighbouring tables differ: add/remove or replace.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="A column, such as 'age=integer 0 110', 'region=keys north south other elsewhere', "
            "'town=keys north: Alta Bodo south: Cork within region', 'note=skip'; "
            "TABLE.COLUMN=... for one table. Can be repeated."
        ),
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger: a file, or a postgresql:// address.")] = None,
    sniff: Annotated[
        bool,
        typer.Option("--sniff", help="Read the values of a CSV to guess types. They are never shown."),
    ] = False,
    separator: Annotated[str | None, typer.Option(help="The field separator of a CSV.")] = None,
    encoding: Annotated[
        str, typer.Option(help="The encoding of a CSV: utf-8, or another one such as cp1252 (Windows, Excel).")
    ] = "utf-8",
) -> None:
    """Write a policy for your data. It says who is protected, what may be asked, and the budget. Reads no values.

    Example: privet init people.parquet --person person_id --max-rows 1 --epsilon 3
    """
    from privet.cli.interview import Steward
    from privet.errors import InternalError, PrivetError
    from privet.policy import parse
    from privet.policy.catalog import check_csv, find
    from privet.policy.template import PolicyTemplate

    target = Path(output)
    recorded = None if ledger is None else _recorded(ledger)
    sources: list[Found] = []
    files = Files.checked(target, force=force, taken=_taken(target, ledger, sources))
    csvs = {name for name in data if check_csv(name)}  # refused before anything is asked
    with _answers(data):
        for name in data:
            read_values = sniff
            if name in csvs and not sniff and not yes:
                typer.echo(f"{name} has no types. Privet can read its values to guess them. It shows no value.")
                read_values = _agreed("Read the values?")
            sources += find(name, sniff=read_values, separator=separator, encoding=encoding)
        steward = Steward(sources, ask=not yes, persons=person, each_row=each_row, max_rows=max_rows, columns=column)
        name = steward.name(dataset)
        tables = tuple(steward.table(source, target) for source in sources)
        draft = PolicyTemplate(
            name,
            recorded or f"{_file(name)}.ledger",
            steward.budget(epsilon, delta, rho),
            steward.adjacency(adjacency),
            tables,
        )
    text = draft.text()
    try:
        parse(text, target)
    except PrivetError as error:
        raise InternalError(f"the new policy is not valid, and was not written:\n{error}") from None
    try:
        files.write(target, text.encode())
    except OSError as error:
        from privet.errors import UserError

        raise UserError(f"{output!r} can't be written: {error.strerror}") from None
    typer.echo(str(target))
    _passwords(sources, ledger, recorded)
    _report(sources, steward, tables, target)


@contextmanager
def _answers(data: list[str]) -> Iterator[None]:
    """A block of prompts: an error if there is no terminal to answer them."""
    try:
        yield
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            from privet.cli.interrupts import INTERRUPTED

            raise SystemExit(INTERRUPTED) from error  # `interrupts` prints one line
        if not isinstance(error.__context__, EOFError) or (sys.stdin is not None and sys.stdin.isatty()):
            raise
        from privet.errors import UserError, write

        typer.echo()  # ends the line of the question
        line = write(terminal=f"privet init {shlex.join(data)} --yes", exact=True)
        raise UserError("there is no terminal to answer prompts", remedy=line) from None


def _agreed(question: str) -> bool:
    """Whether the steward agrees; repeats the prompt until the answer is yes or no."""
    while True:
        typed = str(typer.prompt(f"{question} [y/N]", default="n", show_default=False)).strip().lower()
        if typed in ("y", "yes", "n", "no"):
            return typed[0] == "y"
        typer.echo("Type y or n.", err=True)


def _taken(target: Path, ledger: str | None, sources: list[Found]) -> Callable[[Path], bool]:
    """Files that a policy must not overwrite: data, the ledger, and the files in the previous policy."""
    from privet.errors import UserError
    from privet.policy import load
    from privet.policy.policy import holds
    from privet.system.files import among

    try:
        named = load(target).files() if target.is_file() else []
    except UserError:  # it was not a policy
        named = []
    others = [*(file for file in named if not among(target, [file])), *([ledger] if ledger else [])]
    return lambda path: any(holds(other, path) for other in (*others, *(source.path for source in sources)))


def _file(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_" else "_" for char in name)


def _recorded(ledger: str) -> str:
    """The ledger as the policy names it: an address without its password."""
    from privet.errors import Subject, UserError, write
    from privet.system.addresses import is_address, is_postgres, masked, without_password

    if is_postgres(ledger):
        return without_password(ledger)
    if is_address(ledger):
        raise UserError(
            f"a ledger is a file or a Postgres address, not {masked(ledger)!r}",
            subject=Subject("ledger"),
            remedy=write(terminal="--ledger people.ledger"),
        )
    return ledger


def _passwords(sources: list[Found], ledger: str | None, recorded: str | None) -> None:
    """Say where Postgres's passwords come from, now that the policy has none."""
    from privet.system.addresses import is_postgres

    read, kept = any(source.engine == "postgres" for source in sources), is_postgres(recorded or "")
    if kept and ledger is not None and recorded != ledger.strip():
        typer.echo("The ledger's address is in the policy without its password.", err=True)
    if read and kept:
        where = "Use a password file (~/.pgpass) or a service: PGPASSWORD is for one role, not for two"
    else:
        where = "Set PGPASSWORD, or use a password file (~/.pgpass) or a service"
    if read or kept:
        typer.echo(f"The policy has no password. {where}.", err=True)


def _report(sources: list[Found], steward: Steward, tables: tuple[TableTemplate, ...], target: Path) -> None:
    from privet.sql.quoting import quoted

    if any(source.engine == "spark" and source.path.startswith("sc:") for source in sources):
        typer.echo("The policy has no token. Set SPARK_CONNECT_AUTHENTICATE_TOKEN if Spark asks for one.", err=True)
    for source in sources:
        stem = Path(source.path).name.partition(".")[0]
        if source.table is None and not source.engine and re.sub(r"\W+", "_", stem) == source.name != stem:
            typer.echo(f"{source.path}: the table is named {source.name}, which needs no quotes in SQL.", err=True)
    if steward.guessed:
        read = any(one.csv is not None and {*one.columns.values()} != {"anything"} for one in sources)
        basis = "; values were read only to guess types" if read else ", not from values"
        typer.echo(f"Guessed from names and types{basis}. Check these lines of {target}:", err=True)
        for guess in steward.guessed:
            typer.echo(f"  {guess}", err=True)
    if steward.doubts:
        typer.echo("Right only if no person has two rows. Else name the column that identifies the person:", err=True)
        for doubt in steward.doubts:
            typer.echo(f"  {doubt}", err=True)
    left = {table.name: [one.name for one in table.columns if one.value is None and one.form] for table in tables}
    if any(left.values()):
        typer.echo("Not declared; complete their comments in the policy to use them:", err=True)
        for table_name, columns in left.items():
            if columns:
                typer.echo(f"  {table_name}: {', '.join(columns)}", err=True)
    names = [table.name for table in tables]
    names += [one.name for table in tables for one in table.columns if one.value is not None]
    odd = dict.fromkeys(quoted(name) for name in names if quoted(name) != name)
    if odd:
        typer.echo(f"In SQL, write these names in double quotes: {', '.join(odd)}", err=True)
    for source in sources:
        if source.csv is not None:
            typer.echo(f"Next: {steward.import_line(source, target)}", err=True)
