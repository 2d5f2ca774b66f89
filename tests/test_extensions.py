"""CONTRIBUTING tells the truth: a toy added in exactly the files that a section names works end to end.

Each toy is written into a copy of the sources, as a newcomer would write it, and used in a process of its own. The
mechanism, the accountant and the engine are toys that other tests register at run time; here they are files.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

START = """
import privet as pv
from privet.sources.survey import make_survey

make_survey(".", 2_000)
people = pv.table(
    "people",
    "people.parquet",
    protect=pv.person("person_id", max_rows=1),
    columns={"region": pv.keys("north", "south", other="elsewhere"), "age": pv.integer(0, 110)},
)
session = pv.Session([people], budget=pv.PureDP(10**7), ledger="people.ledger")
"""


def written(file: str) -> str:
    """A toy that other tests use too, as the text of a file."""
    return (ROOT / "tests" / file).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Toy:
    """What is inserted before which line of which file; a file that does not exist is created."""

    section: str
    edits: tuple[tuple[str, str, str], ...]
    program: str
    named_only: frozenset[str] = frozenset()
    """Files of the section that the toy does not need."""

    def files(self) -> set[str]:
        return {file for file, _, _ in self.edits}


AGGREGATE = Toy(
    "How to add an aggregate",
    (
        (
            "tables/aggregates.py",
            "\n\nAggregate = (",
            '''
class SumOfSquares(OfValues):
    """The sum of the squares of the distances from the lower bound."""

    __slots__ = ()
    is_amount = True
    needs = "squares"
''',
        ),
        (
            "tables/aggregates.py",
            "Count | CountPeople | CountDistinct | Sum | Mean",
            "SumOfSquares | ",
        ),
        ("tables/aggregates.py", '"count": Count, ', '"sum of squares": SumOfSquares, '),
        (
            "tables/aggregates.py",
            "def histogram(",
            '''def sum_of_squares(of: str | Expr) -> SumOfSquares:
    """The sum of the squares of the distances from the lower bound."""
    return SumOfSquares(column(of))


''',
        ),
        ("planner/columns.py", "    CountPeople,\n    Histogram,\n", "    SumOfSquares,\n"),
        (
            "planner/columns.py",
            "            case Ratio(top, bottom):\n                return [(name, replace(self._ratio",
            """            case SumOfSquares(of):
                place, step = self.vectors.places[of], self.vectors.needed[of].bounds.step
                self.vectors.claim(place, 1, weight)
                return [(name, Straight(Linear(((place, 2, step**2),)), integer=False))]
""",
        ),
        ("__init__.py", '    "sum": "tables.aggregates",\n', '    "sum_of_squares": "tables.aggregates",\n'),
        ("__init__.py", '    "sum",\n', '    "sum_of_squares",\n'),
        (
            "sql/functions.py",
            '    Function("MIN", ',
            '    Function("SUM_SQUARES", "`SUM_SQUARES(x)`", aggregate=SumOfSquares),\n',
        ),
        ("sql/functions.py", "Mean, OfValues, Std, Sum, Variance\n", "SumOfSquares, "),
    ),
    """
question = people.group_by("region").agg(squares=pv.sum_of_squares("age"), n=pv.count(), age=pv.mean("age"))
assert session.parse(
    "SELECT region, SUM_SQUARES(age) AS squares, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region"
) == question
answer = session.release(question, epsilon=10**6)
ages = answer.to_pandas()
import pyarrow.parquet as pq

rows = pq.read_table("people.parquet").to_pylist()
known = [row["age"] for row in rows if row["region"] == "north" and row["age"] is not None]
truth = sum(min(max(age, 0), 110) ** 2 for age in known)
assert abs(ages["squares"][0] - truth) < 1, (ages, truth)
assert "squares = sumofsquares(age)" in session.explain(question, epsilon=1)
assert any("age clamped to 0..110" in limit for limit in answer.limits), answer.limits
pv.verify(answer.certificate, ledger=session.ledger)
print(answer.chart(), session.parse("SELECT SUM_SQUARES(age) FROM people").aggregates[0][0])
""",
    frozenset({"planner/measurements.py", "planner/outputs.py", "privacy/row_claims.py", "tables/codec.py"}),
)

FUNCTION = Toy(
    "How to add an SQL function",
    (
        (
            "sql/functions.py",
            '    Function("ABS", ',
            """    Function("SQUARE", "`SQUARE(x)`: the number times itself",
             read=lambda reader, tree: e.Arithmetic("*", *[reader.operand(tree.expressions[0])] * 2)),
""",
        ),
    ),
    """
squared = pv.col("age") * pv.col("age")
assert session.parse("SELECT AVG(SQUARE(age)) AS a FROM people WHERE SQUARE(age) < 400") == people.where(
    squared < 400
).agg(a=pv.mean(squared))
answer = session.release("SELECT AVG(SQUARE(age)) AS a FROM people WHERE SQUARE(age) < 400", epsilon=10**6)
assert 0 < answer.values("a")[0] < 400
try:
    session.parse("SELECT AVG(SQUAR(age)) FROM people")
