"""A diagnosis: how much the caps and bounds of a question take from its answer, with advice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from typing import Any

from privet.exact import Exact, show
from privet.ledger import Remaining
from privet.planner.diagnosis import GROUPS, ROWS, Clamp, GroupsAsked, RowsAsked, ValuesAsked
from privet.planner.linear import Linear
from privet.planner.outputs import Quotient, Straight
from privet.privacy.guarantees import Guarantee, PureDP
from privet.privacy.guarantees.budgets import amount
from privet.release.answer import Release
from privet.release.batch import ReleasedBatch
from privet.release.certificate import Certificate
from privet.release.render.notes import cost
from privet.release.render.numerals import numerals
from privet.release.render.text import numbers, places, wrapped
from privet.tables import caps
from privet.tables.statement import AtMostGroups

MUCH, LITTLE = 0.02, 0.01
"""From which share on something is said to be lost, and below which share nearly nothing is."""


@dataclass(frozen=True, slots=True)
class Share:
    """A private share of rows, people or values, with its interval."""

    what: str
    of: str
    value: float
    low: float
    high: float
    noisy: bool
    """Whether it is too noisy to rely on."""

    def texts(self) -> tuple[str, str]:
        """The share in per cent, and its interval."""
        value, interval = numerals(100 * self.value, 100 * self.low, 100 * self.high, around=False)
        return f"{'~' * self.noisy}{value} %", interval


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis:
    """The shares of rows, people and values that the caps and bounds of a question leave out or change.

    Claim: everything here is computed from the noisy integers of the batch and from public facts.
    """

    question: str
    """The question that was looked at, in words."""
    batch: ReleasedBatch
    """The answers that the shares come from: a question about rows, and one for each kind of rows about values."""
    rows: RowsAsked | None
    groups: GroupsAsked | None
    values: Mapping[str, ValuesAsked]
    """What was asked about values, by its name in the batch."""

    # --- shares -----------------------------------------------------------------------------------

    @property
    def shares(self) -> tuple[Share, ...]:
        """Every share, rows first."""
        return (*self._of_rows(), *self._of_groups(), *(share for _, pair in self._of_values() for share in pair))

    def _of_rows(self) -> Iterator[Share]:
        if self.rows is None:
            return
        cap = caps.rows_of(self.rows.cap)
        left, kept = (self._form(ROWS, name) for name in ("left out", "kept"))
        over = self._over(0)
        yield self._share(ROWS, "rows left out by the cap", f"rows, up to {self.rows.ceiling:,} per person", left, kept)
        yield self._share(ROWS, f"people with more than {caps.some(cap, 'row')}", "people", over, self._under(0))

    def _of_groups(self) -> Iterator[Share]:
        if self.groups is None:
            return
        left, kept = (self._form(GROUPS, name) for name in ("left out", "kept"))
        under, over = (self._form(GROUPS, column) for column in self.batch[GROUPS].plan.query.columns()["people"])
        most = f"groups of each person, up to {self.groups.ceiling:,}"
        yield self._share(GROUPS, "groups left out by the cap", most, left, kept)
        yield self._share(GROUPS, f"people in more than {caps.some(self.groups.cap, 'group')}", "people", over, under)

    def _of_values(self) -> Iterator[tuple[Clamp, tuple[Share, Share]]]:
        for name, asked in self.values.items():
            plan = self.batch[name].plan
            for clamp, (aggregate, _) in zip(asked.clamps, asked.query.aggregates, strict=True):
                bins = [self._form(name, column) for column in plan.query.columns()[aggregate]]
                below, inside, above = bins
                verb = "clipped" if clamp.clip else "clamped"
                of = f"values of {clamp.name}"
                yield (
                    clamp,
                    (
                        self._share(
                            name, f"{clamp.name} {verb} up to {_end(clamp.lower)}", of, below, inside.plus(above)
                        ),
                        self._share(
                            name, f"{clamp.name} {verb} down to {_end(clamp.upper)}", of, above, below.plus(inside)
                        ),
                    ),
                )

    def _bins(self) -> list[Linear]:
        """The people by their number of rows."""
        return [self._form(ROWS, column) for column in self.batch[ROWS].plan.query.columns()["people"]]

    def _over(self, step: int) -> Linear:
        """The people with more rows than the cap, doubled so often."""
        return _sum(self._bins()[step + 1 :])

    def _under(self, step: int) -> Linear:
        return _sum(self._bins()[: step + 1])

    def _form(self, name: str, column: str) -> Linear:
        output = dict(self.batch[name].plan.columns)[column]
        assert isinstance(output, Straight)
        return output.form

    def _share(self, name: str, what: str, of: str, part: Linear, rest: Linear) -> Share:
        """The share of a part, and its interval: that of any quotient of two noisy counts."""
        release = self.batch[name]
        plan = release.plan
        share = Quotient(
            part, part.plus(rest), most=Exact(1), lower=Exact(0), unit=Exact(1), each=Exact(1), at=Exact(1, 2)
        )
        cells = share.cells([[vectors[0] for vectors in release.noisy]], plan.noise, plan.level)
        noisy = cells.high[0] - cells.low[0] > 0.5
        return Share(what, of, float(cells.values[0]), float(cells.low[0]), float(cells.high[0]), noisy)

    # --- advice -----------------------------------------------------------------------------------

    @property
    def advice(self) -> tuple[str, ...]:
        """What the shares suggest, in words. Every sentence follows from noisy numbers alone."""
        lines = [
            *self._about_rows(),
            *self._about_groups(),
            *(line for each in self._of_values() for line in _about_values(*each)),
        ]
        unclear = [share.what for share in self.shares if share.noisy]
        if unclear:
            lines.append(f"Too noisy to tell: {', '.join(unclear)}. Ask with a larger epsilon.")
        return tuple(lines)

    def _about_rows(self) -> Iterator[str]:
        if self.rows is None:
            if self.groups is not None:
                return
            yield "No cap leaves out rows: each row is protected on its own, or people are combined or counted."
            return
        if self.rows.by_groups:
            yield f"The cap is {caps.in_words(self.rows.cap)}. Rows are compared with their product."
        left, people = self._of_rows()
        if min(left.high, people.high) < LITTLE:
            yield "The cap leaves out nearly nothing. A lower one would mean less noise."
        elif max(left.low, people.low) > MUCH:
            who = "The question set this cap" if self.rows.own else "The steward can raise it in the policy"
            yield f"The cap leaves out rows. {self._higher()}{who}. Or combine the rows of each person with per_person."

    def _about_groups(self) -> Iterator[str]:
        if self.groups is None:
            return
        left, people = self._of_groups()
        lost = (
            f"People are in more than {caps.some(self.groups.cap, 'group')}, and their rows in the others are left out."
        )
        if max(left.low, people.low) > MUCH:
            yield f"{lost} With a higher max_groups fewer are, at more noise."

    def _higher(self) -> str:
        """A cap that would be high enough for nearly all people, as far as can be told."""
        assert self.rows is not None
        if isinstance(self.rows.cap, AtMostGroups):
            return ""
        steps = self.rows.steps
        for i, step in enumerate(steps[1:], 1):
            if self._share(ROWS, "", "", self._over(i), self._under(i)).value < LITTLE:
                some = f"about {100 * LITTLE:.0f} % of the people or fewer would lose rows"
                return f"With max_rows = {step}, {some}, at {step // steps[0]} times the noise. "
        return f"Many people have more than {steps[-1]:,} rows. "

    # --- cost -------------------------------------------------------------------------------------

    @property
    def certificates(self) -> dict[str, Certificate]:
        """The claims, to be checked by anyone: one for each question of the batch."""
        return {name: release.certificate for name, release in self.batch.items()}

    @property
    def releases(self) -> Mapping[str, Release]:
        """The noisy counts that the shares are computed from."""
        return self.batch

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all of it together, which is also its cost, whether paid now or before."""
        return self.batch.guarantee

    @property
    def spent(self) -> Guarantee:
        """What was spent now."""
        return PureDP.ZERO if self.batch.paid_before else self.batch.guarantee

    @property
    def paid_before(self) -> bool:
        """Whether it was already stored, so that nothing was spent now."""
        return self.batch.paid_before

    @property
    def remaining(self) -> Remaining | None:
        """The budget that remains afterwards; None if unknown."""
        return self.batch.remaining

    # --- to look at -------------------------------------------------------------------------------

    def notes(self) -> list[str]:
        """Advice, what the intervals cover, and the cost."""
        plan = next(iter(self.batch.values())).plan
        covers = f"{show(plan.confidence * 100)} % intervals for each share separately. They cover the noise."
        seen = [] if self.rows is None else [f"Rows are counted up to {self.rows.ceiling:,} per person."]
        seen += [] if self.groups is None else [f"Groups are counted up to {self.groups.ceiling:,} per person."]
        marks = ["~ too noisy to rely on."] if any(share.noisy for share in self.shares) else []
        return [*self.advice, *seen, covers, *marks, cost(self.guarantee, self.spent, self.remaining)]

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dict for each share."""
        return [
            {
                "what": share.what, "of": share.of, "share": share.value, "low": share.low, "high": share.high,
                "noisy": share.noisy,
            }
            for share in self.shares
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The diagnosis for programs."""
        return {
            "question": self.question,
            "shares": self.to_dicts(),
            "advice": list(self.advice),
            "guarantee": amount(self.guarantee),
            "spent": amount(self.spent),
            "paid_before": self.paid_before,
        }

    def __str__(self) -> str:
        shares = self.shares
        width = max(places(share.what) for share in shares)
        texts = numbers("", [share.texts() for share in shares])[1:]
        lines = [
            f"{share.what}{' ' * (width - places(share.what))}  {text}".rstrip()
            for share, text in zip(shares, texts, strict=True)
        ]
        return "\n".join([*lines, "", *wrapped(self.notes())])

    def __repr__(self) -> str:
        return f"<Diagnosis of {self.question}: {len(self.shares)} shares, {self.guarantee}>"

    def _repr_html_(self) -> str:
        rows = "".join(_row(share.what, *share.texts()) for share in self.shares)
        foot = "<br>".join(map(escape, self.notes()))
        return (
            f"<table><tbody>{rows}</tbody>"
            f'<tfoot><tr><td colspan="2" style="text-align: left"><small>{foot}</small></td></tr></tfoot></table>'
        )


def _row(what: str, value: str, interval: str) -> str:
    small = f'<small style="opacity: 0.65">{escape(interval)}</small>'
    return (
        f'<tr><th style="text-align: left">{escape(what)}</th>'
        f'<td style="text-align: right; white-space: nowrap">{escape(value)} {small}</td></tr>'
    )


def _about_values(clamp: Clamp, shares: Sequence[Share]) -> Iterator[str]:
    for share, end, word in zip(shares, (clamp.lower, clamp.upper), ("lower", "upper"), strict=True):
        if not share.noisy and share.low > MUCH:
            side = "below" if word == "lower" else "above"
            how = "clip to wider bounds" if clamp.clip else "the steward can widen the declared bounds"
            yield f"Many values of {clamp.name} are {side} {_end(end)}: {how}, if the {word} end matters to you."


def _end(end: Exact | date) -> str:
    if isinstance(end, date):
        return end.isoformat()
    return f"{end.numerator:,}" if end.denominator == 1 and abs(end) >= 10_000 else show(end)


def _sum(forms: Sequence[Linear]) -> Linear:
    total = Linear(())
    for form in forms:
        total = total.plus(form)
    return total
