"""What all operations on accounts share."""

from __future__ import annotations


class Base:
    """The store, the clock and the passwords of accounts."""
