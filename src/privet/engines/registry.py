"""Every engine, one line each. The first that can read all sources of a dataset is its engine, unless one is named."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Unpack, cast

from privet.engines.base import Engine, OpensEngine, Private, Public, Resources, Source
from privet.errors import Remedy, UserError, argument
from privet.names.spelling import nearest

ENGINES: dict[str, str] = {
    "duckdb": "privet.engines.duckdb.engine:DuckDB",
    "reference": "privet.engines.reference.engine:Reference",
    "postgres": "privet.engines.postgres.engine:Postgres",
    "spark": "privet.engines.spark.engine:Spark",
}
"""By name: the module and the class. It is imported when a dataset needs it."""


def engine_class(name: str) -> OpensEngine:
    """The class of an engine.

    Example:
        >>> engine_class("reference").__name__
        'Reference'
        >>> engine_class("duckdbb")
        Traceback (most recent call last):
        privet.errors.UserError: there is no engine 'duckdbb'. The engines are: duckdb, reference, postgres, spark.
        Write, for example: engine="duckdb"
    """
    if name not in ENGINES:
        near = nearest(name, list(ENGINES))
        remedy = argument("engine", near or next(iter(ENGINES)))
        raise UserError(f"there is no engine {name!r}", allowed=f"The engines are: {', '.join(ENGINES)}", remedy=remedy)
    module, _, class_name = ENGINES[name].partition(":")
    return cast(OpensEngine, getattr(import_module(module), class_name))


def choose(sources: Iterable[Source], name: str = "") -> OpensEngine:
    """The engine of this name, or the first that can read all of these sources."""
    needed = list(sources)
    for each in [name] if name else ENGINES:
        opened = engine_class(each)
        if all(opened.reads(source) for source in needed):
            return opened
    if name:
        others = Remedy("Leave the engine out, and Privet takes one that reads them")
        raise UserError(f"the engine {name!r} can't read all tables of this dataset", remedy=others)
    raise UserError(
        "no engine can read all tables of this dataset together",
        allowed="The private tables of a dataset are all in files, all in one Postgres database, or all in one Spark",
        remedy=Remedy("Move the tables to one of these, or make a dataset of each, if no person is in both"),
    )


def open_engine(
    tables: Private,
    public: Public,
    *,
    salt: bytes,
    name: str = "",
    **resources: Unpack[Resources],
) -> Engine:
    """An engine over these tables."""
    opened = choose([source for _, source in (*tables.values(), *public.values())], name)
    return opened(tables, public, salt=salt, **resources)
