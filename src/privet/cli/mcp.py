"""`privet mcp`: a language model asks private data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from privet.cli.options import DEFAULT_POLICY, Dataset, PolicyFile, Server
from privet.cli.query import says_if_created


def mcp(
    max_epsilon: Annotated[
        str, typer.Option(metavar="EPSILON", help="The most that the whole connection may spend, such as 1.")
    ],
    policy: PolicyFile = DEFAULT_POLICY,
    dataset: Dataset = None,
    server: Server = None,
    analyst: Annotated[str, typer.Option(help="The name under which the model asks; a server knows it.")] = "assistant",
) -> None:
    """Let a language model ask private data, through the Model Context Protocol on stdin and stdout.

    An assistant's settings name this command. It can list tables, explain, ask, see the budget and verify.

    Example: privet mcp --policy privet.toml --max-epsilon 1

    Example: privet mcp --server https://privet.example.org --max-epsilon 1
    """
    from privet.allowance import Allowance, LimitedSession
    from privet.errors import Remedy, UserError, install

    url = server or (os.environ.get("PRIVET_SERVER") if policy == DEFAULT_POLICY else None) or None
    if server is not None and policy != DEFAULT_POLICY:
        raise UserError("pass either --server or --policy, not both")
    if url is not None and analyst != "assistant":
        raise UserError("a server knows who you are", remedy=Remedy("Leave out --analyst"))
    allowance = Allowance(max_epsilon)
    try:
        from privet.assistants.serving import serve
    except ImportError as error:
        raise UserError("privet mcp needs the package mcp", remedy=install("mcp")) from error
    where: Path | None = policy if url is None else None
    with (
        LimitedSession.open(allowance, policy=where, url=url, dataset=dataset, analyst=analyst) as limited,
        says_if_created(limited.session, policy),
    ):
        serve(limited)
