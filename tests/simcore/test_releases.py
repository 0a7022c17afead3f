"""Expected releases, beside a plain list, in short lists and long ones."""

import numpy as np
import pytest
from faultsweep.simcore.engine.build import build_state
from faultsweep.simcore.engine.events import add_release, drop_release
from faultsweep.simcore.engine.jit import entry_kernel
from faultsweep.simcore.engine.state import state_at
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.parameters import resolve

JOBS = 100


@entry_kernel
def note(table, times, items):
    s = state_at(table)
    for at in range(items.shape[0]):
        add_release(s, times[at], items[at])


@entry_kernel
def forget(table, item):
    drop_release(state_at(table), item)


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 34, JOBS])
def test_releases_are_forgotten_one_by_one(count):
    """In any order, with equal times, nodes that are down among them, and items that are not listed."""
    columns = {"submit_s": 0.0, "work_s": 1.0, "estimate_s": 1.0, "requested": 1, "size": 1}
    jobs = {name: np.full(JOBS, value) for name, value in columns.items()}
    config = resolve({"machine": "flat:4", "scheduler": "fcfs", "requeue_hold_s": 1.0})  # rows for jobs that wait
    state = build_state(jobs, parse_machine("flat:4"), config, None, tracing=False)
    random = np.random.default_rng(count)
    items, times = random.permutation(np.arange(-4, JOBS - 4))[:count], random.integers(0, 9, count) + 0.0
    note(state.handle, times, items)
    expected = sorted(zip(times.tolist(), items.tolist(), strict=True), key=lambda release: release[0])
    for item in [*random.permutation(items).tolist(), JOBS, -5]:
        forget(state.handle, JOBS + 1)
        forget(state.handle, item)
        expected = [release for release in expected if release[1] != item]
        listed = slice(int(state.num_releases))
        found = zip(state.release_time[listed].tolist(), state.release_item[listed].tolist(), strict=True)
        assert list(found) == expected
