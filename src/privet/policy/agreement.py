"""A policy and a ledger: what holds where they allow different amounts.

The smaller holds, of the budget, of an analyst's cap and of the cap of each question. So nobody is locked out, and
nothing grows by an edit of a file: to raise a cap takes both, the policy and an act of the steward with a reason.
"""

from __future__ import annotations

from privet.exact import literal
from privet.guarantees import PureDP
from privet.ledger import Budget, Caps, Ledger, smaller
from privet.policy import toml
from privet.policy.contract import DatasetPolicy


def caps(policy: DatasetPolicy, analyst: str) -> Caps:
    """What a policy allows to an analyst: what is said for them, or for each who is not named."""
    return Caps(policy.budget, policy.analysts.get(analyst, policy.per_analyst), policy.per_query)


def grant(policy: DatasetPolicy, ledger: Ledger) -> None:
    """Set the caps of analysts and of each question in a ledger that has none yet.

    Those that it has stay as they are: opening a session must not undo what the steward did.
    """
    known = ledger.analysts(policy.name)
    for name, cap in policy.analysts.items():
        if name not in known or known[name].cap is None:
            ledger.cap(policy.name, cap, analyst=name, reason="the policy says so")
    if policy.per_query is not None and ledger.balance(policy.name).per_query is None:
        ledger.cap(policy.name, policy.per_query, query=True, reason="the policy says so")


def differences(policy: DatasetPolicy, ledger: Ledger, analyst: str | None = None) -> list[str]:
    """Where the two allow different amounts: which holds, and how to raise it. Of analysts, only this one is told."""
    found = ledger.balance(policy.name, analyst)
    mine = None if analyst is None or found.ration is None else found.ration.cap
    allowed = None if analyst is None else caps(policy, analyst).analyst
    compared: list[tuple[str, str, str, Budget | None, Budget | None]] = [
        ("", "budget", "", policy.budget, found.budget),
        (f" for {analyst!r}", toml.key(str(analyst)), f" --analyst {analyst}", allowed, mine),
        (" for one question", "per_query", " --query", policy.per_query, found.per_query),
    ]
    lines = []
    for whose, key, flag, by_policy, by_ledger in compared:
        if by_policy is None or by_ledger is None or by_policy == by_ledger:
            continue
        holds, raised = smaller(by_policy, by_ledger), []
        if holds != by_policy:
            raised.append(f'write: privet ledger cap{flag} {_flags(by_policy)} --reason "..."')
        if holds != by_ledger:
            raised.append(f"write in the policy: {key} = {{ {_keys(by_ledger)} }}")
        lines.append(
            f"the policy allows {by_policy}{whose}, and the ledger {by_ledger}: the smaller holds. "
            f"To raise it, {'; and '.join(raised)}"
        )
    return lines


def _parts(budget: Budget) -> dict[str, str]:
    epsilon = {"epsilon": literal(budget.epsilon)}
    return epsilon if isinstance(budget, PureDP) else {**epsilon, "delta": literal(budget.delta)}


def _flags(budget: Budget) -> str:
    return " ".join(f"--{name} {text.strip(chr(34))}" for name, text in _parts(budget).items())


def _keys(budget: Budget) -> str:
    return ", ".join(f"{name} = {text}" for name, text in _parts(budget).items())
