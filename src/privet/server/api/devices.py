"""Login by device code (RFC 8628): a program shows a code, and a person approves it in the page."""

from __future__ import annotations

from starlette.responses import Response

from privet.server.accounts import DeviceState
from privet.server.call import Call, in_thread, reply
from privet.server.limits import client_address
from privet.server.problems import Refusal

PAGE = "/device"
"""Where a person types the code in."""
_WORDS = {
    DeviceState.PENDING: "Nobody has approved the code yet",
    DeviceState.SLOW_DOWN: "Ask less often",
    DeviceState.DENIED: "The code was refused",
    DeviceState.EXPIRED: "The code is unknown, used or expired",
}


async def code(call: Call) -> Response:
    """Begin."""
    server = call.server
    address = client_address(call.request, server.settings)
    codes = await in_thread(server.accounts.begin_device, call.body.label, address=address)
    where = f"{server.settings.origin}{PAGE}"
    tree = {
        "device_code": codes.device_code,
        "user_code": codes.user_code,
        "verification_uri": where,
        "verification_uri_complete": f"{where}?code={codes.user_code}",
        "expires_in": codes.expires_in,
        "interval": codes.interval,
    }
    return reply(tree)


async def token(call: Call) -> Response:
    """The token, once it is approved."""
    result = await in_thread(call.server.accounts.finish_device, call.body.device_code)
    if result.state is not DeviceState.GRANTED:
        raise Refusal(400, _WORDS[result.state], error=str(result.state))
    return reply({"access_token": result.text, "token_type": "Bearer"})
