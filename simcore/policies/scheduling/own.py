"""A queue discipline of the user's: a function that says which later jobs may overtake the first that waits.

Jobs start in order up to the first that cannot. A job behind it that fits starts if the function says so; the first of
them that may is asked about anew after each start. On a site each partition has such a first job, and whoever shares
nodes with it overtakes it.
"""

from __future__ import annotations

from faultsweep.simcore.contract import FLAT, SITE
from faultsweep.simcore.engine.allocation import start_on_flat
from faultsweep.simcore.engine.events import dequeue_at
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.own import HEAD, call_own
from faultsweep.simcore.engine.pieces import reserve_pieces
from faultsweep.simcore.engine.state import OWN_PASS, State
from faultsweep.simcore.model.machines import SITE as AT_SITE
from faultsweep.simcore.outside import Shape, address_of, own_policy
from faultsweep.simcore.policies.scheduling.backfill import reserve_head
from faultsweep.simcore.policies.scheduling.fcfs import start_in_order
from faultsweep.simcore.policies.scheduling.long_queue import ends_by
from faultsweep.simcore.policies.scheduling.shared_nodes import (
    choose,
    comes_before,
    delays,
    forget_reservations,
    reserve_first,
    start_on_pieces,
)

_ASKS, _LATE, _IN_TIME = range(3)
"""What a loop knows of a job's delaying another: nothing (a flat machine), and what was found (a site)."""

_TEMPLATE = """
    for position in range(a, b):
        job = s.queue[position]
        if (c != 0 or s.job.size[job] <= s.free) and _policy(ARGUMENTS):
            return position
    return -1
"""

SHAPE = Shape(
    "scheduler",
    {
        "nodes": ("s.job.size[job]", "nodes (site: cores) of a job that fits"),
        "estimate_s": ("s.job.estimate[job] - s.job.saved[job]", "run time that the scheduler still expects of it, s"),
        "wait_s": ("s.now - s.job.eligible[job]", "time since its submission, s"),
        "free": ("s.free", "free nodes (site: cores)"),
        "head_nodes": ("s.job.size[s.own_head]", "nodes (site: cores) of the job that it would overtake first"),
        "until_reservation_s": ("s.reservation - s.now", "time until that one can start as expected, s"),
        "extra": ("s.own_extra", "nodes that it will not need then (site: parts like its own for which there is room)"),
        "delays": ("c == 1 or c == 0 and _delays(s, job)", "whether that one would have to start later, as expected"),
        "overtaken": ("position - s.queue_head", "jobs that it would overtake"),
    },
    _TEMPLATE,
    place=3,
    head="\n\nfrom faultsweep.simcore.policies.scheduling.own import delays_head as _delays" + HEAD,
)


@kernel
def start_allowed(s: State) -> bool:
    """Run one pass."""
    if s.kind == AT_SITE:
        _start_allowed_on_site(s)
        return True
    start_in_order(s)
    while s.queue_tail - s.queue_head > 1 and s.free > 0 and s.passes_again == 0:
        s.own_head = s.queue[s.queue_head]
        s.own_extra, s.reservation = reserve_head(s)
        position = call_own(s.own_pass, s, s.queue_head + 1, s.queue_tail, _ASKS)
        if position < 0:
            break
        job = s.queue[position]
        dequeue_at(s, position)
        start_on_flat(s, job)
    return True


@kernel
def _start_allowed_on_site(s: State) -> None:
    """Run one pass on a site."""
    forget_reservations(s)
    position = s.queue_head
    while position < s.queue_tail and s.free > 0 and s.passes_again == 0:
        job = s.queue[position]
        if s.job.requested[job] <= s.free and choose(s, job) and _may_overtake(s, position, job):
            dequeue_at(s, position)
            reserve_pieces(s, job)
            start_on_pieces(s, job)
            forget_reservations(s)
            position = s.queue_head
            continue
        if s.head_job[s.job.partition[job]] < 0:
            reserve_first(s, job, s.job.partition[job])
        position += 1


@kernel
def _may_overtake(s: State, position: int, job: int) -> bool:
    """Tell whether a job may overtake the first of every partition that shares nodes with its own."""
    for partition in range(s.head_job.shape[0]):
        if comes_before(s, job, partition):
            s.own_head, s.own_extra = s.head_job[partition], s.head_extra[partition]
            s.reservation = s.head_time[partition]
            late = _LATE if delays(s, job, partition) else _IN_TIME
            if call_own(s.own_pass, s, position, position + 1, late) < 0:
                return False
    return True


@inlined
def delays_head(s: State, job: int) -> bool:
    """Tell whether the head of the queue would have to start later on a flat machine if a job starts now."""
    return s.job.size[job] > s.own_extra and not ends_by(s, job, s.reservation)


def _begin(s: State, value: str) -> None:
    s.own_pass = address_of(value, SHAPE)


POLICY = own_policy(
    SHAPE, machines=(FLAT, SITE), kernels={"start_jobs": start_allowed}, facts={"reserves": OWN_PASS}, begins=_begin
)
