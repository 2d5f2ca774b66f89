"""diffprivlib. It has neither groups nor persons: a person's rows divide epsilon, and a row is in one group only."""

import numpy as np
import polars as pl
from diffprivlib import tools
from error_common import Absent, moments, radius, serve


def answer(asked):
    rows = pl.read_parquet(asked.path).filter(pl.col("copy") == 0)
    parts = [rows.filter(pl.col("place") == key) for key in asked.keys] if asked.grouped else [rows]
    values = [part["value"].to_numpy() for part in parts]
    statistic = replaced if asked.adjacency == "replace" else added
    return [[float(statistic(each, asked)) for each in values] for _ in range(asked.draws)]


def added(values, asked):
    """For add/remove: its sums are calibrated to upper - lower, so 0 must lie between the bounds."""
    half, share = radius(asked), asked.epsilon / asked.cap
    shifted = np.clip(values, asked.lower, asked.upper) - (asked.lower + asked.upper) / 2

    def count(epsilon):  # a histogram: count_nonzero of a group's rows would never be above the true count
        return tools.histogram(np.zeros(len(values)), epsilon=epsilon, bins=1, range=(-0.5, 0.5))[0][0]

    match asked.statistic:
        case "count":
            return count(share)
        case "sum":
            low, high = min(asked.lower, 0.0), max(asked.upper, 0.0)
            return tools.sum(values, epsilon=share, bounds=(low, high)) if len(values) else 0.0
        case "mean":
            return moments(count(share / 2), tools.sum(shifted, epsilon=share / 2, bounds=(-half, half)), asked)
        case "variance":
            third = share / 3
            centred = tools.sum(shifted, epsilon=third, bounds=(-half, half))
            return moments(count(third), centred, asked, tools.sum(shifted**2, epsilon=third, bounds=(0.0, half**2)))
        case "quantile":
            return tools.quantile(values, asked.q, epsilon=share, bounds=(asked.lower, asked.upper))
    raise Absent("none")


def replaced(values, asked):
    """Its own mean and variance: the number of rows is public."""
    make = {"mean": tools.mean, "variance": tools.var}.get(asked.statistic)
    if make is None or asked.cap > 1:
        raise Absent("none")
    return make(values, epsilon=asked.epsilon, bounds=(asked.lower, asked.upper))


serve(answer)
