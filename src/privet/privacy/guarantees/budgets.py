"""Guarantees as budgets: created from numbers, compared, shown, and stored as JSON."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_DOWN
from typing import Any

from privet.codec import ratio, read_amount
from privet.errors import Subject, UserError, write
from privet.exact import Exact, Number, literal, nonnegative, show
from privet.privacy.guarantees.definitions import ApproxDP, Budget, PureDP, ZeroConcentratedDP

DELTA_SHARE = Exact(1, 100)
"""The part of a budget's delta that a question with unknown keys costs, unless it or the policy says otherwise."""

MIN_EPSILON = Exact(1, 1000)
"""The default minimum cost of a question, which limits their number: epsilon 3 pays for at most 3,000 questions."""

_KINDS: dict[str, type[Budget]] = {"pure": PureDP, "approx": ApproxDP, "concentrated": ZeroConcentratedDP}
FIELDS = {PureDP: ("epsilon",), ApproxDP: ("epsilon", "delta"), ZeroConcentratedDP: ("rho",)}
_EXAMPLES = {
    PureDP: write("PureDP(3)", terminal="--epsilon 3", policy="{ epsilon = 3 }"),
    ApproxDP: write("ApproxDP(3, 1e-6)", terminal="--epsilon 3 --delta 1e-6", policy="{ epsilon = 3, delta = 1e-6 }"),
    ZeroConcentratedDP: write("ZeroConcentratedDP(0.1)", terminal="--rho 0.1", policy="{ rho = 0.1 }"),
}
_DERIVED: dict[type[Budget], Callable[..., Budget]] = {
    PureDP: PureDP.derived,
    ApproxDP: ApproxDP.capped,
    ZeroConcentratedDP: ZeroConcentratedDP.derived,
}


def kind_of(*, delta: Number | None, rho: Number | None) -> type[Budget]:
    """The kind of a budget that is given by these numbers, besides epsilon."""
    if rho is not None:
        return ZeroConcentratedDP
    return PureDP if delta is None else ApproxDP


def budget_of(kind: type[Budget], *, epsilon: Number | None, delta: Number | None, rho: Number | None) -> Budget:
    """A budget of a kind. If the kind has a delta, it is 0 by default.

    Example:
        >>> budget_of(PureDP, epsilon=3, delta=None, rho=None), budget_of(ApproxDP, epsilon=3, delta=None, rho=None)
        (PureDP(3), ApproxDP(3, 0))
        >>> budget_of(ZeroConcentratedDP, epsilon=None, delta=None, rho=0.1)
        ZeroConcentratedDP(0.1)
    """
    given = {name for name, number in (("epsilon", epsilon), ("delta", delta), ("rho", rho)) if number is not None}
    names = FIELDS[kind]
    if extra := sorted(given - set(names)):
        raise UserError(f"a budget in {' and '.join(names)} can't have {extra[0]}", remedy=_EXAMPLES[kind])
    if names[0] not in given:
        raise UserError(f"{names[0]} is missing", remedy=_EXAMPLES[kind])
    if kind is ZeroConcentratedDP:
        return ZeroConcentratedDP(rho or 0)
    return PureDP(epsilon or 0) if kind is PureDP else ApproxDP(epsilon or 0, delta or 0)


def numbers(budget: Budget) -> dict[str, Exact]:
    """The numbers of a budget, by name.

    Example:
        >>> list(numbers(ApproxDP(1, 1e-6)))
        ['epsilon', 'delta']
    """
    return {name: getattr(budget, name) for name in FIELDS[type(budget)]}


def is_nothing(budget: Budget) -> bool:
    """Whether it leaves no epsilon, or no rho, to spend."""
    return next(iter(numbers(budget).values())) == 0


def show_down(budget: Budget) -> str:
    """A budget as text, rounded down, for what is left.

    Example:
        >>> show_down(PureDP("0.9999999"))
        'epsilon 0.999999'
    """
    return ", ".join(f"{name} {show(number, rounding=ROUND_DOWN)}" for name, number in numbers(budget).items())


