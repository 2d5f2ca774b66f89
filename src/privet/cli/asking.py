"""Questions from the terminal: `privet query`, `explain`, `schema` and `verify`."""

from __future__ import annotations

import json
import math
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.planner import ReleasePlan
    from privet.release import Release
    from privet.session import Session

Statement = Annotated[str | None, typer.Argument(metavar="SQL", help="A SELECT; - or nothing: from stdin.")]
FromFile = Annotated[Path | None, typer.Option("--file", "-f", help="Read the SELECT from this file.")]
Policy = Annotated[Path, typer.Option(help="The steward's policy.")]
Dataset = Annotated[str | None, typer.Option(help="The dataset, if the tables of the question don't tell.")]
Analyst = Annotated[str, typer.Option(help="Who asks; caps are for each analyst.")]
Epsilon = Annotated[str | None, typer.Option(help="What the question may cost, such as 0.5 or 1/3.")]
Within = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN=ERROR", help="Errors to keep to, in place of epsilon; repeatable.")
]
Confidence = Annotated[str, typer.Option(help="How often intervals and errors hold.")]
Simultaneous = Annotated[bool, typer.Option("--simultaneous", help="All intervals hold together.")]
Assuming = Annotated[int | None, typer.Option(help="Rows in a group, for errors of means told before.")]


class Format(StrEnum):
    """What an answer is printed as."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    CHART = "chart"


def query(
    sql: Statement = None,
    file: FromFile = None,
    policy: Policy = Path("privet.toml"),
    epsilon: Epsilon = None,
    within: Within = None,
    confidence: Confidence = "0.95",
    simultaneous: Simultaneous = False,
    assuming: Assuming = None,
    analyst: Analyst = "analyst",
    dataset: Dataset = None,
    form: Annotated[Format | None, typer.Option("--format", help="By default a table, or by the file's name.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file: .csv, .json, .parquet, .txt, .png or .svg.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Save the certificate here.")] = None,
    request_id: Annotated[str | None, typer.Option(help="Makes a retry safe: it is answered once.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Pay for a new draw.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost; ask nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Ask a question in SQL, and pay for it.

    Example: privet query "SELECT region, COUNT(*) AS n FROM people GROUP BY region" --epsilon 0.5
    """
    how = _how(epsilon, within, confidence, simultaneous, assuming)
    asked = _statement(sql, file)
    _writable(policy, output, certificate)
    kind = _format(Format.JSON if as_json else form, output)
    with _session(policy, dataset, asked, analyst) as session:
        if dry_run:
            _explained(session, asked, how, as_json=kind is Format.JSON)
            return
        _shows(session.plan(asked, **how), kind, output)
        answer = session.release(asked, request_id=request_id, fresh=fresh, **how)
    if certificate is not None:
        answer.certificate.save(certificate)
        print(certificate, file=sys.stderr)
    _write(answer, kind, output)


