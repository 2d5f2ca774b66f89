"""The steward's pages of budgets, the ledger, failures, the policy, and the check of data against it."""

from __future__ import annotations

import time
from typing import Any

from starlette.responses import Response

from privet.dataset import Dataset
from privet.errors import LedgerError, PolicyError, PrivetError
from privet.exact import exact
from privet.ledger import Ledger
from privet.ledger.history.entries import Entry
from privet.policy import agreement, load
from privet.privacy.guarantees import ApproxDP, Budget, PureDP, ZeroConcentratedDP
from privet.server.accounts import Person
from privet.server.call import Call, in_thread
from privet.server.pages import budgets
from privet.server.pages.frames import fields, first, go, sentence, show, when
from privet.sources.inspection import inspect
from privet.system.addresses import masked

_PAGE = 50  # entries of the ledger on one page
_RECEIPTS = 10  # that are shown
_SIGNS = {"answered": "good", "failed": "bad", "interrupted": "warn", "reopened": "warn"}
_WORDS = {
    "created": "dataset made",
    "attached": "table added",
    "allowed": "source shared",
    "protected": "unit changed",
    "capped": "limit set",
    "declared": "declaration changed",
    "reserved": "paid",
    "served": "given again",
    "answered": "answered",
    "failed": "failed",
    "interrupted": "interrupted",
    "reopened": "reopened",
    "administered": "account",
}
"""The kinds of entries, for people."""
_WARNING = "Not private: exact counts and values of the data, for stewards only. Do not publish them."


async def steward_home(call: Call) -> Response:
    """The first page of the steward."""
    return go("/steward/people")


# --- budgets ----------------------------------------------------------------------------------------


async def budgets_page(call: Call) -> Response:
    """Budgets, caps and spending of every dataset."""
    return await _budgets(call)


async def set_cap(call: Call) -> Response:
    """Set the budget of a dataset, an analyst's cap or the cap of one question."""
    given, name = await fields(call.request), call.path("dataset")
    what = first(given, "what")
    ledger = call.dataset.ledger

    def change() -> None:
        cap = _amount(ledger.balance(name).budget, given)
        analyst = what.removeprefix("analyst:") if what.startswith("analyst:") else None
        ledger.cap(name, cap, reason=first(given, "reason"), analyst=analyst, query=what == "query", by=call.name)

    try:
        await in_thread(change)
    except LedgerError:
        raise
    except PrivetError as error:
        return await _budgets(call, problem=sentence(error), status=422)
    return await _budgets(call, notice=f"The cap of {name} is set.")


def _amount(like: Budget, given: dict[str, list[str]]) -> Budget:
    def number(name: str) -> str:
        return first(given, name).strip()[:100]

    if isinstance(like, ZeroConcentratedDP):
        return ZeroConcentratedDP(exact(number("rho"), name="rho"))
    if isinstance(like, ApproxDP):
        return ApproxDP(exact(number("epsilon"), name="epsilon"), exact(number("delta"), name="delta"))
    return PureDP(exact(number("epsilon"), name="epsilon"))


async def _budgets(call: Call, *, status: int = 200, **values: Any) -> Response:
    rows = await in_thread(_budget_rows, call)
    return show(call, "steward/budgets.html", active="steward", status=status, datasets=rows, **values)


def _budget_rows(call: Call) -> list[dict[str, Any]]:
    everybody = call.server.accounts.people()
    rows = []
    for name, dataset in _mine(call):
        ledger = dataset.ledger
        people = [each.name for each in everybody if call.me.datasets is None or _may_ask(each, name)]
        balance, analysts = ledger.balance(name), ledger.analysts(name)
        spent = {each: str(balance.accountant.spent(found.spent, balance.budget)) for each, found in analysts.items()}
        units = {ZeroConcentratedDP: ["rho"], ApproxDP: ["epsilon", "delta"]}.get(type(balance.budget), ["epsilon"])
        rows.append(
            {
                "name": name,
                "closed": budgets.is_closed(ledger, name),
                "budget": budgets.shown(balance, ledger.latest(name), yours=False),
                "per_query": "" if balance.per_query is None else str(balance.per_query),
                "differences": agreement.differences(call.server.policy.datasets[name], ledger),
                "analysts": [
                    {"name": each, "spent": spent[each], "cap": "none" if found.cap is None else str(found.cap)}
                    for each, found in analysts.items()
                ],
                "people": sorted({*people, *analysts}),
                "units": units,
            }
        )
    return rows


