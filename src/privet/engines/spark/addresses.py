"""The address of a table in Spark: spark:sales.people, spark:/data/people.parquet or sc://host:15002#sales.people.

Claim: `shown` and `repr` contain no secret. The rest of an address goes to Spark Connect's client and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from privet.errors import Remedy, SourceError, Subject, write
from privet.system.addresses import masked

_EXAMPLE = "spark:sales.people"
LIKE = (
    "A table in Spark is spark:sales.people or spark:/data/people.parquet in this process's session, and "
    "sc://host:15002#sales.people or sc://host:15002#/data/people.parquet through Spark Connect"
)
_WRITE = write(f'pv.table("people", "{_EXAMPLE}", ...)', policy=f'source = "{_EXAMPLE}"')
_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")
_PATH = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_PLAIN = ("use_ssl", "user_agent", "session_id", "grpc_max_message_size")
_KEYED = re.compile(r"\?[\w%.-]+=")  # a signature
_WILD = "\\*?{}[]"  # what Hadoop reads as a pattern
_AZURE = ("abfs", "abfss", "wasb", "wasbs")
_PORT = 15002
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:\d+)?")  # what follows ; or , could be a token


@dataclass(frozen=True, slots=True)
class Address:
    """A Spark, and perhaps a table in it."""

    remote: str = field(default="", repr=False)
    """What Spark Connect's client connects to, perhaps with a token; empty for the session of this process."""
    names: tuple[str, ...] = ()
    """The parts of a table's name in the catalogue."""
    path: str = ""
    """Parquet files, by their path."""

    @property
    def shown(self) -> str:
        """The Spark, without secrets."""
        if not self.remote:
            return "Spark"
        parts = urlsplit(self.remote)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"sc://{host}:{parts.port or _PORT}"

    @property
    def plain(self) -> str:
        """The Spark without token and other secrets, as a policy has it."""
        if not self.remote:
            return "spark:"
        kept = [f"{key}={value}" for key, value in _parameters(self.remote) if key in _PLAIN]
        return f"{self.shown}/;{';'.join(kept)}" if kept else self.shown

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no text may contain."""
        values = [value for key, value in _parameters(self.remote) if key not in _PLAIN and value]
        return tuple({text for each in values for text in (each, unquote(each))})

    @property
    def pattern(self) -> str:
        """The path for Hadoop, which would read more signs than * as patterns."""
        return literal(self.path, but="*")

    @property
    def table(self) -> str:
        """What it names in this Spark, for people."""
        return self.path or ".".join(self.names)

    def __str__(self) -> str:
        what = f"the Parquet files {self.path}" if self.path else f"table {self.table}"
        return f"{what} of {self.shown}"


def literal(path: str, but: str = "") -> str:
    r"""A path that Hadoop takes literally.

    Example:
        >>> print(literal("/data/people[1]*.parquet"), literal("/data/people[1]*.parquet", but="*"))
        /data/people\[1\]\*.parquet /data/people\[1\]*.parquet
    """
    return "".join(f"\\{sign}" if sign in _WILD and sign not in but else sign for sign in path)


def _parameters(remote: str) -> list[tuple[str, str]]:
    pairs = (each.partition("=") for each in remote.partition("/;")[2].split(";"))
    return [(key, value) for key, _, value in pairs if key]


def parsed(text: str) -> Address:
    """The parts of an address.

    Example:
        >>> parsed("spark:sales.people")
        Address(names=('sales', 'people'), path='')
        >>> parsed("spark:s3a://bucket/people").path
        's3a://bucket/people'
        >>> parsed("spark:abfss://data@account.dfs.core.windows.net/people").path
        'abfss://data@account.dfs.core.windows.net/people'
        >>> secret = parsed("sc://host:15002/;token=hush#main.sales.`odd.name`")
        >>> secret, secret.shown
        (Address(names=('main', 'sales', 'odd.name'), path=''), 'sc://host:15002')
    """
    given = text.strip()
    scheme, _, rest = given.partition(":")
    if scheme.lower() == "spark":
        if not rest:
            raise SourceError("spark: names no table, no database and no files", allowed=LIKE, remedy=_WRITE)
        if rest.startswith("//"):
            raise SourceError(
                "spark:// is the address of a cluster, not of a table",
                allowed=LIKE,
                remedy=Remedy("Start a session on the cluster in this process, and name the table, or use its sc://"),
            )
        return _named(Address(), rest)
    remote, _, name = given.partition("#")
    address = Address("sc" + remote[2:])
    # a token with # in it, which is written %23, must not become a part of the table's name
    if not _is_valid(remote) or ("#" in name and address.secrets):
        raise SourceError("this is not a valid address of Spark Connect", allowed=LIKE, remedy=_WRITE)
    return _named(address, unquote(name))


def _is_valid(remote: str) -> bool:
    """Whether this is sc://host:port/;key=value;key=value, as Spark Connect's client reads it."""
    server, _, options = remote.partition("/;")
    try:
        parts = urlsplit(server)
        known = _SERVER.fullmatch(parts.netloc) is not None and parts.port != 0
    except ValueError:
        return False
    plain = known and parts.path in ("", "/") and not parts.query
    return plain and all(re.fullmatch(r"[\w-]+=[^=]*", each) for each in options.split(";") if each)


def _named(address: Address, name: str) -> Address:
    """The address with a table: a path is absolute, a part of a name with a dot in it is in backticks."""
    if not name:
        return address
    if _has_user(name):
        raise SourceError(
            "a path must not contain a user or a key",
            allowed=LIKE,
            remedy=Remedy("Spark finds them in its configuration, or in the environment of its cluster"),
        )
    if _PATH.match(name) and name.isprintable():
        return Address(address.remote, path=name)
    names: list[str] = []
    at = 0
    while match := _PART.match(name, at):
        names.append(match[1].replace("``", "`") if match[1] else match[2])
        at = match.end() + 1
        if match.end() == len(name) or name[match.end()] != ".":
            break
    if at != len(name) + 1 or not 1 <= len(names) <= 3 or not name.isprintable():
        raise SourceError(
            f"{masked(name)!r} is not the name of a table in Spark",
            allowed="A table is named as people, sales.people or catalog.sales.people, and files by an absolute path",
            subject=Subject("table", masked(name)),
            remedy=_WRITE,
        )
    return Address(address.remote, tuple(names))


def _has_user(path: str) -> bool:
    """Whether a path has a user, or a key, before its host or after ?. In Azure's storage a container is before it."""
    if _KEYED.search(path):
        return True
    parts = urlsplit(path.partition("?")[0])
    user, at, _ = parts.netloc.rpartition("@")
    return bool(at) and not (parts.scheme in _AZURE and re.fullmatch(r"[a-z0-9$-]+", user))


def example(address: Address) -> str:
    """The address of a table in the same Spark."""
    return written(Address(address.remote, (*(address.names[:2] or ("sales",)), "people")))


def written(address: Address) -> str:
    """The address of a table, as a policy has it.

    Example:
        >>> written(parsed("spark:`odd.name`")), written(parsed("sc://host/;token=hush#sales.people"))
        ('spark:`odd.name`', 'sc://host:15002#sales.people')
        >>> written(parsed("sc://host"))
        'sc://host:15002'
    """
    names = ["`" + each.replace("`", "``") + "`" if re.search(r"[.`#% /:]", each) else each for each in address.names]
    name = address.path or ".".join(names)
    if not address.remote:
        return f"spark:{name}"
    return f"{address.plain}#{name.replace('%', '%25')}" if name else address.plain
