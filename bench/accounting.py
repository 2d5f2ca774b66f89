"""How many questions a budget allows under each accountant, and how fast accountants price them.

PLD, through dp-accounting, is for a batch that is fixed in advance; the others hold for questions that depend on
earlier answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.timing import seconds
from privet.privacy import pld
from privet.privacy.accounting import Accountant, ApproxAccountant, ConcentratedAccountant, MeterAccountant
from privet.privacy.events import BoundedRange, LaplaceNoise, PrivacyEvent, Repeated
from privet.privacy.guarantees import ApproxDP, ZeroConcentratedDP
from privet.privacy.moves import L1Move

BUDGET = ApproxDP(1, 1e-6)
EPSILONS = ("0.1", "0.05", "0.02", "0.01", "0.005")
PRICES = 5000


def most(allowed: Callable[[int], bool]) -> int:
    """The largest number of questions that is allowed."""
    low, high = 0, 1
    while allowed(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def under(accountant: Accountant[Any], budget: Any, event: PrivacyEvent) -> int:
    """How many such questions an accountant grants."""
    return most(lambda n: accountant.fits(accountant.price(Repeated(event, n)), budget))


def rho_of(budget: ApproxDP) -> ZeroConcentratedDP:
    """The largest rho, to six digits, that implies this budget."""
    steps = most(
        lambda n: ZeroConcentratedDP(Fraction(n, 10**7)).to_approx(delta=budget.delta).epsilon <= budget.epsilon
    )
    return ZeroConcentratedDP(Fraction(steps, 10**7))


def batch(event: PrivacyEvent) -> int:
    """How many questions of a batch that is fixed in advance: by its privacy loss, or by the plain sum."""
    plain = under(ApproxAccountant(), BUDGET, event)
    return max(plain, most(lambda n: (_epsilon(event, n) or BUDGET.epsilon + 1) <= BUDGET.epsilon))


def _epsilon(event: PrivacyEvent, count: int) -> Fraction | None:
    return pld.batch_epsilon(Repeated(event, count), BUDGET.delta)


def main() -> None:
    """Print the tables."""
    console, meters = Console(width=120), MeterAccountant().for_budget(BUDGET)
    whole, rho = MeterAccountant((22,), (Fraction(1),)), rho_of(BUDGET)
    table = Table(title=f"Questions allowed under {BUDGET}")
    for name in ("question", "plain sum", "zCDP", "meters (default)", "one meter, order 22", "PLD, fixed batch"):
        table.add_column(name, justify="left" if name == "question" else "right")
    for epsilon in EPSILONS:
        price = Fraction(epsilon)
        for name, event in (
            (f"Laplace, epsilon {epsilon}", LaplaceNoise(move=L1Move(1), scale=1 / price)),
            (f"exponential, epsilon {epsilon}", BoundedRange(epsilon=price)),
        ):
            counts = [
                under(ApproxAccountant(), BUDGET, event),
                under(ConcentratedAccountant(), rho, event),
                under(meters, BUDGET, event),
                under(whole, BUDGET, event),
                *([batch(event)] if pld.installed() else []),
            ]
            table.add_row(name, *(f"{count:,}" for count in counts))
    console.print(table)
    speed = Table(title="Prices a second, each of a new scale")
    speed.add_column("accountant")
    speed.add_column("Laplace", justify="right")
    speed.add_column("exponential", justify="right")
    numbers = itertools.count(1)
    for accountant in (ApproxAccountant(), ConcentratedAccountant(), meters):

        def laplace(accountant: Any = accountant) -> None:
            for _ in range(PRICES):
                accountant.price(LaplaceNoise(move=L1Move(3), scale=100 + Fraction(next(numbers), 7)))

        def exponential(accountant: Any = accountant) -> None:
            for _ in range(PRICES):
                accountant.price(BoundedRange(epsilon=Fraction(1, 100 + next(numbers))))

        speed.add_row(accountant.name, *(f"{PRICES / seconds(run):,.0f}" for run in (laplace, exponential)))
    console.print(speed)
