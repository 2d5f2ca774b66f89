"""API tokens."""

from __future__ import annotations

from starlette.responses import Response

from privet.exact import positive
from privet.server import acts
from privet.server.account_json import token_tree
from privet.server.accounts import Role
from privet.server.authorization import ADMITS, NOT_FOUND, Rule
from privet.server.call import Call, in_thread, reply
from privet.server.problems import Refusal


def _administers(call: Call) -> bool:
    return call.me.role is Role.STEWARD and call.me.datasets is None


async def tokens(call: Call) -> Response:
    """The tokens of whoever asks; for stewards, everybody's."""
    found = await in_thread(call.server.accounts.tokens, None if _administers(call) else call.name)
    return reply({"tokens": [token_tree(token) for token in found]})


async def create_token(call: Call) -> Response:
    """Make a token."""
    body = call.body
    name = body.name or call.name
    if name != call.name and not _administers(call):
        raise Refusal(403, "Only stewards may make tokens for others")
    text, token = await in_thread(
        acts.create_token,
        call.server,
        call.me,
        name,
        body.label,
        role=Role(body.role),
        datasets=body.datasets,
        max_epsilon=None if body.max_epsilon is None else positive(body.max_epsilon, name="max_epsilon"),
        days=body.days,
    )
    return reply({"text": text, "token": token_tree(token)}, 201)


async def revoke_token(call: Call) -> Response:
    """Revoke a token. A token can revoke only itself, unless it is a steward's without any limit."""
    own = call.me.token
    if own is not None and call.path("token") != own.id and not ADMITS[Rule.ADMINISTERS](call.me):
        raise Refusal(403, "A token can revoke only itself. Sign in to revoke others")
    token = await in_thread(call.server.accounts.token, call.path("token"))
    if token is None or (token.name != call.name and not _administers(call)):
        raise Refusal(404, NOT_FOUND)
    await in_thread(acts.revoke_token, call.server, call.me, token)
    return Response(status_code=204)
