"""What is imported is not searched for garbage, and what was set about that search stays."""

from __future__ import annotations

import gc
import weakref

import pytest

import faultsweep
from faultsweep.garbage import uncollected


@pytest.fixture(autouse=True)
def thawed():
    gc.unfreeze()  # what conftest.py has frozen
    yield
    gc.freeze()


@pytest.fixture
def phases():
    seen = []
    gc.callbacks.append(watch := lambda phase, _: seen.append(phase))
    yield seen
    gc.callbacks.remove(watch)


def test_no_garbage_is_looked_for_among_what_is_made(phases):
    gc.collect()
    phases.clear()
    with uncollected():
        made = [[] for _ in range(100_000)]
        assert not gc.isenabled()
    assert gc.isenabled()
    assert not phases
    assert gc.get_count()[0] < 1000 <= len(made), "it counts as old"


def test_garbage_goes_at_the_next_whole_search():
    class Knot:
        pass

    with uncollected():
        knot = Knot()
        knot.itself = knot
        gone = weakref.ref(knot)
        del knot
    gc.collect()
    assert gone() is None


def test_what_was_off_or_frozen_stays_so():
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with uncollected():
            made = [[] for _ in range(1000)]
        assert frozen - 100 < gc.get_freeze_count() <= frozen
        assert len(made) == 1000
    finally:
        gc.unfreeze()


def test_it_goes_on_after_an_error():
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.isenabled()


def test_only_the_first_use_of_a_name_touches_what_is_collected(monkeypatch):
    """Else a loop that uses one would keep its garbage for ever, and wait for it each time."""
    assert faultsweep.InputError is not None
    monkeypatch.setattr(faultsweep, "uncollected", lambda: pytest.fail("once is enough"))
    assert faultsweep.InputError is not None
