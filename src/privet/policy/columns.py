"""How the columns of a private table are declared in a policy: the kinds of `tables.kinds`, with the same names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema, create_model

from privet.errors import UserError
from privet.policy import fields, toml
from privet.policy.fields import Part
from privet.sources import keys_from
from privet.tables.kinds import BOOLEAN, INTEGER, KEYS, KINDS, Kind, Parameter
from privet.tables.schema import Column

Resolve = Callable[[str], str]
"""From a path in the policy to one that can be opened."""

_KEYS_FROM = Kind(
    "keys_from",
    "One of the values in a column of a public file.",
    keys_from,
    (
        Parameter("keys_from", "file", "A public CSV or Parquet file.", optional=False),
        Parameter("column", "text", "The column of that file.", optional=False),
        *(each for each in KEYS.parameters if each.name == "other"),
        Parameter("within", "text", "The column of keys in which these lie, each in one; the file has it too."),
    ),
    python='pv.keys_from("regions.csv", "region")',
    policy='{ keys_from = "regions.csv", column = "region" }',
    line="keys_from regions.csv region",
    needs="keys_from needs a public file and its column",
    like="keys",
)


def kinds() -> dict[str, Kind]:
    """The kinds that a policy can name: those of Python, and keys from a file."""
    return {**KINDS, _KEYS_FROM.name: _KEYS_FROM}


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declared column: its kind, and the values of its parameters."""

    kind: Kind
    values: Mapping[str, Any]

    @property
    def file(self) -> str | None:
        """The public file from which it is read."""
        return self.values[self.kind.name] if self.kind.value and self.kind.value.form == "file" else None

    def column(self, resolve: Resolve) -> Column:
        """The column as Python declares it; only `keys_from` reads a file, a public one."""
        options = dict(self.values)
        value = options.pop(self.kind.name, ())
        return self.kind.declare(*(value if self.file is None else (resolve(self.file),)), **options)


@cache
def model(kind: Kind) -> type[Part]:
    """The table of a policy that declares a column of this kind."""
    shape: dict[str, Any] = {} if kind.value else {"type": (Literal[kind.name], Field(description="Its kind."))}
    for each in kind.parameters:
        form = fields.FORMS[each.form]
        default: Any = ... if not each.optional else False if each.form == "flag" else None
        shape[each.name] = (form if default is not None else form | None, Field(default, description=each.about))
    shaped: type[Part] = create_model(kind.name.title().replace("_", ""), __base__=Part, __doc__=kind.about, **shape)
    return shaped


def kind_of(value: Any) -> Kind | None:
    """Which kind of column a value of the policy is meant to be.

    Example:
        >>> kind_of({"integer": [0, 110]}).name, kind_of("boolean").name, kind_of({"between": [0, 110]})
        ('integer', 'boolean', None)
    """
    if isinstance(value, dict):
        named = next((kind for name, kind in kinds().items() if name in value), None)
        return named if named is not None or not isinstance(value.get("type"), str) else kind_of(value["type"])
    kind = kinds().get(value) if isinstance(value, str) else None
    return None if kind is None or kind.value else kind


def example(value: Any) -> str:
    """A column of the kind that a value is meant to be, as it is written."""
    if isinstance(value, dict):
        meant = kind_of(value) or (kinds().get(str(value["type"]), BOOLEAN) if "type" in value else INTEGER)
    else:
        meant = kinds().get(value, INTEGER) if isinstance(value, str) else INTEGER
    return meant.policy


def declaration(value: Any) -> Declaration:
    """The column that a value of the policy declares."""
    kind = kind_of(value)
    if kind is None:
        raise UserError(_refusal(value))
    if isinstance(value, dict) and kind.value is None and kind.name in value:
        raise UserError(f"{toml.text(kind.name)} is a kind of column that takes no value, not a key")
    values = {}
    if not isinstance(value, str):
        read = model(kind).model_validate(value)
        values = {each.name: getattr(read, each.name) for each in kind.parameters if each.name in read.model_fields_set}
    column = Declaration(kind, values)
    if column.file is None:
        column.column(str)
    return column


def _refusal(value: Any) -> str:
    """Why a value does not declare a column."""
    if isinstance(value, str) and value in kinds():
        return kinds()[value].needs
    *names, last = (toml.text(name) for name, kind in KINDS.items() if not kind.value)
    plain = f"{', '.join(names)} or {last}"
    if isinstance(value, dict) and "type" in value:
        return f"type must be {plain}, not {toml.brief(value['type'])}"
    keyed = ", ".join(name for name, kind in kinds().items() if kind.value)
    return f"a column has one of {keyed}, or is {plain}; not {toml.brief(value)}"


ColumnShape = Annotated[Declaration, PlainValidator(declaration), WithJsonSchema({})]
"""A column, in any of its forms; `schemas` describes them."""


def schemas() -> dict[str, Any]:
    """The JSON Schemas of the tables of all kinds, by the names of their definitions; a `Column` is one of them."""
    parts = {each.__name__: each.model_json_schema() for each in map(model, kinds().values())}
    plain = {"enum": [name for name, kind in KINDS.items() if not kind.value], "type": "string"}
    about = "A column, in any of its forms."
    return {
        "Column": {"description": about, "oneOf": [plain, *({"$ref": f"#/$defs/{name}"} for name in parts)]},
        **parts,
    }
