"""What a ledger says, in the terminal: `privet budget` and `privet ledger ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.addresses import is_address, shown

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.ledger import Budget, Caps, DurableLedger, Entry
    from privet.policy import Policy

app = typer.Typer(no_args_is_help=True, help="Look into a ledger, check it, and act as its steward.")

Where = Annotated[
    str | None,
    typer.Argument(metavar="[LEDGER]", help="The ledger: a file, or a postgresql:// address. By default the policy's."),
]
ByPolicy = Annotated[Path | None, typer.Option("--policy", help="The policy that names the ledger: privet.toml.")]
Which = Annotated[str | None, typer.Option("--dataset", help="The dataset; needed if the ledger has several.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Why = Annotated[str, typer.Option(help="Why; it is kept in the ledger.")]


_DEFAULT = Path("privet.toml")
_LONG = 200  # so much of a question is shown; --json has all of it


def _opened(where: str | None, policy: Path | None, *, read_only: bool = True) -> tuple[DurableLedger, Policy | None]:
    """The ledger that is named, or the policy's; and the policy, if it is its ledger."""
    from privet.errors import UserError
    from privet.ledger import open_ledger

    if where is not None:
        if policy is not None:
            raise UserError("give the ledger, or the policy that names it, not both")
        if where.lower().endswith(".toml"):
            raise UserError(f"{shown(where)!r} is a policy, not a ledger. Write: --policy {shown(where)}")
        return open_ledger(where, create=False, read_only=read_only), None
    if policy is None and not _DEFAULT.exists():
        raise UserError(
            f"no ledger is named, and there is no {_DEFAULT} here that would name it. "
            "Write, for example: people.ledger, or --policy folder/privet.toml"
        )
    from privet.policy import load

    found = load(policy or _DEFAULT)
    if not is_address(found.ledger) and not Path(found.ledger).exists():
        raise UserError(
            f"{found.document.where} names the ledger {found.ledger!r}, which is not there. "
            "The first question makes it; if there was one before, put it back"
        )
    return open_ledger(found.ledger, create=False, read_only=read_only), found


def _held(policy: Policy | None, name: str, analyst: str = "") -> Caps:
    """What a policy allows, if there is one."""
    from privet.ledger import Caps
    from privet.policy.agreement import caps

    return caps(policy.datasets[name], analyst) if policy is not None and name in policy.datasets else Caps()


def _tell_differences(policy: Policy | None, ledger: DurableLedger, name: str, analyst: str | None = None) -> None:
    from privet.policy.agreement import differences

    if policy is not None and name in policy.datasets:
        for line in differences(policy.datasets[name], ledger, analyst):
            print(line, file=sys.stderr)


def _one(ledger: DurableLedger, dataset: str | None, policy: Policy | None) -> str:
    from privet.errors import UserError

    names = ledger.datasets()
    known = [name for name in names if policy is None or name in policy.datasets]
    if dataset is None and len(known) == 1:
        return known[0]
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


def budget(where: Where = None, policy: ByPolicy = None, dataset: Which = None, as_json: AsJson = False) -> None:
    """What was granted, what is spent and what is left, of every dataset and analyst.

    Example: privet budget people.ledger
    """
    from privet.ledger import Balance, smaller

    ledger, found = _opened(where, policy)
    lines: list[tuple[str, str, Budget | None, Budget, Budget | None]] = []
    for name in ledger.datasets() if dataset is None else (_one(ledger, dataset, found),):
        whole = _held(found, name).lower(ledger.balance(name))
        lines.append((name, "", whole.budget, whole.spent, whole.remaining))
        for analyst, ration in ledger.analysts(name).items():
            cap = smaller(ration.cap, _held(found, name, analyst).analyst)
            left = None if cap is None else Balance(cap, ration.spent).remaining
            lines.append((name, analyst, cap, ration.spent, left))
        _tell_differences(found, ledger, name)
    others = {name: each.per_analyst for name, each in ({} if found is None else found.datasets).items()}
    if as_json:
        names = "dataset", "analyst", "granted", "spent", "left"
        tree = [dict(zip(names, (line[0], line[1] or None, *map(numbers, line[2:])), strict=True)) for line in lines]
        _json([row if row["analyst"] else _with_others(row, others) for row in tree])
        return
    rows = []
    for i, line in enumerate(lines):
        rows.append(("" if line[1] else line[0], line[1], *map(_words, line[2:])))
        last = i + 1 == len(lines) or not lines[i + 1][1]
        if last and others.get(line[0]) is not None:
            rows.append(("", "each other", _words(others[line[0]]), "", ""))
    _print(("dataset", "analyst", "granted", "spent", "left"), *rows)


