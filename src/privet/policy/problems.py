"""The problems of a policy, all at once: where, why, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from privet import errors
from privet.errors import PolicyError, PrivetError, Remedy, Subject, UserError
from privet.policy import columns, fields, shape, toml
from privet.policy.openid_shape import OPENID_LINES, OpenIDShape
from privet.policy.positions import Place, line_of
from privet.policy.server_shape import SERVER_LINES, ServerShape
from privet.system import addresses
from privet.system.object_addresses import is_object_address
from privet.tables.kinds import KINDS
from privet.tables.schema import check_name


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem at one place."""

    place: Place
    what: str
    write: str = ""
    """The line to write instead."""
    allowed: str = ""
    advice: str = ""

    def error(self, where: str, lines: dict[Place, int]) -> UserError:
        """The error, with its line in the file."""
        at = errors.Place(line_of(lines, self.place), file=where)
        subject = Subject("policy", toml.dotted(unit(self.place)), at=at)
        remedy = Remedy(self.advice, policy=self.write)
        return UserError(self.what, allowed=self.allowed, subject=subject, remedy=remedy)


def of_error(error: PrivetError, place: Place, write: str) -> Problem:
    """An error as a problem at a place of the policy, with the line to write there: its own, if it has one."""
    remedy = error.remedy or Remedy()
    key, sign, _ = remedy.policy.partition(" = ")
    own = remedy.policy if sign and key == write.partition(" = ")[0] else ""
    return Problem(place, error.what, own or write, error.allowed, remedy.advice)


def is_in_place(source: Any) -> bool:
    """Whether a source is meant as an address of rows that are not in a file here."""
    return isinstance(source, str) and (addresses.is_served(source) or is_object_address(source))


def refusal(where: str, problems: Iterable[Problem], lines: dict[Place, int]) -> PolicyError:
    """The error that names every line to fix."""
    return joined(where, [problem.error(where, lines) for problem in problems])


def joined(where: str, errors_found: Iterable[PrivetError]) -> PolicyError:
    """All of these problems as one error, in the order of their lines."""
    placed = tuple(
        sorted(errors_found, key=lambda each: each.subject.at.line if each.subject and each.subject.at else 0)
    )
    return PolicyError(f"{where} has {'an error' if len(placed) == 1 else f'{len(placed)} errors'}", placed)


# --- what to write ----------------------------------------------------------------------------


def unit(place: Place) -> Place:
    """The part of a place to rewrite: a whole column or budget, not one end of a range.

    Example:
        >>> unit(("datasets", "health", "budget", "epsilon"))
        ('datasets', 'health', 'budget')
    """
    match place:
        case ("datasets", _, "tables", _, "columns", _, *_):
            return place[:6]
        case ("datasets", _, "tables", _, _, *_):
            return place[:5]
        case ("datasets", _, "analysts", _, *_):
            return place[:4]
        case ("datasets", _, _, *_) if place[2] != "tables":
            return place[:3]
        case ("public", _, _, *_):
            return place[:3]
    return place


def example(place: Place, value: Any = None) -> str:
    """A line to write at this place, or a header.

    Example:
        >>> print(example(("datasets", "health", "tables", "people", "columns", "age"), {"integer": [9]}))
        age = { integer = [0, 110] }
    """
    match unit(place):
        case ():
            return ""
        case ("ledger",):
            return 'ledger = "people.ledger"'
        case ("datasets",) | ("datasets", _):
            return f"[{toml.dotted(('datasets', *(place[1:] or ('health',))))}]"
        case ("datasets", _, "analysts", str(name)):
            return f"{toml.key(name)} = {{ epsilon = 1 }}"
        case ("datasets", str(), "tables", *rest):
            return _table(place, rest, value)
        case ("datasets", str(), "budget") if isinstance(value, dict) and "rho" in value:
            return "budget = { rho = 0.1 }"
        case ("datasets", str(), "budget") if isinstance(value, dict) and "delta" in value:
            return "budget = { epsilon = 3, delta = 1e-6 }"
        case ("datasets", str(), str(name)) if name in shape.DATASET_LINES:
            return f"{name} = {shape.DATASET_LINES[name]}"
        case ("public", *rest):
            return _public(place, rest)
        case ("server", "openid", str(name), *_) if name in OPENID_LINES:
            return f"{name} = {OPENID_LINES[name]}"
        case ("server", str(name), *_) if name in SERVER_LINES:
            return f"{name} = {SERVER_LINES[name]}"
    return ""


