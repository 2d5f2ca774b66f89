"""Every page as a route, and its handler: the same records as those of the API, so the same rules hold."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.responses import Response

from privet.server.authorization import NOT_FOUND, Rule
from privet.server.call import Call
from privet.server.openid.flow import CALLBACK
from privet.server.pages import account, answers, openid, people, questions, signing_in, stewards
from privet.server.pages.errors import error_page, refused_page
from privet.server.pages.rendering import STATIC, TYPES, contents
from privet.server.problems import Refusal
from privet.server.route import Method, Route

__all__ = ["HANDLERS", "PAGES", "error_page", "refused_page"]

Handler = Callable[[Call], Awaitable[Response]]
_DATASET = "/datasets/{dataset}"
_ANSWER = f"{_DATASET}/answers/{{which}}"
_PERSON = "/steward/people/{name}"


async def static_file(call: Call) -> Response:
    """A style sheet, a script or a picture; its address changes with its contents."""
    name = call.path("file")
    raw = contents(name)
    if raw is None:
        raise Refusal(404, NOT_FOUND)
    headers = {
        "Content-Type": TYPES[name.rpartition(".")[2]],
        "Cache-Control": "public, max-age=31536000, immutable",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'",
    }
    return Response(raw, headers=headers)


_EVERY: tuple[tuple[Method, str, Rule, Handler], ...] = (
    ("GET", "/", Rule.ANYONE, signing_in.home),
    ("GET", f"{STATIC}/{{file}}", Rule.ANYONE, static_file),
    ("GET", "/sign-in", Rule.ANYONE, signing_in.sign_in_page),
    ("POST", "/sign-in", Rule.ANYONE, signing_in.sign_in),
    ("POST", "/sign-in/openid", Rule.ANYONE, openid.openid_begin),
    ("GET", CALLBACK, Rule.ANYONE, openid.openid_callback),
    ("POST", "/sign-out", Rule.SIGNED_IN, signing_in.sign_out),
    ("GET", "/welcome/{secret}", Rule.ANYONE, signing_in.welcome_page),
    ("POST", "/welcome/{secret}", Rule.ANYONE, signing_in.welcome),
    ("GET", "/device", Rule.IN_PERSON, signing_in.device_page),
    ("POST", "/device", Rule.IN_PERSON, signing_in.device),
    # asking
    ("GET", "/datasets", Rule.SIGNED_IN, questions.datasets_page),
    ("GET", "/history", Rule.SIGNED_IN, answers.own_history_page),
    ("GET", _DATASET, Rule.ASKS, questions.dataset_page),
    ("GET", f"{_DATASET}/tables", Rule.ASKS, questions.tables_page),
    ("POST", f"{_DATASET}/preview", Rule.ASKS, questions.preview),
    ("POST", f"{_DATASET}/ask", Rule.ASKS, questions.ask),
    ("GET", f"{_DATASET}/history", Rule.ASKS, answers.history_page),
    ("GET", _ANSWER, Rule.ASKS, answers.answer_page),
    ("GET", f"{_ANSWER}/certificate", Rule.ASKS, answers.certificate_page),
    ("GET", f"{_ANSWER}/{{file}}", Rule.ASKS, answers.answer_file),
    # one's own account
    ("GET", "/account", Rule.IN_PERSON, account.account_page),
    ("POST", "/account/tokens", Rule.IN_PERSON, account.make_token),
    ("POST", "/account/tokens/revoke", Rule.IN_PERSON, account.revoke_own_token),
    ("POST", "/account/password", Rule.IN_PERSON, account.change_password),
    # the steward
    ("GET", "/steward", Rule.STEWARD, stewards.steward_home),
    ("GET", "/steward/people", Rule.STEWARD, people.people_page),
    ("POST", "/steward/people", Rule.ADMINISTERS, people.add_person_page),
    ("GET", _PERSON, Rule.STEWARD, people.person_page),
    ("POST", f"{_PERSON}/access", Rule.ADMINISTERS, people.change_access),
    ("POST", f"{_PERSON}/disable", Rule.ADMINISTERS, people.disable_person),
    ("POST", f"{_PERSON}/enable", Rule.ADMINISTERS, people.enable_person),
    ("POST", f"{_PERSON}/invite", Rule.ADMINISTERS, people.invite_person),
    ("GET", "/steward/tokens", Rule.STEWARD, people.all_tokens_page),
    ("POST", "/steward/tokens", Rule.ADMINISTERS, people.make_token_for),
    ("POST", "/steward/tokens/revoke", Rule.ADMINISTERS, people.revoke_any_token),
    ("GET", "/steward/budgets", Rule.STEWARD, stewards.budgets_page),
    ("POST", "/steward/budgets/{dataset}", Rule.STEWARD_OF, stewards.set_cap),
    ("GET", "/steward/ledger", Rule.STEWARD, stewards.ledger_page),
    ("POST", "/steward/ledger/verify", Rule.STEWARD, stewards.verify_ledger_page),
    ("GET", "/steward/failures", Rule.STEWARD, stewards.failures_page),
    ("POST", "/steward/failures/{dataset}/reopen", Rule.STEWARD_OF, stewards.reopen_page),
    ("GET", "/steward/policy", Rule.STEWARD, stewards.policy_page),
    ("GET", "/steward/check", Rule.STEWARD, stewards.check_page),
    ("POST", "/steward/check", Rule.STEWARD, stewards.check_data),
)


def _name(handler: Handler) -> str:
    return str(getattr(handler, "__name__", ""))


def _summary(handler: Handler) -> str:
    return (handler.__doc__ or "").strip().splitlines()[0]


PAGES: tuple[Route, ...] = tuple(
    Route(method=method, path=path, name=_name(handler), rule=rule, summary=_summary(handler))
    for method, path, rule, handler in _EVERY
)
"""Every page and every form of a page."""
HANDLERS: Mapping[str, Handler] = {_name(handler): handler for _, _, _, handler in _EVERY}
"""The handler of each page, by its name."""
