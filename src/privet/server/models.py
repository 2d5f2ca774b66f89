"""What the API takes and gives, as models: the OpenAPI document is written from them.

Numbers are exact. A number in JSON is read as its decimal text, so 0.1 is 1/10, and "1/3" is allowed.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel, WithJsonSchema, model_validator

Number = Annotated[
    int | Decimal | str,
    WithJsonSchema({"type": ["number", "string"], "maxLength": 400, "examples": [0.5, "1/3"]}),
]
"""An exact number: a JSON number, or a text such as "0.5" or "1/3"."""
Name = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=1, le=2**53)]
Amount = dict[str, str]
"""An amount of privacy loss by its parts, each exact: {"epsilon": "0.5"}, {"epsilon": "1", "delta": "1e-06"}."""


class Model(BaseModel):
    """Strict: a value of another type, or a field that nobody knows, is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)


# --- questions ------------------------------------------------------------------------------------


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


class Explanation(Model):
    """A plan: what was asked, what follows from it, what limits the answer, and what is stored."""

    asked: dict[str, Any]
    """The question; the rest follows from it."""
    derived: dict[str, Any]
    """Statements, measurements, expected errors, the event, the guarantee."""
    limits: list[str]
    """The caps and clamps that affect the answer, in words."""
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


# --- datasets -------------------------------------------------------------------------------------


class Standing(Model):
    """What is left of a budget."""

    left: Amount
    """What one more question may cost, under every cap that applies to you."""
    share: float
    """The share that is left of the tightest cap, from 0 to 1."""
    text: str
    """What is left, in words."""
    questions: str | None
    """For how many questions like the latest it is enough, in words."""


class DatasetSummary(Model):
    """A dataset that you may ask."""

    dataset: str
    version: str
    tables: list[str]
    budget: Standing


class Datasets(Model):
    """The datasets that you may ask."""

    datasets: list[DatasetSummary]


class Column(Model):
    """A column: its kind, its public bounds or keys, and the same in words."""

    model_config = ConfigDict(extra="allow")
    kind: str
    words: str


class Table(Model):
    """A private table."""

    protects: dict[str, Any]
    """What is protected, and the caps: {"unit": "person", "id": "person_id", "max_rows": 3}."""
    columns: dict[str, Column]


class PublicTable(Model):
    """A public table to join with."""

    key: str
    columns: dict[str, Column]


class Dataset(Model):
    """A dataset, as `privet schema --json` prints it."""

    dataset: str
    budget: Amount
    """What was granted for all questions together."""
    adjacency: str
    version: str
    tables: dict[str, Table]
    public: dict[str, PublicTable]
    terms: dict[str, Any]
    """The same for the Python client, exactly, with the prices: it plans questions by itself. From `Terms.to_tree`."""


class BudgetRow(Model):
    """A line of `privet budget`."""

    dataset: str
    analyst: str | None
    granted: Amount | None
    spent: Amount | None
    left: Amount | None
    per_analyst: Amount | None = None


class Budget(Model):
    """Your budget in a dataset; for stewards, everybody's."""

    dataset: str
    analyst: str
    granted: Amount
    """Your cap, or the budget of the dataset if you have none."""
    spent: Amount | None
    """What you have spent; under meters, the share of the budget."""
    per_query: Amount | None
    """What one question may cost."""
    standing: Standing
    balance: dict[str, Any]
    """The same for the Python client, exactly. From `balance_to_tree`."""
    rows: list[BudgetRow] | None
    """For stewards: the dataset and every analyst."""
    failures: int | None
    """For stewards: questions that failed since the dataset was last opened."""
    closed: bool | None
    """For stewards: whether the dataset is closed after failures."""


class Entry(Model):
    """An entry of the ledger, as `privet ledger history --json` prints it."""

    number: int
    time: str
    kind: str
    refers: int | None
    """The number of the debit that this entry settles, or whose answer it serves."""
    analyst: str | None
    by: str | None
    """The steward who did it."""
    request_id: str | None
    version: str | None
    cost: Amount | None
    spent: Amount | None
    """The total after the entry: the dataset's for stewards, your own for analysts."""
    question: str | None
    note: str | None
    answer: str | None
    """The SHA-256 of the answer."""
    hash: str
    state: Literal["running", "answered", "failed", "interrupted"] | None
    """Of a question: how it ended."""


class History(Model):
    """Entries of a ledger, newest first."""

    entries: list[Entry]
    next: int | None
    """For the next page: `?before=` this number; null at the end."""


# --- certificates and the ledger ------------------------------------------------------------------


class Certificate(RootModel[dict[str, Any]]):
    """A certificate, whole."""


class Verify(Model):
    """A certificate to check."""

    certificate: dict[str, JsonValue]
    receipt: Name | None = None
    """A receipt that the ledger must contain."""


class Verified(Model):
    """What was checked, as `privet verify --json` prints it."""

    model_config = ConfigDict(extra="allow")
    promise: str


