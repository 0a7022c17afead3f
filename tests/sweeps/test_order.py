"""Cells are handed out longest first, within a window of chunks, as soon as finished ones tell how long they take."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.sweeps.runner import order
from faultsweep.sweeps.runner.order import Cursor, Durations

SHAPE = (5, 4, 3)
TIMES = np.multiply.outer(np.multiply.outer([1.0, 2, 4, 8, 16], [1.0, 3, 0.5, 7]), [1.0, 1.1, 0.9])


def everything() -> np.ndarray:
    return np.arange(TIMES.size)


def drain(cursor: Cursor) -> list[int]:
    found: list[int] = []
    while cursor:
        found += cursor.take(4).tolist()
    return found


def test_a_product_of_effects_is_predicted_from_a_balanced_part():
    durations = Durations(SHAPE)
    seen = everything()[TIMES.ravel() > 0]
    durations.add(seen, TIMES.ravel()[seen])
    assert np.allclose(durations.predict(everything()), np.log(TIMES.ravel()))


def test_the_longest_come_first_and_each_comes_once():
    durations = Durations(SHAPE)
    durations.add(everything(), TIMES.ravel())
    found = drain(Cursor(everything(), durations))
    assert sorted(found) == everything().tolist()
    assert np.all(np.diff(TIMES.ravel()[found]) <= 1e-9)


def test_nothing_is_reordered_before_times_are_known():
    durations = Durations(SHAPE)
    durations.add(np.arange(3), np.array([1.0, np.nan, 2.0]))
    assert durations.number == 2
    assert drain(Cursor(everything(), durations)) == everything().tolist()


def test_times_that_come_meanwhile_count():
    durations = Durations(SHAPE)
    cursor = Cursor(everything(), durations)
    assert cursor.take(2).tolist() == [0, 1]
    durations.add(everything(), TIMES.ravel())
    assert TIMES.ravel()[cursor.take(1)[0]] == TIMES.max()


def test_no_cell_leaves_its_window(monkeypatch):
    monkeypatch.setattr(order, "WINDOW_CELLS", 12)
    durations = Durations(SHAPE)
    durations.add(everything(), TIMES.ravel())
    found = np.array(drain(Cursor(everything(), durations)))
    assert np.array_equal(np.sort(found.reshape(5, 12), axis=1), everything().reshape(5, 12))


@pytest.mark.parametrize("number", [0, 1, 1000])
def test_at_least_one_cell_is_taken(number):
    assert len(Cursor(everything(), Durations(SHAPE)).take(number)) == min(max(number, 1), TIMES.size)
