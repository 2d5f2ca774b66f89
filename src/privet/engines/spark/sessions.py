"""Sessions of Spark for reading, which share nothing with those of others but the catalogue and the cluster.

Spark has no transactions and no role that a client could give up: what keeps our statements from writing is that they
are SELECTs. All settings that a result could depend on are fixed.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from privet.engines.spark.addresses import Address
from privet.engines.spark.logs import quiet
from privet.engines.spark.settings import ANSI, SETTINGS
from privet.engines.spark.starting import here
from privet.errors import Remedy, SourceError, UserError, install
from privet.system.addresses import masked

LONGEST = 3600.0
"""Seconds that a question may take."""
PATIENCE = 4
"""How often a call is repeated if Spark Connect's server can't be reached: for some ten seconds."""

_CHARS = "__CHAR_VARCHAR_TYPE_STRING"  # where Spark keeps that a string is a CHAR
_VAGUE = ("FAILED_TO_CREATE_PLAN_FOR_DIRECT_QUERY",)  # conditions that do not say what happened


@dataclass(slots=True)
class _Opened:
    """A session of Spark with our settings, and how many use it."""

    spark: Any
    users: int = 0
    lost: bool = False


@dataclass(slots=True)
class Session:
    """The use of a session of our own; threads may use it at the same time. After a failure, open another."""

    address: Address
    opened: _Opened = field(repr=False)
    process: int = field(default_factory=os.getpid)
    tags: set[str] = field(default_factory=set, repr=False)
    """What is running."""

    @property
    def spark(self) -> Any:
        """Spark's own."""
        return self.opened.spark

    @property
    def lost(self) -> bool:
        """Whether it is known not to work any more."""
        return self.opened.lost

    @lost.setter
    def lost(self, known: bool) -> None:
        self.opened.lost = known

    @property
    def remote(self) -> bool:
        """Whether it is one of Spark Connect."""
        return bool(self.address.remote)

    def again(self) -> Session:
        """One more use of it: it does not end before this one is closed too."""
        with _LOCK:
            self.opened.users += 1
        return replace(self)

    def cancel(self, *tags: str) -> None:
        """End what is running under these tags, from any thread; without one, all that runs in this use of it."""
        for tag in tags or tuple(self.tags):
            with suppress(Exception), quiet():
                _tagging(self.spark)[2](tag)

    def close(self) -> None:
        """The end of this use; with the last one, the session ends."""
        with _LOCK:
            self.opened.users -= 1
            if self.opened.users > 0 or self.process != os.getpid():
                return
            if _OPEN.get(_key(self.address)) is self.opened:
                del _OPEN[_key(self.address)]
        if self.remote:
            with suppress(Exception), quiet():
                if not self.lost:
                    self.spark.client.release_session()
                self.spark.client.close()


_LOCK = threading.RLock()
_OPEN: dict[tuple[int, str], _Opened] = {}