def explain(
    sql: Statement = None,
    file: FromFile = None,
    policy: Policy = Path("privet.toml"),
    epsilon: Epsilon = None,
    within: Within = None,
    confidence: Confidence = "0.95",
    simultaneous: Simultaneous = False,
    assuming: Assuming = None,
    analyst: Analyst = "analyst",
    dataset: Dataset = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """What a question would cost, how exact its answer would be, and why; nothing is read or spent.

    Example: privet explain "SELECT AVG(income) FROM people" --epsilon 0.5 --assuming 500
    """
    how = _how(epsilon, within, confidence, simultaneous, assuming)
    asked = _statement(sql, file)
    with _session(policy, dataset, asked, analyst) as session:
        _explained(session, asked, how, as_json=as_json)


def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="The file of a certificate.")],
    key: Annotated[Path | None, typer.Option(help="The steward's public key.")] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger: a file, or a postgresql:// address.")] = None,
    receipt: Annotated[str | None, typer.Option(help="A receipt that `privet ledger head` printed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Check a certificate without the data: the rules, the signature, the debit.

    Example: privet verify answer.json --key steward.key.pub --ledger people.ledger
    """
    from dataclasses import asdict

    from privet.release import verify as check

    found = check(certificate, key=key, ledger=ledger, receipt=receipt)
    print(json.dumps(asdict(found), indent=2, ensure_ascii=False) if as_json else found)


# --- what is asked --------------------------------------------------------------------------------


def _statement(sql: str | None, file: Path | None) -> str:
    from privet.errors import UserError

    if file is not None:
        if sql is not None:
            raise UserError("give the SELECT, or a file with it, not both")
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"the file {str(file)!r} can't be read: {error}") from None
    if sql in (None, "-"):
        if sys.stdin is None or sys.stdin.isatty():
            raise UserError('there is no question. Write, for example: privet query "SELECT COUNT(*) FROM people"')
        try:
            return sys.stdin.read()
        except UnicodeDecodeError as error:
            raise UserError(f"what stands on stdin can't be read: {error}") from None
    assert sql is not None
    if Path(sql).suffix in {".csv", ".parquet", ".db", ".duckdb"} and " " not in sql.strip():
        raise UserError(f"{sql!r} is a file, and a question needs a policy that declares it. Write: privet init {sql}")
    return sql


def _how(
    epsilon: str | None, within: list[str] | None, confidence: str, simultaneous: bool, assuming: int | None
) -> dict[str, Any]:
    from privet.errors import UserError

    errors = {}
    for each in within or ():
        name, sign, error = each.rpartition("=")
        if not sign or not name or not error:
            raise UserError(f"within is a column and its error, not {each!r}. Write, for example: --within n=50")
        if name in errors:
            raise UserError(f"--within {name} is given twice")
        errors[name] = error
    return {
        "epsilon": epsilon,
        "within": errors or None,
        "confidence": confidence,
        "simultaneous": simultaneous,
        "assuming": assuming,
    }


def _session(policy: Path, dataset: str | None, asked: str, analyst: str) -> Session:
    from privet.policy import load
    from privet.session import Session

    found = load(policy)
    new = "://" not in found.ledger and not Path(found.ledger).exists()
    session = Session.open(found, dataset=dataset, asking=asked, analyst=analyst)
    if new:
        name = Path(found.ledger).name
        print(
            f"{name} is a new ledger. If there was one before, stop: what was spent is not in this one", file=sys.stderr
        )
    return session


def _explained(session: Session, asked: str, how: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(session.plan(asked, **how).to_json(), indent=2, ensure_ascii=False))
    else:
        print(session.explain(asked, **how))


# --- what is answered -----------------------------------------------------------------------------

_BY_NAME = {".csv": Format.CSV, ".json": Format.JSON, ".parquet": Format.PARQUET, ".txt": Format.TABLE}
_PICTURES = {".png", ".svg", ".pdf"}


def _writable(policy: Path, *files: Path | None) -> None:
    """Refused here, before anything is paid: what can't be written, and what must not be written over."""
    import os

    from privet.errors import UserError
    from privet.policy import load

    given = [file for file in files if file is not None]
    taken = load(policy).files() if given else set()
    for file in given:
        if not file.parent.is_dir():
            raise UserError(f"there is no folder {str(file.parent)!r}")
        if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
            raise UserError(f"{str(file)!r} can't be written")
        if file.resolve() in taken or [other.resolve() for other in given].count(file.resolve()) > 1:
            raise UserError(f"{str(file)!r} is used already: choose another file")


def _format(form: Format | None, output: Path | None) -> Format:
    """Refused here, before anything is paid."""
    from privet.errors import UserError

    suffix = "" if output is None else output.suffix.lower()
    if suffix in _PICTURES:
        if form not in (None, Format.CHART):
            raise UserError(f"a {suffix} file is a chart. Leave --format out")
        return Format.CHART
    if form is None:
        form = _BY_NAME.get(suffix, Format.TABLE)
        if suffix and suffix not in _BY_NAME:
            names = ", ".join([*_BY_NAME, *sorted(_PICTURES)])
            raise UserError(f"files are {names}; for others say which --format")
    if form is Format.PARQUET and output is None:
        raise UserError("Parquet goes to a file. Write, for example: -o answer.parquet")
    return form


def _shows(plan: ReleasePlan, form: Format, output: Path | None) -> None:
    """Refuse, before anything is paid, an answer that could not be shown in this form."""
    from privet.errors import UserError
    from privet.release.answer import BESIDE
    from privet.release.pictures import MOST_PANELS

    shown = [name for name, _ in plan.columns if name not in plan.query.arrangement.hidden]
    if output is not None and output.suffix.lower() in _PICTURES and len(shown) > MOST_PANELS:
        raise UserError(f"a picture shows at most {MOST_PANELS} columns, not {len(shown)}. Ask for fewer, or a table")
    if form not in (Format.CSV, Format.JSON, Format.PARQUET):
        return
    names = [key.name for key in plan.query.keys]
    names += [name + end for name, _ in plan.columns for end in BESIDE]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"with intervals, two columns would be called {twice[0]!r}. Rename one with AS")


def _write(answer: Release, form: Format, output: Path | None) -> None:
    match form:
        case Format.PARQUET:
            import pyarrow.parquet as pq

            pq.write_table(answer.to_arrow(), output)
        case Format.CHART if output is not None and output.suffix.lower() in _PICTURES:
            from privet.errors import UserError

            try:
                answer.plot(path=output)
            except UserError as error:  # it is paid for, so it is shown in another form
                sys.stdout.write(f"{answer}\n")
                print(f"there is no picture: {error}", file=sys.stderr)
                return
        case _:
            text = _text(answer, form)
            if output is None:
                sys.stdout.write(text)
            else:
                output.write_text(text, encoding="utf-8")
    if form not in (Format.TABLE, Format.CHART) or output is not None:
        if output is not None:
            print(output, file=sys.stderr)
        for note in answer.notes():
            print(note, file=sys.stderr)


def _text(answer: Release, form: Format) -> str:
    match form:
        case Format.CSV:
            import io

            import pyarrow.csv as pc

            sink = io.BytesIO()
            pc.write_csv(answer.to_arrow(), sink)
            return sink.getvalue().decode()
        case Format.JSON:
            from privet.cli.ledger import numbers

            rows = [{name: _plain(x) for name, x in row.items()} for row in answer.to_dicts()]
            tree = {
                "rows": rows,
                "confidence": answer.confidence,
                "spent": numbers(answer.spent),
                "left": numbers(answer.remaining),
                "notes": answer.notes(),
            }
            return json.dumps(tree, indent=2, ensure_ascii=False, default=str, allow_nan=False) + "\n"
        case Format.CHART:
            import shutil

            width = shutil.get_terminal_size((100, 24)).columns
            return "\n".join([answer.chart(width), "", *answer.notes()]) + "\n"
        case _:
            return f"{answer}\n"


def _plain(x: Any) -> Any:
    """What is infinite is null: JSON has no word for it."""
    return None if isinstance(x, float) and not math.isfinite(x) else x
