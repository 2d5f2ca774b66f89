"""The server about itself, and problem documents."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from privet.server.models.base import Model


class Health(Model):
    """The server is up."""

    status: Literal["ok"] = "ok"
    version: str


class Problem(BaseModel):
    """What went wrong (RFC 9457). An error of Privet has its own fields besides."""

    model_config = ConfigDict(strict=True, extra="allow", use_attribute_docstrings=True)
    type: str
    """about:blank, or urn:privet:error: and the kind of error."""
    title: str
    """The kind of error; the same for every error of this kind."""
    status: int
    detail: str
    """What is wrong, and what to do."""
