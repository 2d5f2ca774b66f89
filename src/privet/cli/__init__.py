"""The command line: `privet --help`.

Answers go to stdout, everything else to stderr. Exit codes: 0 success; 1 a failed check (`verify`, `audit`), or an
answer whose file could not be written; 2 wrong usage; 3 the budget is too small; 4 paid but not answered, or the
dataset is closed; 5 the ledger can't be read, written or trusted; 70 a bug; 75 another process holds the ledger's lock:
try again; 130 Ctrl-C; 141 nobody reads the output. With --json, an error is one line of JSON.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NoReturn

import typer
from typer.main import get_command

from privet import __version__
from privet.cli import batch, bounds, check, import_csv, ledger, login, mcp, query, schema, serve, tokens, users, verify
from privet.cli import init as policies
from privet.cli.exits import EXITS, bug, closed, failed
from privet.cli.interrupts import INTERRUPTED, one_line
from privet.cli.options import StatementCommand
from privet.errors import PrivetError

__all__ = ["EXITS", "app", "main"]

_SCALES = ["1", "2.5", "10000"]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(policies.init)
app.command("import")(import_csv.import_)
app.command()(check.check)
app.command()(schema.schema)
app.command(cls=StatementCommand)(query.query)
app.command(cls=StatementCommand)(query.explain)
app.command()(bounds.bounds)
app.command(cls=StatementCommand)(bounds.diagnose)
app.command()(batch.batch)
app.command()(ledger.budget)
app.add_typer(ledger.app, name="ledger")
app.command()(verify.verify)
app.command()(login.login)
app.command()(login.logout)
app.command()(serve.serve)
app.command()(mcp.mcp)
app.add_typer(users.app, name="users")
app.add_typer(tokens.app, name="tokens")


def main() -> None:
    """Run the command line; an error is a message on stderr, or JSON for a program, and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # replaces characters that the terminal can't show
    try:
        with one_line():
            _run()
    except BrokenPipeError:
        closed()
    except KeyboardInterrupt:  # while the command was already ending
        raise SystemExit(INTERRUPTED) from None
    except (PrivetError, OSError, typer.Abort) as error:
        failed(error)
    except Exception as error:
        if hasattr(error, "format_message"):
            failed(error)
        bug(error)


def _run() -> NoReturn:
    try:
        code = _built(app)(standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as exit_:
        if isinstance(exit_.__context__, BrokenPipeError):  # Typer uses another exit code
            raise exit_.__context__ from None
        sys.stdout.flush()
        raise
    raise SystemExit(code)


@cache
def _built(commands: typer.Typer) -> Callable[..., Any]:
    """Every command, built once in a process: it takes longer than most commands."""
    return get_command(commands)


def _version(requested: bool) -> None:
    if requested:
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
    output: str = typer.Option("privet-demo", "--output", "-o", help="The folder for charts and certificates."),
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Ask three questions about a synthetic survey. Shows what they cost, and how accurate the answers are.

    Example: privet demo -o privet-demo
    """
    from privet.cli.demo import run

    run(output, force=force)


@app.command()
def curve(
    mechanism: str = typer.Option("laplace", help="The mechanism: laplace or gaussian."),
    epsilon: str = typer.Option(None, help="The privacy loss, such as 1 or 1/3."),
    delta: str = typer.Option(None, help="With epsilon, the price of the Gaussian mechanism."),
    rho: str = typer.Option(None, help="The price of the Gaussian mechanism in rho."),
    sigma: str = typer.Option(None, help="The noise of the Gaussian mechanism, in place of its price."),
    sensitivity: str = typer.Option("1", help="How much one person can change the value."),
    output: str = typer.Option("curve.png", "--output", "-o", help="The file to write: .png, .svg or .pdf."),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Draw a mechanism: the densities of two neighbours, their ratio, and the privacy profile.

    Example: privet curve --epsilon 1 --sensitivity 1 -o curve.png

    Example: privet curve --mechanism gaussian --rho 0.1
    """
    from privet.cli.curve import save_curve

    price = {"epsilon": epsilon, "delta": delta, "rho": rho, "sigma": sigma}
    save_curve(mechanism=mechanism, sensitivity=sensitivity, output=output, force=force, **price)
    print(output)


@app.command()
def audit(
    target: str = typer.Argument(help="What to audit: noise, or samplers."),
    scale: Annotated[list[str], typer.Option(help="The scale of discrete Laplace noise. Can be repeated.")] = _SCALES,
) -> None:
    """Verify that samplers are exact. Checks on this machine that every value has its exact probability.

    `noise` is discrete Laplace noise at the scales that you give; `samplers` is every sampler that Privet has, at some.

    Example: privet audit noise --scale 2.5
    """
    from privet.audit import verify_all, verify_sampler
    from privet.errors import UserError, write
    from privet.noise import DiscreteLaplace

    if target not in ("noise", "samplers"):
        line = "privet audit noise --scale 2.5"
        allowed = "The targets are noise and samplers"
        raise UserError(f"{target!r} can't be audited", allowed=allowed, remedy=write(terminal=line))
    reports = []
    for report in (verify_sampler(DiscreteLaplace(one)) for one in scale) if target == "noise" else verify_all():
        reports.append(report)
        print(report)
    if not all(report.exact for report in reports):
        raise SystemExit(1)
