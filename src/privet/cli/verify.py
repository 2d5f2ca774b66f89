"""`privet verify`: check a certificate without the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from privet.cli.options import AsJson


def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="The file of the certificate.")],
    key: Annotated[Path | None, typer.Option(help="The steward's public key.")] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger: a file, or a postgresql:// address.")] = None,
    receipt: Annotated[str | None, typer.Option(help="A receipt printed by `privet ledger head`.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a certificate without the data. Checks its rules, its signature and its debit.

    Example: privet verify answer.json --key steward.key.pub --ledger people.ledger
    """
    from dataclasses import asdict

    from privet.release import verify as check

    result = check(certificate, key=key, ledger=ledger, receipt=receipt)
    print(json.dumps(asdict(result), indent=2, ensure_ascii=False) if as_json else result)
