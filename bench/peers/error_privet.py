"""Privet itself, asked like its peers."""

from fractions import Fraction

import pyarrow.parquet as pq
from error_common import GRID, cells, per_copy, serve

import privet as pv

_sessions = {}
BUDGET = pv.ApproxDP(10**9, "1/1000")


def session(asked):
    """Opened once for each file, with its adjacency."""
    place = asked.path, asked.adjacency, asked.told
    if place not in _sessions:
        person = pv.each_row() if asked.cap == 1 else pv.person("unit", max_rows=asked.cap)
        bounds = (int(asked.lower), int(asked.upper)) if asked.whole else (asked.lower, asked.upper)
        replaced = asked.adjacency == "replace"
        step = {"step": Fraction(asked.upper - asked.lower) / (GRID - 1)} if asked.told == "values" else {}
        value = (pv.integer if asked.whole else pv.number)(*bounds, required=replaced, **step)
        columns = {"copy": pv.integer(0, asked.draws - 1), "mark": pv.text(), "value": value}
        if asked.keys:
            columns["place"] = pv.keys(*asked.keys)
        source, known = asked.path, {}
        if replaced:  # its rows are public in number: one copy, asked again and again
            source = pq.read_table(asked.path, filters=[("copy", "=", 0)])
            known = {"rows": len(source), "adjacency": "replace"}
        table = pv.table("sample", source, protect=person, columns=columns, **known)
        budget = BUDGET if asked.statistic == "keys" else pv.PureDP(10**9)
        _sessions[place] = table, pv.Session([table], budget=budget, ledger=None)
    return _sessions[place]


def aggregate(asked):
    if asked.statistic == "quantile":
        return pv.quantile("value", asked.q, interval=asked.told == "interval")  # its peers give none
    return pv.count() if asked.statistic == "count" else getattr(pv, asked.statistic)("value")


def query(asked, table):
    """The question: by copy, so that one answer holds `draws` of them; `replace` doubles the noise of groups, so no."""
    if asked.statistic == "keys":
        return table.group_by("mark").agg()  # the keys alone, like its peers' selection of partitions
    by = (["copy"] if asked.adjacency == "add/remove" else []) + (["place"] if asked.grouped else [])
    return (table.group_by(*by) if by else table).agg(answer=aggregate(asked))


def answer(asked):
    table, opened = session(asked)
    if asked.statistic == "keys":
        found = opened.release(query(asked, table), epsilon=asked.epsilon, delta=asked.delta, fresh=True)
        return per_copy(asked, found.values("mark"))
    made = opened.plan(query(asked, table), epsilon=asked.epsilon)
    if asked.adjacency == "replace":
        return [list(map(float, opened.release(made, fresh=True).values("answer"))) for _ in range(asked.draws)]
    found = opened.release(made, fresh=True)
    places = found.values("place") if asked.grouped else [""] * asked.draws
    answers = zip(found.values("copy"), places, found.values("answer"), strict=True)
    return cells(asked, {(copy, place): value for copy, place, value in answers})


if __name__ == "__main__":
    serve(answer)
