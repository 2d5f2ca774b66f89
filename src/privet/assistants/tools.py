"""The tools of an assistant: list_tables, explain, ask, budget and verify. Only `ask` pays.

Each returns a text for the model and a tree for programs. Both are made of the policy, of plans, and of answers that
were paid for: nothing else of the data is in them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from privet.allowance import LimitedSession
from privet.assistants.arguments import Argument, checked
from privet.errors import QueryError, Remedy, argument
from privet.exact import literal, show
from privet.planner import ReleasePlan
from privet.privacy.guarantees.budgets import amount
from privet.release import Release, verify
from privet.release.render.json import answer_tree
from privet.session import Session
from privet.sql.quoting import quoted
from privet.tables import wording

_SQL = Argument(
    "sql",
    "text",
    "One SELECT with aggregates, such as SELECT region, COUNT(*) AS n FROM people GROUP BY region.",
    "SELECT COUNT(*) AS n FROM people",
)
_EPSILON = Argument(
    "epsilon", "number", "What to pay, such as 0.1 or 1/3. Twice the epsilon has about half the error.", 0.1
)
_WITHIN = Argument(
    "within", "errors", "In place of epsilon: the error of each column, to learn its cost.", '{"n": 50}', required=False
)
_CONFIDENCE = Argument(
    "confidence", "number", "The probability that an interval holds; 0.95 if left out.", 0.95, required=False
)
_ASSUMING = Argument(
    "assuming", "whole", "Rows in a group to assume, for the errors of means and ratios.", 500, required=False
)
_ENTRY = Argument("entry", "whole", 'The "entry" in the certificate of an answer of this connection.', 3)
_MAYBE_EPSILON = Argument("epsilon", "number", f"{_EPSILON.meaning} Or give `within`.", 0.1, required=False)
_OPTIONS = ("epsilon", "within", "confidence", "assuming")


class Said(NamedTuple):
    """What a tool returns."""

    text: str
    tree: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what it does and costs, its arguments, and what runs."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    run: Callable[[dict[str, Any]], Said]
    pays: bool = False

    def __call__(self, given: Mapping[str, Any] | None) -> Said:
        """Run it with the arguments of a call, which are checked first."""
        return self.run(checked(self.arguments, given))


class Assistant:
    """What an assistant may do with a session."""

    def __init__(self, limited: LimitedSession) -> None:
        self._limited = limited
        self._session = limited.session
        self._answers: dict[int, Release] = {}

    def tools(self) -> dict[str, Tool]:
        """The tools by name."""
        most = show(self._limited.allowance.most)
        every = (
            Tool(
                "list_tables",
                "Tables and columns",
                "List the tables and columns that can be asked about, with their bounds and keys. Free.",
                (),
                self._list_tables,
            ),
            Tool(
                "explain",
                "Cost and accuracy of a question",
                "Show what a question would cost and how accurate its answer would be, without asking it. Free. "
                "Use it before `ask`.",
                (_SQL, _MAYBE_EPSILON, _WITHIN, _CONFIDENCE, _ASSUMING),
                self._explain,
            ),
            Tool(
                "ask",
                "Ask a question and pay for it",
                "Ask a question and get a differentially private answer with intervals. Costs the epsilon that you "
                f"give, and spends it for good; this connection may spend epsilon {most} in total. The same question "
                "again is free. A refused question costs nothing.",
                (_SQL, _EPSILON, _CONFIDENCE),
                self._ask,
                pays=True,
            ),
            Tool(
                "budget",
                "What is left",
                "Show what is left of the budget, and of what this connection may spend. Free.",
                (),
                self._budget,
            ),
            Tool(
                "verify",
                "Check a certificate",
                "Check the certificate of an answer of this connection: that its noise gives the privacy that it "
                "claims. Free.",
                (_ENTRY,),
                self._verify,
            ),
        )
        return {each.name: each for each in every}

    # --- the tools ------------------------------------------------------------------------------

    def _list_tables(self, given: dict[str, Any]) -> Said:
        session = self._session
        lines, tables = [f"Dataset {session.name}. Write names as they are quoted here."], []
        for table in session.tables.values():
            columns = {name: wording.declared(column) for name, column in table.schema.columns}
            protects = wording.protected(table.schema)
            tables.append({"name": table.name, "protects": protects, "columns": columns})
            lines += ["", f"{quoted(table.name)}: {protects}"]
            lines += [f"  {quoted(name)}: {words}" for name, words in columns.items()]
        public = []
        for each in session.public.values():
            names = [name for name, _ in each.schema.columns]
            public.append({"name": each.name, "joined_on": each.schema.key, "columns": names})
            lines += ["", f"{quoted(each.name)}: public, joined on {each.schema.key}: {', '.join(map(quoted, names))}"]
        return Said("\n".join(lines), {"dataset": session.name, "tables": tables, "public": public})

    def _explain(self, given: dict[str, Any]) -> Said:
        plan = self._plan(given)
        left = f"{'Connection':<11}epsilon {self._limited.allowance.left_text} may still be spent here."
        text = f"{self._session.explain(plan, face='http')}\n{left}"
        tree = {
            "cost": amount(plan.guarantee()),
            "limits": plan.limits,
            "paid_before": amount(self._session.paid_before(plan)),
            "connection": self._connection(),
        }
        return Said(text, tree)

    def _ask(self, given: dict[str, Any]) -> Said:
        released = self._limited.release(self._plan(given))
        link = released.certificate.document["ledger"]
        self._answers[link["entry"]] = released
        reference = {"dataset": self._session.name, "entry": link["entry"], "hash": link["hash"]}
        text = f"{released}\n\nCertificate: entry {link['entry']} of the ledger."
        tree = {**answer_tree(released), "certificate": reference, "connection": self._connection()}
        return Said(text, tree)

    def _budget(self, given: dict[str, Any]) -> Said:
        balance = self._session.balance
        lines = [f"{limit.text} is left of {limit.name}." for limit in balance.limits(self._session.analyst)]
        allowance = self._limited.allowance
        lines.append(f"epsilon {allowance.left_text} is left of the {show(allowance.most)} for this connection.")
        return Said("\n".join(lines), {"left": str(balance.remaining), "connection": self._connection()})

    def _verify(self, given: dict[str, Any]) -> Said:
        released = self._answers.get(given["entry"])
        if released is None:
            raise QueryError(
                f"this connection has no answer with entry {given['entry']}",
                remedy=Remedy("Ask the question first: if it is stored, it is free"),
            )
        ledger = self._session.ledger if isinstance(self._session, Session) else None
        found = verify(released.certificate, ledger=ledger)
        tree = {"rules": found.rules, "signature": found.signature, "ledger": found.ledger, "promise": found.promise}
        return Said(str(found), tree)

    # --- inside ---------------------------------------------------------------------------------

    def _plan(self, given: dict[str, Any]) -> ReleasePlan:
        options = {name: given[name] for name in _OPTIONS if name in given}
        if not options.keys() & {"epsilon", "within"} and not self._session.dataset.asked(given["sql"]).price:
            raise QueryError("the price is missing", allowed="Set epsilon, or within", remedy=argument("epsilon", 0.1))
        return self._limited.plan(given["sql"], **options)

    def _connection(self) -> dict[str, str]:
        allowance = self._limited.allowance
        return {
            name: literal(each).strip('"') for name, each in (("max_epsilon", allowance.most), ("left", allowance.left))
        }


def plain(tree: Any) -> Any:
    """A tree with nothing but what JSON has; dates are texts."""
    return json.loads(json.dumps(tree, default=str, allow_nan=False))
