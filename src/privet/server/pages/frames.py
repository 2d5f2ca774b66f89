"""What every page needs: who looks at it, the fields of a form, responses with their headers, and dates in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from privet.errors import PrivetError
from privet.server.accounts import Identity, Role
from privet.server.call import Call
from privet.server.pages import problems
from privet.server.pages.rendering import render, segment

HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
"""The headers of every page; `limits` adds those of every response. Without a referrer, a browser would send forms
without their origin.
"""
MOST_FIELDS = 1000
__all__ = ["HEADERS", "Me", "Secret", "fields", "first", "go", "listed", "page", "segment", "sentence", "show", "when"]


@dataclass(frozen=True, slots=True)
class Me:
    """Who looks at a page."""

    name: str
    steward: bool
    csrf: str

    @classmethod
    def of(cls, identity: Identity | None) -> Me | None:
        """The same of an identity; None for nobody."""
        if identity is None:
            return None
        steward = identity.role is Role.STEWARD and identity.datasets is None
        return cls(identity.person.name, steward, identity.csrf)


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that is shown once: a token, or a link."""

    title: str
    words: str
    text: str


def page(
    identity: Identity | None, template: str, /, *, active: str = "", status: int = 200, **values: Any
) -> Response:
    """A page made of a template."""
    usual = {"notice": "", "problem": None, "shown": None}
    html = render(template, **{**usual, **values, "me": Me.of(identity), "active": active})
    return HTMLResponse(html, status_code=status, headers=HEADERS)


def show(call: Call, template: str, /, **values: Any) -> Response:
    """A page for whoever makes the request."""
    return page(call.identity, template, **values)


def go(where: str) -> Response:
    """Go to another page; what was sent is not sent again."""
    return RedirectResponse(where, status_code=303, headers=HEADERS)


async def fields(request: Request) -> dict[str, list[str]]:
    """The fields of a form, each with all of its values; files are left out."""
    form = await request.form(max_files=0, max_fields=MOST_FIELDS)
    found: dict[str, list[str]] = {}
    for name, value in form.multi_items():
        if isinstance(value, str):
            found.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return found


def first(given: dict[str, list[str]], name: str, default: str = "") -> str:
    """The first value of a field."""
    return next(iter(given.get(name, ())), default)


def sentence(error: PrivetError) -> str:
    """An error as one paragraph."""
    found = problems.shown(error)
    return " ".join([found.title, *found.lines])


def when(time: str | datetime) -> str:
    """A moment for people, in UTC: 18 Nov 2026, 13:05.

    Example:
        >>> when("2026-11-18T13:05:09Z")
        '18 Nov 2026, 13:05'
    """
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError:
            return str(time)
    return f"{time.astimezone(UTC):%-d %b %Y, %H:%M}"


def listed(names: Sequence[str] | frozenset[str] | None) -> str:
    """Datasets in words; None is every one."""
    if names is None:
        return "every dataset"
    return ", ".join(sorted(names)) or "no dataset"
