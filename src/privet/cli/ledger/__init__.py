"""A ledger in the terminal: `privet budget` and `privet ledger ...`."""

from __future__ import annotations

import typer

from privet.cli.ledger import history, steward, verification
from privet.cli.ledger.budgets import budget

__all__ = ["app", "budget"]

app = typer.Typer(no_args_is_help=True, help="Inspect and verify a ledger, and act as its steward.")
app.command()(history.history)
app.command()(verification.verify)
app.command()(verification.head)
app.command()(verification.export)
app.command()(verification.replay)
app.command()(steward.cap)
app.command()(steward.reopen)
app.command()(steward.protect)
app.command()(steward.allow_source)
