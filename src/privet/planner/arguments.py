"""The arguments of a question: unknown ones, and suggestions for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from privet.errors import QueryError, Remedy, Subject, UserError, argument, write
from privet.exact import Exact, Number, literal, positive, show
from privet.privacy.guarantees import ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from privet.tables.schema import check_name

LEAST_DELTA = Exact(1, 10**60)
"""Accountants round far smaller ones up, so that less could not be promised."""

_EXAMPLES = {
    "epsilon": write("epsilon=0.5", terminal="--epsilon 0.5", http='"epsilon": 0.5'),
    "rho": write("rho=0.01", terminal="--rho 0.01", http='"rho": 0.01'),
    "within": write('within={"n": 50}', terminal="--within n=50", http='"within": {"n": 50}'),
}
_EPSILON_AND_DELTA = write(
    "epsilon=0.5, delta=1e-6", terminal="--epsilon 0.5 --delta 1e-6", http='"epsilon": 0.5, "delta": 1e-6'
)


def check_arguments(given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse the first unknown argument, and suggest the one to write.

    Example:
        >>> check_arguments({"eps": 0.5}, ["epsilon", "within"])
        Traceback (most recent call last):
        privet.errors.UserError: the argument is named epsilon, not eps. Write: epsilon=0.5
    """
    names = list(known)
    for name, value in given.items():
        if name in names:
            continue
        if name == "eps":
            raise UserError("the argument is named epsilon, not eps", remedy=write(f"epsilon={value!r}", exact=True))
        near = get_close_matches(name, names, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"The arguments are: {', '.join(names)}"
        raise UserError(f"there is no argument {name!r}", remedy=Remedy(hint))


def asked_price(
    *, epsilon: Number | None, delta: Number | None, rho: Number | None, within: bool
) -> tuple[Guarantee | None, Exact]:
    """The price that was asked for, None for errors; and the delta that errors may cost, 0 for none.

    Example:
        >>> asked_price(epsilon=0.5, delta=1e-6, rho=None, within=False)
        (ApproxDP(0.5, 1e-6), Fraction(0, 1))
    """
    named = {"epsilon": epsilon is not None, "rho": rho is not None, "within": within}
    chosen = [name for name, given in named.items() if given]
    if len(chosen) > 1:
        both = f"both {chosen[0]} and {chosen[1]} are set"
        raise QueryError(both, allowed="Set one of the two", remedy=_one_of(*chosen[:2]))
    if not chosen:
        if delta is not None:
            raise QueryError("delta is set without an epsilon", remedy=_EPSILON_AND_DELTA)
        raise QueryError(
            "the price is missing", allowed="Set one of epsilon, rho and within", remedy=_one_of("epsilon", "within")
        )
    leak = Exact(0) if delta is None else positive(delta, name="delta", example=_EPSILON_AND_DELTA)
    if 0 < leak < LEAST_DELTA:
        raise QueryError(f"delta must be at least {show(LEAST_DELTA)}, not {show(leak)}", remedy=_EPSILON_AND_DELTA)
    if leak >= 1:
        raise QueryError(f"delta must be less than 1, not {show(leak)}", remedy=_EPSILON_AND_DELTA)
    if rho is not None:
        if delta is not None:
            raise QueryError("a price in rho has no delta", remedy=_EXAMPLES["rho"])
        return ZeroConcentratedDP.derived(positive(rho, name="rho", example=argument("rho", 0.01))), Exact(0)
    if within:
        return None, leak
    loss = positive(epsilon, name="epsilon", example=argument("epsilon", 0.5))
    return (ApproxDP.capped(loss, leak) if leak else PureDP.derived(loss)), Exact(0)


def _one_of(first: str, second: str) -> Remedy:
    one, other = _EXAMPLES[first], _EXAMPLES[second]
    return write(f"{one.python}, or {other.python}", terminal=f"{one.terminal}, or {other.terminal}", http=one.http)


def check_label(label: object, what: str) -> None:
    """Refuse a statistic of the user's own without a label that says what it is."""
    if not str(label or "").strip():
        raise UserError(f"label must say what the {what} is", remedy=argument("label", "median of the waiting times"))
    check_name(label, "label")


def check_price(price: Guarantee, least: Exact) -> None:
    """Refuse a price below the minimum of a question: in epsilon, or in rho if the price is a rho.

    Claim: min_epsilon bounds how many questions a budget pays for; epsilon^2/2 is the rho of a question of this
    epsilon.

    Example:
        >>> check_price(PureDP(0.0001), Exact(1, 1000))
        Traceback (most recent call last):
        privet.errors.QueryError: epsilon 0.0001 is below the minimum price of a question, which is 0.001. Write, for
        example: epsilon=0.001
        >>> check_price(ZeroConcentratedDP("1e-7"), Exact(1, 1000))
        Traceback (most recent call last):
        privet.errors.QueryError: rho 1e-7 is below the minimum price of a question, which is 5e-7. Write, for example:
        rho=0.0000005
    """
    if isinstance(price, ZeroConcentratedDP):
        name, number, least = "rho", price.rho, least**2 / 2
    else:
        name, number = "epsilon", price.epsilon
    if number < least:
        given, lowest = (show(x) if Exact(show(x)) == x else literal(x).strip('"') for x in (number, least))
        exactly = literal(least)
        plain = exactly.strip('"')
        raise QueryError(
            f"{name} {given} is below the minimum price of a question, which is {lowest}",
            subject=Subject("argument", name),
            remedy=write(f"{name}={exactly}", terminal=f"--{name} {plain}", http=f'"{name}": {exactly}'),
        )
