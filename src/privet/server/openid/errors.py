"""What can be wrong with a provider, as one of a few words for the log."""

from __future__ import annotations


class ProviderError(Exception):
    """A provider that can't be reached, or whose answer is not accepted. Its reason has no text of the provider."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