def _table(place: Place, rest: list[str | int], value: Any) -> str:
    match rest:
        case []:
            return f"[{toml.dotted((*place, 'people'))}]"
        case [_] | [_, "columns"]:
            return f"[{toml.dotted(place)}]"
        case [_, "columns", str(name), *_]:
            return f"{toml.key(name)} = {columns.example(value)}"
        case [_, "source"] if isinstance(value, dict):
            return 'source = { duckdb = "people.duckdb", table = "people" }'
        case [_, str(name), *_] if name in shape.TABLE_LINES:
            return f"{name} = {shape.TABLE_LINES[name]}"
    return ""


def _public(place: Place, rest: list[str | int]) -> str:
    match rest:
        case []:
            return "[public.regions]"
        case [_]:
            return f"[{toml.dotted(place)}]"
        case [_, str(name), *_] if name in shape.PUBLIC_LINES:
            return f"{name} = {shape.PUBLIC_LINES[name]}"
    return ""


def _known(place: Place, tree: Any) -> tuple[str, ...]:
    """The keys that are allowed in the table at this place."""
    model: type[fields.Part]
    match place:
        case ():
            model = shape.FileShape
        case ("datasets", _):
            model = shape.DatasetShape
        case ("datasets", _, "budget" | "per_query" | "per_analyst") | ("datasets", _, "analysts", _):
            model = shape.BudgetShape
        case ("datasets", _, "tables", _):
            model = shape.TableShape
        case ("datasets", _, "tables", _, "source"):
            model = shape.DuckDBShape
        case ("datasets", _, "tables", _, "protect"):
            model = shape.PersonShape
        case ("datasets", _, "tables", _, "columns", _):
            kind = columns.kind_of(value_at(tree, place))
            model = fields.Part if kind is None else columns.model(kind)
        case ("server",):
            model = ServerShape
        case ("server", "openid"):
            model = OpenIDShape
        case _:
            model = shape.PublicShape
    return tuple(field.alias or name for name, field in model.model_fields.items())


def value_at(tree: Any, place: Place) -> Any:
    """The value at a place; None if there is none."""
    for key in place:
        if isinstance(tree, Mapping):
            tree = tree.get(key)
        elif isinstance(tree, list) and isinstance(key, int) and key < len(tree):
            tree = tree[key]
        else:
            return None
    return tree


# --- from pydantic's messages to ours ---------------------------------------------------------


def problems(error: ValidationError, tree: Any) -> list[Problem]:
    """All errors from pydantic, in our words; a misspelled key is not also reported as missing."""
    details = [dict(each) for each in error.errors(include_url=False)]
    meant: set[Place] = set()
    for each in details:
        if each["type"] != "extra_forbidden":
            continue
        if _place(each)[-1] == "zcdp":
            meant.add((*_place(each)[:-1], "epsilon"))
        elif near := _nearest(_place(each), tree):
            meant.add((*_place(each)[:-1], near))
    return [_problem(each, tree) for each in details if each["type"] != "missing" or _place(each) not in meant]


def of_column(error: ValidationError, place: Place, tree: Any) -> list[Problem]:
    """The same for a column at this place that was checked separately."""
    details = [dict(each) | {"loc": (*place, *each["loc"])} for each in error.errors(include_url=False)]
    return [_problem(each, tree) for each in details]


def _place(error: Mapping[str, Any]) -> Place:
    keys = tuple(key for key in error["loc"] if not str(key).startswith(shape.TAG))
    return keys[:-1] if keys[-1:] == ("[key]",) else keys


def _problem(error: Mapping[str, Any], tree: Any) -> Problem:
    place, kind = _place(error), error["type"]
    if kind == "missing":
        return Problem(place[:-1], f"{place[-1]} is missing", _whole_example(place, tree))
    if kind == "extra_forbidden":
        return _unknown(place, tree)
    cause = error.get("ctx", {}).get("error")
    if error["loc"][-1:] == ("[key]",):
        return _misnamed(place)
    written = _whole_example(place, tree)
    if isinstance(cause, fields.Wrong) and cause.write is not None:
        written = f"{toml.key(str(unit(place)[-1]))} = {toml.value(cause.write)}"
    if isinstance(cause, UserError):
        problem = of_error(cause, place, written)
        served = place[:1] == ("datasets",) and is_in_place(value_at(tree, place))  # a file would not help
        return replace(problem, write="") if served and problem.write == written else problem
    return Problem(place, _words(kind, place, error["input"], error), written)


