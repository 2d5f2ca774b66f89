"""Questions from the terminal: `privet query`, `explain`, `schema` and `verify`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.addresses import is_address, masked
from privet.cli.failing import spending, tell
from privet.cli.output import STORED, Files, Format, chosen, kept, shows, styled, write
from privet.cli.stopping import stopped
from privet.cli.wording import in_terminal

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.planner import ReleasePlan
    from privet.query import Query
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
Assuming = Annotated[
    str | None, typer.Option(metavar="ROWS", help="Rows per group to assume when predicting the error of a mean.")
]
MaxRows = Annotated[str | None, typer.Option(metavar="ROWS", help="Maximum rows per person.")]
MaxGroups = Annotated[str | None, typer.Option(metavar="GROUPS", help="Maximum groups per person.")]
MaxRowsPerGroup = Annotated[
    str | None, typer.Option(metavar="ROWS", help="Maximum rows per person in each group; goes with --max-groups.")
]


_PAID = "the debit stays. The answer is kept: asking again costs nothing"


def query(
    sql: Statement = None,
    file: FromFile = None,
    policy: Policy = Path("privet.toml"),
    epsilon: Epsilon = None,
    within: Within = None,
    confidence: Confidence = "0.95",
    simultaneous: Simultaneous = False,
    assuming: Assuming = None,
    max_rows: MaxRows = None,
    max_groups: MaxGroups = None,
    max_rows_per_group: MaxRowsPerGroup = None,
    analyst: Analyst = "analyst",
    dataset: Dataset = None,
    form: Annotated[Format | None, typer.Option("--format", help="By default a table, or by the file's name.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file: .csv, .json, .parquet, .txt, .png, .svg or .pdf.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Save the certificate here.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    request_id: Annotated[str | None, typer.Option(help="Makes a retry safe: it is answered once.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Pay for a new draw.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost; ask nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    title: Annotated[str | None, typer.Option(help="The title of a picture.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEXT", help="What a picture shows for a column or key; repeatable."),
    ] = None,
    order: Annotated[
        list[str] | None,
        typer.Option(help="Groups of a picture: ascending, descending, or a key to be first; repeatable."),
    ] = None,
) -> None:
    """Ask a question in SQL, and pay for it.

    Example: privet query "SELECT region, COUNT(*) AS n FROM people GROUP BY region" --epsilon 0.5
    """
    with stopped(lambda: "nothing was spent"):
        how = _how(epsilon, within, confidence, simultaneous, assuming)
        caps = _caps(max_rows, max_groups, max_rows_per_group)
        text = _statement(sql, file)
        files = Files.checked(output, certificate, force=force, taken=kept(policy))
        kind = chosen(Format.JSON if as_json else form, output)
        style = styled(title, label, order, output)
        session = _session(policy, dataset, text, analyst)
    with stopped(lambda: _PAID if session.debited else "nothing was spent"), session:
        asked = _capped(session, text, caps)
        if dry_run:
            _explained(session, asked, how, fresh=fresh, as_json=kind is Format.JSON)
            return
        plan = session.plan(asked, **how)
        shows(plan, kind, output, style)
        with _told(session, plan):
            answer = session.release(asked, request_id=request_id, fresh=fresh, **how)
            uncertified = certificate and files.tried(certificate, answer.certificate.to_bytes)
            if uncertified:
                tell("NoFile", 1, f"there is no certificate: {uncertified}; {STORED}", head="")
            elif certificate is not None:
                print(certificate, file=sys.stderr)
            write(answer, kind, output, style, files)
            sys.stdout.flush()
        if uncertified:
            raise SystemExit(1)


@contextmanager
def _told(session: Session, plan: ReleasePlan) -> Iterator[None]:
    """Around what is paid for: an error knows whether it was."""
    from privet.cli.ledger import numbers
    from privet.errors import LedgerError, PrivetError
    from privet.guarantees import PureDP

    try:
        yield
    except OSError as error:
        if session.debited:
            error.add_note(STORED.capitalize())
        raise
    except PrivetError as error:
        if not isinstance(error, LedgerError):
            spending(error, numbers(plan.guarantee() if session.debited else PureDP.ZERO))
        raise


def explain(
    sql: Statement = None,
    file: FromFile = None,
    policy: Policy = Path("privet.toml"),
    epsilon: Epsilon = None,
    within: Within = None,
    confidence: Confidence = "0.95",
    simultaneous: Simultaneous = False,
    assuming: Assuming = None,
    max_rows: MaxRows = None,
    max_groups: MaxGroups = None,
    max_rows_per_group: MaxRowsPerGroup = None,
    analyst: Analyst = "analyst",
    dataset: Dataset = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """What a question would cost, how exact its answer would be, and why; nothing is read or spent.

    Example: privet explain "SELECT AVG(income) FROM people" --epsilon 0.5 --assuming 500
    """
    with stopped(lambda: "nothing was spent"):
        how = _how(epsilon, within, confidence, simultaneous, assuming)
        caps = _caps(max_rows, max_groups, max_rows_per_group)
        text = _statement(sql, file)
        with _session(policy, dataset, text, analyst) as session:
            asked = _capped(session, text, caps)
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
    from privet.encodings import why_not
    from privet.errors import UserError

    if file is not None:
        if sql is not None:
            raise UserError("give the SELECT, or a file with it, not both")
        return _asked(_contents(file))
    if sql in (None, "-"):
        if sys.stdin is None or sys.stdin.isatty():
            raise UserError('there is no question. Write, for example: privet query "SELECT COUNT(*) FROM people"')
        try:
            return _asked(sys.stdin.read())
        except UnicodeDecodeError as error:
            line, why = why_not(error.object, "question.sql")
            raise UserError(f"stdin, line {line}: {why}") from None
    assert sql is not None
    if Path(sql).suffix in {".csv", ".parquet", ".db", ".duckdb"} and " " not in sql.strip():
        raise UserError(f"{sql!r} is a file, and a question needs a policy that declares it. Write: privet init {sql}")
    return _asked(sql)


def _asked(sql: str) -> str:
    from privet.errors import UserError

    sql = sql.removeprefix("\ufeff")  # a mark at the start of a file from Windows
    if not sql.strip():
        raise UserError('the question is empty. Write, for example: privet query "SELECT COUNT(*) FROM people"')
    return sql


def _contents(file: Path) -> str:
    from privet.encodings import text_of, why_not
    from privet.errors import UserError

    if file.is_dir():
        raise UserError(f"{str(file)!r} is a folder. Name the file with the SELECT")
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no file {str(file)!r}") from None
    except OSError as error:
        raise UserError(f"the file {str(file)!r} can't be read: {error.strerror}") from None
    try:
        return text_of(raw)
    except UnicodeDecodeError:
        line, why = why_not(raw, file)
        raise UserError(f"{file}, line {line}: {why}") from None


def _how(
    epsilon: str | None, within: list[str] | None, confidence: str, simultaneous: bool, assuming: str | None
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
        "assuming": _whole("assuming", assuming, "500"),
    }


def _caps(max_rows: str | None, max_groups: str | None, max_rows_per_group: str | None) -> dict[str, int | None]:
    given = {"max_rows": max_rows, "max_groups": max_groups, "max_rows_per_group": max_rows_per_group}
    return {name: _whole(name, text, "5") for name, text in given.items()}


def _whole(name: str, text: str | None, example: str) -> int | None:
    from privet.exact import whole

    flag = f"--{name.replace('_', '-')}"
    return None if text is None else whole(text, name=flag, example=f"{flag} {example}")


def _session(policy: Path, dataset: str | None, asked: str, analyst: str) -> Session:
    from privet.policy import load
    from privet.session import Session

    found = load(policy)
    session = Session.open(found, dataset=dataset, asking=asked, analyst=analyst)
    if session.ledger.created:
        name = masked(found.ledger) if is_address(found.ledger) else Path(found.ledger).name
        print(
            f"Created a new ledger, {name}. If one existed before, stop: this one does not know what was already "
            "spent.",
            file=sys.stderr,
        )
    return session


def _capped(session: Session, text: str, caps: dict[str, int | None]) -> Query | str:
    """The question, with a cap of its own if one is given."""
    from privet.errors import UserError
    from privet.sql.source import without_python

    if all(cap is None for cap in caps.values()):
        return text
    question = session.parse(text)
    try:
        return question.cap(**caps)
    except UserError as error:
        why = without_python(str(error))
        for name in sorted(caps, key=len, reverse=True):
            why = re.sub(rf"(?<!-)\b{name}\b", f"--{name.replace('_', '-')}", why)
        raise UserError(why) from None


def _explained(
    session: Session, asked: Query | str, how: dict[str, Any], *, as_json: bool, fresh: bool = False
) -> None:
    if as_json:
        from privet.cli.ledger import numbers

        before = None if fresh else numbers(session.paid_before(asked, **how))
        tree = {**session.plan(asked, **how).to_json(), "paid_before": before}
        print(json.dumps(tree, indent=2, ensure_ascii=False))
    else:
        print(in_terminal(session.explain(asked, fresh=fresh, **how)))
