"""L9: one ledger under two names has one set of locks and one journal, or is refused in words."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from tests.threats.peers import MOST, Peer, ask, holds, seen, session, spent, total, wait_for

from privet.errors import LedgerError
from privet.ledger import open_ledger

pytestmark = pytest.mark.usefixtures("impatient")

SMALL = "1/100"


def both(
    start: Callable[[], Peer], source: Path, first: Path, second: Path, between: Callable[[], object] = lambda: None
) -> Fraction:
    """What two processes are granted through two names, each asking for most of it."""
    a, b = start(), start()
    opened = a.open(first, source)
    between()
    others = b.open(second, source, analyst="bob")
    outcomes = [
        peer.ask() if "answer" in each else {} for peer, each in ((b, others), (a, opened), (b, others), (a, opened))
    ]
    for peer in (a, b):
        peer.close()
    return total(*outcomes)


@pytest.fixture
def path(tmp_path: Path, source: Path) -> Path:
    """A ledger that nobody has open."""
    made = tmp_path / "people.ledger"
    with closing(session(made, source)) as a:
        ask(a, SMALL)
    return made


def test_a_hard_link_that_was_there_before(path: Path, source: Path, start: Callable[[], Peer]) -> None:
    other = path.with_name("other.ledger")
    other.hardlink_to(path)
    assert both(start, source, path, other) <= Fraction(MOST)
    other.unlink()
    assert holds(path, Fraction(SMALL))


def test_a_hard_link_that_comes_while_it_is_open(path: Path, source: Path, start: Callable[[], Peer]) -> None:
    other = path.with_name("other.ledger")
    granted = both(start, source, path, other, lambda: other.hardlink_to(path))
    assert granted <= Fraction(MOST)
    other.unlink()
    assert holds(path, granted + Fraction(SMALL))


def test_a_hard_link_is_named_in_the_error_and_does_no_lasting_harm(path: Path, source: Path) -> None:
    other = path.with_name("other.ledger")
    with closing(session(path, source)) as a:
        other.hardlink_to(path)
        found = seen(lambda: ask(a, SMALL))
        assert found.get("error") == "LedgerError", found
        assert "link" in found["text"]
    assert "link" in seen(lambda: session(path, source).close()).get("text", "")
    assert "link" in seen(lambda: session(other, source).close()).get("text", "")
    other.unlink()
    with closing(session(path, source)) as a:
        ask(a, SMALL)
    assert spent(path) == 2 * Fraction(SMALL)


def test_a_hard_link_that_takes_the_place_of_the_ledger(path: Path, source: Path, start: Callable[[], Peer]) -> None:
    """The first name goes, so that there is one again; the journal goes with the first name."""
    other = path.with_name("other.ledger")

    def swap() -> None:
        other.hardlink_to(path)
        path.unlink()

    assert both(start, source, path, other, swap) <= Fraction(MOST)


@pytest.mark.parametrize("links", ["one", "a chain", "a folder", "a relative one"])
def test_a_symlink_is_the_same_ledger(
    path: Path, source: Path, start: Callable[[], Peer], links: str, tmp_path: Path
) -> None:
    other = tmp_path / "link.ledger"
    if links == "one":
        other.symlink_to(path)
    elif links == "a relative one":
        other.symlink_to(path.name)
    elif links == "a chain":
        for n in range(3):
            (tmp_path / f"{n}.ledger").symlink_to(path if n == 0 else tmp_path / f"{n - 1}.ledger")
        other.symlink_to(tmp_path / "2.ledger")
    else:
        (tmp_path / "folder").symlink_to(tmp_path)
        other = tmp_path / "folder" / path.name
    assert both(start, source, path, other) == Fraction(MOST)
    assert spent(path) == spent(other) == Fraction(MOST) + Fraction(SMALL)
    assert not list(tmp_path.glob("link.ledger-*")), "a journal beside the link is not seen from the file"
    path.unlink()
    assert "error" in seen(lambda: session(other, source).close()), "the ledger is gone, so there is no new one"


def test_a_symlink_to_nowhere_is_not_replaced(tmp_path: Path, source: Path) -> None:
    link = tmp_path / "people.ledger"
    link.symlink_to(tmp_path / "not mounted" / "people.ledger")
    assert "error" in seen(lambda: session(link, source).close())
    link.unlink()
    link.symlink_to(tmp_path / "there.ledger")
    if "answer" in seen(lambda: session(link, source).close()):
        assert link.is_symlink()
        assert (tmp_path / "there.ledger").exists()
    link.unlink()
    link.symlink_to(link)
    assert "error" in seen(lambda: session(link, source).close())


def test_a_symlink_that_turns_elsewhere_while_it_is_open(path: Path, source: Path, start: Callable[[], Peer]) -> None:
    link, fresh = path.with_name("link.ledger"), path.with_name("fresh.ledger")
    session(fresh, source).close()
    link.symlink_to(path)

    def turn() -> None:
        link.unlink()
        link.symlink_to(fresh)

    a, b = start(), start()
    assert "answer" in a.open(link, source)
    turn()
    assert "answer" in b.open(link, source, analyst="bob")
    granted = {fresh: total(b.ask()), path: total(a.ask()) + Fraction(SMALL)}
    for peer in (a, b):
        peer.close()
    assert {ledger: spent(ledger) for ledger in granted} == granted, "each is in the ledger that was opened"


def test_a_ledger_that_is_moved_while_it_is_open(path: Path, source: Path, start: Callable[[], Peer]) -> None:
    moved = path.with_name("moved.ledger")
    assert both(start, source, path, moved, lambda: path.rename(moved)) <= Fraction(MOST)
    moved.rename(path)
    assert holds(path, Fraction(SMALL))


def test_a_ledger_that_is_moved_and_comes_back(path: Path, source: Path, start: Callable[[], Peer]) -> None:
    moved = path.with_name("moved.ledger")
    a, b = start(), start()
    assert "answer" in a.open(path, source)
    path.rename(moved)
    first = b.ask() if "answer" in b.open(moved, source) else {}
    b.close()
    moved.rename(path)
    second = a.ask()
    a.close()
    assert total(first, second) <= Fraction(MOST)
    assert holds(path, total(first, second) + Fraction(SMALL))


@pytest.mark.parametrize("place", ["reserve: written", "reserve: on disk", "settle: written", "settle: on disk"])
def test_a_ledger_that_is_moved_after_a_kill(
    path: Path, source: Path, start: Callable[[], Peer], place: str, tmp_path: Path
) -> None:
    """Its journal stays behind."""
    a = start()
    a.open(path, source)
    a.stop_at(place, tmp_path / "stopped")
    a.send("ask", epsilon=MOST)
    wait_for(tmp_path / "stopped")
    a.kill()
    moved = tmp_path / "elsewhere" / "people.ledger"
    moved.parent.mkdir()
    path.rename(moved)
    debited = place != "reserve: written"
    assert holds(moved, Fraction(SMALL) + debited * Fraction(MOST))
    assert "error" in seen(lambda: session(path, source).close()), "what is beside it says that there was a ledger"


@pytest.mark.parametrize("how", ["written over", "put in its place"])
def test_an_older_copy_that_is_put_back_while_it_is_open(
    path: Path, source: Path, start: Callable[[], Peer], how: str
) -> None:
    """Who had it open notices; who opens it afterwards can't know, but from a receipt."""
    older, a = path.with_name("older"), start()
    shutil.copyfile(path, older)
    a.open(path, source)
    first = a.ask("1/2")
    with closing(open_ledger(path)) as ledger:
        receipt = str(ledger.head())
    if how == "written over":
        shutil.copyfile(older, path)
    else:
        older.replace(path)
    second = a.ask("2/5")
    assert "answer" in first
    assert second.get("error") == "LedgerError", second
    a.kill()
    try:
        opened = open_ledger(path)
    except LedgerError:
        return
    with closing(opened) as ledger, pytest.raises(LedgerError):
        ledger.verify(receipt)


