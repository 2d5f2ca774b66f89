"""Errors from a server: the problem documents that it sends become Privet's own errors again."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

from privet import errors
from privet.errors import Place, PrivetError, Remedy, Subject, UserError

_KINDS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, PrivetError)}
_SUBJECTS = get_args(get_type_hints(Subject)["kind"])
_LONGEST = 4000


def clean(text: object, *, most: int = _LONGEST) -> str:
    r"""A server's text as it may be shown in a terminal: no control characters except the ends of lines.

    Example:
        >>> clean("a\x1b[31m\nb")
        'a[31m\nb'
    """
    kept = "".join(x for x in str(text) if x == "\n" or x.isprintable())
    return kept if len(kept) <= most else f"{kept[:most]}..."


def error_of(problem: Any, status: int) -> PrivetError:
    """The error that a problem document describes; a kind that is not known here is a `PrivetError`.

    Example:
        >>> error_of({"kind": "BudgetError", "what": "this costs epsilon 2", "status": 402}, 402)
        BudgetError('this costs epsilon 2')
    """
    fields = problem if isinstance(problem, dict) else {}
    what = fields.get("what") or fields.get("detail") or fields.get("title") or f"the server answered with {status}"
    kind = _KINDS.get(str(fields.get("kind")))
    if kind is None:
        kind = UserError if 400 <= status < 500 else PrivetError
    subject = _subject(fields.get("subject"))
    error = kind(
        clean(what),
        allowed=clean(fields.get("allowed") or ""),
        subject=subject,
        remedy=_remedy(fields.get("remedy"), subject),
    )
    spent = fields.get("spent")
    if isinstance(spent, dict) and all(isinstance(x, str) for x in (*spent, *spent.values())):
        error.spent = {clean(name): clean(amount) for name, amount in spent.items()}
    return error


def _subject(tree: Any) -> Subject | None:
    if not isinstance(tree, dict) or tree.get("kind") not in _SUBJECTS:
        return None
    return Subject(tree["kind"], clean(tree.get("name") or ""), clean(tree.get("table") or ""), _place(tree.get("at")))


def _place(tree: Any) -> Place | None:
    if not isinstance(tree, dict) or any(type(tree.get(name, 0)) is not int for name in ("line", "column")):
        return None
    numbers = {name: tree.get(name, 0) for name in ("line", "column", "start", "end")}
    if not all(type(number) is int and 0 <= number < 2**31 for number in numbers.values()):
        return None
    return Place(**numbers, file=clean(tree.get("file") or ""), excerpt=clean(tree.get("excerpt") or ""))


def _remedy(tree: Any, subject: Subject | None) -> Remedy | None:
    if not isinstance(tree, dict):
        return None
    line = clean(tree.get("write") or "")
    in_sql = subject is not None and subject.kind == "statement"
    return Remedy(clean(tree.get("advice") or ""), sql=line if in_sql else "", http="" if in_sql else line)
