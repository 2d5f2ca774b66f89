"""A ledger in the terminal: `privet budget` and `privet ledger ...`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli.options import AsJson
from privet.cli.output import aligned
from privet.system.addresses import is_address, shown

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.ledger import Caps, Entry, Ledger, Verified
    from privet.policy import Policy
    from privet.privacy.accounting import Share
    from privet.privacy.guarantees import Budget, Guarantee

app = typer.Typer(no_args_is_help=True, help="Inspect and verify a ledger, and act as its steward.")

Where = Annotated[
    str | None,
    typer.Argument(
        metavar="LEDGER", help="The ledger: a file, or a postgresql:// address; by default, the policy's ledger."
    ),
]
ByPolicy = Annotated[
    Path | None, typer.Option("--policy", help="The policy that names the ledger; by default privet.toml.")
]
Which = Annotated[str | None, typer.Option("--dataset", help="The dataset; required if the ledger has several.")]
Why = Annotated[str, typer.Option(help="The reason, which is recorded in the ledger.")]


_DEFAULT = Path("privet.toml")
_LONG = 200  # characters of a question that are shown; --json shows the whole question


def _opened(where: str | None, policy: Path | None, *, read_only: bool = True) -> tuple[Ledger, Policy | None]:
    """The ledger of the argument or of the policy, and the policy if that was used."""
    from privet.errors import Remedy, Subject, UserError, write
    from privet.ledger import open_ledger

    if where is not None:
        if policy is not None:
            raise UserError("name either a ledger or a policy, not both")
        if where.lower().endswith(".toml"):
            line = write(terminal=f"--policy {shlex.quote(shown(where))}", exact=True)
            raise UserError(f"{shown(where)!r} is a policy, not a ledger", subject=Subject("ledger"), remedy=line)
        return open_ledger(where, create=False, read_only=read_only), None
    if policy is None and not _DEFAULT.exists():
        raise UserError(
            f"no ledger was named, and there is no {_DEFAULT} in this folder",
            subject=Subject("ledger"),
            remedy=write(terminal="--policy folder/privet.toml", advice="Name the ledger, or its policy"),
        )
    from privet.policy import load

    contract = load(policy or _DEFAULT)
    if not is_address(contract.ledger) and not Path(contract.ledger).exists():
        raise UserError(
            f"the ledger {contract.ledger!r} of {contract.document.where} does not exist",
            allowed="The first question creates it",
            subject=Subject("ledger"),
            remedy=Remedy("If there was one before, restore it"),
        )
    return open_ledger(contract.ledger, create=False, read_only=read_only), contract


def _policy_caps(policy: Policy | None, name: str, analyst: str = "") -> Caps:
    """The caps of a policy, if there is one."""
    from privet.ledger import Caps
    from privet.policy.agreement import caps

    return caps(policy.datasets[name], analyst) if policy is not None and name in policy.datasets else Caps()


def _print_differences(policy: Policy | None, ledger: Ledger, name: str, analyst: str | None = None) -> None:
    from privet.policy.agreement import differences

    if policy is not None and name in policy.datasets:
        for line in differences(policy.datasets[name], ledger, analyst):
            print(line, file=sys.stderr)


def _one(ledger: Ledger, dataset: str | None, policy: Policy | None) -> str:
    from privet.errors import Subject, UserError, argument

    names = ledger.datasets()
    declared = [name for name in names if policy is None or name in policy.datasets]
    if dataset is None and len(declared) == 1:
        return declared[0]
    if dataset is None or dataset not in names:
        raise UserError(
            "the ledger has several datasets" if dataset is None else f"the ledger has no dataset {dataset!r}",
            allowed=f"The datasets are: {', '.join(names) or 'none'}",
            subject=Subject("dataset", dataset or ""),
            remedy=argument("dataset", names[0] if names else "people"),
        )
    return dataset


def _json(tree: Any) -> None:
    print(json.dumps(tree, indent=2, ensure_ascii=False))


def _text(budget: Guarantee | Share | None) -> str:
    from privet.privacy.accounting import Share
    from privet.privacy.accounting.base import percent_up
    from privet.privacy.guarantees import show_down

    if isinstance(budget, Share):
        return percent_up(budget.used)
    return "" if budget is None else show_down(budget)


def _spent(spent: Guarantee | Share) -> dict[str, str] | None:
    """What is spent, for programs."""
    from privet.exact import literal
    from privet.privacy.accounting import Share
    from privet.privacy.guarantees.budgets import amount

    return {"share": literal(spent.used).strip('"')} if isinstance(spent, Share) else amount(spent)


def budget(where: Where = None, policy: ByPolicy = None, dataset: Which = None, as_json: AsJson = False) -> None:
    """Show budgets: granted, spent and left, for every dataset and analyst.

    Example: privet budget people.ledger
    """
    from privet.ledger import Balance
    from privet.ledger.balance import how_often
    from privet.privacy.guarantees import stricter
    from privet.privacy.guarantees.budgets import amount

    ledger, contract = _opened(where, policy)
    lines: list[tuple[str, str, Budget | None, Guarantee | Share, Budget | None, str]] = []
    more: dict[str, str] = {}
    for name in ledger.datasets() if dataset is None else (_one(ledger, dataset, contract),):
        balance = _policy_caps(contract, name).lower(ledger.balance(name))
        lines.append((name, "", balance.budget, balance.spent, balance.remaining.guarantee, balance.left))
        latest = ledger.latest(name)
        if latest is not None:
            more[name] = how_often(balance.remaining.times(latest))
        accountant = balance.accountant
        for analyst, ration in ledger.analysts(name).items():
            cap = stricter(ration.cap, _policy_caps(contract, name, analyst).analyst)
            capped = None if cap is None else Balance(accountant, cap, ration.spent)
            left = (None, "") if capped is None else (capped.remaining.guarantee, capped.left)
            lines.append((name, analyst, cap, accountant.spent(ration.spent, cap or balance.budget), *left))
        _print_differences(contract, ledger, name)
    others = {name: each.per_analyst for name, each in ({} if contract is None else contract.datasets).items()}
    if as_json:
        names = "dataset", "analyst", "granted", "spent", "left"
        tree = [
            dict(zip(names, (line[0], line[1] or None, amount(line[2]), _spent(line[3]), amount(line[4])), strict=True))
            for line in lines
        ]
        _json([row if row["analyst"] else _with_others(row, others) for row in tree])
        return
    rows = []
    for i, line in enumerate(lines):
        rows.append(("" if line[1] else line[0], line[1], _text(line[2]), _text(line[3]), line[5]))
        last = i + 1 == len(lines) or not lines[i + 1][1]
        if last and others.get(line[0]) is not None:
            rows.append(("", "every other", _text(others[line[0]]), "", ""))
    print(aligned(("dataset", "analyst", "granted", "spent", "left"), *rows))
    for name, words in more.items():
        print(f"{name}: enough for {words} like the latest.")


def _with_others(row: dict[str, Any], others: dict[str, Budget | None]) -> dict[str, Any]:
    """A dataset's row for programs, with the cap of every other analyst."""
    from privet.privacy.guarantees.budgets import amount

    cap = others.get(row["dataset"])
    return row if cap is None else {**row, "per_analyst": amount(cap)}


