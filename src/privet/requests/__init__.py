"""What a session can be asked for: a question, a batch of them, or a statistic or a choice of your own."""

from privet.requests.base import Debited, Request

__all__ = ["Debited", "Request"]
