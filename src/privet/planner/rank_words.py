"""Choices by rank in words: what is chosen, how far a person moves it, and what each part of the price buys."""

from __future__ import annotations

import math
from collections.abc import Iterator

from privet.exact import Exact, show, show_up
from privet.mechanisms.ranks import TIES
from privet.mechanisms.splitting import Step
from privet.planner.confidences import USUAL
from privet.planner.rank_outputs import RankedCode
from privet.planner.ranks import ChosenRanks
from privet.privacy.guarantees import ZeroConcentratedDP
from privet.tables.expressions.rendering import show as show_node


def chosen_in_words(part: ChosenRanks) -> Iterator[str]:
    """How codes are chosen, and with which shares of the price."""
    what, code = part.measurement, part.measurement.code
    aims = ["the rank q n"] * bool(what.ranks) + [f"the rank {part.inside} inside of the edge"] * bool(what.edges)
    yield (
        f"{what.quantity[:1].upper()}{what.quantity[1:]}: one of {code.width + 1:,} values is chosen"
        f"{' for each' if len(what.ranks) + len(what.edges) > 1 else ''}, each with weight e^(-rate d), where d is "
        f"its distance from {' or '.join(aims)}, in rows (rule {what.rule})."
    )
    top = show(code.lower + code.width * code.step)
    yield f"{show_node(code.expression)} is clamped to {show(code.lower)}..{top}, in steps of {show(code.step)}."
    moved = sorted({part.moved(step) for step in what.steps})
    rows = f"{part.rows} row{'s' * (part.rows > 1)}"
    yield f"One person ({rows}) moves d by at most {' or '.join(map(show, moved))}; rate = epsilon / (2 x that)."
    many = len(part.epsilons)
    if many > 1:
        yield "Rows are split at each chosen value, and the next choices look at the rows on one side of it only."
    shares = ", ".join(map(show, part.epsilons))
    yield f"Bounded range epsilon {shares}{f' for the {many} levels of choices' if many > 1 else ' for the choice'}."
    if what.counts:
        beside = f" {part.reach} ranks beside {'them' if len(what.ranks) > 1 else 'it'}" if what.ranks else ""
        yield (
            f"For the interval, {what.counts} counts of rows below, between and above values{beside}: "
            f"{part.mechanism.label} of {part.mechanism.show(scale=part.scale)}. {_share(part)}"
        )
    else:
        yield "There is no interval: all of the price buys values."


def _share(part: ChosenRanks) -> str:
    """How much of the price the interval takes."""
    epsilons = [part.epsilons[step.level] for step in _values(part)]
    if isinstance(part.price, ZeroConcentratedDP):
        share, whole = sum((epsilon**2 / 8 for epsilon in epsilons), Exact(0)) / part.price.rho, "rho"
    else:
        share, whole = sum(epsilons, Exact(0)) / part.price.epsilon, "epsilon"
    several = len(part.measurement.ranks) + len(part.measurement.edges) > 1
    return f"The interval{'s take' if several else ' takes'} {show(100 * (1 - share), 3)} % of {whole}."


def _values(part: ChosenRanks) -> list[Step]:
    """One choice of each level that chooses values, not codes beside them."""
    what = part.measurement
    return list({step.level: step for step in what.steps if not step.side or step.place >= what.first_edge}.values())


def rank_error(part: ChosenRanks, output: RankedCode, confidence: Exact) -> str:
    """How far from its rank a value is: at most, on any data, and usually.

    Claim: with N candidates P(d > r) <= N e^(-rate r), since one at least has the distance 0 (or 1 where rows are
    split). Over the levels that lead to it, the errors add up. Edges do not aim from a quantile, so only their own
    choice counts.
    """
    share = (1 - confidence) / len(part.epsilons)
    candidates = (part.measurement.code.width + 1) * (TIES if len(part.epsilons) > 1 else 1)
    worst = usual = 0.0
    on_the_way = [step for step in _values(part) if (step.place >= part.measurement.first_edge) is output.is_edge]
    for step in on_the_way:
        rate = float(part.rate(step))
        worst += (math.log(candidates) - math.log(share)) / rate + step.split
        usual = math.hypot(usual, -math.log(1 - confidence) / rate)
    return f"within {show_up(Exact(math.ceil(worst)))} rows of its rank on any data; usually {math.ceil(usual)}"


def beyond(part: ChosenRanks, *, largest: bool) -> str:
    """How many rows are larger than a maximum that is chosen, or smaller than a minimum, in 95 % of choices.

    Claim: it aims `inside` ranks from the edge. Where values lie close to each other, it is further than r from there
    with probability e^(-rate r). If there are fewer rows than that, all codes beyond all rows are the nearest.
    """
    spread = math.ceil(-math.log(1 - USUAL) / float(part.rate(part.measurement.steps[-1])))
    least, most = max(0, part.inside - spread), part.inside + spread
    side = "above" if largest else "below"
    return f"usually {least:,} to {most:,} rows lie {side} it, all if there are fewer"
