"""Texts that a pattern means, or that differ only in case: LIKE, ILIKE, LOWER and UPPER on declared keys.

The keys are public, so a condition is resolved when it is read: it becomes the list of keys that it matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from privet.errors import QueryError, UserError
from privet.names.spelling import nearest
from privet.sql.grammar import Tree, bare, span, whole
from privet.sql.source import SqlText
from privet.tables.expressions import nodes as e
from privet.tables.expressions.rendering import constant_in_sql, show
from privet.tables.types import KeyType

_LISTED = 8
"""Maximum keys to show in an error."""


def cased(tree: Tree) -> tuple[Tree, Callable[[str], str]] | None:
    """The x of LOWER(x) or UPPER(x), and the function; None if this is something else."""
    tree = bare(tree)
    match tree:
        case exp.Lower():
            return tree.this, str.lower
        case exp.Upper():
            return tree.this, str.upper
    return None


def is_prefix(pattern: str) -> bool:
    """Whether a pattern of LIKE matches the beginning of a text, and nothing else: 'North%'."""
    return pattern.endswith("%") and re.fullmatch(r"[^%_\\]+%", pattern, re.DOTALL) is not None


def like(pattern: str, *, ignore_case: bool) -> Callable[[str], bool]:
    """Whether a text matches a pattern: % is any text, _ is any one character.

    Example:
        >>> like("N_rth%", ignore_case=False)("Northern"), like("n%n", ignore_case=True)("Northern")
        (True, True)
    """
    parts = {"%": ".*", "_": "."}
    fold = str.lower if ignore_case else str
    form = re.compile("".join(parts.get(c) or re.escape(c) for c in fold(pattern)), re.DOTALL)
    return lambda text: form.fullmatch(fold(text)) is not None


def matching(
    source: SqlText, at: Tree, node: e.Node, types: e.Types, match: Callable[[str], bool], near: str
) -> e.IsIn:
    """The condition that a key is one of those that match; refused if none does, or if this is not a key.

    Claim: for every declared key the condition is true exactly if the key matches, and it is missing where the key is.
    """
    try:
        kind = node.type(types)
    except UserError as error:
        raise source.placed(whole(at), error) from None
    if not isinstance(kind, KeyType) or not kind.textual:
        raise source.refusal(
            whole(at),
            f"{source.words(span(at))} can be used only where the keys are declared, but {show(node)} is {kind}",
            "Write LIKE 'North%' to match the beginning of a text",
        )
    keys = [str(key) for key in kind.keys()]  # noqa: SIM118
    found = tuple(e.Constant(key) for key in keys if match(key))
    if not found:
        raise _no_key(source, at, node, keys, near)
    return e.IsIn(node, found)


def _no_key(source: SqlText, at: Tree, node: e.Node, keys: list[str], near: str) -> QueryError:
    """The error for a pattern that no key matches."""
    shown = ", ".join(map(constant_in_sql, keys[:_LISTED])) + (", ..." if len(keys) > _LISTED else "")
    meant = nearest(near, keys)
    return source.refusal(
        whole(at),
        f"no key of {show(node)} matches this",
        "" if meant is None else f"Did you mean {constant_in_sql(meant)}?",
        allowed=f"The keys of {show(node)} are {shown}",
    )
