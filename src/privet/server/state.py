"""What a process of the server has open: the policy, the accounts, the datasets, and the questions that run."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from privet.dataset import Dataset
from privet.engines.base import in_bytes
from privet.ledger import Ledger
from privet.policy import Policy, load
from privet.policy.shape import DuckDBShape
from privet.server.accounts import Accounts
from privet.server.asking import Asking
from privet.server.logs import Log
from privet.server.openid import Provider, client_secret
from privet.server.settings import Settings

_GRACE = 10.0  # seconds that running questions have to end before they are ended
_LEAST = 64 * 2**20  # bytes for a question, however little there is
_LIMIT = Path("/sys/fs/cgroup/memory.max")
_PATIENCE = 5.0  # seconds for them to be settled then


@dataclass(frozen=True, slots=True)
class Server:
    """One process of the server; its handlers share it."""

    policy: Policy
    settings: Settings
    accounts: Accounts
    datasets: Mapping[str, Dataset]
    asking: Asking
    log: Log
    end: Callable[[], object] = lambda: None
    """Ends this process, after the requests that it still answers; another one takes its place."""
    openid: Provider | None = None
    """The provider by which people can sign in."""

    @classmethod
    def open(
        cls,
        policy: Policy,
        settings: Settings,
        accounts: Accounts,
        log: Log | None = None,
        end: Callable[[], object] = lambda: None,
    ) -> Server:
        """Open every dataset of the policy."""
        named = settings.openid
        openid = None if named is None else Provider(named, client_secret(named.secret_file))
        datasets: dict[str, Dataset] = {}
        try:
            for name, each in policy.datasets.items():
                memory = question_memory(settings, each.settings.memory, shares(policy))
                datasets[name] = Dataset.open(policy, dataset=name, memory=memory)
        except BaseException:
            for opened in datasets.values():
                opened.close()
            raise
        return cls(policy, settings, accounts, datasets, Asking(settings, accounts), log or Log(), end, openid)

    @property
    def ledger(self) -> Ledger:
        """The ledger, which all datasets share."""
        return next(iter(self.datasets.values())).ledger

    @property
    def lost(self) -> bool:
        """Whether the storage of the ledger failed: it must be opened again, and so verified, by another process."""
        return any(each.ledger.lost for each in self.datasets.values())

    async def close(self) -> None:
        """End: what waits is dropped, what runs is awaited for a while and then ended, and everything is closed."""
        from privet.server.call import in_thread

        self.asking.stop()
        if not await self.asking.ended(_GRACE):
            for each in self.datasets.values():
                each.engine.stop()
            await self.asking.ended(_PATIENCE)
        for each in self.datasets.values():
            await in_thread(each.close)
        await in_thread(self.accounts.close)


def shares(policy: Policy) -> int:
    """Into how many parts the machine's memory is divided, before questions divide it.

    A DuckDB keeps what it has read of a DuckDB file, also while no question runs: each dataset of these needs a part.
    The others need memory only while their questions run: they have one together.
    """
    keeping = sum(
        any(isinstance(table.source, DuckDBShape) for table in each.settings.tables.values())
        for each in policy.datasets.values()
    )
    return keeping + (keeping < len(policy.datasets))


def question_memory(settings: Settings, stated: str | None, parts: int = 1) -> str | None:
    """What each question may use of a dataset's memory, or else of a part of half of this machine's, if it is known.

    Questions that run at the same time have equal shares: none can take the memory of another, and make it fail.
    """
    if stated is not None:
        return f"{max(in_bytes(stated) // settings.running, _LEAST)}B"
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = _LIMIT.read_text().strip() if _LIMIT.exists() else ""
    except (OSError, ValueError, AttributeError):
        return None
    whole = min(whole, int(limit)) if limit.isdigit() else whole
    return f"{max(whole // 2 // parts // settings.workers // settings.running, _LEAST)}B"


def opened(policy: Path | Policy, listen: str | None = None) -> Server:
    """A server from its policy, with the accounts that belong to it."""
    read = load(policy) if isinstance(policy, Path) else policy
    settings = Settings.of(read, listen=listen)
    accounts = Accounts.open(settings.accounts)
    try:
        return Server.open(read, settings, accounts, end=lambda: os.kill(os.getpid(), signal.SIGTERM))
    except BaseException:
        accounts.close()
        raise