def _renew_lock() -> None:
    """In a child: a thread that it does not have may hold the lock."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def _key(address: Address) -> tuple[int, str]:
    return os.getpid(), address.remote


def opened(address: Address) -> Session:
    """A session with the settings above; one for all who ask for the same Spark at the same time, in a process."""
    with _LOCK:
        known = _OPEN.get(_key(address))
        if known is None or known.lost or not works(known.spark):
            known = _OPEN[_key(address)] = _Opened(_made(address))
        known.users += 1
        return Session(address, known)


@contextmanager
def reading(address: Address) -> Iterator[Session]:
    """A session while this lasts; for looking at tables."""
    session = opened(address)
    try:
        yield session
    finally:
        session.close()


def new_tag() -> str:
    """A name for what is running, by which it can be ended."""
    return f"privet-{uuid4().hex}"


def run(
    session: Session,
    sql: str,
    args: Sequence[Any] | Mapping[str, Any] = (),
    *,
    tag: str = "",
    longest: float | None = None,
) -> list[tuple[Any, ...]]:
    """The rows of a statement. It ends with an error if `session.cancel` is called, or after so many seconds."""
    with _tagged(session, tag or new_tag(), LONGEST if longest is None else longest), quiet():
        given = dict(args) if isinstance(args, Mapping) else list(args)
        return [tuple(row) for row in session.spark.sql(sql, args=given or None).collect()]


def columns(session: Session, sql: str) -> list[tuple[str, str]]:
    """The columns of a SELECT and the names of their types; no row is read."""
    with _tagged(session, new_tag(), LONGEST), quiet():
        return _types(session.spark.sql(sql).schema)


def merged(session: Session, root: str) -> list[tuple[str, str]]:
    """The columns that Parquet files have together and the names of their types, by their footers; no row is read."""
    with _tagged(session, new_tag(), LONGEST), quiet():
        return _types(session.spark.read.option("mergeSchema", "true").parquet(root).schema)


def _types(found: Any) -> list[tuple[str, str]]:
    return [(each.name, str((each.metadata or {}).get(_CHARS) or each.dataType.simpleString())) for each in found]


def files(session: Session, sql: str, tag: str = "") -> list[str]:
    """The files that a SELECT reads."""
    with _tagged(session, tag or new_tag(), LONGEST), quiet():
        return sorted(session.spark.sql(sql).inputFiles())


def make_view(session: Session, name: str, sql: str) -> None:
    """A temporary view of our session, in place of the one of this name; it keeps the files that the SELECT reads."""
    with _tagged(session, new_tag(), LONGEST), quiet():
        session.spark.sql(sql).createOrReplaceTempView(name)  # not by SQL: that would be looked up each time


def drop_view(session: Session, name: str) -> None:
    """The end of a view, if there is one."""
    with suppress(Exception), quiet():
        session.spark.catalog.dropTempView(name)


def is_fleeting(name: str) -> bool:
    """Whether the session that is active in this process, beside ours, has a temporary view of this name."""
    from pyspark.sql import SparkSession

    with suppress(Exception), quiet():
        active = SparkSession.getActiveSession()
        return active is not None and any(each.isTemporary for each in active.catalog.listTables(pattern=name))
    return False


def setting(session: Session, name: str) -> str:
    """The value of a setting."""
    with quiet():
        return str(session.spark.conf.get(name))


@contextmanager
def _tagged(session: Session, tag: str, longest: float) -> Iterator[None]:
    if session.process != os.getpid():
        raise SourceError("a session of Spark can't be used by a child of the process that opened it")
    late = threading.Timer(longest, _stop, (session, tag))
    late.daemon = True
    add, remove, _ = _tagging(session.spark)
    add(tag)
    session.tags.add(tag)
    late.start()
    try:
        yield
    finally:
        late.cancel()
        session.tags.discard(tag)
        with suppress(Exception):
            remove(tag)


def _tagging(spark: Any) -> tuple[Callable[[str], Any], ...]:
    """How a tag is added to what this thread runs, how it is removed, and how any thread ends what has it."""
    context = getattr(spark, "_sc", None)
    if context is None:  # Spark Connect
        return spark.addTag, spark.removeTag, spark.interruptTag
    # without Spark Connect, only the thread that added a tag to a session can interrupt it
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


def _stop(session: Session, tag: str) -> None:
    """A statement takes too long: it is ended, and where Spark does not hear of that, the connection is."""
    session.lost = True
    done = threading.Event()

    def interrupt() -> None:
        with suppress(Exception), quiet():
            _tagging(session.spark)[2](tag)
            done.set()

    threading.Thread(target=interrupt, daemon=True).start()
    if not done.wait(10) and session.remote:
        with suppress(Exception):
            session.spark.client.close()


def told(address: Address, error: BaseException) -> str:
    """What Spark's error says, without secrets; for the steward, before any question."""
    details = re.search(r'^\s*details = "(.+)"$', str(error), re.MULTILINE)  # of grpc, whose text begins with a class
    text = details[1] if details else str(error)
    if getattr(error, "getCondition", str)() in _VAGUE and (known := cause(error)):
        text = known
    lines = [line for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return masked(lines[0].strip()[:300], address.secrets)


def cause(error: BaseException) -> str:
    """What an error of Spark was caused by in the end, as far as its client knows; else an empty text."""
    trace = "\n".join([str(error), str(getattr(error, "_stackTrace", None) or "")])
    return str((re.findall(r"^Caused by: (?:[\w$]+\.)*(\w+: .+)$", trace, re.MULTILINE) or [""])[-1])


# --- Spark's own ----------------------------------------------------------------------------------


def _made(address: Address) -> Any:
    try:
        with quiet(), warnings.catch_warnings():  # in this order: the filters that `quiet` adds must stay
            warnings.simplefilter("ignore")  # of pyspark, about other packages
            spark = _connected(address) if address.remote else here()
            for name, value in SETTINGS.items():
                spark.conf.set(name, value)
            return spark
    except SourceError:
        raise
    except ImportError:
        raise UserError("a table in Spark needs pyspark", remedy=install("spark")) from None
    except Exception as error:
        raise SourceError(f"can't open a session of {address.shown}: {told(address, error)}") from None


def _connected(address: Address) -> Any:
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession  # which imports grpc

    spark = SparkSession(address.remote)  # not by its builder, which would make it the active one
    spark.client.set_retry_policies([DefaultPolicy(max_retries=PATIENCE, max_backoff=4000)])
    # At the end of the process the client would call the server; one that is gone would keep the process from ending.
    atexit.unregister(spark.client._on_exit)
    try:
        spark.version  # noqa: B018 (the first call to the server)
    except Exception as error:
        spark.client.close()
        raise SourceError(
            f"can't connect to {address.shown}: {told(address, error)}",
            remedy=Remedy("Check the host and the port, and that a Spark Connect server runs there"),
        ) from None
    return spark


def works(spark: Any) -> bool:
    """Whether a session can still be asked, with its settings: a server that was restarted has forgotten them."""
    try:
        with quiet():
            return bool(spark.conf.get(ANSI) == SETTINGS[ANSI]) and not _is_stopped(spark)
    except Exception:
        return False


def computes(session: Session) -> bool:
    """Whether a session can still be asked, and its Spark computes something."""
    try:
        return works(session.spark) and run(session, "SELECT count(*) FROM range(9)", longest=60) == [(9,)]
    except Exception:
        return False


def _is_stopped(spark: Any) -> bool:
    """Whether the Spark of this process was stopped: its sessions still tell their settings."""
    context = getattr(spark, "_sc", None)  # Spark Connect has none
    return context is not None and (context._jsc is None or bool(context._jsc.sc().isStopped()))
