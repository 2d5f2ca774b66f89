"""Options that commands share, and an error with the right flag for options in Python syntax, such as `epsilon=0.5`."""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

Statement = Annotated[str | None, typer.Argument(metavar="SQL", help="A SELECT; if it is - or missing, read stdin.")]
FromFile = Annotated[Path | None, typer.Option("--file", "-f", help="Read the SELECT from this file.")]
DEFAULT_POLICY = Path("privet.toml")
PolicyFile = Annotated[Path, typer.Option(help="The steward's policy.")]
Epsilon = Annotated[str | None, typer.Option(help="The cost of the question, such as 0.5 or 1/3.")]
Delta = Annotated[
    str | None,
    typer.Option(help="The delta of the cost, in addition to epsilon, such as 1e-7. It allows Gaussian noise."),
]
Rho = Annotated[str | None, typer.Option(help="The cost in rho (zero-concentrated), instead of epsilon.")]
Mechanism = Annotated[
    str | None,
    typer.Option(help="The noise: laplace or gaussian. By default, the price decides."),
]
Within = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=ERROR", help="The error to stay within, instead of epsilon. Can be repeated."),
]
Confidence = Annotated[str, typer.Option(help="The probability that an interval or error bound holds.")]
Simultaneous = Annotated[bool, typer.Option("--simultaneous", help="Make all intervals hold together.")]
Assuming = Annotated[
    str | None, typer.Option(metavar="ROWS", help="Rows per group to assume when predicting the error of a mean.")
]
MaxRows = Annotated[str | None, typer.Option(metavar="ROWS", help="Maximum rows per person.")]
MaxGroups = Annotated[str | None, typer.Option(metavar="GROUPS", help="Maximum groups per person.")]
MaxRowsPerGroup = Annotated[
    str | None, typer.Option(metavar="ROWS", help="Maximum rows per person in each group; needs --max-groups.")
]
Analyst = Annotated[str, typer.Option(help="The analyst who asks.")]
Dataset = Annotated[
    str | None, typer.Option(help="The dataset, if the tables in the question belong to several datasets.")
]
Server = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Ask a server in place of a policy; by default that of the variable PRIVET_SERVER, if set."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]


@dataclass(frozen=True, slots=True)
class Question:
    """The options of a question, for `privet query` and `privet explain`."""

    sql: Statement = None
    file: FromFile = None
    policy: PolicyFile = DEFAULT_POLICY
    epsilon: Epsilon = None
    delta: Delta = None
    rho: Rho = None
    within: Within = None
    confidence: Confidence = "0.95"
    simultaneous: Simultaneous = False
    assuming: Assuming = None
    mechanism: Mechanism = None
    max_rows: MaxRows = None
    max_groups: MaxGroups = None
    max_rows_per_group: MaxRowsPerGroup = None
    analyst: Analyst = "analyst"
    dataset: Dataset = None
    server: Server = None

    @property
    def asks_server(self) -> str | None:
        """The server to ask; None for the policy. A policy that is named comes before the variable."""
        if self.server is not None or self.policy != DEFAULT_POLICY:
            return self.server
        return os.environ.get("PRIVET_SERVER") or None


def takes(options: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator for a command whose first parameter is a dataclass: Typer sees each field as an option."""
    fields = inspect.signature(options).parameters
    types = get_type_hints(options, include_extras=True)

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

        def run(**values: Any) -> None:
            command(options(**{name: values.pop(name) for name in fields}), **values)

        shared = [field.replace(annotation=types[name]) for name, field in fields.items()]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*shared, *own)}
        vars(run)["__signature__"] = inspect.Signature([*shared, *own])
        return run

    return wrap


_SHORT = {"eps": "epsilon"}


class StatementCommand(TyperCommand):
    """A command that takes one statement; a second argument may be an option without its dashes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse arguments that look like options without dashes, and parse the others."""
        from privet.errors import UserError, argument, write

        if any(word.partition("=")[0] == "--eps" for word in args):
            raise UserError("there is no option --eps", remedy=argument("epsilon", 0.5))
        values, extra, _ = self.make_parser(ctx).parse_args(args=list(args))
        flags = {flag for parameter in self.params for flag in parameter.opts}
        for word in extra:
            name, equals, value = word.partition("=")
            flag = f"--{_SHORT.get(name.lower(), name.lower()).replace('_', '-')}"
            if equals and value and flag in flags:
                line = f"{flag} {shlex.quote(value)}"
                raise UserError("options begin with two dashes", remedy=write(terminal=line, exact=True))
        if extra and str(values.get("sql")).upper() in ("SELECT", "WITH"):
            line = f'privet {ctx.info_name} "{" ".join([str(values["sql"]), *extra])}" --epsilon 0.5'
            raise UserError("the question must be one argument, in quotes", remedy=write(terminal=line))
        return super().parse_args(ctx, args)
