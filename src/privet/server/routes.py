"""Every route of the API. The handlers are in `api/`, by the same names; those of the pages are in `pages/`."""

from __future__ import annotations

from privet.server import models as m
from privet.server.authorization import Rule
from privet.server.route import Parameter, Route

API = "/api/v1"
_DATASET = f"{API}/datasets/{{dataset}}"

KEY = Parameter(
    "Idempotency-Key",
    "header",
    "The id of the request. A retry with the same key is the same request: it is paid for once. "
    "Without one, the server makes one.",
    {"type": "string", "minLength": 1, "maxLength": 200},
)
PREFER = Parameter(
    "Prefer",
    "header",
    "`wait=N`: answer 202 after N seconds if there is no answer yet; `respond-async`: the same with N = 0 (RFC 7240).",
)
_BEFORE = Parameter(
    "before", "query", "Only entries before this number.", {"type": "integer", "minimum": 1, "maximum": 2**53}
)
_LIMIT = Parameter(
    "limit", "query", "The number of entries, at most 1,000.", {"type": "integer", "minimum": 1, "maximum": 1000}
)
_PART = Parameter(
    "part", "query", "Which answer of a batch, counted from 0.", {"type": "integer", "minimum": 0, "maximum": 1000}
)
_ASKING = (402, 409, 422, 429, 500, 502, 503)

