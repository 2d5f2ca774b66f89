"""Questions on their way to a server: read and planned here, written as JSON for there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privet.codec import ratio
from privet.errors import QueryError, Remedy, UserError, write
from privet.exact import exact
from privet.planner import ReleasePlan
from privet.planner.choice import Accounting
from privet.privacy.guarantees import budgets
from privet.questions import Questions
from privet.tables.catalog import Catalog
from privet.tables.codec import encode
from privet.tables.query import Query
from privet.terms import Terms


class RemoteDataset(Questions):
    """The tables of a dataset on a server: their rows are there, their declarations here."""

    created_ledger = False

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.name, self.version = terms.name, terms.version
        catalog = Catalog.of(terms.private_tables(), terms.public_tables())
        super().__init__(catalog, terms.budget, min_epsilon=terms.min_epsilon, delta_share=terms.delta_share)

    @property
    def accounting(self) -> Accounting:
        """The budget that the dataset was created with, and the accountant that keeps it."""
        return self.terms.accounting

    def __repr__(self) -> str:
        return f"RemoteDataset({self.name}: {', '.join(self.tables)})"


def question(plan: ReleasePlan, *, mechanism: bool, fresh: bool = False) -> dict[str, Any]:
    """A planned question as JSON. Its mechanism is named if it may not be chosen anew."""
    price = {} if plan.asked is None else budgets.numbers(plan.asked)
    if plan.delta is not None:
        price = {**price, "delta": plan.delta}
    return {
        **_statement(plan.text or plan.query),
        **{name: ratio(number) for name, number in price.items()},
        **({} if plan.within is None else {"within": {name: ratio(error) for name, error in plan.within}}),
        "confidence": ratio(plan.confidence),
        "simultaneous": plan.simultaneous,
        **({} if plan.assuming is None else {"assuming": plan.assuming}),
        **({"weights": {name: ratio(weight) for name, weight in plan.weights}} if plan.weights else {}),
        **({"mechanism": plan.mechanism.name} if mechanism else {}),
        "fresh": fresh,
    }


def batch(questions: Mapping[str, Query | str | ReleasePlan], options: Mapping[str, Any], *, fresh: bool) -> Any:
    """The questions of a batch as JSON, with its price; they are planned already, and so well formed."""
    prices = {name: _exactly(options[name]) for name in _PRICES if options.get(name) is not None}
    others = {
        name: options[name] for name in ("simultaneous", "assuming", "mechanism") if options.get(name) is not None
    }
    return {
        "questions": {name: _statement(each) for name, each in questions.items()},
        **prices,
        **others,
        "fresh": fresh,
    }


_PRICES = ("epsilon", "rho", "weights", "within", "delta", "confidence")


def check_no_plans(questions: object) -> None:
    """Refuse plans in a batch: a server takes one price for all, and plans the questions together."""
    for name, each in questions.items() if isinstance(questions, Mapping) else ():
        if isinstance(each, ReleasePlan):
            raise QueryError(
                f"{name!r} is a plan; a batch on a server takes questions",
                remedy=write(
                    'session.release_all({"men": men, "women": women}, epsilon={"men": 0.3, "women": 0.1})',
                    advice="Give the questions, and their prices by name",
                ),
            )


def check_request_id(given: str) -> str:
    """A request id that can be sent in a header."""
    if given.isascii() and not {"/", '"'} & {*given} and given == given.strip():
        return given
    raise UserError(
        f"a request id on a server is a text of ASCII characters without slashes and quotes, not {ascii(given)[:60]}",
        remedy=Remedy("Choose another"),
    )


def _statement(of: Query | str | ReleasePlan) -> dict[str, Any]:
    return {"sql": of} if isinstance(of, str) else {"query": encode(of)}


def _exactly(given: Any) -> Any:
    if isinstance(given, Mapping):
        return {name: _exactly(each) for name, each in given.items()}
    return ratio(exact(given))
