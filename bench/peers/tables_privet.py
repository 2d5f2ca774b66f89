"""Privet itself, asked like its peers. 0 rows a person: each row is protected by itself."""

import os

from tables_common import REGIONS, serve, spark

import privet as pv

_sessions = {}
_engine = os.environ.get("BENCH_ENGINE", "")
"""spark: in a Spark with the settings that peers have; own: in one that Privet starts, with Spark's own defaults."""
_spark = spark() if _engine == "spark" else None


def session(path, rows_per_person, bounds):
    """Opened once for each file and cap, as an analyst would; the file is read for every question."""
    place = path, rows_per_person
    if place not in _sessions:
        person = pv.person("user_id", max_rows=rows_per_person) if rows_per_person else pv.each_row()
        table = pv.table(
            "people",
            f"spark:{path}" if _engine else path,
            protect=person,
            columns={"region": pv.keys(*REGIONS), "income": pv.number(*map(int, bounds))},
        )
        memory = os.environ.get("BENCH_MEMORY")
        opened = pv.Session([table], budget=pv.PureDP(10**6), ledger=None, memory=memory)
        _sessions[place] = table, opened
    return _sessions[place]


def query(path, epsilon, rows_per_person, bounds):
    table, opened = session(path, rows_per_person, bounds)
    asked = table.group_by("region").agg(count=pv.count(), sum=pv.sum("income"), mean=pv.mean("income"))
    release = opened.release(asked, epsilon=epsilon, fresh=True)
    names = release.values("region")
    return {name: dict(zip(names, release.values(name), strict=True)) for name in ("count", "sum", "mean")}


serve(query, "one vector at full epsilon; exact; intervals, certificate and ledger included")
