"""May you: every route has one rule, and this table says whom it admits."""

from __future__ import annotations

from enum import StrEnum


class Rule(StrEnum):
    """Who may use a route.

    What is about a dataset admits only those who may ask that dataset; for others it is not found.
    """

    ANYONE = "anyone"
    """No account is needed."""
    SIGNED_IN = "signed in"
    """Any account."""
    ASKS = "asks the dataset"
    """Any account that may ask the dataset of the path."""
    STEWARD_OF = "steward of the dataset"
    """A steward who may ask the dataset of the path."""
    STEWARD = "steward"
    """A steward of all datasets: what concerns the whole ledger, or accounts."""
    IN_PERSON = "in person"
    """Somebody who signed in with a password, or a steward's token without any limit: it hands out access."""