# --- mounts ---------------------------------------------------------------------------------------

MOUNTED = """
    import subprocess, sys
    from contextlib import closing
    from pathlib import Path
    from tests.threats.peers import MOST, ask, seen, session, total
    folder = Path(sys.argv[1])
    path, other, source = folder / "people.ledger", folder / "a mount" / "the ledger", folder / "people.parquet"
    other.parent.mkdir()
    other.touch()
    run = lambda *command: subprocess.run(command, check=True)
    link = folder / "link.ledger"
    link.symlink_to(other)
    for first in (path, other):
        if first == path:
            a = session(path, source)
            run("mount", "--bind", path, other)
        else:
            a = session(path, source)
        outcomes = [seen(lambda: ask(session(each, source, analyst="bob"))) for each in (link, other)]
        outcomes.append(seen(lambda: ask(a)))
        print(total(*outcomes), *(each.get("text", "")[:300].replace(chr(10), " ") for each in outcomes[:2]), sep="|")
        a.close()
"""


def test_a_file_that_is_a_mount_point_is_refused(path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever one may not mount: by what the system says of its mounts."""
    session(path, source).close()
    lines = r"36 35 98:0 / {} rw,noatime - ext4 /dev/root rw".format(str(path.resolve()).replace(" ", r"\040"))
    monkeypatch.setattr(Path, "read_text", lambda self, **how: lines)
    with pytest.raises(LedgerError, match=r"mounted as a single file.*Mount its folder"):
        open_ledger(path)


@pytest.mark.slow
def test_a_file_that_is_mounted_under_another_name(path: Path, source: Path, tmp_path: Path) -> None:
    command = ["unshare", "-m", sys.executable, "-c", textwrap.dedent(MOUNTED), str(tmp_path)]
    may = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    if not may:
        pytest.skip("only root may mount")
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, env={**os.environ})
    granted, sentences = Fraction(0), []
    for line in done.stdout.splitlines():
        amount, *texts = line.split("|")
        granted += Fraction(amount)
        sentences += texts
    assert granted <= Fraction(MOST), done.stdout
    assert all("mount" in text for text in sentences), sentences
