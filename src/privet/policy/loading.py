"""Reading a policy: TOML, then its shape, then the rules that relate keys to each other."""

from __future__ import annotations

import math
import re
import shlex
import tomllib
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from privet.errors import Subject, UserError, write
from privet.policy import checks, problems
from privet.policy.policy import DatasetPolicy, Document, Policy, TablePolicy, read_public
from privet.policy.positions import Place, positions
from privet.policy.problems import Problem
from privet.policy.shape import DatasetShape, FileShape
from privet.privacy.accounting import accountant_for
from privet.privacy.adjacency import Adjacency, Person
from privet.system.addresses import is_address, shown
from privet.system.encodings import text_of, why_not

_SYNTAX = re.compile(r"(?P<what>.*) \(at (line (?P<line>\d+), column \d+|end of document)\)")
_TOML = 'name = "a string in quotes", number = 3, or a header: [datasets.health]'


def load(path: str | Path = "privet.toml") -> Policy:
    """The policy in a file. Nothing else is read: tables are opened when they are asked for."""
    where = Path(path)
    if where.is_dir():
        inside = str(where / "privet.toml")
        raise UserError(
            f"{str(path)!r} is a folder, not a policy",
            subject=Subject("file", str(path)),
            remedy=write(repr(inside), terminal=f"--policy {shlex.quote(inside)}"),
        )
    try:
        raw = where.read_bytes()
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        command = f"privet init people.parquet -o {'privet.toml' if is_address(str(path)) else shlex.quote(str(path))}"
        raise UserError(
            f"there is no policy {shown(str(path))!r}"
            if missing
            else f"the policy {shown(str(path))!r} can't be read: {error.strerror}",
            subject=Subject("file", shown(str(path))),
            remedy=write(command, terminal=command, advice="Make one first, in a terminal") if missing else None,
        ) from None
    try:
        text = text_of(raw)
    except UnicodeDecodeError:
        line, why = why_not(raw, where)
        raise problems.refusal(str(path), [Problem((), why)], {(): line}) from None
    return parse(text, where)


def parse(text: str, path: str | Path = "privet.toml") -> Policy:
    """The policy in a text; `path` is where it stands, or will stand.

    Example:
        >>> policy = parse('''
        ...     ledger = "people.ledger"
        ...     [datasets.health]
        ...     budget = { epsilon = 3 }
        ...     adjacency = "add/remove"
        ...     [datasets.health.tables.people]
        ...     source = "people.parquet"
        ...     protect = { person = "person_id", max_rows = 1 }
        ...     columns = { age = { integer = [0, 110] } }
        ... ''')
        >>> policy.dataset_of("people").budget
        PureDP(3)
    """
    where, path = str(path), Path(path).absolute()
    tree, lines = _tree(text, where)
    document = Document(where, path.parent, tree, lines)
    try:
        shape = FileShape.model_validate(tree)
    except ValidationError as error:
        raise document.refusal(problems.problems(error, tree)) from None
    if wrong := list(checks.check(shape)):
        raise document.refusal(wrong)
    ledger = shape.ledger.strip() if is_address(shape.ledger) else document.resolve(shape.ledger)
    datasets = {name: _dataset(name, each, document, shape) for name, each in shape.datasets.items()}
    return Policy(path, ledger, MappingProxyType(datasets), document, shape)


def _tree(text: str, where: str) -> tuple[dict[str, Any], dict[Place, int]]:
    try:
        return tomllib.loads(text, parse_float=_float), positions(text)
    except RecursionError:
        raise problems.refusal(where, [Problem((), "brackets are nested too deeply")], {}) from None
    except tomllib.TOMLDecodeError as error:
        syntax = _SYNTAX.fullmatch(str(error))
        what = syntax["what"] if syntax else str(error)
        line = int(syntax["line"]) if syntax and syntax["line"] else text.count("\n") + 1
        problem = Problem((), f"this is not valid TOML: {what[:1].lower()}{what[1:]}", _TOML)
        raise problems.refusal(where, [problem], {(): line}) from None
    except ValueError:  # Python reads no integer of thousands of digits
        long = re.search(r"[0-9][0-9_]{4000,}", text)
        line = text.count("\n", 0, long.start()) + 1 if long else 1
        raise problems.refusal(where, [Problem((), "a number has too many digits")], {(): line}) from None


def _float(text: str) -> Decimal | float:
    """Every digit counts; what no decimal can represent is not a number, and is refused later."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return math.nan


def _dataset(name: str, shape: DatasetShape, document: Document, file: FileShape) -> DatasetPolicy:
    adjacency = Adjacency(shape.adjacency)
    kind = shape.budget.kind
    budget = shape.budget.guarantee(kind)
    tables = {}
    for table, each in shape.tables.items():
        place: Place = ("datasets", name, "tables", table)
        tables[table] = TablePolicy(table, adjacency, each.protected(), place, document, each)
    return DatasetPolicy(
        name=name,
        budget=budget,
        adjacency=adjacency,
        protects="person" if all(isinstance(each.protect, Person) for each in tables.values()) else "row",
        version=shape.version,
        accountant=accountant_for(budget, shape.accountant or "").name,
        analysts=MappingProxyType({analyst: cap.guarantee(kind) for analyst, cap in shape.analysts.items()}),
        per_analyst=None if shape.per_analyst is None else shape.per_analyst.guarantee(kind),
        per_query=None if shape.per_query is None else shape.per_query.guarantee(kind),
        signing_key=None if shape.signing_key is None else Path(document.resolve(shape.signing_key)),
        settings=shape,
        declared=MappingProxyType(tables),
        _public=lambda: read_public(document, file),
    )
