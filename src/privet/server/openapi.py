"""The OpenAPI 3.1 document of the API, written from the routes and their models."""

from __future__ import annotations

import re
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from pydantic.json_schema import models_json_schema

from privet.server import models
from privet.server.authorization import OF_A_DATASET, Rule
from privet.server.problems import MEDIA
from privet.server.route import Route
from privet.server.routes import ROUTES

_REF = "#/components/schemas/{model}"
_ALWAYS = (400, 405, 414, 421, 431, 500, 503)
"""What any request may get for its form, or when the server is broken or busy."""


@cache
def document() -> dict[str, Any]:
    """The whole document."""
    used = {model for route in ROUTES for model in _models(route)} | {models.Problem}
    sides = [(model, "validation") for model in sorted(used, key=lambda model: model.__name__)]
    _, schemas = models_json_schema(sides, ref_template=_REF)  # type: ignore[arg-type]
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Privet",
            "version": version("privet"),
            "description": "Differentially private statistics: ask questions about private tables, and pay for the "
            "answers with a budget. Errors are problem documents (RFC 9457).",
        },
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "An API token: privet_..."},
            },
        },
    }


def operation(route: Route) -> dict[str, Any]:
    """A route as an operation."""
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.in_path
    ]
    parameters += [
        {"name": each.name, "in": each.where, "required": False, "description": each.meaning, "schema": each.schema}
        for each in route.parameters
    ]
    made: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "security": [] if route.rule is Rule.ANYONE else [{"token": []}],
        "parameters": parameters,
        "responses": responses(route),
    }
    if route.takes is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(route.takes)}}}
    return made


def statuses(route: Route) -> dict[int, type[Any] | None]:
    """Every status that a route may have, and the model of its body."""
    problems = {*route.problems, *_ALWAYS}
    if route.rule is not Rule.ANYONE:
        problems |= {401, 403, 429}
    if route.rule in OF_A_DATASET or route.in_path:
        problems.add(404)
    if route.takes is not None:
        problems |= {413, 415, 422} | ({408} if route.rule is Rule.ANYONE else set())
    if any(each.where == "query" for each in route.parameters):
        problems.add(422)
    found: dict[int, type[Any] | None] = {route.status: route.gives, **route.more}
    return found | dict.fromkeys(sorted(problems), models.Problem)


def responses(route: Route) -> dict[str, Any]:
    """The responses of a route, by status."""
    made = {}
    for status, model in statuses(route).items():
        response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        if model is not None:
            media = MEDIA if model is models.Problem else "application/json"
            response["content"] = {media: {"schema": _ref(model)}}
        elif status == 200:
            response["content"] = {"application/json": {"schema": {"type": "object"}}}
        made[str(status)] = response
    return made


def _models(route: Route) -> list[type[Any]]:
    return [model for model in (route.takes, route.gives, *route.more.values()) if model is not None]


def _ref(model: type[Any]) -> dict[str, str]:
    return {"$ref": _REF.format(model=re.sub(r"[^a-zA-Z0-9.\-_]", "_", model.__name__))}
