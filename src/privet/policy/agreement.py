"""A policy and a ledger: which amount applies where they differ.

The smaller amount applies, for the budget, for an analyst's cap and for the cap of each question. So nobody is locked
out, and editing a file alone raises nothing: that takes both the policy and a command of the steward with a reason.
"""

from __future__ import annotations

from privet.exact import literal
from privet.ledger import Caps, Ledger
from privet.policy import toml
from privet.policy.contract import DatasetPolicy
from privet.privacy.guarantees import Budget, stricter
from privet.privacy.guarantees.budgets import numbers


def caps(policy: DatasetPolicy, analyst: str) -> Caps:
    """What a policy allows an analyst: their own cap, or the one for every other analyst."""
    return Caps(policy.budget, policy.analysts.get(analyst, policy.per_analyst), policy.per_query)


def grant(policy: DatasetPolicy, ledger: Ledger) -> None:
    """Set the caps of analysts and of each question in a ledger that has none yet.

    Existing caps stay as they are: opening a session must not undo what the steward did.
    """
    known = ledger.analysts(policy.name)
    for name, cap in policy.analysts.items():
        if name not in known or known[name].cap is None:
            ledger.cap(policy.name, cap, analyst=name, reason="set by the policy")
    if policy.per_query is not None and ledger.balance(policy.name).per_query is None:
        ledger.cap(policy.name, policy.per_query, query=True, reason="set by the policy")


def differences(policy: DatasetPolicy, ledger: Ledger, analyst: str | None = None) -> list[str]:
    """Where the two allow different amounts: which one applies, and how to raise it; of analysts, only for this one."""
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
        holds, raised = stricter(by_policy, by_ledger), []
        if holds != by_policy:
            raised.append(f'write: privet ledger cap{flag} {_flags(by_policy)} --reason "..."')
        if holds != by_ledger:
            raised.append(f"write in the policy: {key} = {{ {_keys(by_ledger)} }}")
        lines.append(
            f"the policy allows {by_policy}{whose}, the ledger {by_ledger}: the smaller amount applies. "
            f"To raise it, {'; and '.join(raised)}"
        )
    return lines


def _flags(budget: Budget) -> str:
    return " ".join(f"--{name} {literal(number).strip(chr(34))}" for name, number in numbers(budget).items())


def _keys(budget: Budget) -> str:
    return ", ".join(f"{name} = {literal(number)}" for name, number in numbers(budget).items())