except pv.UserError as error:
    print(error)
""",
    frozenset({"sql/expressions.py", "tables/expressions/nodes.py"}),
)

COMMAND = Toy(
    "How to add a command",
    (
        (
            "cli/greet.py",
            "",
            '''"""privet greet: a toy."""

from typing import Annotated

import typer


def greet(name: Annotated[str, typer.Argument(help="Whom to greet.")]) -> None:
    """Greet somebody.

    Example: privet greet Ann
    """
    print(f"hello {name}")
''',
        ),
        ("cli/__init__.py", "app.command()(verify.verify)\n", "app.command()(greet.greet)\n"),
        ("cli/__init__.py", "import_csv, ", "greet, "),
    ),
    """
import subprocess, sys

run = lambda *words: subprocess.run([sys.executable, "-m", "privet", *words], capture_output=True, text=True)
done = run("greet", "Ann")
assert (done.returncode, done.stdout) == (0, "hello Ann\\n"), done
assert "Greet somebody." in run("--help").stdout
assert run("greet").returncode == 2
""",
    frozenset({"cli/exits.py"}),
)

KEY = Toy(
    "How to add a policy key",
    (
        (
            "policy/shape.py",
            "    threads: fields.Whole | None = None\n",
            '''    contact: str = ""
    """Whom to ask about the data."""
''',
        ),
        ("policy/shape.py", '    "threads": "2",\n', '    "contact": \'"steward@example.org"\',\n'),
    ),
    """
from pathlib import Path

from privet.policy import load

text = '''
ledger = "toy.ledger"
[datasets.people]
budget = { epsilon = 1 }
adjacency = "add/remove"
contact = "ann"
[datasets.people.tables.people]
source = "people.parquet"
protect = { person = "person_id", max_rows = 1 }
[datasets.people.tables.people.columns]
age = { integer = [0, 110] }
'''
Path("privet.toml").write_text(text)
assert load("privet.toml").datasets["people"].settings.contact == "ann"
assert pv.Session.open("privet.toml", analyst="ann").release("SELECT COUNT(*) AS n FROM people", epsilon=0.5)
Path("wrong.toml").write_text(text.replace('"ann"', "3"))
try:
    load("wrong.toml")
except pv.UserError as error:
    assert 'contact = "steward@example.org"' in str(error), error
else:
    raise AssertionError("3 was taken for a contact")
""",
    frozenset({"policy/template.py", "dataset.py"}),
)

KIND = Toy(
    "How to add a column kind",
    (
        (
            "tables/schema.py",
            "def boolean(",
            '''def rating(worst: int, best: int) -> Column:
    """A whole number of stars: clamped to worst..best."""
    from dataclasses import replace

    return replace(integer(worst, best), kind_name="rating")


''',
        ),
        (
            "tables/kinds.py",
            "\nKINDS: dict[str, Kind]",
            """RATING = Kind(
    "rating",
    "A whole number of stars, clamped to public bounds.",
    rating,
    (Parameter("rating", "integers", "The worst and the best rating.", optional=False),),
    python="pv.rating(1, 5)",
    policy="{ rating = [1, 5] }",
    line="rating 1 5",
    needs="a rating needs the worst and the best one",
    like="integer",
)
""",
        ),
        ("tables/kinds.py", "INTEGER, NUMBER, BOOLEAN, KEYS, DATE", "RATING, "),
        ("tables/kinds.py", "text, timestamp\n", "rating, "),
        ("__init__.py", '    "integer": "tables.schema",\n', '    "rating": "tables.schema",\n'),
        ("__init__.py", '    "integer",\n', '    "rating",\n'),
    ),
    """
import subprocess, sys

rated = pv.table("rated", "people.parquet", protect=pv.each_row(), columns={"age": pv.rating(20, 60)})
with pv.Session([rated], budget=pv.PureDP(10**7), ledger=None) as other:
    answer = other.release("SELECT age, COUNT(*) AS n FROM rated GROUP BY age", epsilon=10**6)
    assert len(answer) == 41
    pv.verify(answer.certificate, ledger=other.ledger)
run = lambda *words: subprocess.run([sys.executable, "-m", "privet", *words], capture_output=True, text=True)
line = ("--person", "person_id", "--max-rows", "1", "--epsilon", "3", "--ledger", "rated.ledger")
done = run("init", "people.parquet", "--yes", *line, "--column", "age=rating 20 60")
assert done.returncode == 0, done
assert "age = { rating = [20, 60] }" in open("privet.toml").read()
done = run("query", "SELECT AVG(age) AS age FROM people", "--epsilon", "1")
assert done.returncode == 0, done
""",
    frozenset({"tables/types.py", "policy/fields.py", "policy/shorthand.py"}),
)

ACCOUNTANT = Toy(
    "How to add an accountant",
    (
        (
            "privacy/accounting/two_meters.py",
            "",
            written("accountants.py").replace(
                "privet.privacy.accounting import", "privet.privacy.accounting.base import"
            ),
        ),
        (
            "privacy/accounting/registry.py",
            "from privet.privacy.guarantees import Guarantee\n",
            "from privet.privacy.accounting.two_meters import TwoMeters\n",
        ),
        ("privacy/accounting/registry.py", "        ConcentratedAccountant(),\n", "        TwoMeters(),\n"),
    ),
    """
