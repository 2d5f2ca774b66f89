"""The command line: `privet --help`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from privet import __version__
from privet.errors import PrivetError

_SCALES = ["1", "2.5", "10000"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; an error of the user's is one line on stderr and exit code 2."""
    try:
        app()
    except PrivetError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


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
    """Ask a made-up survey of 100,000 people three questions, and see what they cost and how exact the answers are."""
    from privet.cli.demo import run

    run(output)


@app.command()
def curve(
    epsilon: str = typer.Option(..., help="The privacy loss, such as 1 or 1/3."),
    sensitivity: str = typer.Option("1", help="How far one person can move the value."),
    output: str = typer.Option("curve.png", "--output", "-o", help="Where to save the picture: .png, .svg or .pdf."),
) -> None:
    """Draw two neighbours' densities, their ratio bounded by e^epsilon, and the privacy profile."""
    from privet.cli.curve import save_curve

    save_curve(epsilon=epsilon, sensitivity=sensitivity, output=output)
    print(output)


@app.command()
def audit(
    target: str = typer.Argument(help="What to audit: noise."),
    scale: Annotated[list[str], typer.Option(help="A scale of discrete Laplace noise; may be repeated.")] = _SCALES,
) -> None:
    """Verify exactly, on this machine, that the running sampler gives every value its exact probability."""
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
