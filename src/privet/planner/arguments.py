"""The arguments of a question: unknown ones, and suggestions for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from privet.errors import QueryError, Remedy, Subject, UserError, argument, write
from privet.exact import Exact, literal, show


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
        if name in ("delta", "rho"):
            raise UserError(
                f"a question can be paid for only in epsilon, not in {name}", remedy=argument("epsilon", 0.5)
            )
        near = get_close_matches(name, names, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"The arguments are: {', '.join(names)}"
        raise UserError(f"there is no argument {name!r}", remedy=Remedy(hint))


def check_price(epsilon: Exact, least: Exact) -> None:
    """Refuse an epsilon below the minimum price of a question.

    Example:
        >>> check_price(Exact(1, 10000), Exact(1, 1000))
        Traceback (most recent call last):
        privet.errors.QueryError: epsilon 0.0001 is below the minimum price of a question, which is 0.001. Write, for
        example: epsilon=0.001
    """
    if epsilon < least:
        given = show(epsilon) if Exact(show(epsilon)) == epsilon else literal(epsilon)
        exactly = literal(least)
        plain = exactly.strip('"')
        raise QueryError(
            f"epsilon {given} is below the minimum price of a question, which is {plain}",
            subject=Subject("argument", "epsilon"),
            remedy=write(f"epsilon={exactly}", terminal=f"--epsilon {plain}", http=f'"epsilon": {exactly}'),
        )
