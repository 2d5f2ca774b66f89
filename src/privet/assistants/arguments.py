"""The arguments of a tool: their JSON Schema, and the check that a call obeys it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privet.errors import Subject, UserError, argument
from privet.names.spelling import there_are

_LONGEST = 100_000  # characters of a text


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool."""

    name: str
    kind: str
    """text, number, whole or errors."""
    meaning: str
    example: Any
    required: bool = True

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        number: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string"}]}  # "1/3" is a number, too
        forms: dict[str, dict[str, Any]] = {
            "text": {"type": "string"},
            "number": number,
            "whole": {"type": "integer", "minimum": 1},
            "errors": {"type": "object", "additionalProperties": number},
        }
        return {**forms[self.kind], "description": self.meaning}

    def check(self, value: object) -> None:
        """Refuse a value of another type; which numbers are allowed is checked where they are used."""
        match self.kind, value:
            case "text", str() if len(value) <= _LONGEST:
                return
            case "number", int() | float() | str() if not isinstance(value, bool):
                return
            case "whole", int() if not isinstance(value, bool):
                return
            case "errors", dict() if all(isinstance(each, int | float | str) for each in value.values()):
                return
        must = {
            "text": f"a text of at most {_LONGEST:,} characters",
            "number": "a number",
            "whole": "a whole number",
            "errors": "an object with a number for each column",
        }
        raise self._refusal(f"{self.name} must be {must[self.kind]}")

    def missing(self) -> UserError:
        """The error if it is not given."""
        return self._refusal(f"{self.name} is missing")

    def _refusal(self, what: str) -> UserError:
        example: Any = argument(self.name, self.example)
        return UserError(f"{what}. Nothing was spent", subject=Subject("argument", self.name), remedy=example)


def schema(arguments: tuple[Argument, ...]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {each.name: each.schema() for each in arguments},
        "required": [each.name for each in arguments if each.required],
        "additionalProperties": False,
    }


def checked(arguments: tuple[Argument, ...], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call without those that are null; refused if one is missing, unknown or of another type."""
    values = {name: value for name, value in (given or {}).items() if value is not None}
    known = {each.name: each for each in arguments}
    for name in values.keys() - known.keys():
        allowed = there_are(name, list(known), "arguments", str) if known else "This tool takes no arguments"
        raise UserError(f"there is no argument {name[:60]!r}. Nothing was spent", allowed=allowed)
    for name, each in known.items():
        if name in values:
            each.check(values[name])
        elif each.required:
            raise each.missing()
    return values
