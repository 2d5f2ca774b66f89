"""L10: a ledger that was cut, emptied or scribbled on after a crash has all its debits, or is refused."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from tests.threats.peers import Peer, ask, session, spent, wait_for

from privet.ledger import failpoints

pytestmark = pytest.mark.usefixtures("impatient")

PRICE = "1/10"
PAGE = 4096
SIDES = ("-shm", "-wal", "-journal")
PLACES = ("reserve: written", "reserve: on disk", "settle: written", "settle: on disk")
Files = dict[str, bytes]


def files(path: Path) -> Files:
    """A ledger, and what stands beside it."""
    found = {end: Path(f"{path}{end}") for end in ("", *SIDES)}
    return {end: each.read_bytes() for end, each in found.items() if each.exists()}


def put(path: Path, state: Files) -> Path:
    for end in ("", *SIDES):
        place = Path(f"{path}{end}")
        place.unlink(missing_ok=True)
        if end in state:
            place.write_bytes(state[end])
    return path


@pytest.fixture
def killed(tmp_path: Path, source: Path, start: Callable[[], Peer]) -> dict[str, Files]:
    """Ledgers after three answers, and a kill in the middle of the fourth; by where that was."""
    found = {}
    for n, place in enumerate(PLACES):
        path, a = tmp_path / f"{n}.ledger", start()
        a.open(path, source)
        for _ in range(3):
            assert "answer" in a.ask(PRICE)
        a.stop_at(place, tmp_path / f"stopped {n}")
        a.send("ask", epsilon=PRICE)
        wait_for(tmp_path / f"stopped {n}")
        a.kill()
        found[place] = files(path)
    return found


def changes(state: Files, draws: random.Random) -> Iterator[tuple[str, Files]]:
    """The same with something wrong."""
    main = state[""]
    size = len(main)
    for length in sorted({0, 1, 100, 511, 512, size // 2, size - 1, *range(0, size, PAGE)}):
        yield f"cut to {length}", state | {"": main[:length]}
    for at in range(0, size, PAGE):
        yield f"page {at // PAGE} is empty", state | {"": main[:at] + bytes(PAGE) + main[at + PAGE :]}
    for at in [*sorted(draws.sample(range(size), 30)), 16, 18, 19, 20, 24, 28, 52]:
        yield f"another byte at {at}", state | {"": main[:at] + bytes([main[at] ^ 255]) + main[at + 1 :]}


@pytest.mark.slow
@pytest.mark.parametrize("beside", ["kept", "removed"])
def test_cut_emptied_and_flipped(killed: dict[str, Files], tmp_path: Path, beside: str, effort: int) -> None:
    draws = random.Random(5)
    refused = tried = 0
    for place, whole in killed.items():
        before = Fraction(PRICE) * (3 + (place != "reserve: written"))
        state = whole if beside == "kept" else {"": whole[""]}
        for what, changed in changes(state, draws):
            found = spent(put(tmp_path / "changed.ledger", changed))
            assert found is None or found >= before, f"{what}, killed at {place!r}: {found} of {before}"
            refused += found is None
            tried += 1
    assert refused > tried / 3


@pytest.mark.slow
def test_every_part_of_a_commit_that_reached_the_file(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash in the middle of the writes, and no journal: any of the pages are new, the others old."""
    path = tmp_path / "people.ledger"
    images: list[bytes] = []
    monkeypatch.setattr(failpoints, "reached", lambda place: images.append(path.read_bytes()))
    with closing(session(path, source)) as asking:
        for _ in range(2):
            ask(asking, PRICE)
    images.append(path.read_bytes())
    monkeypatch.undo()
    known = [spent(put(tmp_path / "whole.ledger", {"": image})) for image in images]
    assert known[-1] == 2 * Fraction(PRICE)
    tried = 0
    for (old, was), (new, now) in zip(
        zip(images, known, strict=True), list(zip(images, known, strict=True))[1:], strict=False
    ):
        size = max(len(old), len(new))
        old, new = old.ljust(size, b"\0"), new.ljust(size, b"\0")
        changed = [at for at in range(0, size, PAGE) if old[at : at + PAGE] != new[at : at + PAGE]]
        for choice in product([False, True], repeat=min(len(changed), 9)):
            torn = bytearray(old)
            for at, is_new in zip(changed, choice, strict=False):
                if is_new:
                    torn[at : at + PAGE] = new[at : at + PAGE]
            found = spent(put(tmp_path / "torn.ledger", {"": bytes(torn)}))
            assert found in (None, was, now), choice
            if any(choice) and was is not None:
                assert found is None or found >= was
            tried += 1
    assert tried > 20


def test_a_hot_journal_that_lost_its_ledger(killed: dict[str, Files], tmp_path: Path) -> None:
    for place, whole in killed.items():
        path = put(tmp_path / "lost.ledger", {end: text for end, text in whole.items() if end})
        if len(whole) == 1:
            continue
        assert spent(path) is None, place
        assert not path.exists()


def test_all_of_a_killed_ledger_is_there(killed: dict[str, Files], tmp_path: Path) -> None:
    for place, whole in killed.items():
        debited = 3 + (place != "reserve: written")
        assert spent(put(tmp_path / "whole.ledger", whole)) == debited * Fraction(PRICE), place


def test_of_two_kills_the_second_comes_while_the_first_is_undone(tmp_path: Path, killed: dict[str, Files]) -> None:
    """What an opening leaves behind when it is cut short can be opened."""
    path = put(tmp_path / "twice.ledger", killed["settle: written"])
    pid = os.fork()
    if pid == 0:
        spent(path)
        os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
    shutil.copyfile(path, tmp_path / "after.ledger")
    assert spent(path) == 4 * Fraction(PRICE)
