"""`privet ledger verify`, `head`, `export` and `replay`: what a ledger can show to somebody who does not trust it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli.ledger.amounts import print_json
from privet.cli.ledger.opening import ByPolicy, Where, Which, one_dataset, opened
from privet.cli.options import AsJson
from privet.system.addresses import shown

if TYPE_CHECKING:
    from privet.ledger import Verified


def verify(
    where: Where = None,
    policy: ByPolicy = None,
    expect: Annotated[
        str | None, typer.Option(metavar="RECEIPT", help="A receipt printed earlier by `privet ledger head`.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify a ledger or an exported file (.jsonl). Checks every entry and every answer.

    Example: privet ledger verify people.ledger --expect "$(cat receipt.txt)"
    """
    from privet.errors import LedgerError, UserError
    from privet.ledger import verify_export

    if where is not None and where.endswith(".jsonl"):
        try:
            verified = verify_export(Path(where).read_text(encoding="utf-8").splitlines(), expect)
        except OSError as error:
            raise UserError(f"{shown(where)!r} can't be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise LedgerError(f"{shown(where)!r} is not an exported ledger: it is not UTF-8") from None
    else:
        verified = opened(where, policy)[0].verify(expect)
    if as_json:
        head, hidden = verified.head, {"hidden": verified.hidden} if verified.hidden else {}
        print_json({"entries": head.number, "hash": head.hash, "datasets": verified.entries, **hidden})
        return
    print(_verified(verified))
    if expect is not None:
        print("the receipt matches an entry")


def _verified(verified: Verified) -> str:
    """What was verified; entries of which an export shows only a hash are not counted with the others."""
    entries, datasets = sum(verified.entries.values()), list(verified.entries)
    if verified.hidden:
        hidden = sum(verified.hidden.values())
        return (
            f"{_counted(entries)} of {', '.join(datasets)} verified; "
            f"{_counted(hidden)} of other datasets ({', '.join(verified.hidden)}) verified by hash only"
        )
    counts = ", ".join(f"{name} {number}" for name, number in verified.entries.items())
    all_ = "" if entries == 1 else "all "
    return f"{all_}{_counted(entries)} verified{f' ({counts})' if len(datasets) > 1 else ''}"


def _counted(entries: int) -> str:
    return "1 entry" if entries == 1 else f"{entries} entries"


def head(where: Where = None, policy: ByPolicy = None) -> None:
    """Print a receipt. Keep it elsewhere: with it, `privet ledger verify` detects an older copy of the ledger.

    Example: privet ledger head people.ledger > receipt.txt
    """
    print(opened(where, policy)[0].head())


def export(where: Where = None, policy: ByPolicy = None, dataset: Which = None) -> None:
    """Print the entries as JSON lines for an auditor. Answers are not included.

    Example: privet ledger export people.ledger > people.jsonl
    """
    ledger, contract = opened(where, policy)
    for line in ledger.export(None if dataset is None else one_dataset(ledger, dataset, contract)):
        print(line)


_NOT_PURE = "the history has Gaussian noise or a delta, which a budget in epsilon alone can't pay for"
_AS_BATCH = ", if it had been one batch that was fixed in advance: no guarantee for adaptive questions"


def replay(where: Where = None, policy: ByPolicy = None, dataset: Which = None, as_json: AsJson = False) -> None:
    """Show the cost of the whole history under each accountant.

    Example: privet ledger replay people.ledger
    """
    from privet.errors import AccountingError
    from privet.privacy.accounting import ACCOUNTANTS
    from privet.privacy.guarantees import PureDP

    ledger, contract = opened(where, policy)
    name = one_dataset(ledger, dataset, contract)
    costs: dict[str, str] = {}
    for accountant in ACCOUNTANTS.values():
        try:
            costs[accountant.name] = f"{ledger.replay(name, accountant)}{'' if accountant.adaptive else _AS_BATCH}"
        except AccountingError as error:
            pure = accountant.promises is PureDP
            costs[accountant.name] = f"no price: {_NOT_PURE if pure else error.render('terminal')}"
    if as_json:
        print_json(costs)
        return
    width = max(map(len, costs)) + 2
    for label, cost in costs.items():
        print(f"{label:<{width}}{cost}{'   (this dataset)' if label == ledger.dataset(name).accountant else ''}")
