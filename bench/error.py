"""Error at equal epsilon: Privet, other libraries and the known optimum, on real and synthetic data.

Root-mean-square error of each statistic at epsilon 0.1, 1 and 3; for unknown keys, the share of keys found. The same
bounds, caps, adjacency and epsilon for the whole answer. Everyone's answers are clamped to what is possible: a count is
not negative, a mean lies within its bounds. Peers' figures are kept in .bench, and measured again if their script or
the question changes; Privet's are always new. The table also replaces the one in docs/error.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import optimum, samples
from bench.peer import ENVIRONMENTS, HERE, Peer
from bench.samples import Sample, Truth
from bench.tables import LIBRARIES

EPSILONS = (0.1, 1.0, 3.0)
DELTA = 1e-6
DRAWS = {  # the most, the least, and the most rows of all copies together
    "Privet": (800, 25, 10**6),
    "OpenDP": (60, 16, 60_000),
    "PipelineDP": (60, 16, 60_000),
    "SmartNoise": (40, 16, 40_000),
    "Tumult": (40, 16, 40_000),
    "diffprivlib": (100, 25, 10**5),
}
SLOW = ("Tumult", "SmartNoise")
"""These take so long that they are asked about fewer samples."""
PEERS = {
    "Privet": (None, "error_privet.py"),
    **{name: (requirement, script.replace("tables_", "error_")) for name, (requirement, script) in LIBRARIES.items()},
    "SmartNoise": ("smartnoise-sql==1.0.10 pyarrow==17.0.0", "error_smartnoise.py"),  # on pandas
}
PAGE = HERE.parent / "docs" / "error.md"
START, END = "<!-- The table of ./dev bench error -->\n", "<!-- The end of the table -->\n"


@dataclass(frozen=True, slots=True)
class Question:
    """A statistic of a sample."""

    sample: Sample
    statistic: str
    q: float = 0.0
    grouped: bool = False
    adjacency: str = "add/remove"

    def __str__(self) -> str:
        name = {0.5: "median"}.get(self.q, f"quantile {self.q:g}") if self.statistic == "quantile" else self.statistic
        if self.statistic == "keys":
            return f"share of {len(self.truth().keys())} unknown keys found"
        return name + (f", {len(self.sample.keys)} groups" if self.grouped else "") + (
            ", replace" if self.adjacency == "replace" else ""
        )  # fmt: skip

    def truth(self) -> Truth:
        return Truth(self.sample, self.sample.rows())

    def asked(self, epsilon: float, draws: int) -> dict[str, Any]:
        """What a peer is asked."""
        own = {"statistic": self.statistic, "q": self.q, "grouped": self.grouped, "adjacency": self.adjacency}
        delta = DELTA if self.statistic == "keys" else 0.0
        return {**self.sample.question(), **own, "epsilon": epsilon, "delta": delta, "draws": draws}


@dataclass(frozen=True, slots=True)
class Figure:
    """A root-mean-square error, or a share, and its relative standard error."""

    value: float
    deviation: float = 0.0


def questions() -> list[Question]:
    """What is compared."""
    count, total, mean, variance = (("count", 0.0), ("sum", 0.0), ("mean", 0.0), ("variance", 0.0))
    median, low, high = (("quantile", q) for q in (0.5, 0.1, 0.9))
    every = (count, total, mean, variance, median, low, high)
    asked = [Question(samples.INCOMES, *each, grouped) for grouped in (False, True) for each in every]
    asked += [Question(sample, "keys") for sample in (samples.DESTINATIONS, samples.BIRTHPLACES, samples.SCHOOLS)]
    for sample in (samples.INCOMES, samples.PATIENTS):
        asked += [Question(sample, statistic, adjacency="replace") for statistic in ("mean", "variance")]
    asked += [Question(samples.MEN, *each, grouped) for grouped in (False, True) for each in (count, mean, median)]
    asked += [Question(samples.SALARIES, *each, True) for each in (total, mean, variance, median, high)]
    asked += [Question(samples.AFFAIRS, *each, True) for each in (mean, high)]
    asked += [Question(samples.VOTERS, *each, True) for each in (mean, median)]
    for sample in (samples.WIVES, samples.FLIGHTS, samples.PATIENTS, samples.TUMOURS, samples.WINES, samples.WAGES):
        asked += [Question(sample, *each) for each in (mean, median)]
    return asked


def figure(question: Question, truth: Truth, values: Any) -> Figure:
    """The error of many draws, one row for each, one column for each cell."""
    draws = np.array(values, dtype=float)
    if question.statistic == "keys":
        share = draws[:, 0] / len(truth.keys())
        return Figure(float(share.mean()), float(share.std() / math.sqrt(len(share)) / max(share.mean(), 1e-9)))
    low, high = truth.of(question.statistic, question.q, question.grouped)
    draws = np.clip(draws, *possible(question))
    squared = (np.maximum(0, np.maximum(low - draws, draws - high)) ** 2).mean(axis=1)
    mean = float(squared.mean())
    return Figure(math.sqrt(mean), float(squared.std() / math.sqrt(len(squared)) / (2 * mean)) if mean else 0.0)


def possible(question: Question) -> tuple[float, float]:
    """The least and the greatest value that a statistic can have."""
    low, high = float(question.sample.lower), float(question.sample.upper)
    match question.statistic:
        case "count":
            return 0.0, math.inf
        case "sum":
            return (0.0 if low >= 0 else -math.inf), math.inf
        case "variance":
            return 0.0, (high - low) ** 2 / 4
        case _:
            return low, high


def reference(question: Question, truth: Truth, epsilon: float) -> float | None:
    """The known optimum, or for quantiles the exponential mechanism; None where there is none."""
    sample = question.sample
    if question.adjacency == "replace" or (question.statistic == "keys" and sample.cap > 1):
        return None
    match question.statistic:
        case "count":
            return optimum.counting(sample.cap, epsilon)
        case "sum":
            return optimum.additive(sample.cap * max(abs(sample.lower), abs(sample.upper)), epsilon)
        case "keys":
            return float(optimum.keep(truth.keys(), epsilon, DELTA).mean())
        case "quantile":
            bounds = float(sample.lower), float(sample.upper)
            found = [
                optimum.quantile(part, question.q, bounds, sample.whole, sample.cap, epsilon)
                for part in truth.parts(question.grouped)
            ]
            return math.sqrt(sum(error**2 for error in found) / len(found))
    return None


def draws_of(library: str, question: Question) -> int:
    """How often a library is asked; groups are several draws at once, and large samples are copied less often."""
    most, least, rows = DRAWS[library]
    draws = most // (4 if question.grouped or question.statistic == "keys" else 1)
    return max(min(draws, rows // len(question.sample.rows())), least)


def is_asked(library: str, question: Question) -> bool:
    """Whether a library is asked at all."""
    few = question.sample is samples.INCOMES and not question.grouped
    return library not in SLOW or few or question.statistic == "keys"


def measured(library: str, asked: Iterable[Question]) -> Iterable[tuple[Question, float, Figure | str]]:
    """A library's figures, or why it has none, for each question and epsilon."""
    requirement, script = PEERS[library]
    texts = [(HERE / "peers" / name).read_text("utf-8") for name in (script, "error_common.py", "error_data.py")]
    peer: Peer | None = None
    try:
        for question in asked:
            if not is_asked(library, question):
                continue
            truth, draws = question.truth(), draws_of(library, question)
            for epsilon in EPSILONS:
                put = {**question.asked(epsilon, draws), "path": str(question.sample.file(draws))}
                key = json.dumps([requirement, question.sample.name, {**put, "path": ""}, *texts])
                kept = ENVIRONMENTS / "error" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
                if requirement is not None and kept.exists():
                    found = json.loads(kept.read_text())
                else:
                    peer = peer or Peer(requirement, script)
                    found = peer.ask(**put)
                    if not found.get("absent", "").startswith("failed"):
                        kept.parent.mkdir(parents=True, exist_ok=True)
                        kept.write_text(json.dumps(found))
                yield (
                    question,
                    epsilon,
                    found["absent"] if "absent" in found else figure(question, truth, found["values"]),
                )
    finally:
        if peer is not None:
            peer.__exit__(None, None, None)


