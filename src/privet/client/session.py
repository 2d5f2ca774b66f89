"""One analyst's session on a server: the same questions as with a `Session`, and every answer verified on arrival."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NoReturn, SupportsIndex, Unpack

from privet.client import questions as asking
from privet.client import wire
from privet.client.arrival import Expected, answer, answers, arrived, check_question, refusal, whole_of
from privet.client.problems import clean
from privet.client.questions import RemoteDataset
from privet.client.wire import Reply, Wire
from privet.errors import (
    DatasetClosed,
    Face,
    NoAnswer,
    NoConnection,
    PrivetError,
    Remedy,
    UserError,
)
from privet.ledger import Balance, Remaining
from privet.ledger.debits import serves
from privet.planner import ReleasePlan
from privet.planner.arguments import check_arguments
from privet.planner.batch import BatchPlan
from privet.planner.explain import Explanation
from privet.planner.facts import derived
from privet.privacy import events
from privet.privacy.guarantees import Guarantee
from privet.privacy.guarantees.budgets import from_amount, is_nothing
from privet.release import Release
from privet.release.batch import ReleasedBatch
from privet.release.certificate import plain
from privet.release.signing import VerifyingKey
from privet.requests import dividing
from privet.requests.dividing import Funds
from privet.requests.options import BatchOptions, ReleaseOptions
from privet.system.closing import Closing
from privet.tables import look
from privet.tables.query import Query
from privet.tables.schema import check_name
from privet.terms import balance_from_tree
from privet.view import Asker, check_fresh

_LONGEST_TEXT = 10**6


class RemoteSession(Asker, Closing):
    """One analyst's view of a dataset on a server; `pv.connect` makes it.

    Tables have their declarations and no rows. Questions are planned here; the server answers them, and what it sends
    is verified before it is returned.

    Threads and forked processes can share it.
    """

    def __init__(
        self,
        connection: Wire,
        dataset: RemoteDataset,
        analyst: str,
        *,
        privet: str,
        key: VerifyingKey | None = None,
    ) -> None:
        """On this connection; `privet` is the version that the server has."""
        self.dataset: RemoteDataset = dataset
        self.analyst = analyst
        """The name under which the server knows you."""
        self.debited = False
        """Whether this session has paid for a question."""
        self.pending = ""
        """The request id of a question that was sent and is not answered."""
        self._wire = connection
        self._key = key
        self._closed = False
        self._theirs = privet

    # --- before asking --------------------------------------------------------------------------

    @property
    def balance(self) -> Balance:
        """What was granted and what is spent, including your own cap if there is one."""
        tree = self._get("budget").tree
        try:
            balance = balance_from_tree(tree["balance"])
            if type(balance.budget) is not type(self.dataset.budget):
                raise ValueError("a budget keeps its kind")
        except (LookupError, TypeError, ValueError):
            raise NoConnection("the reply of the server is not a budget") from None
        return balance

    def plan(self, query: Query | str | ReleasePlan, **options: Unpack[ReleaseOptions]) -> ReleasePlan:
        """How a query or a SELECT would be answered, and what it would cost. Spends nothing.

        It is planned here. Where several mechanisms could answer, the server chooses one that it can pay for.
        """
        plan = self._planned(query, options)
        if not self._may_choose(query, plan, options):
            return plan
        return self._explained(query, plan, options, "python", fresh=False)[0]

    def paid_before(self, query: Query | str | ReleasePlan, **options: Unpack[ReleaseOptions]) -> Guarantee | None:
        """The cost of the stored answer that asking would return for free; None if there is none."""
        plan = self._planned(query, options)
        cost = self._explained(query, plan, options, "python", fresh=False)[1].get("paid_before")
        try:
            return None if cost is None else from_amount(cost)
        except ValueError:
            raise NoConnection("the reply of the server is not a cost") from None

    def explain(
        self,
        query: Query | str | ReleasePlan,
        *,
        fresh: bool = False,
        face: Face = "python",
        **options: Unpack[ReleaseOptions],
    ) -> Explanation:
        """The plan in words, as the server tells it, and whether it is already paid for. Spends nothing."""
        plan = self._planned(query, options)
        tree = self._explained(query, plan, options, face, fresh=fresh)[1]
        return Explanation(clean(tree.get("text", ""), most=_LONGEST_TEXT))

    def plan_all(
        self, questions: Mapping[str, Query | str | ReleasePlan], **options: Unpack[BatchOptions]
    ) -> BatchPlan:
        """How `release_all` would answer these questions, and what they would cost. Spends nothing."""
        if options.get("delta") is None:
            return self._planned_batch(questions, options, lambda batch: True)
        return self._explained_batch(questions, options, fresh=False)[0]  # what is left decides how it is priced

    def explain_all(
        self,
        questions: Mapping[str, Query | str | ReleasePlan],
        *,
        fresh: bool = False,
        **options: Unpack[BatchOptions],
    ) -> Explanation:
        """The plan of a batch in words, as the server tells it, and whether it is already paid for. Spends nothing."""
        tree = self._explained_batch(questions, options, fresh=fresh)[1]
        return Explanation(clean(tree.get("text", ""), most=_LONGEST_TEXT))

    # --- asking ---------------------------------------------------------------------------------

    def release(
        self,
        query: Query | str | ReleasePlan,
        *,
        request_id: str | None = None,
        fresh: bool = False,
        **options: Unpack[ReleaseOptions],
    ) -> Release:
        """A private answer to a query or a SELECT. Set its total epsilon, or the errors to keep `within`.

        It is sent with a request id, so that however often the connection breaks it is paid for once. An answer that
        does not verify, or answers another question, is a `VerificationError`.
        """
        plan = self._planned(query, options)
        expected = self._expected(request_id, fresh=fresh)
        self._check_rules(lambda: [self._explained(plan, plan, {}, "python", fresh=False)])
        free = self._may_choose(query, plan, options)
        tree, _ = self._ask("query", asking.question(plan, mechanism=not free, fresh=fresh), expected)
        one = arrived(tree, expected)
        if free:
            plan = self._with_mechanism(query, plan, options, one.mechanism)
        released = answer(tree, plan, expected, one)
        return replace(released, remaining=self._after(not is_nothing(released.spent)))

    def release_all(
        self,
        questions: Mapping[str, Query | str | ReleasePlan],
        *,
        request_id: str | None = None,
        fresh: bool = False,
        **options: Unpack[BatchOptions],
    ) -> ReleasedBatch:
        """Private answers to all of these questions, or to none, with one debit; prices as for `Session.release_all`.

        On a server, a batch takes questions and no plans.
        """
        batch = self._planned_batch(questions, options, lambda batch: True)  # wrong ones are refused here
        expected = self._expected(request_id, fresh=fresh)
        self._check_rules(lambda: _each(*self._explained_batch(questions, options, fresh=False)))
        tree, fetched = self._ask("batch", asking.batch(questions, options, fresh=fresh), expected)
        sent = _named(tree, batch, by_position=fetched)
        certificates = {name: arrived(sent[name], expected) for name in batch}
        first = next(iter(certificates.values()))
        if options.get("delta") is not None:  # what is left decides how it is priced: the certificates say how
            theirs = whole_of(first)

            def same(each: BatchPlan) -> bool:
                return each.whole == theirs if first.new else serves([theirs], [each.whole])

            batch = self._planned_batch(questions, options, same)
        released = answers(tree, batch, expected, certificates)
        return replace(released, remaining=self._after(not released.paid_before))

    def release_value(self, *given: object, **options: object) -> NoReturn:
        """Refused: a statistic of your own is computed from the data, which are on the server."""
        raise _beside_the_data("release_value")

    def select(self, *given: object, **options: object) -> NoReturn:
        """Refused: scores of your own are computed from the data, which are on the server."""
        raise _beside_the_data("select")

    # --- inside ---------------------------------------------------------------------------------

    def _planned_batch(
        self,
        questions: Mapping[str, Query | str | ReleasePlan],
        options: Mapping[str, Any],
        pays: Callable[[BatchPlan], bool],
    ) -> BatchPlan:
        check_arguments(options, BatchOptions.__annotations__)
        asking.check_no_plans(questions)
        delta, accounting = options.get("delta"), self.dataset.accounting
        balance = Balance(accounting.accountant, self.dataset.budget, accounting.accountant.zero)
        funds = None if delta is None else Funds(balance, accounting.budget, pays, delta)
        return dividing.planned(questions, dict(options), self.dataset.plan, funds)

    def _may_choose(self, query: object, plan: ReleasePlan, options: Mapping[str, Any]) -> bool:
        """Whether the server may take another mechanism than the plan's: only it knows what can be paid."""
        return bool(plan.choice) and not isinstance(query, ReleasePlan) and options.get("mechanism") is None

    def _with_mechanism(
        self, query: Query | str | ReleasePlan, plan: ReleasePlan, options: Mapping[str, Any], name: object
    ) -> ReleasePlan:
        """The plan with the mechanism that the server chose."""
        if name == plan.mechanism.name:
            return plan
        try:
            return self.dataset.plan(query, **{**options, "mechanism": str(name)[:60]})
        except UserError:
            raise refusal("it is by a mechanism that can't answer this question") from None

    def _explained(
        self, query: Query | str | ReleasePlan, plan: ReleasePlan, options: Mapping[str, Any], face: str, *, fresh: bool
    ) -> tuple[ReleasePlan, dict[str, Any]]:
        """The plan, and what the server says about it; refused if that is about another question."""
        check_fresh(fresh)
        free = self._may_choose(query, plan, options)
        body = {**asking.question(plan, mechanism=not free, fresh=fresh), "face": face}
        tree = self._post("explain", body).tree
        stated = tree.get("asked") if isinstance(tree, dict) else None
        if not isinstance(stated, dict):
            raise NoConnection("the reply of the server is not an explanation")
        if free:
            plan = self._with_mechanism(query, plan, options, stated.get("mechanism"))
        check_question(stated, plan, "it explains another question")
        return plan, tree

    def _explained_batch(
        self, questions: Mapping[str, Query | str | ReleasePlan], options: BatchOptions, *, fresh: bool
    ) -> tuple[BatchPlan, dict[str, Any]]:
        """The plan of a batch, and what the server says about it; refused if that is about other questions."""
        check_fresh(fresh)
        self._planned_batch(questions, options, lambda batch: True)  # wrong ones are refused here
        tree = self._post("explain_batch", asking.batch(questions, options, fresh=fresh)).tree
        try:
            theirs, stated = events.from_tree(tree["event"]), dict(tree["questions"])
            asked = {name: dict(each["asked"]) for name, each in stated.items()}
        except (LookupError, TypeError, ValueError):
            raise NoConnection("the reply of the server is not an explanation") from None
        batch = self._planned_batch(questions, options, lambda each: each.whole == theirs)
        if batch.whole != theirs or asked.keys() != {*batch}:
            raise refusal("it explains another batch")
        for name, plan in batch.items():
            check_question(asked[name], plan, f"question {name!r}: it explains another question")
        return batch, tree

    def _check_rules(self, explained: Callable[[], Iterable[tuple[ReleasePlan, dict[str, Any]]]]) -> None:
        """Before anything is paid for: another version of Privet must plan these questions as this one does."""
        mine = version("privet")
        for plan, tree in explained() if self._theirs != mine else ():
            if tree.get("derived") != plain(derived(plan)):
                raise UserError(
                    f"the server has Privet {self._theirs} and this is {mine}, which plan this question differently. "
                    "Nothing was spent",
                    remedy=Remedy(f"Install version {self._theirs} here"),
                )

    def _expected(self, request_id: str | None, *, fresh: bool) -> Expected:
        check_fresh(fresh)
        given = None if request_id is None else asking.check_request_id(check_name(request_id, "request id"))
        return Expected(self.name, self.analyst, given or uuid.uuid4().hex, fresh, given is None, self._key)

    def _after(self, spent: bool) -> Remaining | None:
        """What is left after an answer; None if the server does not say: the answer is there."""
        self.debited = self.debited or spent
        with suppress(PrivetError):
            return self.remaining
        return None

    # --- the server -----------------------------------------------------------------------------

    def _ask(self, route: str, body: Any, expected: Expected) -> tuple[dict[str, Any], bool]:
        """The answer to a question, and whether it was fetched later."""
        deadline, request_id, fetched, running = self._wire.deadline(), expected.request_id, False, False
        self.pending = request_id
        try:
            reply = self._post(route, body, request_id, deadline)
            while reply.status == 202:
                running = True  # it is paid for
                pause = 1.0 if reply.retry_after is None else max(reply.retry_after, 0.05)
                if wire.now() + pause > deadline:
                    raise NoConnection(
                        f"the server has not answered yet. The question may have been paid for; its request id is "
                        f"{request_id}",
                        request_id=request_id,
                        remedy=wire.later(request_id),
                    )
                wire.sleep(pause)
                reply = self._get("answers", request_id, deadline=deadline, missing=True)
                fetched = reply.status != 404
                if not fetched:  # it was lost: the same request again is paid for once
                    reply = self._post(route, body, request_id, deadline)
        except PrivetError as error:
            self.debited = self.debited or (isinstance(error, NoAnswer) and not isinstance(error, DatasetClosed))
            if running and not isinstance(error, NoAnswer) and not getattr(error, "request_id", ""):
                raise wire.perhaps_paid(error, request_id) from error
            raise
        self.pending = ""
        if not isinstance(reply.tree, dict):
            raise NoConnection("the reply of the server is not an answer", request_id=request_id)
        self.debited = self.debited or reply.tree.get("paid_before") is False  # whether or not it is accepted
        return reply.tree, fetched

    def _get(self, *path: str, deadline: float | None = None, missing: bool = False) -> Reply:
        self._check_open()
        return self._wire.get("datasets", self.name, *path, deadline=deadline, missing=missing)

    def _post(self, route: str, body: Any, request_id: str = "", deadline: float | None = None) -> Reply:
        self._check_open()
        return self._wire.post("datasets", self.name, route, body=body, request_id=request_id, deadline=deadline)

    def _check_open(self) -> None:
        if self._closed:
            raise UserError("this session is closed", remedy=Remedy("Connect again"))

    def close(self) -> None:
        """Close the session and its connections."""
        self._closed = True
        self._wire.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UserError(
            "a session can't be copied or sent to another process", remedy=Remedy("Connect again in that process")
        )

    def __repr__(self) -> str:
        return f"RemoteSession({', '.join(self.tables)}; {self._wire.address})"

    def _repr_html_(self) -> str:
        title = f"Session of {self.analyst} on {self.name}, version {self.version}"
        return look.of_tables(self.tables.values(), self.public.values(), title)


def _beside_the_data(name: str) -> UserError:
    return UserError(
        f"{name} takes numbers that you computed from the data, so it needs a session beside the data",
        remedy=Remedy("Ask a question instead, or ask the steward to run it with pv.Session"),
    )


def _each(batch: BatchPlan, tree: dict[str, Any]) -> list[tuple[ReleasePlan, dict[str, Any]]]:
    """The plans of a batch, and what the server says about each."""
    return [(plan, tree["questions"][name]) for name, plan in batch.items()]


def _named(tree: dict[str, Any], batch: BatchPlan, *, by_position: bool) -> dict[str, Any]:
    """The answers of a batch by name; what is fetched later has them by their positions."""
    sent = tree.get("answers")
    keys = [str(place) for place in range(len(batch))] if by_position else [*batch]
    if not isinstance(sent, dict) or sent.keys() != {*keys}:
        raise refusal("it is not about these questions")
    return {name: sent[key] for name, key in zip(batch, keys, strict=True)}
