"""A plan as JSON: every fact from the query to the guarantee, for programs and certificates."""

from __future__ import annotations

from typing import Any

from privet.codec import ratio
from privet.errors import UserError
from privet.exact import Exact
from privet.planner.discovery import Discovery
from privet.planner.plan import Part, ReleasePlan
from privet.planner.planning import plan
from privet.planner.ranks import ChosenRanks
from privet.privacy import events
from privet.privacy.guarantees import budgets
from privet.tables.codec import decode, encode
from privet.tables.query import Query

_FIELDS = (
    "query",
    "price",
    "within",
    "confidence",
    "simultaneous",
    "assuming",
    "weights",
    "mechanism",
    "delta",
    "stated_at",
    "raised_to",
)


def asked(plan: ReleasePlan) -> dict[str, Any]:
    """The question; everything in `derived` follows from it alone."""
    return plan.once("asked", _asked)


def _asked(plan: ReleasePlan) -> dict[str, Any]:
    return {
        "query": encode(plan.query),
        "price": None if plan.asked is None else budgets.to_tree(plan.asked),
        "within": None if plan.within is None else {name: ratio(error) for name, error in plan.within},
        "confidence": ratio(plan.confidence),
        "simultaneous": plan.simultaneous,
        "assuming": plan.assuming,
        "weights": {name: ratio(weight) for name, weight in plan.weights},
        "mechanism": plan.mechanism.name,
        "delta": _maybe(plan.delta),
        "stated_at": _maybe(plan.stated_at),
        "raised_to": _maybe(plan.raised_to),
    }


def plan_again(tree: Any) -> ReleasePlan:
    """A new plan for the question that `asked` wrote, by today's rules."""
    if not isinstance(tree, dict) or set(tree) != set(_FIELDS):
        raise UserError(f"asked: must have the fields {', '.join(sorted(_FIELDS))}")
    query = decode(tree["query"])
    if not isinstance(query, Query) or not isinstance(tree["simultaneous"], bool):
        raise UserError("asked: must be a query with its parameters")
    price: dict[str, Any] = {} if tree["price"] is None else budgets.numbers(budgets.from_tree(tree["price"]))
    if tree["delta"] is not None:
        price["delta"] = tree["delta"]
    return plan(
        query,
        **price,
        within=tree["within"],
        confidence=tree["confidence"],
        simultaneous=tree["simultaneous"],
        assuming=tree["assuming"],
        weights=tree["weights"] or None,
        mechanism=tree["mechanism"],
        min_epsilon=tree["raised_to"],
        stated_at=tree["stated_at"],
    )


def derived(plan: ReleasePlan) -> dict[str, Any]:
    """The consequences by the rules: sensitivities, scales, event, guarantee and errors."""
    return plan.once("derived", _derived)


def _derived(plan: ReleasePlan) -> dict[str, Any]:
    return {
        "statements": [encode(statement) for statement in plan.statements()],
        "measurements": [_measurement(part, plan.statement_of(part)) for part in plan.noised],
        "columns": [
            {"name": name, "kind": type(output).__name__.lower(), "expected_error": _maybe(plan.expected(name))}
            for name, output in plan.columns
        ],
        "groups": [
            {"name": key.name, "values": [str(value) for value in values]}
            for key, values in zip(plan.query.keys, plan.query.domains(), strict=True)
        ],
        **({} if plan.discovery is None else {"discovery": discovery_tree(plan.discovery)}),
        "design": plan.design.reason,
        "event": events.to_tree(plan.event()),
        "price": budgets.to_tree(plan.price),
        "guarantee": budgets.to_tree(plan.guarantee()),
    }


def discovery_tree(discovery: Discovery) -> dict[str, Any]:
    """How keys are found: who is asked for, and the mechanism that decides which appear."""
    chosen = discovery.selection
    return {
        "holders": encode(discovery.holders),
        "mechanism": type(chosen).__name__,
        "epsilon": ratio(discovery.epsilon),
        "delta": ratio(chosen.delta),
        "max_keys": chosen.max_keys,
        "adjacency": str(chosen.adjacency),
    }


def _measurement(part: Part, statement: int) -> dict[str, Any]:
    if isinstance(part, ChosenRanks):
        return part.facts(statement)
    what = part.measurement
    return {
        "statement": statement,
        "rule": what.rule,
        "mechanism": part.mechanism.name,
        "quantity": what.quantity,
        "phi": what.phi,
        "tallies": [encode(tally) for tally in what.tallies],
        "matrix": [list(row) for row in what.matrix],
        "corners": [list(corner) for corner in what.corners],
        "rows_per_person": part.rows,
        "level": None if part.level is None else part.level.facts(),
        "groups": part.groups,
        "adjacency": str(part.adjacency),
        "same_rows": part.same_rows,
        "move": events.move_to_tree(part.move),
        "price": budgets.to_tree(part.price),
        "scale": ratio(part.scale),
    }


def _maybe(number: Exact | None) -> str | None:
    return None if number is None else ratio(number)
