"""The SQLAlchemy dialect `privet://`: statements go to a policy or a server, and tables are described for free.

    privet:///privet.toml?dataset=people&epsilon=0.1&max_epsilon=1      a policy; four slashes for an absolute path
    privet://privet.example.org/people?epsilon=0.1&max_epsilon=1        a server, with the token of `privet login`

All connections of an engine share one maximum.
"""

from __future__ import annotations

import threading
from importlib.metadata import version
from typing import Any

from sqlalchemy import exc, types
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql.compiler import IdentifierPreparer

from privet import dbapi
from privet.allowance import LimitedSession
from privet.client.addresses import is_local
from privet.dbapi.connections import Connection as Connected
from privet.dbapi.connections import Shared, allowed
from privet.dbapi.errors import translated
from privet.errors import Remedy, UserError, argument
from privet.exact import positive
from privet.names.spelling import there_are
from privet.sql.quoting import quoted
from privet.tables import wording
from privet.tables.types import BooleanType, KeyType, NumberType, TimeType

_OPTIONS = ("dataset", "epsilon", "max_epsilon", "analyst", "intervals", "tls")
_SWITCHES = {"true": True, "false": False}


class Names(IdentifierPreparer):
    """Quotes names where Privet's SQL needs it."""

    def _requires_quotes(self, value: str) -> bool:
        return quoted(value) != value


