"""`privet import`: import a CSV into a Parquet file, with the columns of a policy or of the options."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli.output import Files

if TYPE_CHECKING:  # loaded when the command runs: `privet --help` is quick
    from privet.tables.schema import Column


def import_(
    csv: Annotated[str, typer.Argument(metavar="CSV", help="The CSV file.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="The Parquet file to write; by default, the source of --table."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="The policy that declares the columns; by default privet.toml, unless --column is given."),
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="The table of the policy; by default, the one whose source is the Parquet file.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="A column and its kind: age=integer, pay=number, smoker=boolean, region=text, born=date, "
            "seen=timestamp. Can be repeated; other columns are left out."
        ),
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="The column that identifies the person.")] = None,  # noqa: A002
    id_type: Annotated[str | None, typer.Option(help="The type of that column: text or integer.")] = None,
    separator: Annotated[str, typer.Option(help="Field separator; 'tab' for a tab.")] = ",",
    quote: Annotated[str, typer.Option(help="Quote character.")] = '"',
    encoding: Annotated[
        str, typer.Option(help="utf-8, or another encoding such as cp1252 (Windows, Excel) or latin-1.")
    ] = "utf-8",
    header: Annotated[
        str | None, typer.Option(help="All column names, separated by commas, if the file has no header line.")
    ] = None,
    newlines: Annotated[bool, typer.Option("--newlines", help="Quoted fields may contain line breaks.")] = False,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            help="A text for missing values, such as NA, in addition to the empty text; COLUMN=TEXT for one column. "
            "Can be repeated."
        ),
    ] = None,
    decimal: Annotated[str, typer.Option(help="Decimal separator: . or ,")] = ".",
    thousands: Annotated[str, typer.Option(help="Thousands separator, such as , or .")] = "",
    date_format: Annotated[
        list[str] | None,
        typer.Option(
            help="The date format, if not 2024-12-31, such as %d.%m.%Y; COLUMN=FORMAT for one column. Can be repeated."
        ),
    ] = None,
    true: Annotated[list[str] | None, typer.Option("--true", help="A word for true. Can be repeated.")] = None,
    false: Annotated[list[str] | None, typer.Option("--false", help="A word for false. Can be repeated.")] = None,
    bad_rows: Annotated[str, typer.Option(help="What to do with bad rows: fail, or missing.")] = "fail",
    bad_values: Annotated[str, typer.Option(help="What to do with bad values: fail, or missing.")] = "fail",
    allow_missing: Annotated[
        list[str] | None,
        typer.Option(help="A column that may be empty in every row, or contain none of its keys. Can be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Import a CSV into a Parquet file. With one bad value, nothing is written. The report is for the steward.

    Example: privet import people.csv -o people.parquet --policy privet.toml
    """
    from privet.errors import Subject, UserError, write
    from privet.sources import import_csv

    if not Path(csv).expanduser().is_file():
        path = str(Path(csv).expanduser().absolute())
        raise UserError(f"there is no file {csv!r} (looked for {path!r})", subject=Subject("file", csv))
    if column and (policy or table):
        raise UserError("declare the columns either in a policy or with --column, not both")
    if column:
        target, columns, person, cap = output, _declared(column), id, None
    else:
        target, declared, person, cap = _from_policy(csv, output, policy, table)
        columns, person, cap = {**declared}, id or person, cap if id in (None, person) else None
    if target is None:
        raise UserError("no output file was named", remedy=write(terminal=f"-o {shlex.quote(Path(csv).stem)}.parquet"))
    kinds: dict[str, Any] = {"id_type": id_type or _id_type(columns, person)}
    Files.checked(Path(target).expanduser(), force=force, taken=_taken(csv, policy, table))
    try:
        with _progress() as progress:
            report = import_csv(
                csv,
                target,
                columns=columns,
                id=person,
                cap=cap,
                separator=_character(separator),
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
    except OSError as error:
        raise UserError(f"nothing was imported: {target!r} can't be written: {error.strerror or error}") from None
    print(report.text(flags=True), file=sys.stderr)
    print(target)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], object] | None]:
    """A progress bar on a terminal; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    with typer.progressbar(length=100, label="reading", file=sys.stderr) as bar:
        yield lambda done, total: bar.update(100 * done // max(total, 1) - bar.pos)


def _formats(options: list[str], columns: Mapping[str, Column | str]) -> dict[str, str]:
    """The date formats by column; the empty name is for all other columns."""
    formats = {}
    for option in options:
        name, equals, form = option.partition("=")
        for_column = bool(equals) and (name in columns or "%" not in name)
        formats[name if for_column else ""] = form if for_column else option
    return formats


def _missing(options: list[str], columns: Container[str | None]) -> dict[str, list[str]]:
    """The texts for missing values by column; the empty name is for all columns."""
    texts: dict[str, list[str]] = {"": [""]}
    for option in options:
        name, equals, text = option.partition("=")
        for_column = bool(equals and name) and name in columns
        texts.setdefault(name if for_column else "", []).append(text if for_column else option)
    return texts


def _character(separator: str) -> str:
    return "\t" if separator in ("\\t", "tab") else separator


def _declared(options: list[str]) -> dict[str, Column | str]:
    from privet.errors import UserError, write
    from privet.policy.shorthand import kind_only

    columns: dict[str, Column | str] = {}
    for option in options:
        name, equals, kind = option.partition("=")
        if not equals or not name or not kind.strip():
            raise UserError(f"{option!r} does not declare a column", remedy=write(terminal="--column age=integer"))
        columns[name] = kind_only(name, kind)
    return columns


def _id_type(columns: Mapping[str, Column | str], person: str | None) -> str:
    """The type of the id: that of its column, if it is also declared as one."""
    from privet.sources.readings import reading_of

    column = columns.get(person or "")
    return "integer" if column is not None and reading_of(column) in ("integer", "key") else "text"


def _from_policy(
    csv: str, output: str | None, policy: str | None, table: str | None
) -> tuple[str, dict[str, Column], str | None, int | None]:
    """The output file, the columns, the person's column and the cap, as a policy declares them."""
    from privet.errors import Remedy, UserError, write
    from privet.policy import load
    from privet.privacy.adjacency import Person

    if policy is None and not Path("privet.toml").exists():
        line = f"privet import {csv} -o {Path(csv).stem}.parquet --id person_id --column age=integer"
        raise UserError("no columns are declared, in a policy or with --column", remedy=write(terminal=line))
    contract = load(policy or "privet.toml")
    tables = {name: one for dataset in contract.datasets.values() for name, one in dataset.declared.items()}
    if table is not None:
        declared = contract.table(table)
    else:
        wanted = os.path.normpath(Path(output or Path(csv).with_suffix(".parquet")).absolute())
        matches = [one for one in tables.values() if wanted in map(os.path.normpath, one.files)]
        if not matches:
            raise UserError(
                f"no table in {contract.document.where} has the source {wanted!r}",
                allowed=f"The tables are: {', '.join(tables)}",
                remedy=Remedy("Choose one with --table"),
            )
        declared = matches[0]
    if not declared.files:
        raise UserError(f"the table {declared.name!r} is in a database, so no file is imported for it")
    target = output or os.path.relpath(declared.files[0])
    columns = declared.columns()
    if not columns:
        raise UserError(
            f"{contract.document.where} declares no column of {declared.name!r}",
            remedy=Remedy(f"Complete a line of [datasets.{declared.place[1]}.tables.{declared.name}.columns] first"),
        )
    if not isinstance(declared.protect, Person):
        return target, columns, None, None
    return target, columns, declared.protect.id, declared.protect.max_rows


def _taken(csv: str, policy: str | None, table: str | None) -> Callable[[Path], bool]:
    """Files that must not be overwritten: the CSV, and the steward's files other than the sources to import."""
    from privet.errors import UserError
    from privet.policy import load
    from privet.policy.policy import holds
    from privet.system.files import among

    try:
        contract = load(policy or "privet.toml")
    except UserError:  # missing or invalid: then the options declare the columns
        return lambda path: among(path, [Path(csv).expanduser(), "privet.toml"])
    tables = [one for dataset in contract.datasets.values() for one in dataset.declared.values()]
    sources = [file for one in tables if table is None or one is contract.table(table) for file in one.files]

    def taken(path: Path) -> bool:
        imported = any(holds(source, path) for source in sources)
        return among(path, [Path(csv).expanduser()]) or (contract.owns(path) and not imported)

    return taken