def _with_others(row: dict[str, Any], others: dict[str, Budget | None]) -> dict[str, Any]:
    """A dataset's line for programs, with what each analyst may spend whom nobody named."""
    cap = others.get(row["dataset"])
    return row if cap is None else {**row, "per_analyst": numbers(cap)}


@app.command()
def history(where: Where = None, policy: ByPolicy = None, dataset: Which = None, as_json: AsJson = False) -> None:
    """Every entry, oldest first.

    Example: privet ledger history people.ledger
    """
    ledger, found = _opened(where, policy)
    entries = ledger.history(_one(ledger, dataset, found))
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
    _print(("entry", "time", "what", "analyst", "cost", "spent", "question or note"), *rows)


def _what(entry: Entry) -> str:
    return entry.kind if entry.refers is None else f"{entry.kind} {entry.refers}"


def _note(entry: Entry) -> str:
    match entry.kind:
        case "created":
            assert entry.facts is not None
            unit, adjacency = entry.facts.protect, entry.facts.adjacency
            return f"each {unit}, {adjacency}, {entry.facts.accountant} accountant, {_words(entry.totals.budget)}"
        case "attached" | "protected" | "allowed":
            return _about_table(entry)
        case "declared":
            return f"version {entry.version}" + (f": {entry.note}" if entry.note else "")
        case "capped" if entry.ration is not None:
            return f"{_words(entry.ration.cap) or 'no cap'}: {entry.note}"
        case "capped":
            each = f", {_words(entry.totals.per_query)} for each question" if entry.totals.per_query is not None else ""
            return f"{_words(entry.totals.budget)}{each}: {entry.note}"
    if entry.statement:
        text = " ".join("".join(c if c.isprintable() else " " for c in entry.statement).split())
        return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."
    return entry.note


def _about_table(entry: Entry) -> str:
    assert entry.table is not None
    here = f"{Path.cwd()}/"
    where = ", ".join(str(source).removeprefix(here) for source in entry.table.sources)
    if entry.kind == "allowed":
        return f"{where} for {entry.to}: {entry.note}"
    unit = f"by {entry.table.person}" if entry.table.person else "by row"
    return f"{entry.table.table} {unit}{f', {where}' if where else ''}{f': {entry.note}' if entry.note else ''}"


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
        "question": entry.statement or None,
        "note": None if entry.statement else _note(entry) or None,
        "answer": entry.answer or None,
        "hash": entry.hash,
    }


