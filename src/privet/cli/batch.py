"""`privet batch`: the questions of a file, asked together, as a folder to publish."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli.exits import tell
from privet.cli.interrupts import stopped
from privet.cli.options import Analyst, Force
from privet.cli.output import STORED, Files, Format, check_output, stewards_files
from privet.cli.query import says_if_created, states_cost

if TYPE_CHECKING:
    from privet.planner.batch import BatchPlan
    from privet.publication.questions import Batch
    from privet.session import Session

_PAID = "the debit stays. The answers are stored: asking again is free"


def batch(
    questions: Annotated[Path, typer.Argument(metavar="QUESTIONS", help="The file of the questions, in TOML.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder to write; by default, the name of the file.")
    ] = None,
    force: Force = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what it would cost, without asking it.")] = False,
    analyst: Analyst = "analyst",
    request_id: Annotated[
        str | None, typer.Option(help="An id that makes a retry safe: the batch is paid for once.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Pay for new noise even if the answers are stored.")] = False,
) -> None:
    """Ask the questions of a file together, and write a folder to publish. Tables, pictures, certificates and a page.

    Example: privet batch questions.toml -o our-town
    """
    from privet.publication.contents import names
    from privet.publication.questions import load

    with stopped(lambda: "nothing was spent"):
        asked = load(questions)
        policy = questions.parent / asked.policy
        folder = output or questions.with_suffix("")
        targets = [folder / name for name in names(asked.questions, pictures=asked.pictures)]
        files = _checked(folder, targets, force=force, policy=policy)
        session = _session(asked, policy, analyst)
    with stopped(lambda: _PAID if session.debited else "nothing was spent"), session:
        with _names(questions):
            plan = session.plan_all(asked.asked(), **asked.options())
            _check(plan, asked)
        if dry_run:
            print(session.explain_all(plan, fresh=fresh))
            print(f"{'Folder':<11}{folder}: {len(targets)} files. Nothing was asked or spent.")
            _check_paid(session, plan, fresh=fresh)
            return
        folder.mkdir(parents=True, exist_ok=True)
        with states_cost(session, plan):
            with says_if_created(session, policy):
                released = session.release_all(asked.asked(), request_id=request_id, fresh=fresh, **asked.options())
            failures = _write(released, asked, session, folder, files)
    left = "" if released.remaining is None else f"; {released.remaining} left"
    how = "Paid for before, at" if released.paid_before else "Spent"
    print(f"{how} {released.guarantee}{left}.", file=sys.stderr)
    if failures:
        tell("NoFile", 1, f"{failures[0]}; {STORED}", head="")
        raise SystemExit(1)
    print(folder / "index.html")


def _checked(folder: Path, targets: list[Path], *, force: bool, policy: Path) -> Files:
    from privet.errors import Remedy, UserError

    if folder.exists() and not folder.is_dir():
        raise UserError(
            f"{str(folder)!r} is a file, but a batch is written to a folder", remedy=Remedy("Choose another")
        )
    return Files.checked(*(targets if folder.is_dir() else ()), force=force, taken=stewards_files(policy))


def _session(asked: Batch, policy: Path, analyst: str) -> Session:
    from privet.dataset import Dataset
    from privet.policy import load
    from privet.session import Session

    first = asked.questions[0].sql
    dataset = Dataset.open(load(policy), dataset=asked.dataset, asking=first, connect=False)
    return Session.of(dataset, analyst=analyst, owns=True)


@contextmanager
def _names(file: Path) -> Iterator[None]:
    """A block whose errors name the file of the questions."""
    from privet.errors import UserError

    try:
        yield
    except UserError as error:
        error.inside(str(file))
        raise


def _check_paid(session: Session, plan: BatchPlan, *, fresh: bool) -> None:
    """End like a refusal, if the batch would be refused."""
    from privet.errors import BudgetError

    if (fresh or session.paid_before(plan) is None) and not session.remaining.fits(plan):
        raise BudgetError(f"this costs {plan.guarantee()}, but only {session.remaining} is left. Nothing was spent.")


def _check(plan: BatchPlan, asked: Batch) -> None:
    """Refuse, before anything is spent, what could not be shown."""
    from privet.errors import UserError
    from privet.plots import new_figure

    if asked.pictures:
        new_figure(1, 1)  # an error without matplotlib
    for question in asked.questions:
        try:
            question.style.check(plan[question.name].query)
            check_output(plan[question.name], Format.CSV, None, {})
        except UserError as error:
            error.inside(f"question {question.name!r}")
            raise


def _write(released: Any, asked: Batch, session: Session, folder: Path, files: Files) -> list[str]:
    """Write all files, the manifest last; returns the reasons of those that could not be written."""
    from privet import __version__
    from privet.publication.contents import Answer, Publication, drawings

    answers = tuple(
        Answer(
            question,
            released[question.name].certificate,
            drawings(released[question.name], question) if asked.pictures else {},
        )
        for question in asked.questions
    )
    made = Publication(asked.title, asked.text, answers, __version__).files(session.dataset.signing_key)
    return [why for name, content in made.items() if (why := files.try_write(folder / name, partial(bytes, content)))]
