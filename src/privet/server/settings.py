"""How the server serves: the table `[server]` of the policy, with what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from privet.policy import Policy
from privet.policy.openid_shape import OpenIDShape
from privet.policy.server_shape import ServerShape
from privet.server.accounts.accounts import beside
from privet.system.addresses import is_address

_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_ALL = ("0.0.0.0", "[::]")  # every address of the machine, its own among them


@dataclass(frozen=True, slots=True)
class OpenIDSettings:
    """The provider of OpenID Connect."""

    issuer: str
    client_id: str
    secret_file: str | None
    name: str
    """What people call it."""
    claim: str

    @classmethod
    def of(cls, policy: Policy, shape: OpenIDShape) -> OpenIDSettings:
        """The settings of a policy."""
        file = None if shape.secret_file is None else policy.document.resolve(shape.secret_file)
        return cls(shape.issuer, shape.client_id, file, shape.name, shape.claim)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the steward set, as numbers and addresses that programs can use."""

    host: str
    port: int
    origin: str
    """The address that browsers and clients use, such as https://privet.example.org."""
    hosts: frozenset[str]
    """The values of the header Host that are answered."""
    proxies: tuple[IPv4Network | IPv6Network, ...]
    accounts: str
    workers: int
    running: int
    waiting: int
    waiting_each: int
    wait: float
    deadline: float
    pace: float
    passwords: bool = True
    openid: OpenIDSettings | None = None

    @property
    def secure(self) -> bool:
        """Whether browsers connect by TLS, so that cookies may demand it."""
        return self.origin.startswith("https://")

    @property
    def origins(self) -> frozenset[str]:
        """The origins of pages that may use the API."""
        scheme = self.origin.partition("://")[0]
        return frozenset({self.origin, *(f"{scheme}://{host}" for host in self.hosts)})

    @classmethod
    def of(cls, policy: Policy, *, listen: str | None = None) -> Settings:
        """The settings of a policy; `listen` overrides its address and port."""
        shape = policy.shape.server or ServerShape()
        host, _, port = (listen or shape.listen).rpartition(":")
        local = host in _LOCAL or host in _ALL
        origin = shape.address or f"http://{'localhost' if local else host}:{port}"
        own = {f"{name}:{port}" for name in (_LOCAL if local else (host,))}
        named = origin.partition("://")[2].lower()
        default = ":443" if origin.startswith("https:") else ":80"
        if ":" not in named.rpartition("]")[2]:
            own.add(f"{named}{default}")
        own.add(named.removesuffix(default))
        where = shape.accounts
        if where is None:
            where = beside(policy.ledger)
        elif not is_address(where):
            where = policy.document.resolve(where)
        return cls(
            host=host.strip("[]"),
            port=int(port),
            origin=origin,
            hosts=frozenset(each.lower() for each in own | {named}),
            proxies=tuple(map(ip_network, shape.proxies)),
            accounts=where,
            workers=shape.workers,
            running=shape.running,
            waiting=shape.waiting,
            waiting_each=shape.waiting_each,
            wait=float(shape.wait),
            deadline=float(shape.deadline),
            pace=float(shape.pace),
            passwords=shape.passwords,
            openid=None if shape.openid is None else OpenIDSettings.of(policy, shape.openid),
        )
