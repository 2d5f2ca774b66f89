"""Questions and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, RootModel, model_validator

from privet.server.models.base import Amount, Count, Model, Name, Number


class Statement(Model):
    """A question: a SELECT, or a query tree as certificates have it."""

    sql: Annotated[str, Field(max_length=100_000)] | None = None
    """A SELECT."""
    query: dict[str, JsonValue] | None = None
    """The query as a tree, in the form of certificates: what `parse` returns."""

    @model_validator(mode="after")
    def _one(self) -> Statement:
        if (self.sql is None) == (self.query is None):
            raise ValueError("give either sql or query")
        return self


class CappedStatement(Statement):
    """A question, with lower caps on the rows of each person."""

    max_rows: Count | None = None
    """Maximum rows per person."""
    max_groups: Count | None = None
    """Maximum groups per person."""
    max_rows_per_group: Count | None = None
    """Maximum rows per person in each group; needs max_groups."""


class Question(CappedStatement):
    """A question and its price: an epsilon, a rho, or errors to stay within."""

    epsilon: Number | None = None
    """What the question costs."""
    delta: Number | None = None
    """The delta of the cost, in addition to epsilon."""
    rho: Number | None = None
    """The cost in rho, instead of epsilon."""
    within: dict[str, Number] | None = None
    """The error to stay within, by column, instead of epsilon."""
    confidence: Number = "0.95"
    """The probability that an interval or an error bound holds."""
    simultaneous: bool = False
    """Whether all intervals hold together."""
    assuming: Count | None = None
    """Rows per group to assume when the error of a mean is predicted."""
    weights: dict[str, Number] | None = None
    """How epsilon is divided between columns."""
    mechanism: Name | None = None
    """The noise: laplace or gaussian. By default, the price decides."""
    fresh: bool = False
    """Whether to pay for new noise even if the answer is stored."""


class QuestionInWords(Question):
    """A question to explain, in the language of those who read it."""

    face: Literal["python", "sql", "terminal", "http"] = "http"
    """Who reads the text: suggestions are written as Python, options of the command line, or JSON."""


class Batch(Model):
    """Questions that are planned first, paid for at once, and then answered: all of them or none."""

    questions: Annotated[dict[Name, CappedStatement], Field(min_length=1, max_length=1000)]
    """The questions, by name."""
    epsilon: Number | dict[str, Number] | None = None
    """The price of all together, or of each by name."""
    delta: Number | None = None
    """The delta of the batch."""
    rho: Number | dict[str, Number] | None = None
    """The price in rho, instead of epsilon."""
    within: dict[str, dict[str, Number]] | None = None
    """The errors to stay within, by question and column."""
    weights: dict[str, Number] | None = None
    """How the price is divided between questions."""
    confidence: Number = "0.95"
    """The probability that an interval or an error bound holds."""
    simultaneous: bool = False
    """Whether all intervals of an answer hold together."""
    assuming: Count | None = None
    """Rows per group to assume when the error of a mean is predicted."""
    mechanism: Name | None = None
    """The noise: laplace or gaussian."""
    fresh: bool = False
    """Whether to pay for new noise even if the answers are stored."""


class Parsed(Model):
    """What a SELECT asks."""

    query: dict[str, Any]
    """The query as a tree; it can be asked in place of the SELECT."""
    words: str
    """The question in words."""
    options: Amount
    """The price that the SELECT names in its OPTIONS."""


class CurvePoint(Model):
    """What one price would buy."""

    epsilon: str
    expected_error: dict[str, float | None]
    """By column, a bound on the error of a cell; null if it needs `assuming`."""


class Planned(Model):
    """The plan of a question: what was asked, what follows from it, and what limits the answer."""

    asked: dict[str, Any]
    """The question; the rest follows from it."""
    derived: dict[str, Any]
    """Statements, measurements, expected errors, the event, the guarantee."""
    limits: list[str]
    """The caps and clamps that affect the answer, in words."""


class Explanation(Planned):
    """A plan, its cost, and what is stored."""

    paid_before: Amount | None
    """The cost of the stored answer that asking would return free of charge."""
    text: str
    """The whole explanation in words."""
    cost: Amount
    """What asking would spend now: nothing if the answer is stored."""
    fits: bool
    """Whether the budget can pay for it, or it is stored."""
    times: int
    """How many questions like this one the rest of the budget pays for, at most a million."""
    curve: list[CurvePoint]
    """The expected error at a few prices; empty for a question that is not priced in epsilon."""


class BatchExplanation(Model):
    """The plan of a batch, its cost, and what is stored."""

    questions: dict[str, Planned]
    """The plan of each question, by name."""
    together: list[list[str]]
    """The questions that share measurements, in lists of two or more."""
    event: dict[str, Any]
    """What the batch would be debited as."""
    paid_before: Amount | None
    """The cost of the stored answers that asking would return free of charge."""
    text: str
    """The whole explanation in words."""
    cost: Amount
    """What asking would spend now: nothing if the answers are stored."""
    fits: bool
    """Whether the budget can pay for it, or it is stored."""
    times: int
    """How many batches like this one the rest of the budget pays for, at most a million."""


class Answer(Model):
    """An answer, as `privet query --json` prints it, with its certificate."""

    rows: list[dict[str, Any]]
    """A row for each group: keys, and for each column n also n_low, n_high and n_noisy."""
    confidence: float
    guarantee: Amount
    """The guarantee of the answer, which is also its cost, whether paid now or before."""
    paid_before: bool
    """Whether the answer was stored, so that nothing was spent."""
    spent: Amount
    left: Amount | None
    """What is left of the budget afterwards, under every cap."""
    limits: list[str]
    notes: list[str]
    request_id: str | None
    """The Idempotency-Key, under which the answer can be had again; null for a stored answer if none was sent."""
    entry: int
    """The number of the debit in the ledger."""
    certificate: dict[str, Any]
    """The claim, to be checked by anyone; with it, the answer can be rebuilt."""


class BatchAnswer(Model):
    """The answers to a batch."""

    answers: dict[str, Answer]
    guarantee: Amount
    """Of all answers together, which is also what the batch cost."""
    paid_before: bool
    spent: Amount
    left: Amount | None
    request_id: str | None
    entry: int


class AnyAnswer(RootModel[Answer | BatchAnswer]):
    """The answer to a question, or to a batch."""


class Pending(Model):
    """A question that is not answered yet: 202, with its place in the header Location."""

    request_id: str
    state: Literal["running"]
    paid: Literal[True]
    """The debit is made. A question that waits for its turn is not paid for: it gets 503 and asks again."""
    location: str
    """Where to ask for the answer."""
    retry_after: int
    """Seconds after which to ask; also in the header Retry-After."""
