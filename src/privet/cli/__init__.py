"""The command line: `privet --help`.

Answers go to stdout, everything else to stderr. Exit codes: 0 done; 1 a check that does not hold (`verify`, `audit`),
or an answer without the file that was asked for; 2 the call must be changed; 3 the budget does not cover it; 4 paid
for and not answered, or the dataset is closed; 5 the ledger can't be read, written or trusted; 70 a bug; 75 another
process holds the ledger: try again; 130 Ctrl-C; 141 nobody reads the output. With --json, an error is one line of JSON.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated, NoReturn

import typer

from privet import __version__
from privet.cli import asking, importing, ledger
from privet.cli import init as policies
from privet.cli.arguments import Asking
from privet.cli.failing import EXITS, bug, closed, failed
from privet.cli.schema import schema
from privet.cli.stopping import INTERRUPTED, one_line
from privet.errors import PrivetError

__all__ = ["EXITS", "app", "main"]

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


def main() -> None:
    """Run the command line; an error is a text on stderr, or JSON for a program, and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no sign for plus or minus gets another one
    try:
        with one_line():
            _run()
    except BrokenPipeError:
        closed()
    except KeyboardInterrupt:  # between two steps of its own end
        raise SystemExit(INTERRUPTED) from None
    except (PrivetError, OSError, typer.Abort) as error:
        failed(error)
    except Exception as error:
        if hasattr(error, "format_message"):
            failed(error)
        bug(error)


def _run() -> NoReturn:
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # Typer ends with another code
            raise ended.__context__ from None
        sys.stdout.flush()
        raise
    raise SystemExit(code)


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
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Run three queries on a synthetic survey of 100,000 people: see what they cost and how exact the answers are.

    Example: privet demo -o privet-demo
    """
    from privet.cli.demo import run

    run(output, force=force)


@app.command()
def curve(
    epsilon: str = typer.Option(..., help="The privacy loss, such as 1 or 1/3."),
    sensitivity: str = typer.Option("1", help="How far one person can move the value."),
    output: str = typer.Option("curve.png", "--output", "-o", help="Where to save the picture: .png, .svg or .pdf."),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Draw two neighbours' densities, their ratio bounded by e^epsilon, and the privacy profile.

    Example: privet curve --epsilon 1 --sensitivity 1 -o curve.png
    """
    from privet.cli.curve import save_curve

    save_curve(epsilon=epsilon, sensitivity=sensitivity, output=output, force=force)
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
