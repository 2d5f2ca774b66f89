"""The application: every route with its rule, its body and its handler, inside the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import Receive, Scope, Send

from privet.errors import LedgerError, PrivetError
from privet.server import authorization, problems
from privet.server.accounts import Identity
from privet.server.anonymous import Anonymous, hurried
from privet.server.api import HANDLERS, Handler
from privet.server.authorization import NOT_FOUND
from privet.server.call import Call, read_body
from privet.server.identity import check_csrf, check_origin, identify
from privet.server.limits import NOTES, Guard, client_address
from privet.server.pages import routes as pages
from privet.server.problems import Refusal
from privet.server.queue import Crowd, Full
from privet.server.route import Route
from privet.server.routes import API, ROUTES
from privet.server.state import Server
from privet.system.remembered import asked_by

_LOST = (
    "The ledger can't be reached. If the question was paid for, the ledger says so. Ask again later, with the same "
    "Idempotency-Key"
)
EVERY: tuple[Route, ...] = (*ROUTES, *pages.PAGES)
"""The routes of the API and of the pages."""
HANDLES: Mapping[str, Handler] = {**HANDLERS, **pages.HANDLERS}
"""What answers each of them."""
EACH = 64
"""The most requests of one analyst at a time, in a process: with more, others would wait for a thread."""
_CROWDED = "Too many of your requests are being answered. Send this one again when one of them is done"


def application(server: Server) -> Guard:
    """The application of a process; the server is closed when it ends."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await server.close()

    paths: dict[str, dict[str, Route]] = {}
    for route in EVERY:
        paths.setdefault(route.path, {})[route.method] = route
    crowd, anonymous = Crowd(EACH), Anonymous()
    app = Starlette(
        routes=[StarletteRoute(path, Endpoint(server, methods, crowd, anonymous)) for path, methods in paths.items()],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.router.default = Endpoint(server, {}, crowd, anonymous)
    return Guard(app, server.settings, server.log, lambda request, refusal: pages.refused_page(request, refusal, None))


class Endpoint:
    """The routes of one path; without any, what is not found."""

    def __init__(self, server: Server, methods: Mapping[str, Route], crowd: Crowd, anonymous: Anonymous) -> None:
        self._server, self._methods, self._crowd, self._anonymous = server, methods, crowd, anonymous
        more = (*(("HEAD",) if "GET" in methods else ()), "OPTIONS")
        self._allowed = ", ".join(sorted([*methods, *more]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":  # a web socket
            return
        request = Request(scope, receive)
        response = await self._response(request)
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        if self._methods and request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": self._allowed})
        route = self._methods.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            wrong = Refusal(405, "This address does not accept this method", headers={"Allow": self._allowed})
            return await self._shown(request, None, wrong if self._methods else Refusal(404, NOT_FOUND))
        notes = request.scope[NOTES]
        notes["route"] = route.name
        identity: Identity | None = None
        try:
            identity = await identify(request, self._server.accounts, self._server.settings)
            notes["who"] = None if identity is None else identity.person.name
            if identity is None:
                with self._anonymous.place(client_address(request, self._server.settings)):
                    short = Request(request.scope, hurried(request.receive))
                    return await self._handled(short, route, None)
            asked_by(identity.person.name)
            with self._crowd.place(identity.person.name):
                return await self._handled(request, route, identity)
        except Full:
            crowded = Refusal(429, _CROWDED, headers={"Retry-After": "1"})
            return await self._shown(request, identity, crowded, route.name)
        except ClientDisconnect:
            return Response(status_code=400)
        except (Refusal, PrivetError) as error:
            return await self._shown(request, identity, error, route.name)
        except Exception as error:
            self._server.log.error(error, route.name)
            return await self._shown(request, identity, None)

    async def _handled(self, request: Request, route: Route, identity: Identity | None) -> Response:
        server = self._server
        dataset = request.path_params.get("dataset")
        authorization.check(route.rule, identity, dataset, server.datasets)
        if dataset is not None:
            request.scope[NOTES]["dataset"] = dataset
        if route.unsafe and (identity is None or identity.token is None):
            check_origin(request, server.settings)
            if identity is not None:
                await check_csrf(request, identity, server.accounts)
        in_turn = None if identity is None else partial(server.asking.planned, identity)
        body = await read_body(request, route, in_turn)
        return await HANDLES[route.name](Call(server, route, request, identity, body))

    async def _shown(
        self, request: Request, identity: Identity | None, error: Refusal | PrivetError | None, where: str = ""
    ) -> Response:
        """What went wrong: a problem document for programs, a page for people. None is a bug."""
        if isinstance(error, PrivetError):
            self._server.log.error(error, where)
            if isinstance(error, LedgerError) and self._server.lost:
                error = Refusal(503, _LOST, headers={"Retry-After": "5"})
                self._server.end()
        if not f"{request.url.path}/".startswith(f"{API.rpartition('/')[0]}/"):
            try:
                return await pages.error_page(self._server, request, identity, error)
            except Exception as bug:
                self._server.log.error(bug, where)
                error = None
        if error is None:
            return problems.unexpected()
        return problems.refused(error) if isinstance(error, Refusal) else problems.failed(error)