Figures = Mapping[str, Mapping[tuple[Question, float], Figure | str]]


def report(asked: list[Question], found: Figures) -> str:
    """The table, in Markdown, and what is to be known about its figures."""
    libraries = list(found)
    lines = [
        "| data | statistic | reference | " + " | ".join(libraries) + " | Privet to best peer |",
        "|" + "---|" * (len(libraries) + 4),
    ]
    for question in asked:
        truth = question.truth()
        known = [reference(question, truth, epsilon) for epsilon in EPSILONS]
        row = [question.sample.name, str(question), _three(known, question)]
        row += [_cell([found[library][question, epsilon] for epsilon in EPSILONS], question) for library in libraries]
        row.append(", ".join(_compared(question, epsilon, found) for epsilon in EPSILONS))
        lines.append(f"| {' | '.join(row)} |")
    deviations = []
    for library in libraries:
        own = [each.deviation for each in found[library].values() if isinstance(each, Figure)]
        if own:
            deviations.append(f"{library} {np.median(own):.1%}, at most {max(own):.1%}")
    lines += ["", f"Standard errors, relative, median and largest: {'; '.join(deviations)}."]
    return "\n".join(lines) + "\n"


def _three(values: Iterable[float | None], question: Question) -> str:
    return ", ".join("" if value is None else _number(value, question) for value in values).strip(", ")


