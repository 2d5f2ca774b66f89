"""The server about itself."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from starlette.responses import Response

from privet.server.call import Call, reply
from privet.server.openapi import document


async def openapi(call: Call) -> Response:
    """The API as an OpenAPI document."""
    return reply(document())


async def health(call: Call) -> Response:
    """That the server is up."""
    return reply({"status": "ok", "version": _version()})


@cache
def _version() -> str:
    return version("privet")
