"""``bucket``: time is cut into buckets from the first submission on, and at the start of one that will contain a
failure jobs are checkpointed: all, those that have run long, or the biggest (zhang2004, section V-C); again within it
at an interval, if one is given."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import State


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
def keep_biggest(s: State, count: int) -> int:
    """Move the biggest of ``count`` jobs to the front of the list ORDER, equal ones by index; return how many count."""
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
