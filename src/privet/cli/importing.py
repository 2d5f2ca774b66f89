"""`privet import`: a CSV into a Parquet file, once and strictly, with the columns of a policy or of the flags."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # loaded when the command runs: `privet --help` is quick
    from privet.errors import UserError
    from privet.relation.schema import Column

_IN_PYTHON = {
    'bad_rows="missing"': "--bad-rows missing",
    'bad_values="missing"': "--bad-values missing",
    "overwrite=True": "--force",
    'header=["id", "age"]': "--header id,age",
    'separator=";"': "--separator ';'",
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
    id: Annotated[str | None, typer.Option("--id", help="The column that tells whose row it is.")] = None,  # noqa: A002
    id_type: Annotated[str | None, typer.Option(help="What it holds: text or integer.")] = None,
    separator: Annotated[str, typer.Option(help="What stands between fields.")] = ",",
    quote: Annotated[str, typer.Option(help="What stands around a field.")] = '"',
    decimal: Annotated[str, typer.Option(help="What stands before decimals: . or ,")] = ".",
    encoding: Annotated[str, typer.Option(help="utf-8, ascii, latin-1 or cp1252.")] = "utf-8",
    header: Annotated[
        str | None, typer.Option(help="The names of all columns, with commas, if the first line has none.")
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(help="A text that stands for a missing value, besides the empty one. May be repeated."),
    ] = None,
    newlines: Annotated[bool, typer.Option("--newlines", help="Fields in quotes may have line breaks.")] = False,
    bad_rows: Annotated[str, typer.Option(help="What to do with bad rows: fail, or missing.")] = "fail",
    bad_values: Annotated[str, typer.Option(help="What to do with bad values: fail, or missing.")] = "fail",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Import a CSV into a Parquet file, strictly: one bad value, and nothing is written. The report is for the steward.

    Example: privet import people.csv -o people.parquet --policy privet.toml
    """
    from privet.errors import UserError
    from privet.sources import import_csv

    if column and (policy or table):
        raise UserError("columns come from a policy or from --column, not from both.")
    if column:
        target, columns, person = output, _declared(column), id
    else:
        target, columns, person = _of_policy(csv, output, policy, table)
        person = id or person
    if target is None:
        raise UserError(f"where to? Write, for example: privet import {csv} -o {Path(csv).stem}.parquet")
    kinds: dict[str, Any] = {"id_type": id_type or _id_type(columns, person)}
    try:
        report = import_csv(
            csv,
            target,
            columns=columns,
            id=person,
            separator=_sign(separator),
            quote=quote,
            decimal=decimal,
            encoding=encoding,
            header=True if header is None else header.split(","),
            missing=("", *(missing or ())),
            newlines=newlines,
            bad_rows=bad_rows,  # type: ignore[arg-type]
            bad_values=bad_values,  # type: ignore[arg-type]
            overwrite=force,
            **kinds,
        )
    except UserError as error:
        raise _in_the_terminal(error) from None
    print(report, file=sys.stderr)
    print(target)


def _sign(separator: str) -> str:
    return "\t" if separator in ("\\t", "tab") else separator


def _declared(given: list[str]) -> dict[str, Column]:
    from privet.errors import UserError
    from privet.policy.shorthand import kind_only

    made: dict[str, Column] = {}
    for each in given:
        name, sign, line = each.partition("=")
        if not sign or not name or not line.strip():
            raise UserError(f"{each!r} declares no column. Write, for example: --column age=integer")
        made[name] = kind_only(name, line)
    return made


def _id_type(columns: dict[str, Column], person: str | None) -> str:
    """An id that is declared as a column, too, is read as that."""
    from privet.sources.kinds import declared

    if person in columns and declared(columns[person].type) in ("integer", "key"):
        return "integer"
    return "text"


def _of_policy(
    csv: str, output: str | None, policy: str | None, table: str | None
) -> tuple[str, dict[str, Column], str | None]:
    """Where to, which columns, and whose rows they are, as a policy declares it."""
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
    return target, columns, one.protect.id if isinstance(one.protect, Person) else None


def _in_the_terminal(error: UserError) -> UserError:
    """The same refusal, with flags in place of Python."""
    text = str(error)
    for python, flag in _IN_PYTHON.items():
        text = text.replace(python, flag)
    return type(error)(text)