@app.command()
def history(where: Where = None, policy: ByPolicy = None, dataset: Which = None, as_json: AsJson = False) -> None:
    """List every entry, oldest first.

    Example: privet ledger history people.ledger
    """
    ledger, contract = _opened(where, policy)
    entries = ledger.history(_one(ledger, dataset, contract))
    if as_json:
        _json([_entry(entry) for entry in entries])
        return
    rows = [
        (
            str(e.number),
            e.time[:16].replace("T", " "),
            _what(e),
            e.analyst,
            _text(e.price),
            _text(e.spent),
            _note(e),
        )
        for e in entries
    ]
    print(aligned(("entry", "time", "what", "analyst", "cost", "spent", "question or note"), *rows))


def _what(entry: Entry) -> str:
    return entry.kind if entry.refers is None else f"{entry.kind} {entry.refers}"


def _note(entry: Entry) -> str:
    match entry.kind:
        case "created":
            assert entry.facts is not None
            unit, adjacency = entry.facts.protect, entry.facts.adjacency
            return f"each {unit}, {adjacency}, {entry.facts.accountant} accountant, {_text(entry.totals.budget)}"
        case "attached" | "protected" | "allowed":
            return _about_table(entry)
        case "declared":
            return f"version {entry.version}" + (f": {entry.note}" if entry.note else "")
        case "capped" if entry.ration is not None:
            return f"{_text(entry.ration.cap) or 'no cap'}: {entry.note}"
        case "capped":
            per_query = f", {_text(entry.totals.per_query)} per question" if entry.totals.per_query is not None else ""
            return f"{_text(entry.totals.budget)}{per_query}: {entry.note}"
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
    from privet.privacy.guarantees.budgets import amount

    return {
        "number": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "refers": entry.refers,
        "analyst": entry.analyst or None,
        "request_id": entry.request_id or None,
        "version": entry.version or None,
        "cost": amount(entry.price),
        "spent": _spent(entry.spent),
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
        verified = _opened(where, policy)[0].verify(expect)
    if as_json:
        head, hidden = verified.head, {"hidden": verified.hidden} if verified.hidden else {}
        _json({"entries": head.number, "hash": head.hash, "datasets": verified.entries, **hidden})
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


@app.command()
def head(where: Where = None, policy: ByPolicy = None) -> None:
    """Print a receipt. Keep it elsewhere: with it, `privet ledger verify` detects an older copy of the ledger.

    Example: privet ledger head people.ledger > receipt.txt
    """
    print(_opened(where, policy)[0].head())


@app.command()
def export(where: Where = None, policy: ByPolicy = None, dataset: Which = None) -> None:
    """Print the entries as JSON lines for an auditor. Answers are not included.

    Example: privet ledger export people.ledger > people.jsonl
    """
    ledger, contract = _opened(where, policy)
    for line in ledger.export(None if dataset is None else _one(ledger, dataset, contract)):
        print(line)


@app.command()
def replay(where: Where = None, policy: ByPolicy = None, dataset: Which = None, as_json: AsJson = False) -> None:
    """Show the cost of the whole history under each accountant.

    Example: privet ledger replay people.ledger
    """
    from privet.errors import AccountingError
    from privet.privacy.accounting import ACCOUNTANTS

    ledger, contract = _opened(where, policy)
    name = _one(ledger, dataset, contract)
    costs: dict[str, str] = {}
    for accountant in ACCOUNTANTS.values():
        try:
            costs[accountant.name] = str(ledger.replay(name, accountant))
        except AccountingError as error:
            costs[accountant.name] = f"no price: {error.render('terminal')}"
    if as_json:
        _json(costs)
        return
    width = max(map(len, costs)) + 2
    for label, cost in costs.items():
        print(f"{label:<{width}}{cost}{'   (this dataset)' if label == ledger.dataset(name).accountant else ''}")


@app.command()
def cap(
    reason: Why,
    where: Where = None,
    policy: ByPolicy = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="The new cap, such as 3 or 1/3; omit it to remove an analyst's cap or the per-question cap."),
    ] = None,
    delta: Annotated[str | None, typer.Option(help="The delta of the cap, if the budget has one.")] = None,
    rho: Annotated[str | None, typer.Option(help="The new cap, if the budget is in rho.")] = None,
    analyst: Annotated[str | None, typer.Option(help="Set this analyst's cap.")] = None,
    query: Annotated[bool, typer.Option("--query", help="Set the cap for each single question.")] = False,
    dataset: Which = None,
) -> None:
    """Set a budget or a cap: the dataset's budget, an analyst's cap, or the per-question cap.

    Example: privet ledger cap people.ledger --analyst research --epsilon 1 --reason "the first year"
    """
    from privet.errors import Remedy, UserError, argument
    from privet.privacy.guarantees import PureDP, budget_of

    ledger, contract = _opened(where, policy, read_only=False)
    name = _one(ledger, dataset, contract)
    new: Budget | None = None
    if epsilon is rho is None and (delta is not None or (analyst is None and not query)):
        raise UserError(
            "the new budget is missing",
            allowed="Only an analyst's cap and the per-question cap can be removed",
            remedy=argument("epsilon", 3),
        )
    accountant = ledger.balance(name).accountant
    if delta is not None and accountant.promises is PureDP:
        raise UserError(f"the budget of {name!r} has no delta, which can't be changed", remedy=Remedy("Omit --delta"))
    if epsilon is not None or rho is not None:
        new = budget_of(accountant.promises, epsilon=epsilon, delta=delta, rho=rho)
    ledger.cap(name, new, reason=reason, analyst=analyst, query=query)
    print(ledger.head())
    print("This is the receipt of the newest entry. Keep it elsewhere (see privet ledger head).", file=sys.stderr)
    balance = ledger.balance(name, analyst)
    spent = balance.total if analyst is None or balance.ration is None else balance.ration.spent
    if new is not None and not query and not accountant.share(spent, new):
        text = _text(accountant.spent(spent, new))
        print(f"{text} is already spent, so nothing is left under this cap.", file=sys.stderr)
    _print_differences(contract, ledger, name, analyst)


