"""Serving: uvicorn with limits, in one process or several."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvicorn

from privet.errors import UserError
from privet.server.app import application
from privet.server.connections import HEAD_BYTES, Connection, backlog
from privet.server.limits import Guard
from privet.server.settings import Settings
from privet.server.state import opened
from privet.server.supervisor import Supervisor

_KEEP_ALIVE = 5  # seconds for which an idle connection stays open
_GRACE = 15  # seconds that requests have to end when the server stops
_HEALTH = 60  # seconds after which a process that does not respond is replaced


def made(policy: Path, listen: str | None) -> Guard:
    """The application of one process."""
    app = application(opened(policy, listen))
    gc.collect()
    gc.freeze()  # a full collection skips what is there now; otherwise it stops everything for 0.1 s, again and again
    return app


def configured(app: Guard | Callable[[], Guard], settings: Settings, **more: Any) -> uvicorn.Config:
    """How uvicorn serves: its own log of requests is off, and so are web sockets and the header Server."""
    return uvicorn.Config(
        app,
        factory=not isinstance(app, Guard),
        host=settings.host,
        port=settings.port,
        http=cast(type[asyncio.Protocol], partial(Connection, proxies=settings.proxies)),
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        forwarded_allow_ips=[],
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=HEAD_BYTES,
        backlog=backlog(),
        timeout_worker_healthcheck=_HEALTH,
        **more,
    )


def serve(policy: Path, settings: Settings, *, listen: str | None, ready: Callable[[], None]) -> None:
    """Serve until a signal ends it; `ready` is called when requests are answered."""
    taken = _bound(settings)
    try:
        config = configured(partial(made, policy, listen), settings, workers=settings.workers)
        Supervisor(config, [taken], ready).run()
    finally:
        taken.close()


def _bound(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # with its protocol, asyncio sets TCP_NODELAY
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((settings.host, settings.port))
    except OSError as error:
        taken.close()
        what = f"the server can't listen on {settings.host}:{settings.port}: {error.strerror}"
        raise UserError(what) from None
    taken.set_inheritable(True)
    return taken
