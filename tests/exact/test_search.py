"""Searches find the same, whatever the guess."""

from __future__ import annotations

from itertools import product

from privet.exact.search import first


def test_a_guess_changes_nothing() -> None:
    for low, size, start in product((-3, 0, 5), range(9), range(-9, 20)):
        asked: list[int] = []

        def holds(k: int, start: int = start, asked: list[int] = asked) -> bool:
            asked.append(k)
            return k >= start

        high = low + size
        for guess in range(low - 4, high + 5):
            assert first(holds, low, guess=guess) == max(low, start)
            assert min(asked) >= low
            asked.clear()
            assert first(holds, low, high, guess=guess) == min(max(low, start), high)
            assert all(low <= k < high for k in asked)
            asked.clear()


def test_a_right_guess_takes_two_trials() -> None:
    asked: list[int] = []

    def holds(k: int) -> bool:
        asked.append(k)
        return k >= 10**30

    assert first(holds, 0, guess=10**30) == 10**30
    assert asked == [10**30, 10**30 - 1]