def _mine(call: Call) -> list[tuple[str, Dataset]]:
    """The datasets of this steward: after a change of one, the page must not show others'."""
    return [(name, each) for name, each in call.server.datasets.items() if call.me.may_ask(name)]


def _may_ask(person: Person, dataset: str) -> bool:
    return person.datasets is None or dataset in person.datasets


# --- the ledger -------------------------------------------------------------------------------------


async def ledger_page(call: Call) -> Response:
    """The entries of the ledger, newest first, and its receipt."""
    return await _ledger(call)


async def verify_ledger_page(call: Call) -> Response:
    """Verify the whole ledger, in front of the steward."""
    given = await fields(call.request)
    receipt = first(given, "receipt").strip()[:300]

    def verify() -> dict[str, Any]:
        start = time.perf_counter()
        try:
            found = call.server.ledger.verify(receipt or None)
        except PrivetError as error:
            return {"passed": False, "title": "The ledger does not verify.", "lines": [sentence(error)]}
        count = sum(found.entries.values())
        took = time.perf_counter() - start
        words = f"{took:.1f} s" if took >= 1 else f"{took * 1000:.0f} ms"
        lines = [f"{count:,} entries read in {words}; every hash and every balance is right."]
        if receipt:
            lines.append("It contains the entry of your receipt: nothing was taken away since.")
        return {"passed": True, "title": "The ledger verifies.", "lines": lines}

    return await _ledger(call, verified=await in_thread(verify), given=receipt)


async def _ledger(call: Call, *, verified: dict[str, Any] | None = None, given: str = "") -> Response:
    before = call.number("before", least=1)
    entries, older = await in_thread(_entries, call, before)
    receipts = await in_thread(call.server.ledger.receipts, _RECEIPTS)
    numbers = [each.number for each in entries]
    return show(
        call,
        "steward/ledger.html",
        active="steward",
        verified=verified,
        given=given,
        head=str(await in_thread(call.server.ledger.head)),
        entries=[_entry(each) for each in entries],
        receipts=[{"text": str(receipt), "when": when(entry.time)} for receipt, entry in receipts],
        range_words=f"{numbers[-1]:,} to {numbers[0]:,}" if numbers else "",
        newer="/steward/ledger" if before is not None else "",
        older=f"/steward/ledger?before={older}" if older is not None else "",
    )


def _entries(call: Call, before: int | None) -> tuple[list[Entry], int | None]:
    """The latest entries of all datasets, and where to continue."""
    found: list[Entry] = []
    for name, dataset in call.server.datasets.items():
        found += dataset.ledger.recent(name, before=before, limit=_PAGE)[0]
    found.sort(key=lambda each: each.number, reverse=True)
    page = found[:_PAGE]
    return page, page[-1].number if page and page[-1].number > 1 else None


def _entry(entry: Entry) -> dict[str, Any]:
    words = entry.statement or entry.note or ("" if entry.refers is None else f"entry {entry.refers}")
    return {
        "number": entry.number,
        "kind": entry.kind,
        "what": _WORDS.get(entry.kind, entry.kind),
        "sign": _SIGNS.get(entry.kind, ""),
        "words": words,
        "dataset": entry.dataset,
        "who": entry.by or entry.analyst,
        "cost": "" if entry.price is None else str(entry.price),
        "when": when(entry.time),
    }


# --- failures ---------------------------------------------------------------------------------------


async def failures_page(call: Call) -> Response:
    """What failed, and which dataset is closed."""
    return await _failures(call)


