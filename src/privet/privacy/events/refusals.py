"""Refusals that name the place in a tree of events."""

from __future__ import annotations

from privet.errors import AccountingError, Remedy


def refusal(path: str, why: str, remedy: Remedy | None = None) -> AccountingError:
    """The error at this path of the tree."""
    return AccountingError(f"{path or 'the event'}: {why}", remedy=remedy)


def join(path: str, name: str) -> str:
    """The path of a part."""
    return f"{path}.{name}" if path else name
