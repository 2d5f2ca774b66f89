"""`privet demo`: three questions about a synthetic survey, from the tables to the certificates."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import typer

import privet as pv
from privet.cli.output import Files, aligned
from privet.errors import UserError, install, write
from privet.release import Release
from privet.sources.survey import KINDS, REGIONS, Survey, make_survey
from privet.tables.query import Query
from privet.tables.relation import Table

PEOPLE = 100_000
BUDGET = 2
PICTURES = ("adults", "visits", "spending")
"""The names of the files, without suffixes."""


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question, its epsilon, and the SQL for the true values, which only a synthetic survey may show."""

    title: str
    query: Query
    epsilon: float
    truth: str
    picture: str


def tables(survey: Survey) -> tuple[Table, Table]:
    """The survey's two tables, declared: who is protected, and the public range of every column."""
    people = pv.table(
        "people",
        survey.people,
        protect=pv.person("person_id", max_rows=1),
        columns={
            "region": pv.keys(*REGIONS),
            "age": pv.integer(0, 110),
            "income": pv.number(0, 200_000),
            "smoker": pv.boolean(),
        },
    )
    visits = pv.table(
        "visits",
        survey.visits,
        protect=pv.person("person_id", max_rows=20),
        columns={
            "day": pv.date("2025-01-01", "2025-12-31"),
            "kind": pv.keys(*KINDS),
            "cost": pv.number(0, 2_000),
            "minutes": pv.integer(0, 480),
        },
    )
    return people, visits


def questions(people: Table, visits: Table) -> list[DemoQuestion]:
    """Three questions: about people, about visits over time, and about what people spent in a year."""
    yearly = visits.per_person(spent=pv.sum("cost"))
    return [
        DemoQuestion(
            "How many adults live in each region, what do they earn, and how many smoke?",
            people.where(pv.col("age") >= 18)
            .group_by("region")
            .agg(adults=pv.count(), income=pv.mean("income"), smokers=pv.mean("smoker")),
            0.5,
            "SELECT region, count(*) AS adults, avg(income) AS income, avg(smoker::INT) AS smokers "
            "FROM people WHERE age >= 18 GROUP BY region",
            PICTURES[0],
        ),
        DemoQuestion(
            "How many visits were there in each quarter, and what did they cost together?",
            visits.group_by(quarter=pv.col("day").truncate("quarter")).agg(visits=pv.count(), cost=pv.sum("cost")),
            0.5,
            "SELECT date_trunc('quarter', day)::DATE AS quarter, count(*) AS visits, sum(cost) AS cost "
            "FROM visits GROUP BY quarter",
            PICTURES[1],
        ),
        DemoQuestion(
            "What does a person spend in a year, by age?",
            people.join(yearly)
            .group_by(age=pv.bins("age", [0, 30, 60, 110]))
            .agg(people=pv.count(), spent=pv.mean(pv.col("spent").clip(0, 20_000))),
            0.5,
            "SELECT CASE WHEN age < 30 THEN '[0, 30)' WHEN age < 60 THEN '[30, 60)' ELSE '[60, 110]' END AS age, "
            "count(*) AS people, avg(spent) AS spent FROM people JOIN "
            "(SELECT person_id, sum(cost) AS spent FROM visits GROUP BY person_id) USING (person_id) GROUP BY 1",
            PICTURES[2],
        ),
    ]


def run(output: str, *, force: bool = False) -> None:
    """Print the answers beside the truth, the budget, the checked certificates, and where the charts are."""
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise UserError(
            f"{output!r} is a file, but the demo needs a folder", remedy=write(terminal="-o demo", exact=True)
        )
    names = [f"{picture}{suffix}" for picture in PICTURES for suffix in (".json", ".png")]
    files = Files.checked(*(folder / name for name in names if folder.is_dir()), force=force)
    with tempfile.TemporaryDirectory(prefix="privet-demo-") as scratch:
        survey = make_survey(scratch, PEOPLE)
        people, visits = tables(survey)
        _say(
            "A synthetic survey:",
            f"{PEOPLE:,} people and their visits to doctors. It protects each person: whether they are in it, and "
            f"everything that it says about them.\nBudget: epsilon {BUDGET}, for all questions together.\n",
        )
        folder.mkdir(parents=True, exist_ok=True)
        with pv.Session([people, visits], budget=pv.PureDP(BUDGET), ledger=None, name="survey") as session:
            drawn = [
                _ask(session, survey, number, question, folder, files)
                for number, question in enumerate(questions(people, visits), 1)
            ]
            _say("Budget:", f"{session.spent} is spent, {session.balance.left} is left.")
            _refused(session, people)
    if not all(drawn):
        print(f"\nTo save charts, install matplotlib. {install('plots').render('terminal')}")
    print()
    _say("Charts and certificates:" if all(drawn) else "Certificates:", str(folder.resolve()))


def _say(head: str, text: str = "") -> None:
    typer.echo(f"{typer.style(head, bold=True)} {text}".rstrip(" "))


def _ask(session: pv.Session, survey: Survey, number: int, question: DemoQuestion, folder: Path, files: Files) -> bool:
    """Ask, and draw the answer to a file, or to the terminal without matplotlib; returns whether to a file."""
    _say(f"{number}. {question.title}")
    if number == 1:
        print("\nHow it will be answered (nothing is spent yet):\n")
        explained = session.explain(question.query, epsilon=question.epsilon, assuming=5_000, face="terminal")
        typer.secho(f"{explained}\n", dim=True)
    release = session.release(question.query, epsilon=question.epsilon)
    print(release)
    print("\nThe true values of all rows, which no analyst sees (caps and bounds leave some of them out):")
    typer.secho(_truth(survey, question, release), dim=True)
    drawn = _drawn(release, folder / f"{question.picture}.png", files)
    if not drawn:
        print(f"\n{release.chart(min(shutil.get_terminal_size((100, 24)).columns, 100))}\n")
    certificate = folder / f"{question.picture}.json"
    files.write(certificate, release.certificate.to_bytes())
    checked = pv.verify(certificate, ledger=session.ledger)
    print(f"The certificate is valid: {checked.promise}.\n")
    return drawn


def _drawn(release: Release, path: Path, files: Files) -> bool:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    from privet.release.render.picture import drawn

    files.write(path, drawn(release.plot(), path.suffix))
    return True


def _truth(survey: Survey, question: DemoQuestion, release: Release) -> str:
    """The true numbers, in the order of the answer."""
    with duckdb.connect() as connection:
        for name, path in (("people", survey.people), ("visits", survey.visits)):
            connection.read_parquet(str(path)).create_view(name)
        truth = {row[0]: row[1:] for row in connection.execute(question.truth).fetchall()}
    return aligned(*((str(key), *map(_number, truth.get(key, ()))) for (key,) in release.keys), right=True)


def _number(value: Any) -> str:
    return f"{value:,.3f}" if isinstance(value, float) and abs(value) < 10 else f"{value:,.0f}"


def _refused(session: pv.Session, people: Table) -> None:
    try:
        session.release(people.agg(n=pv.count()), epsilon=BUDGET)
    except pv.UserError as error:
        _say("A question over the budget is refused", f"before any data are read: {error.render('terminal')}")
