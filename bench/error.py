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
from datetime import date
from importlib.metadata import version
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
    "Privet": (200, 25, 200_000),
    "OpenDP": (60, 16, 60_000),
    "PipelineDP": (60, 16, 60_000),
    "SmartNoise": (40, 16, 40_000),
    "Tumult": (40, 16, 40_000),
    "diffprivlib": (100, 25, 10**5),
}
MOST_COPIES_OF_KEYS = 50
"""With more, there could be more keys than an answer of Privet has groups at most."""
SLOW = ("Tumult", "SmartNoise")
"""These take so long that they are asked few questions."""
PEERS = {
    "Privet": (None, "error_privet.py"),
    **{name: (requirement, script.replace("tables_", "error_")) for name, (requirement, script) in LIBRARIES.items()},
    "SmartNoise": ("smartnoise-sql==1.0.10 pyarrow==17.0.0", "error_smartnoise.py"),  # on pandas
}
TOLD = {"": "", "interval": ", Privet with an interval", "values": ", Privet from the same 1,001 values"}
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
    told: str = ""
    """What only Privet is told about a quantile: to give an interval too, which no other library has, or to choose from
    the values that OpenDP chooses from."""

    def __str__(self) -> str:
        name = {0.5: "median"}.get(self.q, f"quantile {self.q:g}") if self.statistic == "quantile" else self.statistic
        if self.statistic == "keys":
            return f"share of {len(self.truth().keys())} unknown keys found"
        return name + (f", {len(self.sample.keys)} groups" if self.grouped else "") + (
            ", replace" if self.adjacency == "replace" else TOLD[self.told]
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
    asked += [Question(samples.INCOMES, *median, grouped, told="interval") for grouped in (False, True)]
    asked += [Question(samples.INCOMES, *each, told="values") for each in (median, low, high)]
    asked += [Question(sample, "keys") for sample in (samples.DESTINATIONS, samples.BIRTHPLACES, samples.SCHOOLS)]
    for sample in (samples.INCOMES, samples.PATIENTS):
        asked += [Question(sample, statistic, adjacency="replace") for statistic in ("mean", "variance")]
    asked += [Question(samples.MEN, *each, grouped) for grouped in (False, True) for each in (count, mean, median)]
    asked += [Question(samples.SALARIES, *each, True) for each in (total, mean, variance, median, high)]
    asked += [Question(samples.AFFAIRS, *each, True) for each in (mean, high)]
    asked += [Question(samples.VOTERS, *each, True) for each in (mean, median)]
    for sample in (samples.WIVES, samples.FLIGHTS, samples.PATIENTS, samples.TUMOURS, samples.WINES, samples.WAGES):
        asked += [Question(sample, *each) for each in (mean, median)]
        asked += [] if sample.whole else [Question(sample, *median, told="values")]
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
    if question.statistic == "keys":
        draws = min(draws, MOST_COPIES_OF_KEYS)
    return max(min(draws, rows // len(question.sample.rows())), least)


def is_asked(library: str, question: Question) -> bool:
    """Whether a library is asked at all."""
    if library not in SLOW:
        return True
    if question.statistic == "keys":
        return library == "SmartNoise" and question.sample.cap == 1
    few = library == "SmartNoise" or question.statistic in ("count", "sum", "mean")
    return few and question.sample is samples.INCOMES and not question.grouped and question.adjacency == "add/remove"


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
                if library == "Privet":
                    put["told"] = question.told
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
        "| data | statistic | reference | " + " | ".join(libraries) + " | Privet to best other |",
        "|" + "---|" * (len(libraries) + 4),
    ]
    behind, first = [], 0
    for question in asked:
        truth = question.truth()
        known = [reference(question, truth, epsilon) for epsilon in EPSILONS]
        row = [question.sample.name, str(question), _three(known, question)]
        row += [_cell(question, found, library) for library in libraries]
        ratios = [_ratio(question, epsilon, found) for epsilon in EPSILONS]
        row.append(", ".join("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios))
        lines.append(f"| {' | '.join(row)} |")
        for epsilon, ratio in zip(EPSILONS, ratios, strict=True):
            ours = found.get("Privet", {}).get((question, epsilon))
            if isinstance(ours, Figure) and ratio is not None:
                if is_first(question, epsilon, found, ours):
                    first += 1
                else:
                    behind.append(f"{question.sample.name}: {question}, epsilon {epsilon:g} ({ratio:.2f})")
    deviations = []
    for library in libraries:
        own = [each.deviation for each in found[library].values() if isinstance(each, Figure)]
        if own:
            deviations.append(f"{library} {np.median(own):.1%}, at most {max(own):.1%}")
    figures, rest = f"{first} of {first + len(behind)} figures", "; ".join(behind) or "none"
    lines += [
        "",
        f"Privet is first, or less than two standard errors behind, in {figures}. Not in: {rest}.",
        "",
        f"Standard errors, relative, median and largest: {'; '.join(deviations)}.",
        "",
        f"Measured on {date.today():%d %B %Y} with {versions(libraries)}.",
    ]
    return "\n".join(lines) + "\n"


def versions(libraries: Iterable[str]) -> str:
    """What was installed for each library."""
    used = [PEERS[library][0] or f"privet {version('privet')}" for library in libraries]
    return "; ".join(f"`{each.replace('==', ' ')}`" for each in [*used, samples.PACKAGES])


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


def _cell(question: Question, found: Figures, library: str) -> str:
    """The figures of a library; bold where it is first, or less than two standard errors behind."""
    figures = [found[library][question, epsilon] for epsilon in EPSILONS]
    if all(isinstance(each, str) for each in figures):
        return str(figures[0]).split(":")[0].replace("none", "")
    shown = []
    for epsilon, each in zip(EPSILONS, figures, strict=True):
        text = _number(each.value, question) if isinstance(each, Figure) else "-"
        bold = isinstance(each, Figure) and is_first(question, epsilon, found, each)
        shown.append(f"**{text}**" if bold else text)
    return ", ".join(shown)


def best(question: Question, epsilon: float, found: Figures, among: Iterable[str]) -> Figure | None:
    """The best figure of these libraries.

    The least of several noisy figures is too small. So where the least possible error is known, it counts instead of a
    figure below it.
    """
    figures = [each for library in among if isinstance(each := found[library][question, epsilon], Figure)]
    if not figures:
        return None
    if question.statistic == "keys":
        return max(figures, key=lambda each: each.value)
    least = min(figures, key=lambda each: each.value)
    bound = reference(question, question.truth(), epsilon) if question.statistic in ("count", "sum") else None
    return least if bound is None else Figure(max(least.value, bound), least.deviation)


def is_first(question: Question, epsilon: float, found: Figures, own: Figure) -> bool:
    """Whether no library is better by two standard errors."""
    least = best(question, epsilon, found, found)
    assert least is not None
    slack = 2 * math.hypot(own.value * own.deviation, least.value * least.deviation)
    return own.value >= least.value - slack if question.statistic == "keys" else own.value <= least.value + slack


def _ratio(question: Question, epsilon: float, found: Figures) -> float | None:
    """Privet's figure divided by the best other one."""
    ours = found.get("Privet", {}).get((question, epsilon))
    other = best(question, epsilon, found, [library for library in found if library != "Privet"])
    if not isinstance(ours, Figure) or other is None:
        return None
    return ours.value / other.value if other.value else math.inf if ours.value else 1.0


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