ROUTES: tuple[Route, ...] = (
    # --- datasets and questions
    Route(
        method="GET",
        path=f"{API}/datasets",
        name="datasets",
        rule=Rule.SIGNED_IN,
        summary="The datasets that you may ask, and what is left of their budgets.",
        gives=m.Datasets,
        problems=(503,),
    ),
    Route(
        method="GET",
        path=_DATASET,
        name="dataset",
        rule=Rule.ASKS,
        summary="The tables and columns of a dataset, with their public bounds and keys.",
        gives=m.Dataset,
    ),
    Route(
        method="POST",
        path=f"{_DATASET}/parse",
        name="parse",
        rule=Rule.ASKS,
        summary="What a SELECT asks, as a tree. Free.",
        takes=m.Statement,
        gives=m.Parsed,
        problems=(422,),
    ),
    Route(
        method="POST",
        path=f"{_DATASET}/explain",
        name="explain",
        rule=Rule.ASKS,
        summary="What a question would cost, and how accurate its answer would be. Free; no row is read.",
        takes=m.QuestionInWords,
        gives=m.Explanation,
        problems=(422, 503),
    ),
    Route(
        method="POST",
        path=f"{_DATASET}/explain_batch",
        name="explain_batch",
        rule=Rule.ASKS,
        summary="What a batch would cost, and how accurate its answers would be. Free; no row is read.",
        takes=m.Batch,
        gives=m.BatchExplanation,
        problems=(422, 503),
    ),
    Route(
        method="POST",
        path=f"{_DATASET}/query",
        name="query",
        rule=Rule.ASKS,
        summary="Ask a question, and pay for it.",
        takes=m.Question,
        gives=m.Answer,
        more={202: m.Pending},
        problems=_ASKING,
        parameters=(KEY, PREFER),
        slow=True,
    ),
    Route(
        method="POST",
        path=f"{_DATASET}/batch",
        name="batch",
        rule=Rule.ASKS,
        summary="Ask several questions together, and pay for them at once.",
        takes=m.Batch,
        gives=m.BatchAnswer,
        more={202: m.Pending},
        problems=_ASKING,
        parameters=(KEY, PREFER),
        slow=True,
    ),
    Route(
        method="GET",
        path=f"{_DATASET}/answers/{{request_id}}",
        name="answer",
        rule=Rule.ASKS,
        summary="The answer to a request of yours: an Answer or a BatchAnswer. Free.",
        gives=m.AnyAnswer,
        more={202: m.Pending},
        problems=(404, 502, 503),
        parameters=(PREFER,),
        slow=True,
    ),
    Route(
        method="GET",
        path=f"{_DATASET}/budget",
        name="budget",
        rule=Rule.ASKS,
        summary="What you may spend, and have spent; for stewards, everybody.",
        gives=m.Budget,
        problems=(503,),
    ),
    Route(
        method="GET",
        path=f"{_DATASET}/history",
        name="history",
        rule=Rule.ASKS,
        summary="Your questions, newest first; for stewards, every entry of the dataset.",
        gives=m.History,
        problems=(503,),
        parameters=(_BEFORE, _LIMIT),
    ),
    Route(
        method="GET",
        path=f"{_DATASET}/certificates/{{entry}}",
        name="certificate",
        rule=Rule.ASKS,
        summary="The certificate of an answer of yours, by the number of its debit; for stewards, of any.",
        gives=m.Certificate,
        problems=(404, 503),
        parameters=(_PART,),
    ),
    Route(
        method="POST",
        path=f"{API}/verify",
        name="verify",
        rule=Rule.SIGNED_IN,
        summary="Check a certificate: its rules, and its debit if it is of a dataset that you may ask. With a receipt, "
        "the ledger must contain its entry; for stewards, the whole ledger is checked.",
        takes=m.Verify,
        exactly=False,
        gives=m.Verified,
        problems=(422, 503),
    ),
    # --- the steward
    Route(
        method="POST",
        path=f"{_DATASET}/caps",
        name="caps",
        rule=Rule.STEWARD_OF,
        summary="Set the budget, an analyst's cap or the cap of each question.",
        takes=m.Cap,
        gives=m.Done,
        problems=(422, 503),
    ),
    Route(
        method="POST",
        path=f"{_DATASET}/reopen",
        name="reopen",
        rule=Rule.STEWARD_OF,
        summary="Reopen a dataset that was closed after failures.",
        takes=m.Reopen,
        gives=m.Done,
        problems=(422, 503),
    ),
    Route(
        method="GET",
        path=f"{API}/ledger/head",
        name="ledger_head",
        rule=Rule.STEWARD,
        summary="The receipt of the newest entry, to be kept elsewhere.",
        gives=m.Head,
        problems=(503,),
    ),
    Route(
        method="POST",
        path=f"{API}/ledger/verify",
        name="ledger_verify",
        rule=Rule.STEWARD,
        summary="Check the whole chain of the ledger, and that it contains a receipt's entry.",
        takes=m.VerifyLedger,
        gives=m.VerifiedLedger,
        problems=(422, 503),
    ),
    Route(
        method="GET",
        path=f"{API}/ledger/receipts",
        name="ledger_receipts",
        rule=Rule.STEWARD,
        summary="The receipts of the latest entries, newest first.",
        gives=m.Receipts,
        problems=(503,),
        parameters=(_LIMIT,),
    ),
    # --- accounts
    Route(
        method="GET",
        path=f"{API}/me",
        name="me",
        rule=Rule.SIGNED_IN,
        summary="Who you are to the server.",
        gives=m.Me,
    ),
    Route(
        method="GET",
        path=f"{API}/people",
        name="people",
        rule=Rule.STEWARD,
        summary="All accounts.",
        gives=m.People,
    ),
    Route(
        method="POST",
        path=f"{API}/people",
        name="add_person",
        rule=Rule.ADMINISTERS,
        summary="Add an account; the answer has a one-time link to set its password.",
        takes=m.NewPerson,
        gives=m.ChangedPerson,
        status=201,
        problems=(409, 422, 503),
    ),
    Route(
        method="PATCH",
        path=f"{API}/people/{{name}}",
        name="change_person",
        rule=Rule.ADMINISTERS,
        summary="Change an account's role or datasets, disable it, or make a new link to set its password.",
        takes=m.ChangePerson,
        gives=m.ChangedPerson,
        problems=(404, 422, 503),
    ),
    Route(
        method="GET",
        path=f"{API}/tokens",
        name="tokens",
        rule=Rule.SIGNED_IN,
        summary="Your tokens; for stewards, everybody's.",
        gives=m.Tokens,
    ),
    Route(
        method="POST",
        path=f"{API}/tokens",
        name="create_token",
        rule=Rule.IN_PERSON,
        summary="Make a token. Its text is shown once.",
        takes=m.NewToken,
        gives=m.CreatedToken,
        status=201,
        problems=(404, 422, 503),
    ),
    Route(
        method="DELETE",
        path=f"{API}/tokens/{{token}}",
        name="revoke_token",
        rule=Rule.SIGNED_IN,
        summary="Revoke a token of yours, at once; for stewards, anybody's. A token can revoke only itself, unless it "
        "is a steward's without any limit.",
        status=204,
        problems=(404, 503),
    ),
    Route(
        method="POST",
        path=f"{API}/device/code",
        name="device_code",
        rule=Rule.ANYONE,
        summary="A program asks to be allowed in (RFC 8628).",
        takes=m.DeviceCode,
        gives=m.DeviceCodes,
        problems=(429, 503),
    ),
    Route(
        method="POST",
        path=f"{API}/device/token",
        name="device_token",
        rule=Rule.ANYONE,
        summary="A program asks whether it was allowed in. If not yet, 400, and `error` says why (RFC 8628).",
        takes=m.DeviceToken,
        gives=m.AccessToken,
        problems=(400, 429, 503),
    ),
    # --- the server
    Route(
        method="GET",
        path=f"{API}/openapi.json",
        name="openapi",
        rule=Rule.ANYONE,
        summary="This API as an OpenAPI 3.1 document.",
    ),
    Route(
        method="GET",
        path=f"{API}/health",
        name="health",
        rule=Rule.ANYONE,
        summary="Whether the server is up.",
        gives=m.Health,
    ),
)
