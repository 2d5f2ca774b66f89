"""Questions about a dataset: a SELECT is read, its tables are checked, and it is planned at the dataset's prices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from privet.errors import QueryError, Subject, write
from privet.exact import Number, positive, probability
from privet.planner import ReleasePlan, plan
from privet.planner.choice import Accounting
from privet.planner.discovery import default_delta
from privet.planner.latest import Known, Latest
from privet.privacy.accounting import PureAccountant
from privet.privacy.guarantees import Budget, PureDP, budgets
from privet.tables.catalog import Catalog
from privet.tables.discovered import Discovered
from privet.tables.query import Query

if TYPE_CHECKING:  # sqlglot takes its time, and a question in Python needs none of it
    from privet.sql import Asked


class Questions:
    """Reads and plans questions about the tables of a catalog."""

    name: str
    version: str

    def __init__(self, catalog: Catalog, budget: Budget, *, min_epsilon: Number, delta_share: Number) -> None:
        self.catalog = catalog
        self.tables = catalog.tables
        """The private tables, by name."""
        self.public = catalog.public
        """The public tables, by name."""
        self.min_epsilon = positive(min_epsilon, name="min_epsilon", example="min_epsilon=0.001")
        """The minimum price of a question."""
        self.delta_share = probability(delta_share, name="delta_share", example="delta_share=0.01")
        """The part of the budget's delta that a question with unknown keys costs by default."""
        self.budget = budget
        """The budget that the steward states."""
        self._plans: WeakValueDictionary[int, ReleasePlan] = WeakValueDictionary()

    @property
    @abstractmethod
    def accounting(self) -> Accounting:
        """The budget that the dataset was created with, and the accountant that keeps it."""

    def parse(self, text: str) -> Query:
        """The question that a SELECT asks, as the same value that the Python methods build."""
        return self.asked(text).query

    def asked(self, text: str) -> Asked:
        """The question that a SELECT asks, and the price in its options."""
        from privet.sql import read

        return read(text, self.tables, self.public)

    def capped(
        self, query: Query | str, caps: Mapping[str, int | None], options: Mapping[str, Any]
    ) -> tuple[Query | str, dict[str, Any]]:
        """A question with these caps, and its options; a statement without caps stays as it is written."""
        if all(cap is None for cap in caps.values()):
            return query, dict(options)
        if isinstance(query, str):
            asked = self.asked(query)
            return asked.query.cap(**caps), asked.priced(options)
        return query.cap(**caps), dict(options)

    def plan(self, query: Query | str | ReleasePlan, *, latest: Latest | None = None, **options: Any) -> ReleasePlan:
        """The plan for a question. A plan that another dataset made is planned again and compared.

        Claim: the result is always the planner's own plan for the question, at the minimum price or more.
        """
        if isinstance(query, ReleasePlan):
            return self._planned(query)
        known = None if latest is None else latest.find(query, options)
        if known is not None and known.means == self._means(known.options):
            self.catalog.check(known.plan.query)
            return known.plan
        given = options
        if isinstance(query, str):
            question = self.asked(query)
            asked, text, options = question.query, query, question.priced(options)
        else:
            asked, text = query, ""
        try:
            options = self._completed(asked, options)
            planned = self._plan(asked, text=text, **options)
        except QueryError as error:
            if text and error.remedy is not None and error.remedy.sql:  # the remedy is for a statement
                error.subject = Subject("statement")
            raise
        self.catalog.check(asked)
        self._plans[id(planned)] = planned
        if latest is not None:
            latest.keep(query, given, Known(planned, options, self._means(options)))
        return planned

    def replanned(self, made: ReleasePlan, **options: Any) -> ReleasePlan:
        """The plan for the question of another plan of this dataset, at another price."""
        return self._plan(made.query, text=made.text, checked=True, **self._completed(made.query, options))

    def _means(self, options: Mapping[str, Any]) -> tuple[object, ...]:
        """What a plan follows from, besides its question and options."""
        return self._accounting(options), self.budget, self.min_epsilon, self.delta_share

    def _completed(self, query: Query, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with the usual delta where keys are unknown and there is no other."""
        completed = dict(options)
        if isinstance(getattr(query, "groups", None), Discovered):  # what is no query is refused by the planner
            usual = default_delta(query, self.budget, self.delta_share)
            completed["delta"] = usual if options.get("delta") is None else options["delta"]
        return completed

    def _plan(self, query: Query, **options: Any) -> ReleasePlan:
        return plan(query, min_epsilon=self.min_epsilon, accounting=self._accounting(options), **options)

    def _accounting(self, options: Mapping[str, Any]) -> Accounting | None:
        """What a question is paid from, if that can decide which mechanism answers it."""
        budget = self.budget
        if isinstance(budget, PureDP):
            priced = any(options.get(name) is not None for name in ("delta", "rho", "mechanism"))
            return Accounting(PureAccountant(), budget) if priced else None
        if options.get("epsilon") is not None and options.get("delta") is None:
            return None
        return self.accounting

    def _planned(self, given: ReleasePlan) -> ReleasePlan:
        if self._plans.get(id(given)) is given:
            return given
        self.catalog.check(given.query)
        options = {
            **({} if given.asked is None else budgets.numbers(given.asked)),
            **({} if given.delta is None else {"delta": given.delta}),
            "within": None if given.within is None else dict(given.within),
            "confidence": given.confidence,
            "simultaneous": given.simultaneous,
            "assuming": given.assuming,
            "weights": dict(given.weights) or None,
            "mechanism": given.mechanism.name,
        }
        planned = self._plan(given.query, text=given.text, **self._completed(given.query, options))
        if planned != given:
            raise QueryError(
                "this plan was not made for this dataset: here the same question has another plan. Nothing was spent",
                remedy=write("plan = session.plan(question, epsilon=0.5)"),
            )
        self._plans[id(planned)] = planned
        return planned
