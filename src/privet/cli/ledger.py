"""What a ledger says, in the terminal: `privet budget` and `privet ledger ...`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.ledger import Budget, DurableLedger, Entry

app = typer.Typer(no_args_is_help=True, help="Look into a ledger, check it, and act as its steward.")

Where = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger: a file, or a postgresql:// address.")]
Which = Annotated[str | None, typer.Option("--dataset", help="The dataset; needed if the ledger has several.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Why = Annotated[str, typer.Option(help="Why; it is kept in the ledger.")]


def _opened(where: str) -> DurableLedger:
    from privet.ledger import open_ledger

    return open_ledger(where, create=False)


def _one(ledger: DurableLedger, dataset: str | None) -> str:
    from privet.errors import UserError

    names = ledger.datasets()
    if dataset is None and len(names) == 1:
        return names[0]
    if dataset is None or dataset not in names:
        raise UserError(f"the ledger has these datasets: {', '.join(names) or 'none'}. Name one with --dataset")
    return dataset


def _json(tree: Any) -> None:
    print(json.dumps(tree, indent=2, ensure_ascii=False))


def _print(*rows: tuple[str, ...]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _words(budget: Budget | None) -> str:
    from privet.ledger import words

    return "" if budget is None else words(budget)


def numbers(budget: Budget | None) -> dict[str, str] | None:
    """A budget for programs, exactly."""
    from privet.exact import literal
    from privet.guarantees import ApproxDP

    if budget is None:
        return None
    found = {"epsilon": literal(budget.epsilon).strip('"')}
    return {**found, "delta": literal(budget.delta).strip('"')} if isinstance(budget, ApproxDP) else found


def budget(where: Where, dataset: Which = None, as_json: AsJson = False) -> None:
    """What was granted, what is spent and what is left, of every dataset and analyst.

    Example: privet budget people.ledger
    """
    from privet.ledger import Balance

    ledger = _opened(where)
    lines: list[tuple[str, str, Budget | None, Budget, Budget | None]] = []
    for name in ledger.datasets() if dataset is None else (_one(ledger, dataset),):
        whole = ledger.balance(name)
        lines.append((name, "", whole.budget, whole.spent, whole.remaining))
        for analyst, ration in ledger.analysts(name).items():
            left = None if ration.cap is None else Balance(ration.cap, ration.spent).remaining
            lines.append((name, analyst, ration.cap, ration.spent, left))
    if as_json:
        names = "dataset", "analyst", "granted", "spent", "left"
        _json([dict(zip(names, (line[0], line[1] or None, *map(numbers, line[2:])), strict=True)) for line in lines])
        return
    rows = [("" if line[1] else line[0], line[1], *map(_words, line[2:])) for line in lines]
    _print(("dataset", "analyst", "granted", "spent", "left"), *rows)


@app.command()
def history(where: Where, dataset: Which = None, as_json: AsJson = False) -> None:
    """Every entry, oldest first.

    Example: privet ledger history people.ledger
    """
    ledger = _opened(where)
    entries = ledger.history(_one(ledger, dataset))
    if as_json:
        _json([_entry(entry) for entry in entries])
        return
    rows = [
        (
            str(e.number),
            e.time[:16].replace("T", " "),
            _what(e),
            e.analyst,
            _words(e.cost),
            _words(e.totals.spent),
            _note(e),
        )
        for e in entries
    ]
    _print(("entry", "time", "what", "analyst", "cost", "spent", "note"), *rows)


def _what(entry: Entry) -> str:
    return entry.kind if entry.refers is None else f"{entry.kind} {entry.refers}"


def _note(entry: Entry) -> str:
    match entry.kind:
        case "created":
            assert entry.facts is not None
            unit, adjacency = entry.facts.protect, entry.facts.adjacency
            return f"each {unit}, {adjacency}, {entry.facts.accountant} accountant, {_words(entry.totals.budget)}"
        case "declared":
            return f"version {entry.version}" + (f": {entry.note}" if entry.note else "")
        case "capped" if entry.ration is not None:
            return f"{_words(entry.ration.cap) or 'no cap'}: {entry.note}"
        case "capped":
            each = f", {_words(entry.totals.per_query)} for each question" if entry.totals.per_query is not None else ""
            return f"{_words(entry.totals.budget)}{each}: {entry.note}"
    return entry.note


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "refers": entry.refers,
        "analyst": entry.analyst or None,
        "request_id": entry.request_id or None,
        "version": entry.version or None,
        "cost": numbers(entry.cost),
        "spent": numbers(entry.totals.spent),
        "note": _note(entry) or None,
        "answer": entry.answer or None,
        "hash": entry.hash,
    }


@app.command()
def verify(
    where: Where,
    expect: Annotated[
        str | None, typer.Option(metavar="RECEIPT", help="A receipt that `head` printed earlier.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every entry and answer; name the first that does not hold. An exported file (.jsonl) is checked too.

    Example: privet ledger verify people.ledger --expect "$(cat receipt.txt)"
    """
    from privet.errors import UserError
    from privet.ledger import verify_export

    if where.endswith(".jsonl"):
        try:
            heads = [verify_export(Path(where).read_text(encoding="utf-8").splitlines(), expect)]
        except OSError as error:
            raise UserError(f"{where!r} can't be read: {error.strerror}") from None
    else:
        heads = list(_opened(where).verify(expect))
    if as_json:
        _json([{"dataset": head.dataset, "entries": head.number, "hash": head.hash} for head in heads])
        return
    for head in heads:
        print(f"{head.dataset}: {head.number} entries hold")
    if expect is not None:
        print("the receipt is in it")


