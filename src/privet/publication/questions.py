"""The file of a batch: questions in SQL, what they may cost, and what the page says about them, in TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from privet.errors import Remedy, Subject, UserError, write
from privet.exact import Number
from privet.names.spelling import there_are
from privet.release.render.style import Order, Style
from privet.system.encodings import text_of, why_not

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}", re.ASCII)
_TAKEN = {"index", "manifest"}
_MOST = 200  # questions
_LONGEST = 2_000  # characters of a text

_LINES = '[[questions]]\nname = "regions"\nsql = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"'
_EXAMPLE = write(_LINES, terminal=_LINES, exact=True)
_NUMBER = (int, Decimal, str)


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a batch: its name, which its files have, its statement, and how it is shown."""

    name: str
    sql: str
    title: str
    text: str = ""
    weight: Number | None = None
    epsilon: Number | None = None
    rho: Number | None = None
    within: Mapping[str, Number] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    order: Order | None = None

    @property
    def style(self) -> Style:
        """How its picture and its table are shown."""
        return Style(self.title, self.labels, self.order)


@dataclass(frozen=True, slots=True)
class Batch:
    """What a file of questions asks for."""

    title: str
    questions: tuple[Question, ...]
    text: str = ""
    policy: str = "privet.toml"
    dataset: str | None = None
    epsilon: Number | None = None
    rho: Number | None = None
    delta: Number | None = None
    confidence: Number = Decimal("0.95")
    assuming: int | None = None
    pictures: bool = True

    def options(self) -> dict[str, Any]:
        """The arguments of `Session.release_all`."""
        kinds = {kind for each in self.questions for kind in ("epsilon", "rho") if getattr(each, kind) is not None}
        options: dict[str, Any] = {"confidence": self.confidence, "assuming": self.assuming, "delta": self.delta}
        for kind in ("epsilon", "rho"):
            own = {each.name: getattr(each, kind) for each in self.questions if getattr(each, kind) is not None}
            whole = getattr(self, kind)
            if own and (whole is not None or len(kinds) > 1):
                raise UserError(
                    f"the price is given twice: {kind} for {next(iter(own))!r}, and one for all questions",
                    remedy=Remedy("Give one price for all questions, or one for each"),
                )
            options[kind] = own or whole
        options["weights"] = {each.name: each.weight for each in self.questions if each.weight is not None} or None
        options["within"] = {each.name: each.within for each in self.questions if each.within is not None} or None
        return options

    def asked(self) -> dict[str, str]:
        """The statements by name."""
        return {each.name: each.sql for each in self.questions}


_OF_BATCH: dict[str, tuple[type, ...]] = {
    "title": (str,), "text": (str,), "policy": (str,), "dataset": (str,), "epsilon": _NUMBER, "rho": _NUMBER,
    "delta": _NUMBER, "confidence": _NUMBER, "assuming": (int,), "pictures": (bool,), "questions": (list,),
}  # fmt: skip
_OF_QUESTION: dict[str, tuple[type, ...]] = {
    "name": (str,), "sql": (str,), "title": (str,), "text": (str,), "weight": _NUMBER, "epsilon": _NUMBER,
    "rho": _NUMBER, "within": (dict,), "labels": (dict,), "order": (str, list),
}  # fmt: skip
_WORDS: dict[type, str] = {
    str: "a text", int: "a number", Decimal: "a number", bool: "true or false", dict: "a table", list: "a list"
}  # fmt: skip


