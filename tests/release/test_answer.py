"""A release: columns, frames that come back as they went out, and refusals that say what to write."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pyarrow as pa
import pytest

import privet as pv
from privet.errors import InternalError, QueryError, UserError
from privet.ledger import Balance, Remaining
from privet.planner import plan
from privet.privacy.accounting import accountant_for
from privet.privacy.guarantees import Budget, PureDP
from privet.release import Release
from privet.tables import aggregates as ask
from privet.tables.expressions.fluent import bins, col
from privet.tables.expressions.nodes import Column
from privet.tables.operators import Scan
from privet.tables.query import Query
from privet.tables.relation import Relation
from privet.tables.schema import Schema, boolean, integer, keys, number, timestamp
from privet.tables.schema import date as dates
from privet.tables.statement import Code, Present, Rows, Squares, Tally

PEOPLE = Relation(
    Scan(
        Schema.declare(
            "people",
            protect=pv.each_row(),
            columns={
                "region": keys("north", "south", other="elsewhere"),
                "smoker": boolean(),
                "age": integer(0, 110, required=True),
                "income": number(0, 200_000, step=1),
                "day": dates("2025-01-30", "2025-02-02"),
                "time": timestamp("2025-01-01", "2025-01-01T02:30"),
            },
        )
    )
)
SOUTH, NORTH = {"age": [20, 30] * 500, "income": [40_000] * 1000}, {"age": [40] * 200, "income": [25_000] * 200}


def left_of(budget: Budget) -> Remaining:
    """All of a budget."""
    accountant = accountant_for(budget)
    return Balance(accountant, budget, accountant.zero).remaining


def tallied(tally: Tally, rows: Mapping[str, Sequence[int]]) -> int:
    """What an engine would count in a group of these columns."""
    if isinstance(tally, Rows):
        return len(next(iter(rows.values()), ()))
    if not isinstance(tally.value, Code) or not isinstance(tally.value.expression, Column):
        return 7
    values = rows.get(tally.value.expression.name, ())
    if isinstance(tally, Present):
        return len(values)
    codes = [int((x - tally.value.lower) / tally.value.step) for x in values]
    return sum(v * v for v in codes) if isinstance(tally, Squares) else sum(codes)


def released(query: Query, *groups: Mapping[str, Sequence[int]], noise: int = 0, **how: Any) -> Release:
    """What comes out if every coordinate gets the same noise; groups are repeated as often as needed."""
    made = plan(query, **({"epsilon": 0.5} | how))
    noisy = tuple(
        tuple(
            tuple(
                x + noise
                for x in part.measurement.vectors(  # type: ignore[union-attr]
                    part.measurement.tallies,
                    [[tallied(tally, groups[group % len(groups)]) for tally in part.measurement.tallies]],
                )[0]
            )
            for group in range(made.groups)
        )
        for part in made.noised
    )
    return Release(made, noisy, made.guarantee(), left_of(PureDP(2.5)), None)


def test_columns_keys_values_and_intervals() -> None:
    answer = released(PEOPLE.group_by("region").agg(n=ask.count(), pay=ask.mean("income")), NORTH, SOUTH, {})
    assert answer.columns == ("region", "n", "pay")
    assert answer.keys == [("north",), ("south",), ("elsewhere",)]
    assert len(answer) == 3
    assert answer.confidence == 0.95
    assert answer.values("region") == ["north", "south", "elsewhere"]
    assert answer.values("n") == [200, 1000, 0]
    assert all(type(n) is int for n in answer.values("n"))
    assert answer.values("pay")[:2] == pytest.approx([25_000, 40_000])
    low, high = answer.interval("n")
    assert [b - a for a, b in zip(low, high, strict=True)] == [high[0] - low[0]] * 3
    assert answer.too_noisy("pay") == [False, False, True]
    assert answer.too_noisy("n") == [False, False, True]
    for column in ("n", "pay"):
        low, high = answer.interval(column)
        assert all(a <= x <= b for a, x, b in zip(low, answer.values(column), high, strict=True))


def test_several_keys_come_in_the_order_of_their_product() -> None:
    answer = released(PEOPLE.group_by("smoker", band=bins("age", [0, 18, 110])).agg(n=ask.count()), SOUTH)
    bands = [band for (_, band) in answer.keys[:2]]
    assert answer.keys == list(product([False, True], bands))
    assert answer.values("smoker") == [False, False, True, True]
    assert answer.columns == ("smoker", "band", "n")


def test_without_keys_there_is_one_group() -> None:
    answer = released(PEOPLE.agg(n=ask.count()), SOUTH)
    assert (answer.keys, len(answer), answer.columns) == ([()], 1, ("n",))
    assert answer.to_dicts() == [{"n": 1000, "n_low": 994, "n_high": 1006, "n_noisy": False}]
    assert answer.to_dicts(intervals=False) == [{"n": 1000}]
    assert list(answer.to_pandas()["n"]) == [1000]


def test_it_is_a_value() -> None:
    query = PEOPLE.group_by("region").agg(n=ask.count())
    one, other = released(query, SOUTH), released(query, SOUTH)
    assert one == other
    assert hash(one) == hash(other)
    assert one != released(query, SOUTH, noise=1)
    with pytest.raises(AttributeError):
        one.spent = PureDP(1)  # type: ignore[misc]
    assert repr(one) == "<Release of n = count() by region: 3 groups, epsilon 0.5>"


@pytest.mark.parametrize("change", [lambda x: (), lambda x: (x[0][:-1],), lambda x: (((1, 2),) * 3,), lambda x: x + x])
def test_integers_of_another_plan_are_refused(change: Any) -> None:
    good = released(PEOPLE.group_by("region").agg(n=ask.count()), SOUTH)
    with pytest.raises(InternalError, match="not those of this plan"):
        Release(good.plan, change(good.noisy), good.spent, None, None)


def test_unknown_columns_are_refused_with_a_list() -> None:
    answer = released(PEOPLE.group_by("region").agg(n=ask.count(), m=ask.mean("age")), SOUTH)
    for call in (answer.values, answer.interval, answer.too_noisy, answer.plot):
        with pytest.raises(QueryError, match=r"no numeric column 'x'. The columns are: n, m"):
            call("x")
    with pytest.raises(QueryError, match="The columns are: n, m"):
        answer.interval("region")


# --- frames ---------------------------------------------------------------------------------------


def test_arrow_types_and_round_trips() -> None:
    time = col("time").truncate("hour")
    answer = released(
        PEOPLE.group_by("smoker", "region", "day", hour=time, age=col("age").clip(0, 1)).agg(
            n=ask.count(), m=ask.mean("age")
        ),
        SOUTH,
        NORTH,
    )
    table = answer.to_arrow()
    assert dict(zip(table.column_names, table.schema.types, strict=True)) == {
        "smoker": pa.bool_(),
        "region": pa.string(),
        "day": pa.date32(),
        "hour": pa.timestamp("us"),
        "age": pa.int64(),
        "n": pa.int64(),
        "n_low": pa.int64(),
        "n_high": pa.int64(),
        "n_noisy": pa.bool_(),
        "m": pa.float64(),
        "m_low": pa.float64(),
        "m_high": pa.float64(),
        "m_noisy": pa.bool_(),
    }
    assert answer.keys[0] == (False, "north", date(2025, 1, 30), datetime(2025, 1, 1), 0)
    assert list(zip(*(table[key].to_pylist() for key in answer.columns[:5]), strict=True)) == answer.keys
    assert answer.to_arrow(intervals=False).column_names == list(answer.columns)
    for name in ("n", "m"):
        assert table[name].to_pylist() == answer.values(name)
        assert (table[f"{name}_low"].to_pylist(), table[f"{name}_high"].to_pylist()) == answer.interval(name)
        assert table[f"{name}_noisy"].to_pylist() == answer.too_noisy(name)
    assert answer.to_polars().rows() == list(zip(*table.to_pydict().values(), strict=True))
    assert answer.to_dicts() == table.to_pylist()
    frame = answer.to_pandas()
    assert [tuple(row) for row in frame[["smoker", "region", "n", "m"]].to_numpy().tolist()] == [
        (row["smoker"], row["region"], row["n"], row["m"]) for row in answer.to_dicts()
    ]
    assert frame["hour"].tolist() == answer.values("hour")
    assert frame["day"].tolist() == answer.values("day")


def test_counts_that_do_not_fit_are_decimals_then_floats() -> None:
    query = PEOPLE.agg(n=ask.count())
    for noise, kind in ((2**62, pa.int64()), (-(2**80), pa.decimal128(38)), (10**50, pa.float64())):
        answer = released(query, {}, noise=noise)
        assert answer.values("n") == [noise]
        table = answer.to_arrow()
        assert set(table.schema.types) == {kind, pa.bool_()}
        (value,) = table["n"].to_pylist()
        assert value == (float(noise) if pa.types.is_floating(kind) else Decimal(noise))
        assert answer.to_polars().shape == answer.to_pandas().shape == (1, 4)


def test_marks_are_in_every_frame() -> None:
    query = PEOPLE.group_by("region").agg(n=ask.count(), pay=ask.mean("income"), sd=ask.std("age"))
    answer = released(query, NORTH, SOUTH, {})
    for name in ("n", "pay", "sd"):
        marks = answer.too_noisy(name)
        assert marks[-1] is True
        assert answer.to_arrow()[f"{name}_noisy"].to_pylist() == marks
        assert answer.to_pandas()[f"{name}_noisy"].tolist() == marks
        assert answer.to_polars()[f"{name}_noisy"].to_list() == marks
        assert [row[f"{name}_noisy"] for row in answer.to_dicts()] == marks
    assert not any(answer.too_noisy("n")[:2])


def test_names_that_clash_with_intervals_are_refused_there_only() -> None:
    answer = released(PEOPLE.agg(n=ask.count(), n_low=ask.sum("age")), SOUTH)
    assert answer.to_arrow(intervals=False).column_names == ["n", "n_low"]
    with pytest.raises(
        UserError, match=r"two columns would be called 'n_low'. Write, for example: to_arrow\(intervals=False\)"
    ):
        answer.to_pandas()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_without_a_library_there_is_a_line_to_write(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = released(PEOPLE.agg(n=ask.count()), SOUTH)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UserError, match=rf"needs {library}. Write: pip install 'privet\[frames\]'"):
        getattr(answer, f"to_{library}")()


def test_ratios_without_a_bound_go_through_frames() -> None:
    answer = released(PEOPLE.agg(r=ask.sum("income") / ask.sum("age")), {})
    assert answer.interval("r") == ([0], [math.inf])
    assert answer.to_dicts()[0]["r_high"] == math.inf


# --- pictures -------------------------------------------------------------------------------------


def test_plot_saves_what_it_returns(tmp_path: Path) -> None:
    answer = released(PEOPLE.group_by("region").agg(n=ask.count(), pay=ask.mean("income")), NORTH, SOUTH, {})
    figure: Any = answer.plot(path=tmp_path / "answer.png")
    assert np.asarray(matplotlib.image.imread(tmp_path / "answer.png")).std() > 0.1
    assert [axes.get_title() for axes in figure.axes] == ["n", "pay"]
    assert [bar.get_height() for bar in figure.axes[0].patches] == [200, 1000, 0]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["north", "south", "elsewhere"]
    assert figure.get_suptitle() == "n, pay by region"
    assert " ".join(figure.get_supxlabel().split()) == (
        "95 % intervals for each cell separately. They cover the noise, not the bias from the limits below. "
        f"Limits: {'; '.join(answer.limits)}. Differentially private, epsilon 0.5."
    )
    assert answer.plot("pay").get_suptitle() == "pay by region"


def test_two_keys_stand_side_by_side() -> None:
    answer = released(PEOPLE.group_by("region", "smoker").agg(n=ask.count()), NORTH, SOUTH)
    axes: Any = answer.plot().axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["north", "south", "elsewhere"]
    assert [bar.get_height() for bar in axes.patches] == [200] * 3 + [1000] * 3
    (legend,) = axes.figure.legends
    assert legend.get_title().get_text() == "smoker"
    assert [text.get_text() for text in legend.get_texts()] == ["False", "True"]


def test_keys_with_many_values_share_a_label() -> None:
    answer = released(PEOPLE.group_by("smoker", "day", "region").agg(n=ask.count()), NORTH)
    (axes,) = answer.plot().axes
    assert axes.get_yticklabels()[1].get_text() == "False, 2025-01-30, south"


def test_a_histogram_is_one_panel_without_keys_and_one_for_each_bin_with_keys() -> None:
    ages = ask.histogram("age", [0, 18, 65, 110])
    alone = released(PEOPLE.agg(n=ask.count(), ages=ages), SOUTH)
    panels = alone.plot().axes
    assert [axes.get_title() for axes in panels] == ["n", "ages"]
    assert len(panels[1].patches) == 3
    assert len(alone.plot("ages").axes) == 1
    by_region = released(PEOPLE.group_by("region").agg(ages=ages), SOUTH)
    assert len(by_region.plot().axes) == 3
    assert len(by_region.plot(by_region.columns[1]).axes) == 1


def test_pictures_that_can_not_be_made_say_why(tmp_path: Path) -> None:
    answer = released(PEOPLE.group_by("region").agg(n=ask.count()), SOUTH)
    with pytest.raises(UserError, match=r"saved as .png, .svg or .pdf, not as 'n.xls'. Write"):
        answer.plot(path="n.xls")
    with pytest.raises(UserError, match="there is no folder"):
        answer.plot(path=tmp_path / "none" / "n.png")
    wide = released(PEOPLE.agg(**{f"c{i}": ask.sum(col("age").clip(0, i + 1)) for i in range(13)}), SOUTH)
    with pytest.raises(UserError, match=r"at most 12 panels, not 13. Write, for example: plot\('c0'\)"):
        wide.plot()
