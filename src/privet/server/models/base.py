"""What models share: exact numbers, names, and strictness."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

Number = Annotated[
    int | Decimal | str,
    WithJsonSchema({"type": ["number", "string"], "maxLength": 400, "examples": [0.5, "1/3"]}),
]
"""An exact number: a JSON number, or a text such as "0.5" or "1/3"."""
Name = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=1, le=2**53)]
Amount = dict[str, str]
"""An amount of privacy loss by its parts, each exact: {"epsilon": "0.5"}, {"epsilon": "1", "delta": "1e-06"}."""


class Model(BaseModel):
    """Strict: a value of another type, or a field that nobody knows, is refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)