def _misnamed(place: Place) -> Problem:
    """A key of the policy that is not a usable name."""
    try:
        check_name(str(place[-1]), _NOUNS[place[-2]])
    except UserError as error:
        return of_error(error, place, "")
    raise AssertionError("pydantic refused this name")


_NOUNS: dict[str | int, str] = {
    "datasets": "dataset",
    "tables": "table",
    "public": "table",
    "columns": "column",
    "analysts": "analyst",
}


def _whole_example(place: Place, tree: Any) -> str:
    return example(place, value_at(tree, unit(place)))


_TYPES = {
    "string_type": "a string",
    "bool_type": "true or false",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "list_type": "a list",
}


def _words(kind: str, place: Place, value: Any, error: Mapping[str, Any]) -> str:
    name = toml.dotted(place[-2:] if isinstance(place[-1], int) else place[-1:])
    if kind in _TYPES:
        return f"{name} must be {_TYPES[kind]}, not {toml.brief(_shown(value))}"
    if kind == "union_tag_not_found" or (kind == "literal_error" and name in _FORMS):
        return _FORMS[name](value)
    if kind == "literal_error":
        allowed = str(error.get("ctx", {})["expected"]).replace("'", '"')
        return f"{name} must be {allowed}, not {toml.brief(value)}"
    if kind == "too_short":
        return f"{name} must not be empty"
    return f"{name}: {error['msg']}, not {toml.brief(value)}"


_FORMS: dict[str, Callable[[Any], str]] = {
    "source": lambda value: f"source must be a path, a list of paths or a table, not {toml.brief(_shown(value))}",
    "protect": lambda value: f'protect must be a table or "each row", not {toml.brief(value)}',
}


def _unknown(place: Place, tree: Any) -> Problem:
    name, inside = str(place[-1]), place[:-1]
    allowed = _known(inside, tree)
    if len(inside) == 6 and inside[4] == "columns":
        kind = columns.kind_of(value_at(tree, inside))
        if name in (*columns.kinds(), "type") and kind is not None:
            what = f"a column has one kind, not both {kind.name} and {name}"
            return Problem(place, what, _whole_example(place, tree))
        if name == "required":
            *able, last = (each.name for each in KINDS.values() if any(p.name == name for p in each.parameters))
            what = f"only {', '.join(f'{each}s' for each in able)} and {last}s can be required"
            return Problem(place, what, _whole_example(place, tree))
    if name in _MEANT and inside[:1] == ("datasets",) and len(inside) == 2:
        return Problem(place, *_MEANT[name])
    if name == "zcdp" and inside[:1] == ("datasets",):
        return Problem(place, _RHO, "budget = { rho = 0.1 }")
    near = _nearest(place, tree)
    if near is None:
        return Problem(place, f"unknown key {toml.brief(name)}", allowed=f"The keys here are: {', '.join(allowed)}")
    what, meant = f"unknown key {toml.brief(name)}", f"Did you mean {near}?"
    if unit(place) != inside:
        return Problem(place, what, _whole_example((*inside, near), tree), advice=meant)
    fixed = {near if key == name else key: value for key, value in value_at(tree, inside).items()}
    return Problem(place, what, f"{toml.key(str(inside[-1]))} = {toml.value(_shown(fixed))}", advice=meant)


def _shown(value: Any) -> Any:
    """A value with the passwords of addresses masked."""
    match value:
        case str():
            return addresses.shown(value)
        case Mapping():
            return {name: _shown(part) for name, part in value.items()}
        case list():
            return [_shown(part) for part in value]
    return value


def _nearest(place: Place, tree: Any) -> str | None:
    """The known key that is most similar to an unknown one."""
    table = value_at(tree, place[:-1])
    free = [name for name in _known(place[:-1], tree) if name not in table]
    return next(iter(get_close_matches(str(place[-1]), free, n=1)), None)


_RHO = "the number of zero-concentrated differential privacy is called rho"
_MEANT = {
    "epsilon": ("epsilon belongs in budget", "budget = { epsilon = 3 }"),
    "delta": ("delta belongs in budget", "budget = { epsilon = 3, delta = 1e-6 }"),
    "rho": ("rho belongs in budget", "budget = { rho = 0.1 }"),
    "protect": ("protect belongs in each table", "[datasets.health.tables.people]"),
    "columns": ("columns belong in each table", "[datasets.health.tables.people.columns]"),
    "source": ("source belongs in each table", "[datasets.health.tables.people]"),
}
