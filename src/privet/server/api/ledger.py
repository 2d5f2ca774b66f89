"""What stewards do to budgets, and what the ledger can show to somebody who does not trust it."""

from __future__ import annotations

from starlette.responses import Response

from privet.errors import LedgerBusy, LedgerError, Remedy, UserError, VerificationError
from privet.ledger import Verified
from privet.privacy.guarantees import ApproxDP, Budget, PureDP, budget_of
from privet.server.call import Call, in_thread, reply
from privet.server.models import Cap

_PAGE, _LONGEST_PAGE = 100, 1000


async def caps(call: Call) -> Response:
    """Set a budget or a cap."""
    return reply({"entry": await in_thread(_cap, call, call.body)})


def _cap(call: Call, cap: Cap) -> int:
    ledger, name = call.dataset.ledger, call.dataset.name
    ledger.cap(name, new_cap(call, cap), reason=cap.reason, analyst=cap.analyst, query=cap.query, by=call.name)
    return ledger.head().number


def new_cap(call: Call, cap: Cap) -> Budget | None:
    """The amount of a cap, of the budget's kind; None if the cap is removed."""
    ledger, name = call.dataset.ledger, call.dataset.name
    balance = ledger.balance(name)
    named = cap.analyst is not None or cap.query
    if cap.epsilon is cap.rho is None and (cap.delta is not None or not named):
        raise UserError(
            "the new budget is missing", allowed="Only an analyst's cap and the per-question cap can be removed"
        )
    if isinstance(balance.budget, ApproxDP) and cap.epsilon is not None and cap.delta is None and not named:
        raise UserError(f"the budget of {name!r} has a delta, so a new one needs it too")
    if cap.delta is not None and balance.accountant.promises is PureDP:
        remedy = Remedy("Leave delta out")
        raise UserError(f"the budget of {name!r} has no delta, which can't be changed", remedy=remedy)
    if cap.epsilon is None and cap.rho is None:
        return None
    return budget_of(balance.accountant.promises, epsilon=cap.epsilon, delta=cap.delta, rho=cap.rho)


async def reopen(call: Call) -> Response:
    """Reopen a dataset."""
    ledger = call.dataset.ledger
    await in_thread(ledger.reopen, call.dataset.name, call.body.reason, by=call.name)
    return reply({"entry": (await in_thread(ledger.head)).number})


async def head(call: Call) -> Response:
    """The receipt of the newest entry."""
    return reply({"receipt": str(await in_thread(call.server.ledger.head))})


async def verify(call: Call) -> Response:
    """Check the whole ledger."""
    verified = await call.server.asking.planned(call.me, _verified, call)
    return reply({"head": str(verified.head), "entries": verified.entries})


def _verified(call: Call) -> Verified:
    try:
        return call.server.ledger.verify(call.body.receipt)
    except LedgerBusy:
        raise
    except LedgerError as error:  # for the steward, who asked for it
        raise VerificationError(error.what) from None


async def receipts(call: Call) -> Response:
    """The receipts of the latest entries."""
    limit = call.number("limit", least=1, most=_LONGEST_PAGE) or _PAGE
    found = await in_thread(call.server.ledger.receipts, limit)
    shown = [
        {"receipt": str(receipt), "time": entry.time, "dataset": entry.dataset, "kind": entry.kind}
        for receipt, entry in found
    ]
    return reply({"receipts": shown})
