"""`privet verify`: check a certificate, or a folder that `privet batch` wrote, without the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from privet.cli.options import AsJson


def verify(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="The file of a certificate, or the folder of a batch.")
    ],
    key: Annotated[Path | None, typer.Option(help="The steward's public key.")] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger: a file, or a postgresql:// address.")] = None,
    receipt: Annotated[str | None, typer.Option(help="A receipt printed by `privet ledger head`.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a certificate, or all of a batch's folder, without the data. Checks its rules, its signature and its debit.

    Example: privet verify answer.json --key steward.key.pub --ledger people.ledger
    """
    from dataclasses import asdict

    from privet.release import verify as check

    if certificate.is_dir():
        _folder(certificate, {"key": key, "ledger": ledger, "receipt": receipt}, as_json=as_json)
        return
    result = check(certificate, key=key, ledger=ledger, receipt=receipt)
    print(json.dumps(asdict(result), indent=2, ensure_ascii=False) if as_json else result)


def _folder(folder: Path, how: dict[str, Path | str | None], *, as_json: bool) -> None:
    """One line for each file; an error at the end if one of them failed."""
    from dataclasses import asdict

    from privet.errors import NotChecked, UserError, VerificationError, install, write
    from privet.publication.checking import check
    from privet.publication.contents import MANIFEST

    if not (folder / MANIFEST).exists():
        raise UserError(f"the certificate {str(folder)!r} can't be read: it is a folder, and has no {MANIFEST}")
    if how["receipt"] is not None and how["ledger"] is None:
        raise UserError("a receipt needs its ledger", remedy=write(terminal="--ledger people.ledger"))
    found = []
    for each in check(folder, **how):  # type: ignore[arg-type]
        found.append(each)
        if not as_json:
            print(f"{each.name:<28} {'FAILED: ' if each.checked and not each.passed else ''}{each.words}")
    if as_json:
        print(json.dumps([asdict(each) for each in found], indent=2, ensure_ascii=False))
    failed = [each.name for each in found if each.checked and not each.passed]
    if failed:
        raise VerificationError(f"{len(failed)} of {len(found)} failed: {', '.join(failed)}")
    if rest := [each.name for each in found if not each.checked]:
        raise NotChecked(f"{len(rest)} of {len(found)} are not checked: {', '.join(rest)}", remedy=install("pld"))
    if not as_json:
        print(f"\n{_verdict(len(found), how)}")


def _verdict(files: int, how: dict[str, Path | str | None]) -> str:
    """The outcome in one line, and what it does not cover."""
    left = {"key": "signatures (--key)", "ledger": "debits (--ledger)"}
    rest = [words for name, words in left.items() if how[name] is None]
    return f"Verified: all {files} files passed." + (f" Not checked: {' and '.join(rest)}." if rest else "")
