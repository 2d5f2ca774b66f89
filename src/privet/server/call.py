"""One request on its way through the server: who makes it, and what it brings."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from privet.names.spelling import there_are
from privet.server.accounts import Identity
from privet.server.anonymous import SHORT
from privet.server.problems import Refusal
from privet.server.route import Route

if TYPE_CHECKING:
    from privet.dataset import Dataset
    from privet.server.state import Server

_T = TypeVar("_T")
_DEEPEST = 250
"""How deep objects and lists of a body may be nested."""
_MOST_WRONG = 1000  # errors that are listed one by one, which takes longer than to find them
_IN_JSON = {
    "extra_forbidden": "there is no such field",
    "missing": "is missing",
    "dict_type": "must be an object: {...}",
    "model_type": "must be an object: {...}",
    "model_attributes_type": "must be an object: {...}",
    "list_type": "must be an array: [...]",
    "tuple_type": "must be an array: [...]",
    "string_type": 'must be a text: "..."',
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
}
"""What pydantic's kinds of errors mean for a body."""
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)  # each byte is looked at once


@dataclass(frozen=True, slots=True)
class Call:
    """A request that may be made: its rule is checked, and its body is read."""

    server: Server
    route: Route
    request: Request
    identity: Identity | None
    body: Any = None
    """The body, as the model of the route."""

    @property
    def me(self) -> Identity:
        """Who makes the request, if the route needs an account."""
        assert self.identity is not None
        return self.identity

    @property
    def name(self) -> str:
        """The name of whoever makes the request, which is the analyst's in the ledger."""
        return self.me.person.name

    @property
    def dataset(self) -> Dataset:
        """The dataset of the path."""
        return self.server.datasets[self.path("dataset")]

    def path(self, name: str) -> str:
        """A parameter of the path."""
        return str(self.request.path_params[name])

    def number(self, name: str, *, least: int = 0, most: int = 2**53) -> int | None:
        """A whole number of the query string; None if it is not given."""
        given = self.request.query_params.getlist(name)
        if not given:
            return None
        if len(given) > 1 or not re.fullmatch(r"[0-9]{1,16}", given[0]) or not least <= int(given[0]) <= most:
            raise Refusal(422, f"{name} must be a whole number from {least} to {most}")
        return int(given[0])


async def in_thread(work: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    """What some blocking work returns, done in a thread."""
    return await run_in_threadpool(work, *arguments, **options)


def reply(tree: BaseModel | dict[str, Any], status: int = 200, **headers: str) -> Response:
    """An answer in JSON. Underscores in the names of headers are hyphens."""
    fields = tree.model_dump(mode="json") if isinstance(tree, BaseModel) else tree
    body = json.dumps(fields, ensure_ascii=False, allow_nan=False, default=str, separators=(",", ":"))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(body, status_code=status, headers=named, media_type="application/json")


# --- bodies ---------------------------------------------------------------------------------------


async def read_body(request: Request, route: Route, in_turn: Callable[..., Awaitable[Any]] | None) -> Any:
    """The body as the route's model; refused if it is anything else.

    A long one takes long to read, so it is read `in_turn`; without an account (None), it is short.
    """
    raw = await request.body()
    if route.takes is None:
        return None
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise Refusal(
            415, "The body must be JSON: Content-Type: application/json", headers={"Accept": "application/json"}
        )
    if in_turn is not None and len(raw) > SHORT:
        return await in_turn(parsed, raw, route.takes, exactly=route.exactly)
    return parsed(raw, route.takes, exactly=route.exactly)


def parsed(raw: bytes, model: type[BaseModel], *, exactly: bool = True) -> Any:
    """A body in JSON as a model. If `exactly`, a number with a point is read as it is written, not as a float."""
    _check_depth(raw)
    try:
        tree = json.loads(
            raw.decode(),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=Decimal if exactly else float,
        )
    except (ValueError, RecursionError, ArithmeticError):
        raise Refusal(400, "The body is not valid JSON in UTF-8, or a field is repeated in it") from None
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        if error.error_count() > _MOST_WRONG:
            what = f"The body is not what this route takes: {error.error_count():,} values in it are wrong"
            raise Refusal(422, what) from None
        wrong = [
            {"where": ".".join(map(str, each["loc"])), "what": _wrong(each["type"], each["msg"], each["loc"], model)}
            for each in error.errors(include_url=False, include_context=False, include_input=False)[:20]
        ]
        told = "; ".join(f"{each['where'] or 'the body'}: {each['what']}" for each in wrong[:3])
        raise Refusal(422, f"The body is not what this route takes: {told}", errors=wrong) from None
    except RecursionError:
        raise Refusal(422, "The body is nested too deep") from None


def _wrong(kind: str, message: str, where: tuple[int | str, ...], model: type[BaseModel]) -> str:
    """What is wrong with a value of a body, in the words of JSON; of pydantic's own, those that name Python's types."""
    if kind == "extra_forbidden" and len(where) == 1:
        return f"{_IN_JSON[kind]}. {there_are(str(where[0]), model.model_fields, 'fields', str)}"
    return _IN_JSON.get(kind) or message.removeprefix("Value error, ")


def _check_depth(raw: bytes) -> None:
    if raw.count(b"[") + raw.count(b"{") <= _DEEPEST:
        return
    depth = 0
    for token in _TOKENS.finditer(raw):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth > _DEEPEST:
                raise Refusal(422, f"The body is nested more than {_DEEPEST} deep")
        elif token[0] in (b"]", b"}"):
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        raise ValueError("a field is repeated")
    return tree


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")