def load(path: Path) -> Batch:
    """The batch in a file. Its policy is found from the folder of the file."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise UserError(
            f"the questions {str(path)!r} can't be read: {why}", subject=Subject("file", str(path))
        ) from None
    try:
        return parse(text_of(raw), str(path))
    except UnicodeDecodeError:
        line, why = why_not(raw, path)
        raise UserError(f"{path}, line {line}: {why}") from None


def parse(text: str, where: str = "questions.toml") -> Batch:
    """The batch in a text; `where` is the name of its file.

    Example:
        >>> batch = parse('''
        ...     title = "Our town"
        ...     epsilon = 1
        ...     [[questions]]
        ...     name = "people"
        ...     sql = "SELECT COUNT(*) AS n FROM people"
        ... ''')
        >>> batch.questions[0].title, batch.policy, batch.options()["epsilon"]
        ('people', 'privet.toml', 1)
    """
    try:
        tree = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError, ArithmeticError) as error:
        raise UserError(f"{where} is not valid TOML: {error}") from None
    _check(tree, _OF_BATCH, where)
    listed = tree.pop("questions", [])
    if not listed or not all(isinstance(each, dict) for each in listed):
        raise UserError(f"{where} has no questions", remedy=_EXAMPLE)
    if len(listed) > _MOST:
        raise UserError(f"{where} has {len(listed)} questions; at most {_MOST} are allowed")
    questions = tuple(_question(each, f"{where}, question {i}") for i, each in enumerate(listed, 1))
    names = [each.name for each in questions]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"{where}: two questions are named {twice[0]!r}", remedy=Remedy("Rename one of them"))
    if not str(tree.get("title", "")).strip():
        raise UserError(f"{where}: the title is missing", remedy=write('title = "Our town in numbers"', exact=True))
    return Batch(questions=questions, **tree)


def _question(tree: dict[str, Any], where: str) -> Question:
    _check(tree, _OF_QUESTION, where)
    for key in ("name", "sql"):
        if not str(tree.get(key, "")).strip():
            raise UserError(f"{where}: {key} is missing", remedy=_EXAMPLE)
    name = tree["name"]
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise UserError(
            f"{where}: {name!r} can't be the name of files",
            allowed="A name has lower-case letters, digits, - and _, 60 at most, and is neither index nor manifest",
            remedy=write('name = "people-by-region"', exact=True),
        )
    for key, kind, words in (("within", _NUMBER, "numbers"), ("labels", (str,), "texts")):
        if not all(isinstance(each, kind) and type(each) is not bool for each in tree.get(key, {}).values()):
            raise UserError(f"{where}: {key} must map names to {words}")
    return Question(**{"title": name, **tree})


def _check(tree: Mapping[str, Any], known: Mapping[str, tuple[type, ...]], where: str) -> None:
    for key, value in tree.items():
        if key not in known:
            raise UserError(f"{where}: there is no key {key!r}", allowed=there_are(key, known, "keys"))
        kinds = known[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            remedy = _EXAMPLE if key == "questions" else None
            raise UserError(f"{where}: {key} must be {_WORDS[kinds[0]]}", remedy=remedy)
        if key in ("title", "text", "dataset") and not _readable(str(value), multiline=key == "text"):
            raise UserError(f"{where}: {key} must be a printable text of at most {_LONGEST:,} characters")


def _readable(text: str, *, multiline: bool) -> bool:
    whole = text.replace("\n", " ").replace("\t", " ") if multiline else text
    return whole.isprintable() and len(text) <= _LONGEST


# --- in a manifest --------------------------------------------------------------------------------


_SHOWN = ("name", "sql", "title", "text", "labels", "order")


def to_tree(question: Question) -> dict[str, Any]:
    """What the page says about a question, for a manifest."""
    tree = {key: getattr(question, key) for key in _SHOWN}
    return {**tree, "labels": dict(question.labels)}


def from_tree(tree: Any, where: str) -> Question:
    """The inverse."""
    if not isinstance(tree, dict) or set(tree) != {*_SHOWN}:
        raise UserError(f"{where}: must have {', '.join(_SHOWN)}")
    given = {key: value for key, value in tree.items() if value is not None}
    order: Sequence[Any] | str | None = given.get("order")
    made = _question({key: value for key, value in given.items() if key != "order"}, where)
    return made if order is None else Question(**{**to_tree(made), "order": order})