@app.command()
def head(where: Where, dataset: Which = None) -> None:
    """Print a receipt: keep it elsewhere, and an older copy of the ledger can't be put back unnoticed.

    Example: privet ledger head people.ledger > receipt.txt
    """
    ledger = _opened(where)
    print(ledger.head(_one(ledger, dataset)))


@app.command()
def export(where: Where, dataset: Which = None) -> None:
    """Print the chain as lines of JSON, for an auditor; without the answers.

    Example: privet ledger export people.ledger > people.jsonl
    """
    ledger = _opened(where)
    for line in ledger.export(_one(ledger, dataset)):
        print(line)


@app.command()
def replay(where: Where, dataset: Which = None, as_json: AsJson = False) -> None:
    """What the whole history costs under each accountant.

    Example: privet ledger replay people.ledger
    """
    from privet.accounting import ACCOUNTANTS
    from privet.errors import AccountingError

    ledger = _opened(where)
    name = _one(ledger, dataset)
    found: dict[str, str] = {}
    for each in ACCOUNTANTS.values():
        try:
            found[each.name] = str(ledger.replay(name, each))
        except AccountingError as error:
            found[each.name] = f"no price: {error}"
    if as_json:
        _json(found)
        return
    for accountant, cost in found.items():
        print(f"{accountant:<8}{cost}{'   (this dataset)' if accountant == ledger.dataset(name).accountant else ''}")


@app.command()
def cap(
    where: Where,
    reason: Why,
    epsilon: Annotated[
        str | None, typer.Option(help="The new cap, such as 3 or 1/3; without it, an analyst's goes.")
    ] = None,
    delta: Annotated[str | None, typer.Option(help="Its delta, where the budget has one.")] = None,
    analyst: Annotated[str | None, typer.Option(help="For this analyst only.")] = None,
    query: Annotated[bool, typer.Option("--query", help="For each question.")] = False,
    dataset: Which = None,
) -> None:
    """Set the dataset's budget, an analyst's cap, or the cap of each question.

    Example: privet ledger cap people.ledger --analyst research --epsilon 1 --reason "the first year"
    """
    from privet.guarantees import ApproxDP, PureDP

    ledger = _opened(where)
    name = _one(ledger, dataset)
    given: Budget | None = None
    if epsilon is not None:
        pure = ledger.dataset(name).accountant == "pure" and delta is None
        given = PureDP(epsilon) if pure else ApproxDP(epsilon, delta or "0")
    ledger.cap(name, given, reason=reason, analyst=analyst, query=query)
    print(ledger.head(name))


@app.command()
def reopen(where: Where, reason: Why, dataset: Which = None) -> None:
    """Open a dataset again that was closed after failures.

    Example: privet ledger reopen people.ledger --reason "more memory for the engine"
    """
    ledger = _opened(where)
    name = _one(ledger, dataset)
    ledger.reopen(name, reason)
    print(ledger.head(name))