def _number(value: float, question: Question) -> str:
    if question.statistic == "keys":
        return f"{value:.1%}"
    if value < 1e-6:
        return "0"
    if value < 100:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value < 1e5 else f"{value:.2e}".replace("e+0", "e").replace("e+", "e")


def _cell(figures: list[Figure | str], question: Question) -> str:
    if all(isinstance(each, str) for each in figures):
        return str(figures[0]).split(":")[0].replace("none", "")
    return ", ".join(_number(each.value, question) if isinstance(each, Figure) else "-" for each in figures)


def _compared(question: Question, epsilon: float, found: Figures) -> str:
    """Privet's figure divided by the best other; in bold if it is worse by more than two standard errors.

    The least of several noisy figures is too small. So where the least possible error is known, it counts instead of a
    figure below it.
    """
    ours = found.get("Privet", {}).get((question, epsilon), "")
    others = [own[question, epsilon] for library, own in found.items() if library != "Privet"]
    figures = [each for each in others if isinstance(each, Figure)]
    if not isinstance(ours, Figure) or not figures:
        return "-"
    share = question.statistic == "keys"
    best = max(figures, key=lambda each: each.value) if share else min(figures, key=lambda each: each.value)
    least = reference(question, question.truth(), epsilon) if question.statistic in ("count", "sum") else None
    if least is not None and best.value < least:
        best = Figure(least)
    if not best.value:
        return "-" if ours.value else "1"
    ratio = ours.value / best.value
    slack = 2 * math.hypot(ours.deviation, best.deviation)
    worse = ratio < 1 - slack if share else ratio > 1 + slack
    return f"**{ratio:.2f}**" if worse else f"{ratio:.2f}"


def publish(table: str, page: Path = PAGE) -> None:
    """Replace the table of the page."""
    before, rest = page.read_text("utf-8").split(START)
    page.write_text(before + START + table + END + rest.split(END)[1], "utf-8")


def main() -> None:
    asked = questions()
    found: dict[str, dict[tuple[Question, float], Figure | str]] = {}
    for library in PEERS:
        found[library] = {(question, epsilon): "not asked" for question in asked for epsilon in EPSILONS}
        try:
            for question, epsilon, each in measured(library, asked):
                found[library][question, epsilon] = each
                shown = each if isinstance(each, str) else f"{each.value:.4g} (+- {each.deviation:.1%})"
                print(f"bench: {library}: {question.sample.name}: {question}, {epsilon:g}: {shown}", file=sys.stderr)
        except Exception as error:  # a library that does not install or fails is a column, not an end
            print(f"bench: {library} failed: {error}", file=sys.stderr)
    table = report(asked, found)
    print(table)
    publish(table)
