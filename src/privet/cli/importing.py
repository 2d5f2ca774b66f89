"""`privet import`: a CSV into a Parquet file, once and strictly, with the columns of a policy or of the flags."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli.output import Files

if TYPE_CHECKING:  # loaded when the command runs: `privet --help` is quick
    from privet.errors import UserError
    from privet.relation.schema import Column

_IN_PYTHON = {
    "overwrite=True": "--force",
    'header=["id", "age"]': "--header id,age",
    'separator=";"': "--separator ';'",
    'decimal=","': "--decimal ,",
    'thousands=","': "--thousands ,",
    'date_format="%d.%m.%Y", or date_format={"born": "%d.%m.%Y"}': (
        "--date-format %d.%m.%Y, or --date-format born=%d.%m.%Y"
    ),
    'true=["ja"], false=["nein"]': "--true ja --false nein",
    'pv.import_csv("people.csv", "people.parquet", columns={"age": pv.integer(0, 110)}, id="person_id")': (
        "privet import people.csv -o people.parquet --id person_id --column age=integer"
    ),
}


def import_(
    csv: Annotated[str, typer.Argument(metavar="CSV", help="The CSV file.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="The Parquet file to write; by default the source of --table."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="The policy that declares the columns; by default privet.toml, if no --column is given."),
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Its table; by default the one whose source is the Parquet file.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="A column and its kind: age=integer, pay=number, smoker=boolean, region=text, born=date, "
            "seen=timestamp. May be repeated; others are left out."
        ),
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="The column that identifies the person.")] = None,  # noqa: A002
    id_type: Annotated[str | None, typer.Option(help="Its type: text or integer.")] = None,
    separator: Annotated[str, typer.Option(help="Field separator; 'tab' for a tab.")] = ",",
    quote: Annotated[str, typer.Option(help="Quote character.")] = '"',
    encoding: Annotated[
        str, typer.Option(help="utf-8, or another such as cp1252 (Windows, Excel) or latin-1.")
    ] = "utf-8",
    header: Annotated[
        str | None, typer.Option(help="All column names, separated by commas, if the file has no header.")
    ] = None,
    newlines: Annotated[bool, typer.Option("--newlines", help="Quoted fields may contain line breaks.")] = False,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            help="A text that means missing, such as NA, in addition to the empty text. COLUMN=TEXT for one column. "
            "May be repeated."
        ),
    ] = None,
    decimal: Annotated[str, typer.Option(help="Decimal separator: . or ,")] = ".",
    thousands: Annotated[str, typer.Option(help="Thousands separator, such as , or .")] = "",
    date_format: Annotated[
        list[str] | None,
        typer.Option(
            help="The date format, if not 2024-12-31, such as %d.%m.%Y; COLUMN=FORMAT for one column. May be repeated."
        ),
    ] = None,
    true: Annotated[list[str] | None, typer.Option("--true", help="A word for true. May be repeated.")] = None,
    false: Annotated[list[str] | None, typer.Option("--false", help="A word for false. May be repeated.")] = None,
    bad_rows: Annotated[str, typer.Option(help="What to do with bad rows: fail, or missing.")] = "fail",
    bad_values: Annotated[str, typer.Option(help="What to do with bad values: fail, or missing.")] = "fail",
    allow_missing: Annotated[
        list[str] | None,
        typer.Option(help="A column that may have no value at all, or none of its keys. May be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Import a CSV into a Parquet file, strictly: one bad value, and nothing is written. The report is for the steward.

    Example: privet import people.csv -o people.parquet --policy privet.toml
    """
    from privet.errors import UserError
    from privet.sources import import_csv
    from privet.sources.hints import Refused

    if not Path(csv).expanduser().is_file():
        raise UserError(f"there is no file {csv!r} (looked for {str(Path(csv).expanduser().absolute())!r}).")
    if column and (policy or table):
        raise UserError("columns come from a policy or from --column, not from both.")
    if column:
        target, columns, person, cap = output, _declared(column), id, None
    else:
        target, declared, person, cap = _of_policy(csv, output, policy, table)
        columns, person, cap = {**declared}, id or person, cap if id in (None, person) else None
    if target is None:
        raise UserError(f"where to? Write, for example: privet import {csv} -o {Path(csv).stem}.parquet")
    kinds: dict[str, Any] = {"id_type": id_type or _id_type(columns, person)}
    place = Path(target).expanduser()
    Files.checked(place, force=force, taken=_taken(csv, policy, table))
    try:
        with _progress() as progress:
            report = import_csv(
                csv,
                target,
                columns=columns,
                id=person,
                cap=cap,
                separator=_sign(separator),
                quote=quote,
                encoding=encoding,
                header=True if header is None else header.split(","),
                newlines=newlines,
                missing=_missing(missing or [], {*columns, person}),
                decimal=decimal,
                thousands=thousands,
                date_format=_formats(date_format or [], columns),
                true=true or (),
                false=false or (),
                bad_rows=bad_rows,  # type: ignore[arg-type]
                bad_values=bad_values,  # type: ignore[arg-type]
                allow_missing=allow_missing or (),
                overwrite=force,
                progress=progress,
                **kinds,
            )
    except Refused as error:
        raise UserError(error.text(flags=True)) from None
    except UserError as error:
        raise _in_the_terminal(error) from None
    except OSError as error:
        raise UserError(f"nothing was imported: {target!r} can't be written: {error.strerror or error}") from None
    print(report.text(flags=True), file=sys.stderr)
    print(target)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], object] | None]:
    """A bar on a terminal, gone when all is read; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    with Progress(
        "reading", BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def _formats(given: list[str], columns: Mapping[str, Column | str]) -> dict[str, str]:
    """The formats of dates by column; under the empty name, that of all others."""
    made = {}
    for each in given:
        name, sign, form = each.partition("=")
        named = bool(sign) and (name in columns or "%" not in name)
        made[name if named else ""] = form if named else each
    return made


def _missing(given: list[str], columns: Container[str | None]) -> dict[str, list[str]]:
    """The texts for missing values by column; under the empty name, those of all columns."""
    made: dict[str, list[str]] = {"": [""]}
    for each in given:
        name, sign, text = each.partition("=")
        named = bool(sign and name) and name in columns
        made.setdefault(name if named else "", []).append(text if named else each)
    return made


def _sign(separator: str) -> str:
    return "\t" if separator in ("\\t", "tab") else separator


def _declared(given: list[str]) -> dict[str, Column | str]:
    from privet.errors import UserError
    from privet.policy.shorthand import kind_only

    made: dict[str, Column | str] = {}
    for each in given:
        name, sign, line = each.partition("=")
        if not sign or not name or not line.strip():
            raise UserError(f"{each!r} declares no column. Write, for example: --column age=integer")
        made[name] = kind_only(name, line)
    return made


def _id_type(columns: Mapping[str, Column | str], person: str | None) -> str:
    """An id that is declared as a column, too, is read as that."""
    from privet.sources.kinds import declared

    column = columns.get(person or "")
    kind = column if isinstance(column, str) or column is None else declared(column.type)
    return "integer" if kind in ("integer", "key") else "text"


def _of_policy(
    csv: str, output: str | None, policy: str | None, table: str | None
) -> tuple[str, dict[str, Column], str | None, int | None]:
    """Where to, which columns, whose rows they are, and how many of a person count, as a policy declares it."""
    from privet.distances import Person
    from privet.errors import UserError
    from privet.policy import load

    if policy is None and not Path("privet.toml").exists():
        raise UserError(
            "columns are declared in a policy or by --column. Write, for example: "
            f"privet import {csv} -o {Path(csv).stem}.parquet --id person_id --column age=integer"
        )
    read = load(policy or "privet.toml")
    known = {name: each for dataset in read.datasets.values() for name, each in dataset.declared.items()}
    if table is not None:
        one = read.table(table)
    else:
        wanted = os.path.normpath(Path(output or Path(csv).with_suffix(".parquet")).absolute())
        able = [each for each in known.values() if wanted in map(os.path.normpath, each.files)]
        if not able:
            names = ", ".join(known)
            raise UserError(
                f"no table of {read.document.where} has the source {wanted!r}. Name one with --table: {names}"
            )
        one = able[0]
    target = output or os.path.relpath(one.files[0])
    columns = one.columns()
    if not columns:
        raise UserError(f"{read.document.where} declares no column of {one.name!r}. Declare them first.")
    if not isinstance(one.protect, Person):
        return target, columns, None, None
    return target, columns, one.protect.id, one.protect.max_rows


def _taken(csv: str, policy: str | None, table: str | None) -> Callable[[Path], bool]:
    """What must not be written over: the CSV, and what is the steward's, but for the sources that may be imported."""
    from privet.errors import UserError
    from privet.files import among
    from privet.policy import load
    from privet.policy.contract import holds

    try:
        read = load(policy or "privet.toml")
    except UserError:  # none here, or none that is valid; then the columns are given by flags
        return lambda path: among(path, [Path(csv).expanduser(), "privet.toml"])
    tables = [each for dataset in read.datasets.values() for each in dataset.declared.values()]
    sources = [file for each in tables if table is None or each is read.table(table) for file in each.files]

    def taken(path: Path) -> bool:
        imported = any(holds(source, path) for source in sources)
        return among(path, [Path(csv).expanduser()]) or (read.owns(path) and not imported)

    return taken


def _in_the_terminal(error: UserError) -> UserError:
    """The same refusal, with flags in place of Python."""
    text = str(error)
    for python, flag in _IN_PYTHON.items():
        text = text.replace(python, flag)
    return type(error)(text)
