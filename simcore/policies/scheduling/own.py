"""A queue discipline of the user's on a flat machine: a function that says which later jobs may overtake the head.

Jobs start in order up to the first that cannot. A job behind it that fits starts if the function says so; the first of
them that may is asked about anew after each start.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import FLAT
from faultsweep.simcore.engine.allocation import start_on_flat
from faultsweep.simcore.engine.events import dequeue_at
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.own import call_own
from faultsweep.simcore.engine.state import OWN_PASS, State
from faultsweep.simcore.outside import Shape, address_of, own_policy
from faultsweep.simcore.policies.scheduling.fcfs import start_in_order

_TEMPLATE = """
    for position in range(s.queue_head + 1, s.queue_tail):
        job = s.queue[position]
        if s.job.size[job] <= s.free and _policy(ARGUMENTS):
            return position
    return -1
"""

SHAPE = Shape(
    "scheduler",
    {
        "nodes": ("s.job.size[job]", "nodes of a job that fits"),
        "estimate_s": ("s.job.estimate[job] - s.job.saved[job]", "run time that the scheduler still expects of it, s"),
        "wait_s": ("s.now - s.job.submit[job]", "time since its submission, s"),
        "free": ("s.free", "free nodes"),
        "head_nodes": ("s.job.size[s.queue[s.queue_head]]", "nodes of the job at the head of the queue"),
        "until_reservation_s": ("s.reservation - s.now", "time until the head of the queue can start as expected, s"),
        "extra": ("s.own_extra", "nodes that the head will not need then"),
        "overtaken": ("position - s.queue_head", "jobs that it would overtake"),
    },
    _TEMPLATE,
    place=3,
)


@kernel
def start_allowed(s: State) -> bool:
    """Run one pass."""
    start_in_order(s)
    while s.queue_tail - s.queue_head > 1 and s.free > 0 and s.passes_again == 0:
        _reserve(s)
        position = call_own(s.own_pass, s, 0, 0, 0)
        if position < 0:
            break
        job = s.queue[position]
        dequeue_at(s, position)
        start_on_flat(s, job)
    return True


@kernel
def _reserve(s: State) -> None:
    """Find when the head of the queue can start as expected, and how many nodes are free beside it then."""
    size, free, at = s.job.size[s.queue[s.queue_head]], s.free, 0
    s.reservation = np.inf
    while at < s.num_releases:
        time = s.release_time[at]
        if free >= size and time > s.reservation:
            break
        item = int(s.release_item[at])
        free += s.job.allocated[item] if item >= 0 else 1
        if free >= size:
            s.reservation = max(time, s.now)
        at += 1
    s.own_extra = free - size


def _begin(s: State, value: str) -> None:
    s.own_pass = address_of(value, SHAPE)


POLICY = own_policy(
    SHAPE, machines=(FLAT,), kernels={"start_jobs": start_allowed}, facts={"reserves": OWN_PASS}, begins=_begin
)
