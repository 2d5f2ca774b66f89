"""`privet bounds` and `privet diagnose`: pay to learn about bounds and caps, before the real question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from privet.cli.interrupts import stopped
from privet.cli.options import (
    DEFAULT_POLICY,
    Analyst,
    AsJson,
    Confidence,
    Dataset,
    Epsilon,
    Force,
    FromFile,
    PolicyFile,
    Question,
    Rho,
    Server,
    Statement,
)  # fmt: skip
from privet.cli.output import Files, stewards_files
from privet.cli.query import asked_session, ending, says_if_created, statement

Fresh = Annotated[bool, typer.Option("--fresh", help="Pay for new noise even if the answer is stored.")]
RequestId = Annotated[str | None, typer.Option(help="An id that makes a retry safe: the question is paid for once.")]


def bounds(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table, or a SELECT that gives rows.")],
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="A column, or an expression in SQL.")],
    policy: PolicyFile = DEFAULT_POLICY,
    epsilon: Epsilon = None,
    rho: Rho = None,
    confidence: Confidence = "0.95",
    certificate: Annotated[Path | None, typer.Option(help="Save the certificate to this file.")] = None,
    force: Force = False,
    request_id: RequestId = None,
    fresh: Fresh = False,
    analyst: Analyst = "analyst",
    dataset: Dataset = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Pay for bounds of a column, to clip it to. Finds the powers of two between which nearly all values lie.

    Example: privet bounds people income --epsilon 0.1
    """
    from privet.release.bounds import NAME, ReleasedBounds
    from privet.sql.quoting import quoted

    rows = f"({table})" if table.lstrip("( \n").upper().startswith(("SELECT", "WITH")) else table
    question = Question(policy=policy, analyst=analyst, dataset=dataset, server=server)
    with stopped(lambda: "nothing was spent"):
        own = None if question.asks_server else policy
        files = Files.checked(None, certificate, force=force, taken=stewards_files(own))
        session = asked_session(question, f"SELECT COUNT(*) FROM {rows}")
    with stopped(lambda: ending(session)), session:
        known = session.tables.get(table)
        of = quoted(column) if known is not None and column in dict(known.schema.columns) else column
        asked = session.parse(f"SELECT APPROX_BOUNDS({of}) AS {NAME} FROM {quoted(table) if known else rows}")
        with says_if_created(session, policy):
            plan = session.plan(asked, epsilon=epsilon, rho=rho, confidence=confidence)
            found = ReleasedBounds(session.release(plan, request_id=request_id, fresh=fresh))
        if certificate is not None:
            files.write(certificate, found.certificate.to_bytes())
        _print(found, as_json=as_json)


def diagnose(
    sql: Statement = None,
    file: FromFile = None,
    policy: PolicyFile = DEFAULT_POLICY,
    epsilon: Epsilon = None,
    rho: Rho = None,
    ceiling: Annotated[
        str | None,
        typer.Option(metavar="ROWS", help="Maximum rows per person to count. By default four times the cap."),
    ] = None,
    confidence: Confidence = "0.95",
    request_id: RequestId = None,
    fresh: Fresh = False,
    analyst: Analyst = "analyst",
    dataset: Dataset = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Pay for the shares of rows and values that the caps and bounds of a question take from its answer.

    Example: privet diagnose "SELECT AVG(income) FROM people" --epsilon 0.1
    """
    from privet.errors import argument
    from privet.exact import whole

    with stopped(lambda: "nothing was spent"):
        text = statement(sql, file)
        most = None if ceiling is None else whole(ceiling, name="--ceiling", example=argument("ceiling", 40))
        session = asked_session(Question(policy=policy, analyst=analyst, dataset=dataset, server=server), text)
    with stopped(lambda: ending(session)), session, says_if_created(session, policy):
        price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "confidence": confidence}
        _print(session.diagnose(text, ceiling=most, request_id=request_id, fresh=fresh, **price), as_json=as_json)


def _print(answer: Any, *, as_json: bool) -> None:
    print(json.dumps(answer.to_json(), indent=2, ensure_ascii=False) if as_json else answer)
