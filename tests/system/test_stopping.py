"""One question is stopped, and no other: also if its call ends by itself at that moment."""

from __future__ import annotations

import threading

import pytest

from privet.system.stopping import Stoppable, Stopped


def test_what_ends_a_call_never_acts_after_it() -> None:
    """A slow cancel: the call ends meanwhile, and gives its connection back. The next question must not be hit."""
    question = Stoppable()
    running, ending, given_back = threading.Event(), threading.Event(), threading.Event()
    acted_late = []

    def end() -> None:
        ending.set()
        acted_late.append(given_back.wait(0.2))

    def ask() -> None:
        with question.ended_by(end):
            running.set()
            ending.wait(10)  # it ends by itself
        given_back.set()

    asking = threading.Thread(target=ask)
    asking.start()
    assert running.wait(10)
    question.stop()
    asking.join(10)
    assert acted_late == [False]
    assert given_back.is_set()


def test_an_end_that_fails_is_called_again() -> None:
    question, running, over = Stoppable(), threading.Event(), threading.Event()
    calls: list[str] = []

    def end() -> None:
        calls.append("end")
        if len(calls) < 3:
            raise OSError("no connection for a cancel")
        over.set()

    def ask() -> None:
        with question.ended_by(end):
            running.set()
            over.wait(10)

    asking = threading.Thread(target=ask)
    asking.start()
    assert running.wait(10)
    question.stop()
    asking.join(10)
    assert len(calls) >= 3
    with pytest.raises(Stopped), question.ended_by(end):
        pass
