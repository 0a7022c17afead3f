"""The time that is left is told from the recent pace of work alone."""

from __future__ import annotations

import io

import pytest
from faultsweep.sweeps.runner import progress as progress_module
from faultsweep.sweeps.runner.progress import Pace, Progress


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def work(pace, clock, each_s, runs):
    for _ in range(runs):
        clock.now += each_s
        pace.add(1)


def test_compiling_and_waiting_do_not_count(clock):
    pace = Pace(clock)
    clock.now += 3600  # compiling
    pace.work()
    work(pace, clock, 0.5, 3)
    assert pace.seconds_each() == 0.5
    pace.rest()
    clock.now += 3600  # waiting for a worker
    pace.work()
    work(pace, clock, 0.5, 50)
    assert pace.seconds_each() == 0.5


def test_the_pace_is_the_recent_one_and_a_stall_is_forgiven(clock):
    pace = Pace(clock)
    pace.work()
    work(pace, clock, 0.01, 5000)
    work(pace, clock, 2.0, 200)
    assert pace.seconds_each() == pytest.approx(2.0)
    clock.now += 500
    work(pace, clock, 2.0, 20)
    assert pace.seconds_each() == pytest.approx(2.0)


def test_results_that_come_in_bursts_have_one_pace(clock):
    pace = Pace(clock)
    pace.work()
    for _ in range(20):
        clock.now += 2.0
        for _ in range(4):
            pace.add(1000)
    assert pace.seconds_each() == pytest.approx(0.0005)


def test_nothing_is_promised_before_the_first_result(clock):
    pace = Pace(clock)
    pace.work()
    clock.now += 5
    assert pace.seconds_each() is None
    assert Progress(10, show=False).left() == "waiting"


def test_no_more_is_promised_than_is_known(clock):
    progress = Progress(100_000, show=False)
    progress.pace = Pace(clock)
    progress.pace.work()
    clock.now += 1.2345
    progress.add(100)
    assert progress.left() == "about 20 min left"
    progress.add(99_899)
    assert progress.left() == "about 1 s left"


def lines(monkeypatch, terminal):
    """Return what ten simulations of a second and a wait say."""

    class Screen(io.StringIO):
        def isatty(self):
            return terminal

    screen = Screen()
    monkeypatch.setattr(progress_module.sys, "stderr", screen)
    monkeypatch.setattr(progress_module, "_LINE_EVERY_S", -1.0)
    clock = Clock()
    with Progress(10, already=2) as progress:
        progress.pace = Pace(clock)
        progress.pace.work()
        clock.now += 4
        progress.add(4, failed=1)
        progress.pace.rest()
        progress.say("no worker is left")
        progress.show()
    return screen.getvalue()


def test_plain_lines(monkeypatch):
    assert lines(monkeypatch, terminal=False).splitlines() == [
        "6 of 10 simulations, 1 failed, about 4 s left",
        "no worker is left",
        "6 of 10 simulations, 1 failed, waiting",
    ]


def test_a_terminal_shows_the_same(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    text = lines(monkeypatch, terminal=True)
    for part in ("simulations", "6/10", "1 failed", "no worker is left", "waiting"):
        assert part in text