def stricter(a: Budget | None, b: Budget | None) -> Budget | None:
    """The largest budget within both, number by number; None means no cap.

    Example:
        >>> stricter(PureDP(3), PureDP(2)), stricter(ApproxDP(1, 1e-6), ApproxDP(2, 1e-9)), stricter(None, PureDP(1))
        (PureDP(2), ApproxDP(1, 1e-9), PureDP(1))
    """
    if a is None or b is None:
        return a if b is None else b
    if type(a) is not type(b):
        raise UserError(f"{a!r} can't be compared with {b!r}, which is a different kind of guarantee")
    return _DERIVED[type(a)](*(min(pair) for pair in zip(numbers(a).values(), numbers(b).values(), strict=True)))


def different_kind(dataset: str, was: Budget, now: Budget) -> UserError:
    """The error for a dataset that is opened with a budget of another kind.

    Example:
        >>> print(different_kind("health", PureDP(1), ZeroConcentratedDP(0.1)))
        the dataset 'health' has a budget of epsilon 1, but is opened with rho 0.1. The kind of a budget can't be
        changed. Write: budget=pv.PureDP(1)
    """
    keys = ", ".join(f"{name} = {literal(number)}" for name, number in numbers(was).items())
    return UserError(
        f"the dataset {dataset!r} has a budget of {was}, but is opened with {now}",
        allowed="The kind of a budget can't be changed",
        subject=Subject("argument", "budget"),
        remedy=write(
            f"budget=pv.{was!r}",
            terminal=f"budget = {{ {keys} }}, in the policy",
            policy=f"budget = {{ {keys} }}",
            exact=True,
        ),
    )


def to_tree(budget: Budget) -> dict[str, str]:
    """A budget for JSON, exactly.

    Example:
        >>> to_tree(ApproxDP(0.5, 0))
        {'kind': 'approx', 'epsilon': '1/2', 'delta': '0/1'}
    """
    kind = next(name for name, kind in _KINDS.items() if kind is type(budget))
    return {"kind": kind} | {name: ratio(number) for name, number in numbers(budget).items()}


def from_tree(tree: Any) -> Budget:
    """The inverse of `to_tree`; a `ValueError` for anything else.

    Claim: from_tree(to_tree(budget)) == budget.
    """
    kind = _KINDS.get(tree["kind"]) if isinstance(tree, dict) and isinstance(tree.get("kind"), str) else None
    if kind is None or tree.keys() != {"kind", *FIELDS[kind]}:
        raise ValueError("this is not a budget")
    amounts = [read_amount(tree[name]) for name in FIELDS[kind]]
    if any(delta > 1 for delta in amounts[1:]):
        raise ValueError("delta must be at most 1")
    return _DERIVED[kind](*amounts)


def amount(budget: Budget | None) -> dict[str, str] | None:
    """A budget or a price for programs, exactly.

    Example:
        >>> from privet.privacy.guarantees import ApproxDP, PureDP
        >>> amount(PureDP("1/3")), amount(ApproxDP(1, delta="0.001"))
        ({'epsilon': '1/3'}, {'epsilon': '1', 'delta': '0.001'})
    """
    return None if budget is None else {name: literal(number).strip('"') for name, number in numbers(budget).items()}


def from_amount(tree: Any) -> Budget:
    """The inverse of `amount`; a `ValueError` for anything else.

    Example:
        >>> from_amount({"epsilon": "1/3"}), from_amount({"epsilon": "1", "delta": "1e-06"})
        (PureDP('1/3'), ApproxDP(1, 1e-6))
    """
    kind = next((one for one, names in FIELDS.items() if isinstance(tree, dict) and tree.keys() == {*names}), None)
    if kind is None or not all(isinstance(text, str) for text in tree.values()):
        raise ValueError("this is not an amount")
    return _DERIVED[kind](*(nonnegative(tree[name], name=name) for name in FIELDS[kind]))
