"""Questions from the terminal: `privet query` and `privet explain`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli.exits import tell
from privet.cli.interrupts import stopped
from privet.cli.options import DEFAULT_POLICY, AsJson, Force, Question, takes
from privet.cli.output import STORED, Files, Format, chart_style, check_output, choose_format, stewards_files, write
from privet.system.addresses import is_address, masked

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.client import RemoteSession
    from privet.planner import ReleasePlan
    from privet.planner.batch import BatchPlan
    from privet.session import Session

_PAID = "the debit stays. The answer is stored: asking again is free"
_EXAMPLE = 'privet query "SELECT COUNT(*) FROM people" --epsilon 0.5'


@takes(Question)
def query(
    question: Question,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar=f"[{'|'.join(Format)}]",
            help="By default a table, or as the name of the output file says.",
        ),
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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what it would cost, without asking it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    title: Annotated[str | None, typer.Option(help="The title of a chart.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEXT", help="The label of a column or key in a chart. Can be repeated."),
    ] = None,
    order: Annotated[
        list[str] | None,
        typer.Option(
            help="The order of groups in a chart: ascending, descending, or the keys to show first. Can be repeated."
        ),
    ] = None,
) -> None:
    """Ask a question in SQL, and pay for it.

    Example: privet query "SELECT region, COUNT(*) AS n FROM people GROUP BY region" --epsilon 0.5
    """
    with stopped(lambda: "nothing was spent"):
        options, caps, text = _options(question), _caps(question), statement(question.sql, question.file)
        own = None if question.asks_server else question.policy
        files = Files.checked(output, certificate, force=force, taken=stewards_files(own))
        kind = choose_format("json" if as_json else form, output)
        style = chart_style(title, label, order, output)
        session = asked_session(question, text)
    with stopped(lambda: ending(session)), session:
        plan = _plan(session, text, caps, options)
        if dry_run:
            _explain(session, plan, fresh=fresh, as_json=kind is Format.JSON)
            return
        check_output(plan, kind, output, style)
        with states_cost(session, plan):
            with says_if_created(session, question.policy):
                answer = session.release(plan, request_id=request_id, fresh=fresh)
            uncertified = certificate and files.try_write(certificate, answer.certificate.to_bytes)
            if uncertified:
                tell("NoFile", 1, f"the certificate was not saved: {uncertified}; {STORED}", head="")
            elif certificate is not None:
                print(certificate, file=sys.stderr)
            write(answer, kind, output, style, files)
            sys.stdout.flush()
        if uncertified:
            raise SystemExit(1)


@contextmanager
def states_cost(session: Session | RemoteSession, plan: ReleasePlan | BatchPlan) -> Iterator[None]:
    """A block whose errors state what was spent."""
    from privet.errors import PrivetError
    from privet.payment import state_cost

    try:
        yield
    except OSError as error:
        if session.debited:
            error.add_note(STORED.capitalize())
        raise
    except PrivetError as error:
        state_cost(error, plan.guarantee(), debited=session.debited)
        raise


@takes(Question)
def explain(question: Question, as_json: AsJson = False) -> None:
    """Show the cost and accuracy of a question without asking it. Nothing is read or spent.

    Example: privet explain "SELECT AVG(income) FROM people" --epsilon 0.5 --assuming 500
    """
    with stopped(lambda: "nothing was spent"):
        options, caps, text = _options(question), _caps(question), statement(question.sql, question.file)
        with asked_session(question, text) as session:
            _explain(session, _plan(session, text, caps, options), as_json=as_json)


# --- the question ---------------------------------------------------------------------------------


def statement(sql: str | None, file: Path | None) -> str:
    """The SELECT: the argument, a file, or stdin."""
    from privet.errors import UserError, write
    from privet.system.encodings import why_not

    if file is not None:
        if sql is not None:
            raise UserError("pass either a SELECT or --file, not both")
        return _checked(_contents(file))
    if sql in (None, "-"):
        if sys.stdin is None or sys.stdin.isatty():
            raise UserError("the question is missing", remedy=write(terminal=_EXAMPLE))
        try:
            return _checked(sys.stdin.read())
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
    return _checked(sql)


def _checked(sql: str) -> str:
    from privet.errors import UserError, write

    sql = sql.removeprefix("\ufeff")  # the byte order mark of a file from Windows
    if not sql.strip():
        raise UserError("the question is empty", remedy=write(terminal=_EXAMPLE))
    return sql


def _contents(file: Path) -> str:
    from privet.errors import Remedy, UserError
    from privet.system.encodings import text_of, why_not

    if file.is_dir():
        raise UserError(f"{str(file)!r} is a folder", remedy=Remedy("Name the file that contains the SELECT"))
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


def _options(question: Question) -> dict[str, Any]:
    from privet.errors import UserError, write

    errors = {}
    for option in question.within or ():
        name, equals, error = option.rpartition("=")
        if not equals or not name or not error:
            line = write(terminal="--within n=50")
            raise UserError(f"--within takes a column and its error, not {option!r}", remedy=line)
        if name in errors:
            raise UserError(f"--within {name} is given twice")
        errors[name] = error
    return {
        "epsilon": question.epsilon,
        "delta": question.delta,
        "rho": question.rho,
        "within": errors or None,
        "confidence": question.confidence,
        "simultaneous": question.simultaneous,
        "assuming": _whole("assuming", question.assuming, 500),
        "mechanism": question.mechanism,
    }


def _caps(question: Question) -> dict[str, int | None]:
    names = ("max_rows", "max_groups", "max_rows_per_group")
    return {name: _whole(name, getattr(question, name), 5) for name in names}


def _whole(name: str, text: str | None, example: int) -> int | None:
    from privet.errors import argument
    from privet.exact import whole

    flag = f"--{name.replace('_', '-')}"
    return None if text is None else whole(text, name=flag, example=argument(name, example))


def session_for(question: Question, text: str) -> Session:
    """A session of the dataset that the policy names, or that a SELECT asks about; its ledger is only read so far."""
    from privet.dataset import Dataset
    from privet.policy import load
    from privet.session import Session

    dataset = Dataset.open(load(question.policy), dataset=question.dataset, asking=text, connect=False)
    return Session.of(dataset, analyst=question.analyst, owns=True)


def asked_session(question: Question, text: str) -> Session | RemoteSession:
    """The same, or a session on a server if one is named."""
    url = question.asks_server
    if url is None:
        return session_for(question, text)
    from privet.client import connect
    from privet.errors import Remedy, UserError

    if question.policy != DEFAULT_POLICY:
        raise UserError("pass either --server or --policy, not both")
    if question.analyst != "analyst":
        raise UserError("a server knows who you are", remedy=Remedy("Leave out --analyst"))
    return connect(url, dataset=question.dataset, asking=text)


def ending(session: Session | RemoteSession) -> str:
    """What is said of a question that was interrupted."""
    if session.debited:
        return _PAID
    pending = getattr(session, "pending", "")
    if pending:
        return f"the question may have been paid for; ask again with --request-id {pending}"
    return "nothing was spent"


@contextmanager
def says_if_created(session: Session | RemoteSession, policy: Path) -> Iterator[None]:
    """A block that says so if it created the ledger, whatever became of the question."""
    from privet.policy import load

    try:
        yield
    finally:
        if session.dataset.created_ledger:
            where = load(policy).ledger
            name = masked(where) if is_address(where) else Path(where).name
            warning = "If there was one before, stop: the new one does not know what was spent."
            print(f"Created a new ledger, {name}. {warning}", file=sys.stderr)


def _plan(
    session: Session | RemoteSession, text: str, caps: dict[str, int | None], options: dict[str, Any]
) -> ReleasePlan:
    """The plan of the question, with the caps of the command's options, if any."""
    question, options = session.dataset.capped(text, caps, options)
    return session.plan(question, **options)


def _explain(session: Session | RemoteSession, plan: ReleasePlan, *, as_json: bool, fresh: bool = False) -> None:
    if as_json:
        from privet.release.render.json import explanation

        print(explanation(plan, paid_before=None if fresh else session.paid_before(plan)), end="")
    else:
        print(session.explain(plan, fresh=fresh, face="terminal"))
