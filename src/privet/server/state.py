"""What a process of the server has open: the policy, the accounts, the datasets, and the questions that run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from privet.dataset import Dataset
from privet.ledger import Ledger
from privet.policy import Policy, load
from privet.server.accounts import Accounts
from privet.server.asking import Asking
from privet.server.logs import Log
from privet.server.settings import Settings

_GRACE = 10.0  # seconds that running questions have to end before they are ended
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

    @classmethod
    def open(cls, policy: Policy, settings: Settings, accounts: Accounts, log: Log | None = None) -> Server:
        """Open every dataset of the policy."""
        datasets: dict[str, Dataset] = {}
        try:
            for name in policy.datasets:
                datasets[name] = Dataset.open(policy, dataset=name)
        except BaseException:
            for each in datasets.values():
                each.close()
            raise
        return cls(policy, settings, accounts, datasets, Asking(settings, accounts), log or Log())

    @property
    def ledger(self) -> Ledger:
        """The ledger, which all datasets share."""
        return next(iter(self.datasets.values())).ledger

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


def opened(policy: Path | Policy, listen: str | None = None) -> Server:
    """A server from its policy, with the accounts that belong to it."""
    read = load(policy) if isinstance(policy, Path) else policy
    settings = Settings.of(read, listen=listen)
    accounts = Accounts.open(settings.accounts)
    try:
        return Server.open(read, settings, accounts)
    except BaseException:
        accounts.close()
        raise
