"""Questions from the terminal: `privet query` and `privet explain`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli.exits import tell
from privet.cli.interrupts import stopped
from privet.cli.options import AsJson, Force, Question, takes
from privet.cli.output import STORED, Files, Format, chosen, kept, shows, styled, write
from privet.system.addresses import is_address, masked

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.planner import ReleasePlan
    from privet.session import Session
    from privet.tables.query import Query

_PAID = "the debit stays. The answer is stored: asking again is free"
_EXAMPLE = 'privet query "SELECT COUNT(*) FROM people" --epsilon 0.5'


@takes(Question)
def query(
    question: Question,
    form: Annotated[
        Format | None, typer.Option("--format", help="By default a table, or by the name of the file.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file: .csv, .json, .parquet, .txt, .png, .svg or .pdf.")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Save the certificate to this file.")] = None,
    force: Force = False,
    request_id: Annotated[
        str | None, typer.Option(help="An id that makes a retry safe: the question is paid for once.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Pay for new noise even if the answer is stored.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what it would cost, and ask nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    title: Annotated[str | None, typer.Option(help="The title of a chart.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEXT", help="What a chart calls a column or key. Can be repeated."),
    ] = None,
    order: Annotated[
        list[str] | None,
        typer.Option(help="The order of groups in a chart: ascending, descending, or a key to be first; repeatable."),
    ] = None,
) -> None:
    """Ask a question in SQL, and pay for it.

    Example: privet query "SELECT region, COUNT(*) AS n FROM people GROUP BY region" --epsilon 0.5
    """
    with stopped(lambda: "nothing was spent"):
        how, caps, text = _how(question), _caps(question), _statement(question.sql, question.file)
        files = Files.checked(output, certificate, force=force, taken=kept(question.policy))
        kind = chosen(Format.JSON if as_json else form, output)
        style = styled(title, label, order, output)
        session = _session(question, text)
    with stopped(lambda: _PAID if session.debited else "nothing was spent"), session:
        plan = session.plan(_capped(session, text, caps), **how)
        if dry_run:
            _explained(session, plan, fresh=fresh, as_json=kind is Format.JSON)
            return
        shows(plan, kind, output, style)
        with _priced(session, plan):
            answer = session.release(plan, request_id=request_id, fresh=fresh)
            uncertified = certificate and files.tried(certificate, answer.certificate.to_bytes)
            if uncertified:
                tell("NoFile", 1, f"the certificate was not saved: {uncertified}; {STORED}", head="")
            elif certificate is not None:
                print(certificate, file=sys.stderr)
            write(answer, kind, output, style, files)
            sys.stdout.flush()
        if uncertified:
            raise SystemExit(1)


@contextmanager
def _priced(session: Session, plan: ReleasePlan) -> Iterator[None]:
    """Around what is paid for: an error says whether it was."""
    from privet.errors import LedgerError, PrivetError
    from privet.privacy.guarantees import PureDP
    from privet.privacy.guarantees.budgets import amount

    try:
        yield
    except OSError as error:
        if session.debited:
            error.add_note(STORED.capitalize())
        raise
    except PrivetError as error:
        if not isinstance(error, LedgerError):
            error.spent = amount(plan.guarantee() if session.debited else PureDP.ZERO)
        raise


@takes(Question)
def explain(question: Question, as_json: AsJson = False) -> None:
    """Show what a question would cost, how accurate its answer would be, and why. Nothing is read or spent.

    Example: privet explain "SELECT AVG(income) FROM people" --epsilon 0.5 --assuming 500
    """
    with stopped(lambda: "nothing was spent"):
        how, caps, text = _how(question), _caps(question), _statement(question.sql, question.file)
        with _session(question, text) as session:
            _explained(session, session.plan(_capped(session, text, caps), **how), as_json=as_json)


# --- the question ---------------------------------------------------------------------------------


def _statement(sql: str | None, file: Path | None) -> str:
    from privet.errors import UserError, write
    from privet.system.encodings import why_not

    if file is not None:
        if sql is not None:
            raise UserError("give either the SELECT or a file with it, not both")
        return _asked(_contents(file))
    if sql in (None, "-"):
        if sys.stdin is None or sys.stdin.isatty():
            raise UserError("there is no question", remedy=write(terminal=_EXAMPLE))
        try:
            return _asked(sys.stdin.read())
        except UnicodeDecodeError as error:
            line, why = why_not(error.object, "question.sql")
            raise UserError(f"stdin, line {line}: {why}") from None
    assert sql is not None
    if Path(sql).suffix in {".csv", ".parquet", ".db", ".duckdb"} and " " not in sql.strip():
        command = f"privet init {shlex.quote(sql)}"
        raise UserError(
            f"{sql!r} is a file, not a question",
            remedy=write(terminal=command, advice="To ask about a file, declare it in a policy first", exact=True),
        )
    return _asked(sql)


def _asked(sql: str) -> str:
    from privet.errors import UserError, write

    sql = sql.removeprefix("\ufeff")  # a mark at the start of a file from Windows
    if not sql.strip():
        raise UserError("the question is empty", remedy=write(terminal=_EXAMPLE))
    return sql


def _contents(file: Path) -> str:
    from privet.errors import Remedy, UserError
    from privet.system.encodings import text_of, why_not

    if file.is_dir():
        raise UserError(f"{str(file)!r} is a folder", remedy=Remedy("Give the file that contains the SELECT"))
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


def _how(question: Question) -> dict[str, Any]:
    from privet.errors import UserError, write

    errors = {}
    for each in question.within or ():
        name, sign, error = each.rpartition("=")
        if not sign or not name or not error:
            line = write(terminal="--within n=50")
            raise UserError(f"--within takes a column and its error, not {each!r}", remedy=line)
        if name in errors:
            raise UserError(f"--within {name} is given twice")
        errors[name] = error
    return {
        "epsilon": question.epsilon,
        "within": errors or None,
        "confidence": question.confidence,
        "simultaneous": question.simultaneous,
        "assuming": _whole("assuming", question.assuming, 500),
    }


def _caps(question: Question) -> dict[str, int | None]:
    names = ("max_rows", "max_groups", "max_rows_per_group")
    return {name: _whole(name, getattr(question, name), 5) for name in names}


def _whole(name: str, text: str | None, example: int) -> int | None:
    from privet.errors import argument
    from privet.exact import whole

    flag = f"--{name.replace('_', '-')}"
    return None if text is None else whole(text, name=flag, example=argument(name, example))


def _session(question: Question, text: str) -> Session:
    from privet.policy import load
    from privet.session import Session

    found = load(question.policy)
    session = Session.open(found, dataset=question.dataset, asking=text, analyst=question.analyst)
    if session.ledger.created:
        name = masked(found.ledger) if is_address(found.ledger) else Path(found.ledger).name
        print(
            f"Created a new ledger, {name}. If there was one before, stop: the new one does not know what was spent.",
            file=sys.stderr,
        )
    return session


def _capped(session: Session, text: str, caps: dict[str, int | None]) -> Query | str:
    """The question, with its own cap if one is given."""
    return text if all(cap is None for cap in caps.values()) else session.parse(text).cap(**caps)


def _explained(session: Session, plan: ReleasePlan, *, as_json: bool, fresh: bool = False) -> None:
    if as_json:
        from privet.privacy.guarantees.budgets import amount

        before = None if fresh else amount(session.paid_before(plan))
        tree = {**plan.to_json(), "paid_before": before}
        print(json.dumps(tree, indent=2, ensure_ascii=False))
    else:
        print(session.explain(plan, fresh=fresh, face="terminal"))