async def reopen_page(call: Call) -> Response:
    """Reopen a dataset."""
    given, name = await fields(call.request), call.path("dataset")
    try:
        await in_thread(call.dataset.ledger.reopen, name, first(given, "reason"), by=call.name)
    except LedgerError:
        raise
    except PrivetError as error:
        return await _failures(call, problem=sentence(error), status=422)
    return await _failures(call, notice=f"{name} is open, and failures are counted anew.")


async def _failures(call: Call, *, status: int = 200, **values: Any) -> Response:
    rows = await in_thread(lambda: [_failed(name, each.ledger) for name, each in _mine(call)])
    return show(call, "steward/failures.html", active="steward", status=status, datasets=rows, **values)


def _failed(name: str, ledger: Ledger) -> dict[str, Any]:
    recent, _ = ledger.recent(name, limit=1000)
    ended = [each for each in recent if each.kind in ("failed", "interrupted") and each.refers is not None][:20]
    rows = []
    for each in ended:
        assert each.refers is not None
        asked, _settled = ledger.reservation(name, each.refers)
        sign = _SIGNS[each.kind]
        rows.append(
            {
                "statement": asked.statement,
                "analyst": asked.analyst,
                "when": when(each.time),
                "state": each.kind,
                "sign": sign,
            }
        )
    (count, closed), most = ledger.failures(name), ledger.dataset(name).closes_after
    words = f"{count or 'No'} failure{'' if count == 1 else 's'} since it was last opened. It closes after {most}."
    some = budgets.closed_to(ledger, name)
    if some:
        words += f" It is closed to {', '.join(some)}, whose own questions failed."
    return {"name": name, "closed": closed, "failures": count, "some": some, "words": words, "entries": rows}


# --- the policy and the data ------------------------------------------------------------------------


async def policy_page(call: Call) -> Response:
    """The policy as it is on disk, with the lines of its problems."""
    return await in_thread(_policy, call)


def _policy(call: Call) -> Response:
    path = call.server.policy.path
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    problems: list[PrivetError] = []
    try:
        load(path)
    except PolicyError as error:
        problems = list(error.problems) or [error]
    except PrivetError as error:
        problems = [error]
    by_line: dict[int, list[str]] = {}
    shown = []
    for each in problems:
        at = None if each.subject is None else each.subject.at
        line = 0 if at is None else at.line
        write = "" if each.remedy is None else each.remedy.line("policy")
        words = " ".join(part for part in (each.what, each.allowed) if part)
        shown.append({"line": line, "words": f"{words}.", "write": write})
        by_line.setdefault(line, []).append(f"{words}.")
    lines = [{"text": _masked(line), "problems": by_line.get(i, [])} for i, line in enumerate(text.split("\n"), 1)]
    return show(call, "steward/policy.html", active="steward", file=path.name, problems=shown, lines=lines)


def _masked(line: str) -> str:
    """A line without the password of an address in it."""
    return masked(line) if "://" in line or "password" in line.casefold() else line


async def check_page(call: Call) -> Response:
    """What the check of the data does, and a button to run it."""
    return show(call, "steward/check.html", active="steward", result=None, warning=_WARNING)


async def check_data(call: Call) -> Response:
    """Compare the policy with its data."""
    result = await call.server.asking.planned(call.me, _checked, call)
    return show(call, "steward/check.html", active="steward", result=result, warning=_WARNING)


def _checked(call: Call) -> dict[str, Any]:
    tables, lines, problems = [], [], 0
    for name, dataset in call.server.datasets.items():
        for table in dataset.tables.values():
            try:
                found = inspect(table)
            except PrivetError as error:
                problems += 1
                lines.append(f"{name}, {table.name}: {sentence(error)}")
                continue
            problems += found.problems
            rows = [{"problem": bad, "column": column, "words": what} for bad, column, what in found.lines()]
            tables.append({"dataset": name, "name": table.name, "lines": rows})
        lines += [
            f"{name}: {line}" for line in agreement.differences(call.server.policy.datasets[name], dataset.ledger)
        ]
    title = "The policy fits its data." if not problems else f"{problems} problem{'' if problems == 1 else 's'}."
    return {"problems": problems, "title": title, "lines": lines, "tables": tables}