@app.command()
def reopen(reason: Why, where: Where = None, policy: ByPolicy = None, dataset: Which = None) -> None:
    """Reopen a dataset that was closed after failures.

    Example: privet ledger reopen people.ledger --reason "more memory for the engine"
    """
    ledger, contract = _opened(where, policy, read_only=False)
    ledger.reopen(_one(ledger, dataset, contract), reason)
    print(ledger.head())


@app.command()
def protect(
    reason: Why,
    table: Annotated[str, typer.Option(help="The table.")],
    person: Annotated[str, typer.Option(help="The column that identifies people.")],
    where: Where = None,
    policy: ByPolicy = None,
    dataset: Which = None,
) -> None:
    """Change the column of a table that identifies people.

    Example: privet ledger protect people.ledger --table visits --person patient_id --reason "the column was renamed"
    """
    ledger, contract = _opened(where, policy, read_only=False)
    ledger.protect(_one(ledger, dataset, contract), table, person, reason=reason)
    print(ledger.head())


@app.command()
def allow_source(
    reason: Why,
    source: Annotated[
        str, typer.Option(metavar="FILE", help="The file; for a table in a DuckDB file, people.duckdb:table.")
    ],
    to: Annotated[str, typer.Option(metavar="DATASET", help="The other dataset that may use it.")],
    where: Where = None,
    policy: ByPolicy = None,
) -> None:
    """Allow a dataset to use another dataset's file. People who are in both then lose privacy in both.

    Example: privet ledger allow-source people.ledger --source people.parquet --to trial --reason "a separate consent"
    """
    ledger, _ = _opened(where, policy, read_only=False)
    ledger.allow_source(to, source, reason=reason)
    print(ledger.head())
