"""``bucket``: time is cut into buckets from the first submission on, and at the start of one that will contain a
failure jobs are checkpointed: all, those that have run long, or the biggest (zhang2004, section V-C); again within it
at an interval, if one is given."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, SHORTEST_INTERVAL_S, Parameter, Policy, Run
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import BY_FORESIGHT, State
from faultsweep.simcore.policies.checkpointing import NO_FAILURES

BUCKET_JOBS = {
    "all": "All running jobs.",
    "long": "Jobs that have run for a while.",
    "biggest": "The jobs that hold most nodes.",
}
_ALL, _LONG, _BIGGEST = range(len(BUCKET_JOBS))


@kernel
def next_in_buckets(s: State) -> None:
    """Pass on to the next time in a bucket with a failure."""
    again = s.next_foreseen + s.bucket_repeat
    if s.next_foreseen < again < s.bucket_end:
        s.next_foreseen = again
        return
    at, count = s.next_foreseen_failure, s.fail_time.shape[0]
    while at < count and s.fail_time[at] < s.bucket_end:
        at += 1
    s.next_foreseen_failure = at
    if at == count:
        s.next_foreseen = np.inf
        return
    s.next_foreseen = np.floor(s.fail_time[at] / s.bucket) * s.bucket
    # also where rounding puts the failure at the end of its bucket
    s.bucket_end = max(s.next_foreseen + s.bucket, np.nextafter(s.fail_time[at], np.inf))


@kernel
def has_run_long(s: State, job: int) -> bool:
    """Tell whether a job has run long enough at NEXT_FORESEEN, where that matters."""
    return s.bucket_jobs != _LONG or s.next_foreseen - s.job.start[job] >= s.bucket_long


@kernel
def keep_biggest(s: State, count: int) -> int:
    """Move the biggest of ``count`` jobs to the front of the list ORDER, equal ones by index; return how many count."""
    if s.bucket_jobs != _BIGGEST:
        return count
    kept = min(count, s.bucket_biggest)
    for place in range(kept):
        best = place
        for at in range(place + 1, count):
            job, other = s.order[at], s.order[best]
            size, most = s.job.allocated[job], s.job.allocated[other]
            if size > most or (size == most and job < other):
                best = at
        other = s.order[place]
        s.order[place] = s.order[best]
        s.order[best] = other
    return kept


def _begin(s: State, run: Run) -> None:
    s.bucket = run["bucket_s"]
    s.bucket_repeat = run["bucket_repeat_s"]
    s.bucket_long = run["bucket_long_s"]
    s.bucket_jobs = list(BUCKET_JOBS).index(run["bucket_jobs"])
    s.bucket_biggest = run["bucket_biggest"]
    s.bucket_end = -np.inf


POLICY = Policy(
    "bucket",
    "At the start of every bucket of time that will contain a failure (zhang2004, section V-B).",
    parameters=(
        Parameter(
            "bucket_s",
            float,
            3600.0,
            "Length of a bucket: it is known beforehand whether one will contain a failure.",
            "checkpoints",
            minimum=SHORTEST_INTERVAL_S,
            unit="s",
        ),
        Parameter(
            "bucket_jobs",
            str,
            "all",
            "Which jobs a bucket with a failure checkpoints.",
            "checkpoints",
            choices=BUCKET_JOBS,
        ),
        Parameter(
            "bucket_repeat_s",
            float,
            0.0,
            "Interval of further checkpoints within a bucket; 0: once, at its start.",
            "checkpoints",
            minimum=0,
            unit="s",
            zero="for once",
        ),
        Parameter(
            "bucket_long_s",
            float,
            300.0,
            "How long a job must have run to be a long one.",
            "checkpoints",
            minimum=0,
            unit="s",
            live=lambda run: run["bucket_jobs"] == "long",
        ),
        Parameter(
            "bucket_biggest",
            int,
            1,
            "k: how many of the biggest jobs are checkpointed.",
            "checkpoints",
            minimum=1,
            unit="jobs",
            live=lambda run: run["bucket_jobs"] == "biggest",
        ),
    ),
    uses=("checkpoint_cost_s",),
    becomes=NO_FAILURES,
    machines=ONE_MACHINE,
    kernels={
        "pass_on_checkpoint": next_in_buckets,
        "checkpoint_is_due": has_run_long,
        "checkpoints_kept": keep_biggest,
    },
    facts={"looks_ahead": "bucket_s", "saves_by": BY_FORESIGHT},
    begins=_begin,
)
