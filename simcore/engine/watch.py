"""What makes every call of the compiled loop end, and every run: a clock, and how many events lead nowhere."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from faultsweep.simcore.engine.jit import deferred, inlined, is_interpreted, kernel
from faultsweep.simcore.engine.state import (
    CONTINUE,
    INVALID,
    NEED_FAILURES,
    NO_PROGRESS,
    STUCK,
    TOO_LATE,
    TRUNCATED,
    Common,
)
from numpy.typing import NDArray

from faultsweep.errors import InputError, InvariantError

RETURN_AFTER_NS = 100_000_000
"""A call of the loop lasts about this long, so that Ctrl-C, SIGTERM, heartbeats and progress have their turn."""
WORK_UNTIL_LOOK = 8192
"""The loop looks at the clock after this much work: a waiting job and 32 nodes each count as one, an event as eight.
Measured: an eighth of it costs runs with a thousand waiting jobs a twentieth of their speed."""
MOST_WITHOUT_JOB = 100_000_000
"""So many checkpoints, or looks of the agent, between two events of jobs would take a run days or years."""
MOST_IN_VAIN = 200_000
"""So many failures, and no job that waits finds nodes that are up: it may wait for days of computing."""
SHORTEST_RUN_S = 1e-12
"""No job may be shorter, once it is scaled: slowdowns are ratios to its run time."""
WITHOUT_LIMIT = 1 << 62
"""A budget of events that is never spent: the clock alone ends a call."""


_NAMED = 5  # jobs

clock_ns: Any = time.monotonic_ns if is_interpreted() else deferred("make_clock")
"""In kernels: the time of a clock that is never set back, ns."""


@inlined
def most_events(jobs: int, nodes: int) -> int:
    """Return more events than one time can have: every job may arrive, end, be saved, be killed and come back, and
    every node be repaired, each once."""
    return 8 * (jobs + nodes) + 64


def most_in_vain(nodes: int) -> int:
    """Return how many failures may come one after another while jobs wait and none runs: all nodes may fail at once."""
    return MOST_IN_VAIN + 8 * nodes


def named_jobs(job_ids: NDArray[np.int64]) -> str:
    """Return the jobs that a message names: "jobs 3, 7, 8, 9, 12 and 40 others", from their ids, at least one."""
    first = ", ".join(map(str, job_ids[:_NAMED].tolist()))
    others = f" and {len(job_ids) - _NAMED:,} others" if len(job_ids) > _NAMED else ""
    return f"job{'s' if len(job_ids) > 1 else ''} {first}{others}"


def check_end(code: int, name: str, state: Common) -> None:
    """Raise what a run ends with whose kernel broke off with a code of state.py: nothing for most.

    Raises
    ------
    InputError
        Events go on and the time does not, no job gets any further or finds nodes that are up, or times are too
        large.
    InvariantError
        A list did not fit that is always large enough.
    """
    now_s = float(state.now)
    if code == TOO_LATE:
        raise InputError(
            f"{name}: the event after {now_s:.17g} s is further from zero than {state.latest:g} s: beyond that "
            "times cannot be told apart to the millisecond"
        )
    if code == NO_PROGRESS and state.in_vain > state.most_in_vain:
        raise InputError(
            f"{name}: no waiting job has found enough nodes that are up during the last {state.most_in_vain:,} "
            f"failures up to {now_s:.17g} s; use fewer failures or shorter down times"
        )
    if code == NO_PROGRESS and state.without_job > state.most_without_job:
        raise InputError(
            f"{name}: {state.most_without_job:,} events up to {now_s:.17g} s, and no job started or ended; an "
            "interval is too short compared with the run times"
        )
    if code == NO_PROGRESS:
        raise InputError(
            f"{name}: the run makes no progress: events continue, but the time stays at {now_s:.17g} s; at so large "
            "a time the intervals of the run are too short to be represented"
        )
    if code == INVALID:
        raise InvariantError(
            f"{name}: at {now_s:.17g} s a list of the engine is full; this is an error of the simulator"
        )


@kernel
def stop_before(s: Common, time: float) -> int:
    """Return why a run stops, or waits for more failures, before the events of a time; CONTINUE if it goes on."""
    if time == np.inf:
        return NEED_FAILURES if s.drawn_until < np.inf else STUCK
    if min(time, s.horizon) >= s.drawn_until:
        return NEED_FAILURES
    if time > s.horizon:
        return TRUNCATED
    return TOO_LATE if abs(time) > s.latest else CONTINUE
