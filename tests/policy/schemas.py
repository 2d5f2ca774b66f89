"""As much of JSON Schema as the schema of a policy uses; what it does not know, it refuses to judge."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

TOLD = {"title", "description", "default", "$schema", "$defs"}


def plain(tree: Any) -> Any:
    """A TOML tree as JSON has it: dates are texts."""
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [plain(value) for value in tree]
    if isinstance(tree, date | datetime | time):
        return tree.isoformat()
    return float(tree) if isinstance(tree, Decimal | Fraction) else tree


def fits(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    """Whether a value satisfies a schema."""
    return all(_satisfies(value, word, of, schema, root) for word, of in schema.items() if word not in TOLD)


def _satisfies(value: Any, word: str, of: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    match word:
        case "$ref":
            return fits(value, root["$defs"][of.removeprefix("#/$defs/")], root)
        case "anyOf":
            return any(fits(value, each, root) for each in of)
        case "oneOf":
            return sum(fits(value, each, root) for each in of) == 1
        case "type":
            return _is(value, of)
        case "enum":
            return value in of
        case "const":
            return bool(value == of)
        case "pattern":
            return not isinstance(value, str) or re.search(of, value) is not None
        case "minimum":
            return not _is(value, "number") or not value < of
        case "maximum":
            return not _is(value, "number") or not value > of
        case "exclusiveMinimum":
            return not _is(value, "number") or not value <= of
        case "exclusiveMaximum":
            return not _is(value, "number") or not value >= of
        case "minItems":
            return not isinstance(value, list) or len(value) >= of
        case "maxItems":
            return not isinstance(value, list) or len(value) <= of
        case "uniqueItems":
            return not isinstance(value, list) or all(each not in value[:place] for place, each in enumerate(value))
        case "items":
            return not isinstance(value, list) or all(fits(each, of, root) for each in value)
        case "prefixItems":
            return not isinstance(value, list) or all(fits(v, s, root) for v, s in zip(value, of, strict=False))
        case "minProperties":
            return not isinstance(value, dict) or len(value) >= of
        case "required":
            return not isinstance(value, dict) or all(name in value for name in of)
        case "properties":
            return not isinstance(value, dict) or all(fits(value[n], s, root) for n, s in of.items() if n in value)
        case "additionalProperties":
            if not isinstance(value, dict):
                return True
            rest = [each for name, each in value.items() if name not in schema.get("properties", ())]
            return not rest if of is False else all(fits(each, of, root) for each in rest)
    raise AssertionError(f"no rule for {word}")


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is(value, "number") and math.isfinite(value) and value == int(value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
    raise AssertionError(f"no type {kind}")
