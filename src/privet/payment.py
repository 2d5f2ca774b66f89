"""Paying for a question: debit, answer, settle, in this order, even if something fails in between."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from privet.errors import InternalError, LedgerBusy, LedgerError, NoAnswer, NoConnection, PrivetError, Remedy, UserError
from privet.ledger import Balance, Charge, Ledger, failpoints
from privet.privacy.guarantees import Guarantee, PureDP
from privet.privacy.guarantees.budgets import amount
from privet.system.interrupts import Deferred

_FAILED = "The question could not be answered. It was paid for, and nothing was released."
_INTERRUPTED = "This request was interrupted. It was paid for, and nothing was released"
_ASK_ANEW = Remedy("To pay for it again, leave out its request id, or use a new one")
_NOT_STORED = (
    "The ledger is busy, so the answer could not be stored. The question was paid for, and nothing was released."
)
_DEBIT_STAYS = "interrupted; the debit of {} stays"
_FORKED = (
    "this process was forked in the middle of a question. The question belongs to the parent process: it is answered "
    "there, and not paid for twice"
)
_PERHAPS_PAID = "interrupted in the middle of a debit; the ledger's history says whether it was made"


_T = TypeVar("_T")
_Link = dict[str, Any]


def paid(
    ledger: Ledger,
    turn: AbstractContextManager[None],
    reserve: Callable[[], Charge],
    debit: Callable[[Charge], _Link],
    answer: Callable[[_Link], tuple[_T, str]],
    again: Callable[[str], _T],
) -> tuple[_T, Balance | None]:
    """The answer to a question: a new one, or the stored one if the question was already paid for.

    With a new one, the balance after it.

    Claim: every failure of the engine looks the same. Every debit is settled, even after Ctrl-C, by the process that
    made it and by no other. An interrupt after the debit carries a note that the debit was made.

    `turn` is held from the debit until it is settled, but not while waiting for another process.
    """
    process = os.getpid()
    charge: Charge | None = None
    released: _T | None = None
    balance: Balance | None = None
    interrupt: BaseException | None = None
    try:
        with turn, Deferred() as waiting:
            charge = reserve()
            if charge.state == "reserved":
                _check_process(process)
                link = debit(charge)
                released, balance, interrupt = _answer_and_settle(ledger, charge, link, answer, waiting, process)
            if interrupt is not None:
                raise interrupt
    except BaseException as error:
        if charge is not None and charge.state == "reserved" and not isinstance(error, Exception):
            error.add_note(_DEBIT_STAYS.format(charge.cost))
        elif charge is None and isinstance(error, KeyboardInterrupt):
            error.add_note(_PERHAPS_PAID)
        raise
    finally:
        interrupt = None  # it refers to this frame, which would keep the charge alive
    if released is not None:
        return released, balance
    if charge.state == "running":
        charge = ledger.wait(charge)
    if charge.answer is not None:
        return again(charge.answer), None
    raise unanswered(charge)


def unanswered(charge: Charge) -> NoAnswer:
    """Why an earlier request has no answer; always the same text."""
    return NoAnswer(_INTERRUPTED, remedy=_ASK_ANEW) if charge.state == "interrupted" else NoAnswer(_FAILED)


def state_cost(error: PrivetError, cost: Guarantee, *, debited: bool) -> None:
    """Say in an error what the failed question cost; if a ledger or a server failed, that is not known."""
    if not isinstance(error, LedgerError | NoConnection):
        error.spent = amount(cost if debited else PureDP.ZERO)


def _answer_and_settle(
    ledger: Ledger,
    charge: Charge,
    link: _Link,
    answer: Callable[[_Link], tuple[_T, str]],
    waiting: Deferred,
    process: int,
) -> tuple[_T | None, Balance | None, BaseException | None]:
    """The answer and the balance after it, or the interrupt that stopped it, or neither if the engine failed."""
    released: _T | None = None
    balance: Balance | None = None
    text = ""
    interrupt: BaseException | None = None
    try:
        with waiting.allowed():
            released, text = answer(link)
            failpoints.reached("answer: drawn")
    except Exception:
        released = None
    except BaseException as error:
        released, interrupt = None, error
    _check_process(process)
    # settled out here, so that nothing of the engine's own error is attached to what the ledger may raise
    try:
        if released is not None:
            balance = ledger.settle(charge, "answered", text)
        else:
            ledger.settle(charge, "failed" if interrupt is None else "interrupted")
    except LedgerBusy:
        ledger.abandon(charge, "failed" if released is None and interrupt is None else "interrupted")
        if interrupt is None:  # Ctrl-C is passed on, whatever became of the ledger
            raise LedgerBusy(_NOT_STORED) from None
    except InternalError:  # nobody renewed its lease, so that it counts as failed already
        released = None
    return released, balance, interrupt


def _check_process(process: int) -> None:
    if os.getpid() != process:  # a signal handler forked, and its child came back from it
        raise UserError(_FORKED)