def asked(**options):
    with pv.Session([people], budget=pv.ApproxDP(1, 1e-6), accountant="two meters", **options) as other:
        for _ in range(4):
            answer = other.release("SELECT COUNT(*) AS n FROM people", epsilon="1/4", fresh=True)
        pv.verify(answer.certificate, ledger=other.ledger)
        assert other.remaining.share == 0, other.remaining
        try:
            other.release("SELECT COUNT(*) AS n FROM people", epsilon="1/4", fresh=True)
        except pv.BudgetError as error:
            return str(other.balance.accountant.name)

session.close()
assert asked(ledger="meters.ledger", name="metered") == "two meters"
""",
    frozenset({"privacy/accounting/base.py", "privacy/guarantees/budgets.py"}),
)

MECHANISM = Toy(
    "How to add a noise mechanism",
    (
        ("mechanisms/twice.py", "", written("mechanisms/toys.py") + "\n\nTWICE = Twice()\n"),
        (
            "mechanisms/__init__.py",
            "from privet.privacy.events import BoundedRange, PrivacyEvent\n",
            "from privet.mechanisms.twice import TWICE\n",
        ),
        ("mechanisms/__init__.py", "LAPLACE,", "TWICE, "),
    ),
    """
question = people.group_by("region").agg(n=pv.count(), age=pv.mean("age"))
answer = session.release(question, epsilon=1000, mechanism="twice/1")
assert "Twice the noise" in session.explain(question, epsilon=1, mechanism="twice/1")
assert answer.spent == session.spent == pv.PureDP(1000)
pv.verify(answer.certificate, ledger=session.ledger)
""",
    frozenset(
        {
            "audit/expected.py",
            "privacy/events/records.py",
            "privacy/events/codec.py",
            "privacy/events/__init__.py",
            "mechanisms/base.py",
            "mechanisms/described.py",
            "privacy/dominating.py",
            "privacy/pld.py",
            "audit/everything.py",
        }
    ),
)

ENGINE = Toy(
    "How to add an engine",
    (
        ("engines/counting/__init__.py", "", '"""A toy."""\n'),
        ("engines/counting/engine.py", "", written("engines/toy.py")),
        (
            "engines/registry.py",
            '    "reference": "privet.engines.reference.engine:Reference",\n',
            '    "counting": "privet.engines.counting.engine:Counting",\n',
        ),
    ),
    """
from privet.engines.counting.engine import Counting

session.close()
with pv.Session([people], budget=pv.PureDP(10), ledger=None, engine="counting") as other:
    answer = other.release("SELECT region, COUNT(*) AS n FROM people GROUP BY region", epsilon=1)
    pv.verify(answer.certificate, ledger=other.ledger)
    assert Counting.asked > 0
    try:
        other.release("SELECT age, COUNT(*) AS n FROM people GROUP BY age", epsilon=1)
    except pv.UserError as error:
        assert "more than 50 groups" in str(error), error
    assert other.spent == pv.PureDP(1)
""",
    frozenset(
        {"engines/base.py", "engines/sql/dialect.py", "engines/duckdb/dialect.py", "engines/duckdb/types.py",
         "engines/postgres/dialect.py",
         "tables/stored_types.py"}
    ),
)  # fmt: skip

TOYS = {
    "aggregate": AGGREGATE,
    "SQL function": FUNCTION,
    "command": COMMAND,
    "policy key": KEY,
    "column kind": KIND,
    "accountant": ACCOUNTANT,
    "noise mechanism": MECHANISM,
    "engine": ENGINE,
}


def named(section: str) -> set[str]:
    """The source files that a section of CONTRIBUTING names."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    body = text.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    sources = (ROOT / "src" / "privet").rglob("*.py")
    known = {path.relative_to(ROOT / "src" / "privet").as_posix() for path in sources}
    return {name for name in re.findall(r"`([\w/]+\.py)`", body) if name in known}


@pytest.mark.parametrize("toy", TOYS.values(), ids=TOYS.keys())
def test_contributing_names_the_files_that_a_toy_needs(toy: Toy) -> None:
    created = {file for file, line, _ in toy.edits if not line}
    assert toy.files() - created == named(toy.section) - toy.named_only


@pytest.mark.parametrize("toy", TOYS.values(), ids=TOYS.keys())
def test_a_toy_works_from_end_to_end(toy: Toy, tmp_path: Path) -> None:
    package = tmp_path / "source" / "privet"
    shutil.copytree(ROOT / "src" / "privet", package)
    for file, line, text in toy.edits:
        path = package / file
        before = path.read_text(encoding="utf-8") if line else ""
        assert before.count(line) == 1 or not line, (file, line)
        path.parent.mkdir(exist_ok=True)
        path.write_text(before.replace(line, text + line) if line else text, encoding="utf-8")
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", START + toy.program],
        cwd=work,
        env=os.environ | {"PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
