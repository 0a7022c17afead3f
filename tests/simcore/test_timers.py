"""Timers, beside a plain list that is sorted each time."""

import numpy as np
import pytest
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.build import build_state
from faultsweep.simcore.engine.jit import entry_kernel
from faultsweep.simcore.engine.state import state_at
from faultsweep.simcore.engine.timers import (
    cancel_timer,
    first_key,
    first_time,
    has_timer,
    pop_timer,
    push_timer,
    set_timers,
)
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.parameters import resolve

JOBS = 500
PUSH, POP, CANCEL = range(3)


@entry_kernel
def play(table, kind, time, key, times, keys):
    """Do one thing after the other; note the first timer after each, or that there is none (NaN, -1)."""
    s = state_at(table)
    for at in range(kind.shape[0]):
        if kind[at] == PUSH:
            push_timer(s, time[at], key[at])
        elif kind[at] == CANCEL:
            cancel_timer(s, key[at])
        elif has_timer(s):
            pop_timer(s)
        times[at] = first_time(s) if has_timer(s) else np.nan
        keys[at] = int(first_key(s)) if has_timer(s) else -1


def played(state, events):
    """The first timer after each event, as (time, key)."""
    kind, time, key = (np.array(column) for column in zip(*events, strict=True))
    times, keys = np.zeros(len(kind)), np.zeros(len(kind), np.int64)
    play(state.handle, kind, time.astype(float), key, times, keys)
    return list(zip(times.tolist(), keys.tolist(), strict=True))


def expected(events, known=()):
    """The same of a sorted list."""
    timers, firsts = sorted(known), []
    for kind, time, key in events:
        if kind == PUSH:
            timers = sorted([*timers, (time, key)])
        elif kind == CANCEL:
            timers = [timer for timer in timers if timer[1] != key]
        else:
            timers = timers[1:]
        firsts.append(timers[0] if timers else (None, -1))
    return firsts


@pytest.fixture
def state():
    columns = {"submit_s": 0.0, "work_s": 1.0, "estimate_s": 1.0, "requested": 1, "size": 1}
    jobs = {name: np.full(JOBS, value) for name, value in columns.items()}
    config = {"machine": "flat:1", "scheduler": "fcfs", "requeue_hold_s": 1.0}  # each job may have a timer
    return build_state(jobs, parse_machine("flat:1"), resolve(config), None, tracing=False)


def drawn(seed, count, most):
    """Events at few times or many, with up to ``most`` timers at once, most of which come soon, late or anywhere."""
    random = np.random.default_rng([seed, most])
    later = [lambda: random.integers(0, 4), random.random, lambda: 1e3 * random.random(), lambda: random.pareto(0.3)]
    delay = later[seed % len(later)]
    events, waiting, unused, now = [], set(), list(random.permutation(most)), 0.0
    for _ in range(count):
        kind = random.choice(3, p=(0.6, 0.3, 0.1) if random.random() < 0.8 else (0.05, 0.9, 0.05))
        if kind == PUSH and unused:
            events.append((PUSH, float(now + delay()), int(unused.pop())))
            waiting.add(events[-1][1:])
        elif kind == CANCEL and waiting:
            gone = sorted(waiting)[random.integers(len(waiting))]
            events.append((CANCEL, 0.0, gone[1]))
            waiting.remove(gone)
            unused.append(gone[1])
        elif waiting:
            first = min(waiting)
            events.append((POP, 0.0, 0))
            waiting.remove(first)
            unused.append(first[1])
            now = first[0]
        else:
            events.append((random.choice([POP, CANCEL]), 0.0, most))
    return events


@pytest.mark.sampled(10)
@pytest.mark.parametrize("most", [1, 3, st.SOON, st.SOON + 1, JOBS])
@pytest.mark.parametrize("seed", range(8))
def test_timers_come_in_order_of_time_and_key(state, seed, most):
    events = drawn(seed, 3000, most)
    given = played(state, events)
    assert [(None if key < 0 else time, key) for time, key in given] == expected(events)


@pytest.mark.parametrize("count", [0, 1, st.SOON, st.SOON + 1, 300])
def test_timers_that_are_set_before_a_run(state, count):
    random = np.random.default_rng(count)
    known = list(zip((random.integers(0, 50, count) + 0.0).tolist(), random.permutation(count).tolist(), strict=True))
    set_timers(state, known)
    events = [(POP, 0.0, 0)] * count + [(PUSH, 1.0, 7)]
    assert [(None if key < 0 else time, key) for time, key in played(state, events)] == expected(events, known)


def test_nothing_is_written_behind_the_last_place(state):
    room = state.timer_time.shape[0]
    state.release_time[:] = -7.0  # the row behind
    events = [(PUSH, 1.0 + key, key) for key in range(room)]
    assert played(state, events)[-1] == (1.0, 0)
    assert state.no_room == st.BROKEN
    assert (state.release_time == -7.0).all()
    assert state.num_later == room - st.SOON


@pytest.mark.parametrize("first", [0, st.SOON])
def test_timers_are_cancelled_one_by_one(state, first):
    """Those of the list or those of the heap first."""
    number = 2 * st.SOON
    keys = [(first + at) % number for at in range(number)]
    events = [(PUSH, float(key), key) for key in range(number)] + [(CANCEL, 0.0, key) for key in keys]
    assert [(None if key < 0 else time, key) for time, key in played(state, events)] == expected(events)
