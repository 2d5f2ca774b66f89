"""A server that lies. It answers from a real session in the form of the API, and then changes what it says.

Without a lie it is honest, which the tests check first: what is refused is refused for the lie.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from typing import Any

import privet as pv
from privet.privacy.events import to_tree
from privet.privacy.guarantees.budgets import amount
from privet.release.render.json import answer as as_json
from privet.tables.codec import decode
from privet.terms import Terms, balance_to_tree

TOKEN = "privet_7_tell-nobody"
_OPTIONS = ("epsilon", "delta", "rho", "within", "confidence", "simultaneous", "assuming", "weights", "mechanism")


@dataclass(frozen=True)
class Said:
    """What the server is about to say."""

    status: int = 200
    tree: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    cut: bool = False
    """Whether it hangs up instead."""


@dataclass(frozen=True)
class Heard:
    """What it was asked."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def route(self) -> str:
        return self.path.removeprefix("/api/v1/").partition("/answers/")[0].rpartition("/")[2]


Lie = Callable[[Heard, Said], Said]


class Liar:
    """The server: honest unless it has a lie to tell."""

    def __init__(self, session: pv.Session) -> None:
        self.session = session
        self.heard: list[Heard] = []
        self.lie: Lie = lambda heard, said: said
        self.first: Callable[[Heard], Said | None] = lambda heard: None
        """What it says without looking at the question; None to go on."""
        self.url = ""

    def asked(self, route: str) -> list[Heard]:
        """Every request to a route so far."""
        return [heard for heard in self.heard if heard.route == route]

    def say(self, heard: Heard) -> Said:
        self.heard.append(heard)
        if (early := self.first(heard)) is not None:
            return early
        try:
            said = self._honest(heard)
        except pv.PrivetError as error:
            status = 402 if isinstance(error, pv.BudgetError) else 422
            fields = error.to_json("http")
            said = Said(status, {"type": f"urn:privet:error:{fields['kind']}", "title": fields["kind"],
                                 "status": status, "detail": fields["message"], **fields})  # fmt: skip
        return self.lie(heard, said)

    def _honest(self, heard: Heard) -> Said:
        session, route, body = self.session, heard.route, heard.body or {}
        request_id = heard.headers.get("idempotency-key", "")
        options = {name: body[name] for name in _OPTIONS if name in body}
        match route:
            case "health":
                return Said(tree={"status": "ok", "version": version("privet")})
            case "me":
                return Said(tree={"name": session.analyst})
            case "datasets":
                return Said(tree={"datasets": [{"dataset": session.name, "tables": [*session.tables]}]})
            case "budget":
                return Said(tree={"balance": balance_to_tree(session.balance)})
            case "explain":
                plan = session.plan(_question(body), **options)
                text = session.explain(plan, fresh=body["fresh"], face=body["face"])
                return Said(tree={**plan.to_json(), "text": text, "paid_before": amount(session.paid_before(plan))})
            case "explain_batch":
                questions = {name: _question(each) for name, each in body["questions"].items()}
                batch_plan = session.plan_all(questions, **options)
                plans = {name: each.to_json() for name, each in batch_plan.items()}
                text = session.explain_all(batch_plan, fresh=body["fresh"])
                return Said(tree={"questions": plans, "event": to_tree(batch_plan.whole), "text": text})
            case "query":
                asked = _question(body)
                return Said(
                    tree=_told(
                        session.release(asked, request_id=request_id, fresh=body["fresh"], **options), request_id
                    )
                )
            case "batch":
                questions = {name: _question(each) for name, each in body["questions"].items()}
                batch = session.release_all(questions, request_id=request_id, fresh=body["fresh"], **options)
                answers = {name: _told(each, request_id) for name, each in batch.items()}
                facts = {"guarantee": amount(batch.guarantee), "paid_before": batch.paid_before}
                first = next(iter(answers.values()))
                return Said(tree={"answers": answers, **facts, "request_id": request_id, "entry": first["entry"]})
            case _:
                terms = Terms.of(session.name, session.version, session.dataset)
                return Said(tree={"dataset": session.name, "terms": terms.to_tree()})


def _question(body: Any) -> Any:
    return body["sql"] if "sql" in body else decode(body["query"])


def _told(release: pv.Release, request_id: str) -> dict[str, Any]:
    certificate = json.loads(release.certificate.to_json())
    entry = certificate["document"]["ledger"]["entry"]
    return {**json.loads(as_json(release)), "request_id": request_id, "entry": entry, "certificate": certificate}


@contextmanager
def lying(session: pv.Session) -> Iterator[Liar]:
    """The server, on loopback."""
    liar = Liar(session)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            said = liar.say(Heard(self.command, self.path, headers, json.loads(content) if content else None))
            if said.cut:
                self.close_connection = True
                self.connection.close()
                return
            raw = json.dumps(said.tree, allow_nan=True).encode() if said.raw is None else said.raw
            self.send_response(said.status)
            for name, value in {"Content-Type": "application/json", **said.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = _serve

        def log_message(self, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Clients hang up."""

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    liar.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield liar
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
