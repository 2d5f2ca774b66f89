"""The OpenAPI document: it says what the routes are, and its schemas are schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tests.server.api.fuzzing import fuzzed
from tests.server.api.serving import Running

from privet.server import models
from privet.server.accounts import Role
from privet.server.openapi import document, operation, statuses
from privet.server.route import Route
from privet.server.routes import KEY, ROUTES


def refs(tree: Any) -> set[str]:
    if isinstance(tree, list):
        return set().union(*map(refs, tree)) if tree else set()
    if not isinstance(tree, dict):
        return set()
    own = {tree["$ref"]} if "$ref" in tree else set()
    return own.union(*map(refs, tree.values())) if tree else own


def test_the_document_is_written_from_the_routes(ann: httpx.Client) -> None:
    served = ann.get("/openapi.json").json()
    assert served == document()
    described = {(method.upper(), path) for path, methods in served["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES}
    for route in ROUTES:
        made = served["paths"][route.path][route.method.lower()]
        assert made["operationId"] == route.name
        assert {each["name"] for each in made["parameters"] if each["in"] == "path"} == {*route.in_path}
        assert ("requestBody" in made) == (route.takes is not None)
        assert {*map(int, made["responses"])} == {*statuses(route)}
        assert route.summary.endswith(".")
    assert KEY.name in str(served["paths"]["/api/v1/datasets/{dataset}/query"]["post"]["parameters"])


def test_its_schemas_are_schemas() -> None:
    schemas = document()["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    assert {ref.rpartition("/")[2] for ref in refs(document())} <= {*schemas}
    assert schemas["Question"]["additionalProperties"] is False
    described = [each for schema in schemas.values() for each in schema.get("properties", {}).values()]
    assert len(described) > 100


@pytest.mark.slow
def test_nothing_but_the_documented_answers(running: Running, tmp_path: Path, effort: int) -> None:
    """`./dev soak requests` makes more of them."""
    phases = "coverage,fuzzing" if effort > 1 else "fuzzing"
    made, failed = fuzzed(running, tmp_path, examples=2 * effort, phases=phases, role=Role.STEWARD)
    assert failed == ""
    assert made >= 40


def test_a_new_route_is_described_by_itself() -> None:
    route = Route(
        method="POST",
        path="/api/v1/new/{thing}",
        name="new",
        rule=ROUTES[0].rule,
        summary="Something new.",
        takes=models.Reopen,
        gives=models.Done,
    )
    made = operation(route)
    assert made["parameters"][0]["name"] == "thing"
    assert {"200", "401", "403", "404", "413", "415", "422"} <= {*made["responses"]}
