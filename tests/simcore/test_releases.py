"""The list of expected releases, beside a plain one: to move an entry is to drop it and to add it again."""

import numpy as np
import pytest
from faultsweep.simcore.engine.build import build_state
from faultsweep.simcore.engine.events import add_release, drop_release, move_release
from faultsweep.simcore.engine.jit import entry_kernel
from faultsweep.simcore.engine.state import state_at
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.parameters import resolve

JOBS = 100
ADD, DROP, MOVE = range(3)


@entry_kernel
def play(table, kind, time, item):
    """Do one thing after the other."""
    s = state_at(table)
    for at in range(kind.shape[0]):
        if kind[at] == ADD:
            add_release(s, time[at], item[at])
        elif kind[at] == DROP:
            drop_release(s, item[at])
        else:
            move_release(s, time[at], item[at])


@pytest.mark.parametrize("seed", range(20))
def test_an_entry_moves_to_behind_those_of_its_new_time(seed):
    random, listed, events = np.random.default_rng(seed), [], []
    for _ in range(400):
        item, time = int(random.integers(JOBS)), float(random.integers(30))
        there = any(found == item for _, found in listed)
        kind = int(random.choice((DROP, MOVE, MOVE) if there else (ADD, ADD, MOVE)))
        events.append((kind, time, item))
        listed = [entry for entry in listed if entry[1] != item]
        if kind != DROP:
            listed = sorted([*listed, (time, item)], key=lambda entry: entry[0])
    jobs = {"submit_s": np.zeros(JOBS), "work_s": np.ones(JOBS), "estimate_s": np.ones(JOBS)}
    jobs |= {"requested": np.ones(JOBS, np.int64), "size": np.ones(JOBS, np.int64)}
    state = build_state(jobs, parse_machine(f"flat:{JOBS}"), resolve({}), None, tracing=False)
    kind, time, item = (np.array(column) for column in zip(*events, strict=True))
    play(state.handle, kind, time.astype(float), item)
    count = int(state.num_releases)
    found = zip(state.release_time[:count].tolist(), state.release_item[:count].astype(int).tolist(), strict=True)
    assert list(found) == listed
