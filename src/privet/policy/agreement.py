"""A policy and a ledger: which amount applies if they differ.

The smaller amount applies, to the budget, to an analyst's cap and to the cap of each question. So nobody is locked out,
and editing the policy alone raises nothing: the steward must also run a command, with a reason.
"""

from __future__ import annotations

from privet.exact import literal
from privet.ledger import Caps, Ledger
from privet.policy import toml
from privet.policy.policy import DatasetPolicy
from privet.privacy.guarantees import Budget, stricter
from privet.privacy.guarantees.budgets import different_kind, numbers


def caps(policy: DatasetPolicy, analyst: str) -> Caps:
    """The amounts that a policy allows an analyst: their own cap, or the default one."""
    return Caps(policy.budget, policy.analysts.get(analyst, policy.per_analyst), policy.per_query)


def grant(policy: DatasetPolicy, ledger: Ledger) -> None:
    """Set the caps of analysts and of each question in a ledger that has none yet.

    Existing caps stay as they are: opening a session must not undo what the steward did.
    """
    analysts = ledger.analysts(policy.name)
    for name, cap in policy.analysts.items():
        if name not in analysts or analysts[name].cap is None:
            ledger.cap(policy.name, cap, analyst=name, reason="set by the policy")
    if policy.per_query is not None and ledger.balance(policy.name).per_query is None:
        ledger.cap(policy.name, policy.per_query, query=True, reason="set by the policy")


def differences(policy: DatasetPolicy, ledger: Ledger, analyst: str | None = None) -> list[str]:
    """The amounts in which the two differ: which one applies, and how to raise it; analysts' caps only for this one."""
    balance = ledger.balance(policy.name, analyst)
    if type(policy.budget) is not type(balance.budget):
        raise different_kind(policy.name, balance.budget, policy.budget)
    cap = None if analyst is None or balance.ration is None else balance.ration.cap
    allowed = None if analyst is None else caps(policy, analyst).analyst
    compared: list[tuple[str, str, str, Budget | None, Budget | None]] = [
        ("", "budget", "", policy.budget, balance.budget),
        (f" for {analyst!r}", toml.key(str(analyst)), f" --analyst {analyst}", allowed, cap),
        (" for one question", "per_query", " --query", policy.per_query, balance.per_query),
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
            f"the policy allows {by_policy}{whose}, but the ledger allows {by_ledger}. The smaller amount applies. "
            f"To raise it, {'; and '.join(raised)}"
        )
    return lines


def _flags(budget: Budget) -> str:
    return " ".join(f"--{name} {literal(number).strip(chr(34))}" for name, number in numbers(budget).items())


def _keys(budget: Budget) -> str:
    return ", ".join(f"{name} = {literal(number)}" for name, number in numbers(budget).items())
