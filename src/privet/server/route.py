"""A route: what can be asked for, by whom, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

from privet.server.authorization import Rule

Method = Literal["GET", "POST", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter in the query string or a header."""

    name: str
    where: Literal["query", "header"]
    meaning: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path. Its handler has the same name.

    The application, the OpenAPI document and the test of the authorization table are made from these.
    """

    method: Method
    path: str
    """Parts in braces are parameters: /api/v1/datasets/{dataset}/query."""
    name: str
    rule: Rule
    summary: str
    takes: type[BaseModel] | None = None
    """The model of the body; None for a route without one, or for a form."""
    gives: type[BaseModel] | None = None
    """The model of the answer; None for a page, a file or an empty answer."""
    status: int = 200
    """The status of success."""
    more: Mapping[int, type[BaseModel]] = field(default_factory=dict)
    """Other answers that are no problems, by status."""
    problems: tuple[int, ...] = ()
    """The statuses of its problems, besides those that follow from its rule, its parameters and its body."""
    parameters: tuple[Parameter, ...] = ()
    exactly: bool = True
    """Whether numbers of the body are read as they are written; certificates have floats."""
    slow: bool = False
    """Whether it waits for data, and so may take longer than other requests."""

    @property
    def unsafe(self) -> bool:
        """Whether it may change something, and so needs a CSRF token from a browser."""
        return self.method != "GET"

    @property
    def in_path(self) -> tuple[str, ...]:
        """The names of the parameters in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
