"""Tumult Analytics, on Spark."""

from error_common import Absent, cells, per_copy, serve
from tables_common import spark
from tmlt.analytics import (
    AddOneRow,
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

machine = spark()
_frames = {}


def answer(asked):
    if asked.adjacency != "add/remove":
        raise Absent("none")
    budget = ApproxDPBudget(asked.epsilon, asked.delta) if asked.delta else PureDPBudget(asked.epsilon)
    persons = asked.cap > 1
    rows = read(asked.path) if persons else read(asked.path).drop("unit")
    unit = AddRowsWithID("unit") if persons else AddOneRow()
    session = Session.from_dataframe(budget, "rows", rows, protected_change=unit)
    query = QueryBuilder("rows")
    if asked.statistic == "keys":
        query = query.enforce(MaxRowsPerID(asked.cap)) if persons else query
        found = session.evaluate(query.get_groups(["mark"]), budget).collect()
        return per_copy(asked, [row["mark"] for row in found])
    query = query.enforce(MaxRowsPerID(asked.cap)) if persons else query
    places = asked.keys if asked.grouped else [""]
    names = ("copy", "place") if asked.grouped else ("copy",)
    keys = [(copy, place)[: len(names)] for copy in range(asked.draws) for place in places]
    groups = query.groupby(KeySet.from_tuples(keys, columns=list(names)))
    found = session.evaluate(statistic(groups, asked), budget).collect()
    return cells(asked, {(row["copy"], row["place"] if asked.grouped else ""): row["answer"] for row in found})


def statistic(groups, asked):
    bounds = asked.lower, asked.upper
    match asked.statistic:
        case "count":
            return groups.count("answer")
        case "sum":
            return groups.sum("value", *bounds, "answer")
        case "mean":
            return groups.average("value", *bounds, "answer")
        case "variance":
            return groups.variance("value", *bounds, "answer")
        case "quantile":
            return groups.quantile("value", asked.q, *bounds, "answer")
    raise Absent("none")


def read(path):
    if path not in _frames:
        for frame in _frames.values():
            frame.unpersist()
        _frames.clear()
        _frames[path] = machine.read.parquet(path).cache()
    return _frames[path]


serve(answer)
