"""The command line: `privet --help`.

Answers go to stdout, everything else to stderr. Exit codes: 0 done; 1 a check that does not hold (`verify`, `audit`),
or an answer without the picture that was asked for; 2 the call must be changed; 3 the budget does not cover it; 4 paid
for and not answered, or the dataset is closed; 5 the ledger can't be read, written or trusted; 70 a bug; 130 Ctrl-C.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from privet import __version__
from privet.cli import asking, importing, ledger
from privet.cli import init as policies
from privet.cli.arguments import Asking
from privet.cli.schema import schema
from privet.cli.stopping import one_line
from privet.cli.wording import in_terminal
from privet.errors import (
    BudgetError,
    InternalError,
    LedgerError,
    NoAnswer,
    PrivetError,
    UserError,
    VerificationError,
)

_SCALES = ["1", "2.5", "10000"]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(policies.init)
app.command("import")(importing.import_)
app.command()(schema)
app.command(cls=Asking)(asking.query)
app.command(cls=Asking)(asking.explain)
app.command()(ledger.budget)
app.add_typer(ledger.app, name="ledger")
app.command()(asking.verify)

EXITS: tuple[tuple[type[PrivetError], int], ...] = (
    (BudgetError, 3),
    (UserError, 2),
    (VerificationError, 1),
    (NoAnswer, 4),
    (LedgerError, 5),
    (InternalError, 70),
)


def main() -> None:
    """Run the command line; an error is a text on stderr and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no sign for plus or minus gets another one
    try:
        with one_line():
            app()
    except OSError as error:  # a full disk, a closed pipe
        print(
            f"error: the output could not be written: {error}. A paid answer is stored: asking again is free",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    except PrivetError as error:
        print(f"error: {in_terminal(str(error))}", file=sys.stderr)
        raise SystemExit(next((code for kind, code in EXITS if isinstance(error, kind)), 70)) from None


def _version(asked: bool) -> None:
    if asked:
        print(f"privet {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Privet: differentially private statistics with exact noise."""


@app.command()
def demo(
    output: str = typer.Option("privet-demo", "--output", "-o", help="The folder for pictures and certificates."),
) -> None:
    """Run three queries on a synthetic survey of 100,000 people: see what they cost and how exact the answers are.

    Example: privet demo -o privet-demo
    """
    from privet.cli.demo import run

    run(output)


@app.command()
def curve(
    epsilon: str = typer.Option(..., help="The privacy loss, such as 1 or 1/3."),
    sensitivity: str = typer.Option("1", help="How far one person can move the value."),
    output: str = typer.Option("curve.png", "--output", "-o", help="Where to save the picture: .png, .svg or .pdf."),
) -> None:
    """Draw two neighbours' densities, their ratio bounded by e^epsilon, and the privacy profile.

    Example: privet curve --epsilon 1 --sensitivity 1 -o curve.png
    """
    from privet.cli.curve import save_curve

    save_curve(epsilon=epsilon, sensitivity=sensitivity, output=output)
    print(output)


@app.command()
def audit(
    target: str = typer.Argument(help="What to audit: noise."),
    scale: Annotated[list[str], typer.Option(help="A scale of discrete Laplace noise; may be repeated.")] = _SCALES,
) -> None:
    """Verify exactly, on this machine, that the running sampler gives every value its exact probability.

    Example: privet audit noise --scale 2.5
    """
    from privet.audit import verify_sampler
    from privet.errors import UserError
    from privet.noise import DiscreteLaplace

    if target != "noise":
        raise UserError(f"there is no audit of {target!r}. Write: privet audit noise --scale 2.5")
    reports = [verify_sampler(DiscreteLaplace(each)) for each in scale]
    for report in reports:
        print(report)
    if not all(report.exact for report in reports):
        raise SystemExit(1)