class Head(Model):
    """The end of the ledger's chain."""

    receipt: str
    """A receipt, to be kept elsewhere."""


class VerifyLedger(Model):
    """A check of the whole ledger."""

    receipt: Name | None = None
    """A receipt that the ledger must contain."""


class VerifiedLedger(Model):
    """The ledger was read from its first entry, and is sound."""

    head: str
    entries: dict[str, int]
    """The number of entries, by dataset."""


class ReceiptOf(Model):
    """The receipt of an entry."""

    receipt: str
    time: str
    dataset: str
    kind: str


class Receipts(Model):
    """Receipts of the latest entries, newest first."""

    receipts: list[ReceiptOf]


# --- the steward ----------------------------------------------------------------------------------

Reason = Annotated[str, Field(min_length=1, max_length=1000)]


class Cap(Model):
    """A new budget or cap. Without an amount, an analyst's cap or the cap of each question is removed."""

    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None
    analyst: Name | None = None
    """Whose cap; without a name, the dataset's budget."""
    query: bool = False
    """Whether it is the cap of each single question."""
    reason: Reason
    """Recorded in the ledger."""


class Reopen(Model):
    """A dataset that was closed after failures is opened again."""

    reason: Reason
    """Recorded in the ledger."""


class Done(Model):
    """What a steward did, as the ledger records it."""

    entry: int
    """The number of the entry."""


Role = Literal["steward", "analyst"]


class Person(Model):
    """An account."""

    name: str
    role: Role
    datasets: list[str] | None
    """The datasets that they may ask; null for all."""
    disabled: bool
    has_password: bool


class People(Model):
    """All accounts."""

    people: list[Person]


class NewPerson(Model):
    """An account to add."""

    name: Name
    role: Role = "analyst"
    datasets: list[Name] | None = None
    """The datasets that they may ask; null for all."""


class ChangePerson(Model):
    """What to change of an account; what is left out stays."""

    role: Role | None = None
    datasets: list[Name] | None = None
    all_datasets: bool = False
    """Whether they may ask every dataset; not together with `datasets`."""
    disabled: bool | None = None
    """True ends sessions and tokens at once."""
    invite: bool = False
    """Whether to make a new one-time link to set a password."""


class ChangedPerson(Model):
    """An account, and the one-time link if one was made."""

    person: Person
    invitation: str | None
    """A link to set a password, once. It is shown only here."""


class Token(Model):
    """An API token, without its secret."""

    id: str
    name: str
    """Whose it is."""
    label: str
    role: Role
    datasets: list[str] | None
    max_epsilon: str | None
    """What may be spent with it, in all."""
    spent: str
    created: str
    expires: str | None
    revoked: bool
    last_used: str | None


class Tokens(Model):
    """Your tokens; for stewards, everybody's."""

    tokens: list[Token]


class NewToken(Model):
    """An API token to make."""

    label: Name
    name: Name | None = None
    """Whose token; stewards may name others. By default, your own."""
    role: Role = "analyst"
    datasets: list[Name] | None = None
    """The datasets that it may ask; null for all that its owner may."""
    max_epsilon: Number | None = None
    """What may be spent with it, in all."""
    days: Annotated[int, Field(ge=1, le=3650)] = 90
    """After how many days it expires."""


class CreatedToken(Model):
    """A new token. Its text is shown only here."""

    text: str
    token: Token


class Me(Model):
    """Who you are to the server."""

    name: str
    role: Role
    datasets: list[str] | None
    token: Token | None
    """The token of this request, if it has one."""
    csrf: str | None
    """For the header X-CSRF-Token; null with a token."""


# --- login by device code (RFC 8628) --------------------------------------------------------------


class DeviceCode(Model):
    """A program asks to be allowed in."""

    label: Name = "privet"
    """What the token will be called."""


class DeviceCodes(Model):
    """The code to type in, and where."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int
    """Seconds between questions for the token."""


class DeviceToken(Model):
    """A program asks whether it was allowed in."""

    device_code: Name
    grant_type: Literal["urn:ietf:params:oauth:grant-type:device_code"] = "urn:ietf:params:oauth:grant-type:device_code"


class AccessToken(Model):
    """The token. It is shown only here."""

    access_token: str
    token_type: Literal["Bearer"] = "Bearer"


# --- the server -----------------------------------------------------------------------------------


class Health(Model):
    """The server is up."""

    status: Literal["ok"] = "ok"
    version: str


class Problem(BaseModel):
    """What went wrong (RFC 9457). An error of Privet has its own fields besides."""

    model_config = ConfigDict(strict=True, extra="allow", use_attribute_docstrings=True)
    type: str
    """about:blank, or urn:privet:error: and the kind of error."""
    title: str
    """The kind of error; the same for every error of this kind."""
    status: int
    detail: str
    """What is wrong, and what to do."""