class PrivetDialect(DefaultDialect):
    """Privet for SQLAlchemy: SELECTs with aggregates."""

    name = "privet"
    driver = "privet"
    preparer = Names
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_alter = False
    supports_default_values = False
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._shared: Shared | None = None
        self._first = threading.Lock()

    @classmethod
    def import_dbapi(cls) -> Any:
        """The module of PEP 249."""
        return dbapi

    # --- connecting -----------------------------------------------------------------------------

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """What a URL says; nothing is opened yet."""
        try:
            return [], _arguments(url)
        except UserError as error:
            raise exc.ArgumentError(str(error)) from error

    def connect(self, *cargs: Any, **cparams: Any) -> Any:
        """A connection that shares session and maximum with all others of the engine."""
        with translated():
            options = dict(cparams)
            price, intervals = options.pop("epsilon"), options.pop("intervals")
            most = options.pop("max_epsilon")
            with self._first:  # threads of a pool may come first together
                if self._shared is None:
                    allowance = allowed(most)
                    self._shared = Shared(lambda: LimitedSession.open(allowance, **options))
            return Connected(self._shared, epsilon=price, intervals=intervals)

    def initialize(self, connection: Connection) -> None:
        """Ask nothing: what other dialects ask a database is known."""
        self.server_version_info = tuple(int(part) for part in version("privet").split(".") if part.isdecimal())
        self.default_schema_name = None
        self.default_isolation_level = "AUTOCOMMIT"

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Whether the connection is open; nothing is sent."""
        dbapi_connection.commit()
        return True

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """Never: a connection survives every failure, and knows what may have been paid for."""
        return False

    def get_isolation_level_values(self, dbapi_conn: Any) -> list[Any]:
        """The only level: every question stands alone."""
        return ["AUTOCOMMIT"]

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        """The only level."""
        return "AUTOCOMMIT"

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """Do nothing: there is one level."""

    # --- describing: from the policy, free of charge ------------------------------------------------

    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """None: tables have no schemas."""
        return []

    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """The private and the public tables."""
        return [] if schema is not None else [*_tables(connection)]

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        """Whether there is such a table."""
        return schema is None and table_name in _tables(connection)

    def get_columns(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        """The declared columns; the comment of each says its bounds or keys."""
        table = _table(connection, table_name, schema)
        return [
            {
                "name": name,
                "type": _type(column.type),
                "nullable": True,
                "default": None,
                "autoincrement": False,
                "comment": wording.declared(column),
            }
            for name, column in table.schema.columns
        ]

    def get_table_comment(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """What a table protects."""
        table = _table(connection, table_name, schema)
        public = table_name in _session(connection).public
        return {"text": "public" if public else wording.protected(table.schema)}

    def get_pk_constraint(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """None."""
        _table(connection, table_name, schema)
        return {"constrained_columns": [], "name": None}

    def _nothing(self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        """An empty list, for a table that exists."""
        _table(connection, table_name, schema)
        return []

    get_foreign_keys = get_indexes = get_unique_constraints = get_check_constraints = _nothing

    def _no_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """An empty list."""
        return []

    get_view_names = get_materialized_view_names = get_sequence_names = _no_names
    get_temp_table_names = get_temp_view_names = _no_names

    def has_schema(self, connection: Connection, schema_name: str, **kw: Any) -> bool:
        """No."""
        return False

    def has_sequence(self, connection: Connection, sequence_name: str, schema: str | None = None, **kw: Any) -> bool:
        """No."""
        return False


dialect = PrivetDialect


def _session(connection: Connection) -> Any:
    opened: Any = connection.connection.driver_connection
    return opened.limited.session


def _tables(connection: Connection) -> dict[str, Any]:
    session = _session(connection)
    return {**session.tables, **session.public}


def _table(connection: Connection, name: str, schema: str | None) -> Any:
    table = _tables(connection).get(name) if schema is None else None
    if table is None:
        raise exc.NoSuchTableError(name)
    return table


def _type(of: object) -> types.TypeEngine[Any]:
    match of:
        case NumberType():
            return types.BigInteger() if of.integer else types.Float()
        case BooleanType():
            return types.Boolean()
        case KeyType():
            return types.BigInteger() if isinstance(of.values[0], int) else types.String()
        case TimeType():
            return types.DateTime() if of.kind == "timestamp" else types.Date()
    return types.String()


def _arguments(url: URL) -> dict[str, Any]:
    given: dict[str, str] = {}
    for name, value in url.query.items():
        if name not in _OPTIONS:
            raise UserError(f"there is no option {name!r} in a URL", allowed=there_are(name, _OPTIONS, "options", str))
        if not isinstance(value, str):
            raise UserError(f"the option {name!r} is given twice")
        given[name] = value
    if url.username is not None or url.password is not None:
        raise UserError("a URL must not contain a name or a token", remedy=Remedy("Use privet login, or PRIVET_TOKEN"))
    if "max_epsilon" not in given:
        raise UserError(
            "max_epsilon is missing: the most that the engine may spend",
            remedy=Remedy("Add to the URL: max_epsilon=1"),
        )
    epsilon = given.get("epsilon")
    return {
        "epsilon": None if epsilon is None else positive(epsilon, name="epsilon", example=argument("epsilon", 0.1)),
        "max_epsilon": positive(given["max_epsilon"], name="max_epsilon", example=argument("max_epsilon", 1)),
        "intervals": _switch(given, "intervals", usual=True),
        **(_server(url, given) if url.host else _policy(url, given)),
    }


def _policy(url: URL, given: dict[str, str]) -> dict[str, Any]:
    if not url.database:
        raise UserError("the URL names neither a policy nor a server", remedy=Remedy("Write privet:///privet.toml?..."))
    if "tls" in given:
        raise UserError("tls is for servers")
    return {
        "policy": url.database,
        "dataset": given.get("dataset"),
        "analyst": given.get("analyst", "analyst"),
    }


def _server(url: URL, given: dict[str, str]) -> dict[str, Any]:
    if "analyst" in given:
        raise UserError("a server knows who you are", remedy=Remedy("Leave out analyst"))
    if url.database and "dataset" in given:
        raise UserError("the URL names the dataset twice")
    host = str(url.host)
    if host.lower().endswith(".toml"):  # else a token would be sent to a host of this name
        raise UserError(
            f"{host!r} is not a server", remedy=Remedy(f"For a policy, write three slashes: privet:///{host}?...")
        )
    secure = _switch(given, "tls", usual=not is_local(host))
    name, port = f"[{host}]" if ":" in host else host, "" if url.port is None else f":{url.port}"
    return {
        "url": f"{'https' if secure else 'http'}://{name}{port}",
        "dataset": url.database or given.get("dataset"),
    }


def _switch(given: dict[str, str], name: str, *, usual: bool) -> bool:
    if name not in given:
        return usual
    if given[name] not in _SWITCHES:
        raise UserError(f"{name} must be true or false in a URL, not {given[name]!r}")
    return _SWITCHES[given[name]]
