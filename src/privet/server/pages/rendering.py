"""Templates: how a page is made of one, and the headers that every page has."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

STATIC = "/static"
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


@cache
def environment() -> Environment:
    """The templates: every text is escaped, and a name that does not exist is an error."""
    made = Environment(
        loader=PackageLoader("privet.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["segment"] = segment
    made.globals["static"] = static
    made.globals["version"] = _version()
    return made


def render(template: str, **values: Any) -> str:
    """The HTML of a page."""
    return environment().get_template(template).render(values)


_IN_A_PATH = "-._~!$&'()*+,;=:@"  # what a part of a path may contain as it is (RFC 3986)


def segment(text: str) -> str:
    """A name as one part of an address.

    Example:
        >>> segment("a b/c"), segment("o'hara")
        ('a%20b%2Fc', "o'hara")
    """
    return quote(text, safe=_IN_A_PATH)


def static(name: str) -> str:
    """The address of a static file; it changes with its contents, so browsers may keep it."""
    return f"{STATIC}/{name}?{_digest(name)}"


@cache
def contents(name: str) -> bytes | None:
    """A static file; None if there is none of this name."""
    if not name.replace(".", "", 1).isalnum() or name.rpartition(".")[2] not in TYPES:
        return None
    found = files("privet.server.pages") / "static" / name
    return found.read_bytes() if found.is_file() else None


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(contents(name) or b"").hexdigest()[:12]


def _version() -> str:
    try:
        return version("privet")
    except PackageNotFoundError:
        return ""
