"""One analyst's view of a dataset, wherever the data are: beside them, or on a server.

What is here is the same for both: the names, the balance, and questions that are made of other questions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Unpack

from privet.errors import QueryError, Remedy, UserError, argument
from privet.ledger import Balance, Remaining
from privet.planner import ReleasePlan
from privet.planner.arguments import check_arguments
from privet.planner.latest import Latest
from privet.questions import Questions
from privet.release import Release, bounds
from privet.release.batch import ReleasedBatch
from privet.release.bounds import ReleasedBounds
from privet.release.diagnosis import Diagnosis
from privet.requests import diagnoses
from privet.requests.options import BatchOptions, BoundsOptions, DiagnosisOptions, ReleaseOptions
from privet.tables.expressions.fluent import Expr
from privet.tables.query import Query
from privet.tables.relation import PublicTable, Relation, Table, check_rows


class View:
    """The tables of a dataset, and what is left of its budget for one analyst."""

    dataset: Questions
    analyst: str

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.dataset.name

    @property
    def version(self) -> str:
        """The name of this version of the data."""
        return self.dataset.version

    @property
    def tables(self) -> dict[str, Table]:
        """The private tables, by name."""
        return self.dataset.tables

    @property
    def public(self) -> dict[str, PublicTable]:
        """The public tables, by name."""
        return self.dataset.public

    @property
    @abstractmethod
    def balance(self) -> Balance:
        """What was granted and what is spent, including the analyst's own cap if there is one."""

    @property
    def spent(self) -> Any:
        """What is spent: a guarantee of the budget's kind, or, if meters keep the budget, the share that is used."""
        return self.balance.spent

    @property
    def remaining(self) -> Remaining:
        """What is left under every cap: the share, the guarantee, and whether a plan fits."""
        return self.balance.remaining

    @cached_property
    def _latest(self) -> Latest:
        """Not the dataset's, which others use too: the time of a plan would tell what they ask."""
        return Latest()

    def parse(self, text: str) -> Query:
        """The question that a SELECT asks, as the same value that the Python methods build."""
        return self.dataset.parse(text)

    def _planned(self, query: Query | str | ReleasePlan, options: ReleaseOptions) -> ReleasePlan:
        """The plan of a question, whatever is left of the budget."""
        check_arguments(options, ReleaseOptions.__annotations__)
        if isinstance(query, ReleasePlan) and options:
            raise QueryError(
                f"a plan already says its {next(iter(options))}",
                remedy=Remedy("Leave it out, or give the question in place of its plan"),
            )
        return self.dataset.plan(query, latest=self._latest, **options)


class Asker(View):
    """A view that can pay: for a question, for a batch, and for what is made of them."""

    @abstractmethod
    def release(
        self,
        query: Query | str | ReleasePlan,
        *,
        request_id: str | None = None,
        fresh: bool = False,
        **options: Unpack[ReleaseOptions],
    ) -> Release:
        """A private answer to a query or a SELECT."""

    @abstractmethod
    def release_all(
        self,
        questions: Mapping[str, Query | str | ReleasePlan],
        *,
        request_id: str | None = None,
        fresh: bool = False,
        **options: Unpack[BatchOptions],
    ) -> ReleasedBatch:
        """Private answers to all of these questions, or to none."""

    def release_bounds(
        self,
        rows: Relation | Table,
        column: str | Expr,
        *,
        request_id: str | None = None,
        fresh: bool = False,
        **options: Unpack[BoundsOptions],
    ) -> ReleasedBounds:
        """Pay for bounds to clip a column or an expression to: powers of two between which nearly all values lie.

        It counts rows in public bins, with noise, and takes those that stand out. The same question is free again.
        """
        check_arguments(options, BoundsOptions.__annotations__)
        question = bounds.question(check_rows(rows), column)
        return ReleasedBounds(self.release(question, request_id=request_id, fresh=fresh, **options))

    def diagnose(
        self,
        query: Query | str | ReleasePlan,
        *,
        ceiling: int | None = None,
        request_id: str | None = None,
        fresh: bool = False,
        **options: Unpack[DiagnosisOptions],
    ) -> Diagnosis:
        """Pay for a look at what caps and bounds take from a question: private shares of rows, people and values.

        The question itself is not asked. Rows are counted up to a public `ceiling` per person, four times the cap if
        you give none: a higher one sees more, with more noise. One debit; the same diagnosis is free again.
        """
        check_arguments(options, DiagnosisOptions.__annotations__)
        priced: Mapping[str, Any] = options
        if isinstance(query, str):
            statement = self.dataset.asked(query)
            asked, priced = statement.query, statement.priced(options)
        else:
            asked = query.query if isinstance(query, ReleasePlan) else query
        looked = diagnoses.asked(asked, ceiling)
        diagnoses.check_price(priced)
        batch = self.release_all(diagnoses.named(looked), request_id=request_id, fresh=fresh, **priced)
        return diagnoses.answered(asked, looked, batch)


def check_fresh(fresh: object) -> None:
    """Refuse a `fresh` that is not a boolean."""
    if not isinstance(fresh, bool):
        raise UserError(f"fresh must be True or False, not {fresh!r}", remedy=argument("fresh", True))
