"""A question that is paid for: debit, answer, settle, in this order, whatever happens in between."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from privet.errors import InternalError, LedgerBusy, NoAnswer, UserError
from privet.interrupts import Deferred
from privet.ledger import Charge, Ledger, failpoints
from privet.release import Certificate

_FAILED = "The question could not be answered. It was paid for, and nothing was released."
_INTERRUPTED = (
    "This request was interrupted. It was paid for, and nothing was released. "
    "To pay for it again, leave its request id out, or take a new one"
)
_NOT_STORED = (
    "The ledger is busy, so that the answer could not be stored. The question was paid for, and nothing was released."
)
_DEBIT_STAYS = "interrupted; the debit of {} stays"
_FORKED = (
    "this process was forked in the middle of a question. The question is the parent's: it is answered there, and not "
    "paid for twice"
)
_PERHAPS_PAID = "interrupted in the middle of a debit; the history of the ledger says whether it was made"


class _Answer(Protocol):
    @property
    def certificate(self) -> Certificate: ...


_T = TypeVar("_T", bound=_Answer)
_Link = dict[str, Any]


def paid(
    ledger: Ledger,
    turn: AbstractContextManager[None],
    reserve: Callable[[], Charge],
    debit: Callable[[Charge], _Link],
    answer: Callable[[_Link], _T],
    again: Callable[[str], _T],
) -> _T:
    """The answer to a question, or what was answered before.

    Claim: whatever goes wrong in the engine looks the same. A debit that was made is settled whenever Ctrl-C is
    pressed, and what is passed on then says that it was made. It is settled by the process that made it, and no other.

    `turn` is held from the debit to its end, but not while another process is waited for.
    """
    process = os.getpid()
    charge: Charge | None = None
    made: _T | None = None
    interrupt: BaseException | None = None
    try:
        with turn, Deferred() as waiting:
            charge = reserve()
            if charge.state == "reserved":
                _still(process)
                made, interrupt = _answered(ledger, charge, debit(charge), answer, waiting, process)
            if interrupt is not None:
                raise interrupt
    except BaseException as error:
        if charge is not None and charge.state == "reserved" and not isinstance(error, Exception):
            error.add_note(_DEBIT_STAYS.format(charge.cost))
        elif charge is None and isinstance(error, KeyboardInterrupt):
            error.add_note(_PERHAPS_PAID)
        raise
    finally:
        interrupt = None  # it knows this frame, and would keep the debit from being let go
    if made is not None:
        return made
    if charge.state == "running":
        charge = ledger.wait(charge)
    if charge.answer is not None:
        return again(charge.answer)
    raise NoAnswer(_INTERRUPTED if charge.state == "interrupted" else _FAILED)


def _answered(
    ledger: Ledger,
    charge: Charge,
    link: _Link,
    answer: Callable[[_Link], _T],
    waiting: Deferred,
    process: int,
) -> tuple[_T | None, BaseException | None]:
    """An answer, or what interrupted it, or neither."""
    made: _T | None = None
    interrupt: BaseException | None = None
    try:
        with waiting.allowed():
            made = answer(link)
            failpoints.reached("answer: drawn")
    except Exception:
        made = None
    except BaseException as error:
        made, interrupt = None, error
    _still(process)
    # settled out here, so that nothing of the engine's own error is attached to what the ledger may raise
    try:
        if made is not None:
            ledger.settle(charge, "answered", made.certificate.to_json())
        else:
            ledger.settle(charge, "failed" if interrupt is None else "interrupted")
    except LedgerBusy:
        ledger.abandon(charge, "failed" if made is None and interrupt is None else "interrupted")
        if interrupt is None:  # Ctrl-C is passed on, whatever became of the ledger
            raise LedgerBusy(_NOT_STORED) from None
    except InternalError:  # nobody renewed its lease, so that it counts as failed already
        made = None
    return made, interrupt


def _still(process: int) -> None:
    if os.getpid() != process:  # a signal handler forked, and its child came back from it
        raise UserError(_FORKED)