@app.command()
def verify(
    where: Where = None,
    policy: ByPolicy = None,
    expect: Annotated[
        str | None, typer.Option(metavar="RECEIPT", help="A receipt that `head` printed earlier.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every entry and answer; name the first that does not hold. An exported file (.jsonl) is checked too.

    Example: privet ledger verify people.ledger --expect "$(cat receipt.txt)"
    """
    from privet.errors import LedgerError, UserError
    from privet.ledger import verify_export

    if where is not None and where.endswith(".jsonl"):
        try:
            head, datasets = verify_export(Path(where).read_text(encoding="utf-8").splitlines(), expect), {}
        except OSError as error:
            raise UserError(f"{shown(where)!r} can't be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise LedgerError(f"{shown(where)!r} is not an exported ledger: it is not UTF-8") from None
    else:
        verified = _opened(where, policy)[0].verify(expect)
        head, datasets = verified.head, verified.entries
    if as_json:
        _json({"entries": head.number, "hash": head.hash, "datasets": datasets})
        return
    each = ", ".join(f"{name} {entries}" for name, entries in datasets.items())
    entries = "1 entry" if head.number == 1 else f"all {head.number} entries"
    print(f"{entries} verified{f' ({each})' if len(datasets) > 1 else ''}")
    if expect is not None:
        print("the receipt matches an entry")


@app.command()
def head(where: Where = None, policy: ByPolicy = None) -> None:
    """Print a receipt: keep it elsewhere, and an older copy of the ledger can't be put back unnoticed.

    Example: privet ledger head people.ledger > receipt.txt
    """
    print(_opened(where, policy)[0].head())


@app.command()
def export(where: Where = None, policy: ByPolicy = None, dataset: Which = None) -> None:
    """Print the chain as lines of JSON, for an auditor; without the answers. Of one dataset, with --dataset.

    Example: privet ledger export people.ledger > people.jsonl
    """
    ledger, found = _opened(where, policy)
    for line in ledger.export(None if dataset is None else _one(ledger, dataset, found)):
        print(line)


@app.command()
def replay(where: Where = None, policy: ByPolicy = None, dataset: Which = None, as_json: AsJson = False) -> None:
    """What the whole history costs under each accountant.

    Example: privet ledger replay people.ledger
    """
    from privet.accounting import ACCOUNTANTS
    from privet.errors import AccountingError

    ledger, found = _opened(where, policy)
    name = _one(ledger, dataset, found)
    costs: dict[str, str] = {}
    for each in ACCOUNTANTS.values():
        try:
            costs[each.name] = str(ledger.replay(name, each))
        except AccountingError as error:
            costs[each.name] = f"no price: {error}"
    if as_json:
        _json(costs)
        return
    for accountant, cost in costs.items():
        print(f"{accountant:<8}{cost}{'   (this dataset)' if accountant == ledger.dataset(name).accountant else ''}")


@app.command()
def cap(
    reason: Why,
    where: Where = None,
    policy: ByPolicy = None,
    epsilon: Annotated[
        str | None, typer.Option(help="The new cap, such as 3 or 1/3; leave it out to remove an analyst's cap.")
    ] = None,
    delta: Annotated[str | None, typer.Option(help="Its delta, where the budget has one.")] = None,
    analyst: Annotated[str | None, typer.Option(help="For this analyst only.")] = None,
    query: Annotated[bool, typer.Option("--query", help="For each question.")] = False,
    dataset: Which = None,
) -> None:
    """Set the dataset's budget, an analyst's cap, or the cap of each question.

    Example: privet ledger cap people.ledger --analyst research --epsilon 1 --reason "the first year"
    """
    from privet.errors import UserError
    from privet.guarantees import ApproxDP, PureDP

    ledger, found = _opened(where, policy, read_only=False)
    name = _one(ledger, dataset, found)
    given: Budget | None = None
    if epsilon is None and (delta is not None or (analyst is None and not query)):
        raise UserError("say how much: --epsilon 3. Only the cap of an analyst or of each question can be taken off")
    if delta is not None and ledger.dataset(name).accountant == "pure":
        raise UserError(f"the budget of {name!r} has no delta, and never will. Leave --delta out")
    if epsilon is not None:
        pure = ledger.dataset(name).accountant == "pure" and delta is None
        given = PureDP(epsilon) if pure else ApproxDP(epsilon, delta or "0")
    ledger.cap(name, given, reason=reason, analyst=analyst, query=query)
    print(ledger.head())
    print("This is a receipt of the ledger's last entry; keep it elsewhere (privet ledger head).", file=sys.stderr)
    balance = ledger.balance(name, analyst)
    spent = balance.spent if analyst is None or balance.ration is None else balance.ration.spent
    if given is not None and not query and spent.epsilon >= given.epsilon:
        print(f"{_words(spent)} is spent already: nothing is left under this cap.", file=sys.stderr)
    _tell_differences(found, ledger, name, analyst)


@app.command()
def reopen(reason: Why, where: Where = None, policy: ByPolicy = None, dataset: Which = None) -> None:
    """Open a dataset again that was closed after failures, to all analysts.

    Example: privet ledger reopen people.ledger --reason "more memory for the engine"
    """
    ledger, found = _opened(where, policy, read_only=False)
    ledger.reopen(_one(ledger, dataset, found), reason)
    print(ledger.head())


@app.command()
def protect(
    reason: Why,
    table: Annotated[str, typer.Option(help="The table.")],
    person: Annotated[str, typer.Option(help="The column that says whose a row is.")],
    where: Where = None,
    policy: ByPolicy = None,
    dataset: Which = None,
) -> None:
    """Change the column of a table that says whose a row is: who is protected.

    Example: privet ledger protect people.ledger --table visits --person patient_id --reason "the column was renamed"
    """
    ledger, found = _opened(where, policy, read_only=False)
    ledger.protect(_one(ledger, dataset, found), table, person, reason=reason)
    print(ledger.head())


@app.command()
def allow_source(
    reason: Why,
    source: Annotated[str, typer.Option(metavar="FILE", help="The file; of a DuckDB file, people.duckdb:table.")],
    to: Annotated[str, typer.Option(metavar="DATASET", help="The dataset that may use it, too.")],
    where: Where = None,
    policy: ByPolicy = None,
) -> None:
    """Let a dataset use a file that another dataset was opened with. If it holds the same people, they lose twice.

    Example: privet ledger allow-source people.ledger --source people.parquet --to trial --reason "a separate consent"
    """
    ledger, _ = _opened(where, policy, read_only=False)
    ledger.allow_source(to, source, reason=reason)
    print(ledger.head())
