"""A session on a server: `pv.connect`.

Questions are read and planned here, by the terms that the server sends. The server answers. Every answer is verified on
arrival: its certificate must hold, and must be about the question that was asked.
"""

from privet.client.connecting import connect
from privet.client.session import RemoteSession

__all__ = ["RemoteSession", "connect"]
