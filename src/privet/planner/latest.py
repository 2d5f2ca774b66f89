"""The plans of the last few questions: whoever previews, explains and then asks a question has it planned once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from privet.planner.plan import ReleasePlan
from privet.tables.query import Query

_MOST = 16
_GROUPS = 1000  # of a plan that is kept: what follows from a larger one takes memory
_PLAIN = (type(None), bool, int, float, str, Decimal, Fraction)


class Known(NamedTuple):
    """A plan, its options, and what else it follows from."""

    plan: ReleasePlan
    options: Mapping[str, Any]
    means: tuple[object, ...]


@dataclass(slots=True)
class Latest:
    """Plans by their questions.

    Claim: what is found was kept for the same statement, letter by letter, or for the same `Query` object, which never
    changes, with options of the same types and values. Equal is not enough: in Python 1, 1.0 and True are equal.

    Threads share it without a lock, which a forked child could inherit locked: each step is one operation of a dict.
    """

    _kept: dict[object, tuple[Query | str, Known]] = field(default_factory=dict)
    """By key, the most recently used last. The query is kept too: while it is, no other object can have its id."""

    def find(self, query: Query | str, options: Mapping[str, Any]) -> Known | None:
        """What was kept for a question."""
        key = _key(query, options)
        found = self._kept.pop(key, None)
        if found is None:
            return None
        self._kept[key] = found
        return found[1]

    def keep(self, query: Query | str, options: Mapping[str, Any], known: Known) -> None:
        """Keep a plan, instead of the one that was not used for the longest time."""
        if any(type(value) not in _PLAIN for value in options.values()) or known.plan.groups > _GROUPS:
            return
        self._kept[_key(query, options)] = query, known
        while len(self._kept) > _MOST:
            with suppress(KeyError, RuntimeError, StopIteration):  # another thread was quicker
                del self._kept[next(iter(self._kept))]


def _key(query: Query | str, options: Mapping[str, Any]) -> object:
    asked = query if isinstance(query, str) else id(query)
    return (
        asked,
        tuple((name, type(value), value) for name, value in sorted(options.items()) if type(value) in _PLAIN),
        len(options),
    )
