"""`privet demo`: the salary example of the lecture notes, end to end."""

from __future__ import annotations

import math
import statistics as plain

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from privet import statistics
from privet.cli.curve import picture_path, save_curve
from privet.distances import Adjacency

PEOPLE, CEILING, EPSILON = 10_000, 200_000, "1/2"


def salaries() -> list[float]:
    """Made-up salaries: a lognormal's quantiles, with a median of 52,000."""
    normal = plain.NormalDist(math.log(52_000), 0.45)
    return [round(math.exp(normal.inv_cdf((i + 0.5) / PEOPLE)), 2) for i in range(PEOPLE)]


def run(output: str) -> None:
    """Print the answers beside the truth, what epsilon means, and where the picture is."""
    path = picture_path(output)
    console = Console(highlight=False, soft_wrap=True)
    data = salaries()
    console.print(
        f"[bold]{PEOPLE:,} made-up salaries[/bold], clamped to 0..{CEILING:,}; epsilon {EPSILON} for each question.\n"
    )
    titles = "question", "private answer", "95 % interval", "truth (not private)"
    table = Table(*titles, box=None, pad_edge=False, header_style="bold")
    clamped = [min(max(x, 0), CEILING) for x in data]
    questions = {
        "mean": (statistics.mean, plain.fmean(clamped)),
        "std": (statistics.std, plain.pstdev(clamped)),
        "median": (statistics.median, plain.median(clamped)),
    }
    answers = {name: ask(data, lower=0, upper=CEILING, epsilon=EPSILON) for name, (ask, _) in questions.items()}
    for name, answer in answers.items():
        low, high = answer.interval(0.95)
        table.add_row(name, f"{answer.value:,.0f}", f"{low:,.0f} to {high:,.0f}", f"{questions[name][1]:,.0f}")
    console.print(table)

    mean = answers["mean"]
    moves, scale = float(mean.sensitivity), float(mean.scale)
    console.print(
        f"\nOne person can move the mean by {CEILING:,}/{PEOPLE:,} = {moves:g}, so it got Laplace noise of scale "
        f"{moves:g}/epsilon = {scale:g}: an error of at most {mean.error(0.95):.0f}, 95 % of the time.\n"
        "A median can jump across the whole range when one person changes, so its noise is useless here: "
        "the interval says so.\n"
    )
    spent = mean.guarantee().compose(*(answers[name].guarantee() for name in ("std", "median")))
    console.print(f"[bold]Spent together:[/bold] {spent}.")
    console.print(f"[bold]What epsilon {EPSILON} means:[/bold] {mean.guarantee().meaning(Adjacency.REPLACE)}")
    save_curve(epsilon=EPSILON, sensitivity=mean.sensitivity, output=str(path))
    console.print(f"\n[bold]The picture:[/bold] {escape(str(path.resolve()))}")
