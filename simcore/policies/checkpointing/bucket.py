"""``bucket``: time is cut into buckets from time zero of the run on, and at the start of one that will contain a
failure jobs are checkpointed: all, those that have run long, or the biggest (zhang2004, section V-C); again within it
at an interval, if one is given."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    ALLOCATED,
    BUCKET,
    BUCKET_BIGGEST,
    BUCKET_END,
    BUCKET_ORIGIN,
    BUCKET_REPEAT,
    FAIL_TIME,
    NEXT_FORESEEN,
    NEXT_FORESEEN_FAILURE,
    ORDER,
)


@kernel
def next_in_buckets(s):
    """Pass on to the next time in a bucket with a failure."""
    again = s.f[NEXT_FORESEEN] + s.f[BUCKET_REPEAT]
    if s.f[NEXT_FORESEEN] < again < s.f[BUCKET_END]:
        s.f[NEXT_FORESEEN] = again
        return
    at, count = s.i[NEXT_FORESEEN_FAILURE], s.failures.shape[1]
    while at < count and s.failures[FAIL_TIME, at] < s.f[BUCKET_END]:
        at += 1
    s.i[NEXT_FORESEEN_FAILURE] = at
    if at == count:
        s.f[NEXT_FORESEEN] = np.inf
        return
    number = np.floor((s.failures[FAIL_TIME, at] - s.f[BUCKET_ORIGIN]) / s.f[BUCKET])
    s.f[NEXT_FORESEEN] = s.f[BUCKET_ORIGIN] + number * s.f[BUCKET]
    # also where rounding puts the failure at the end of its bucket
    s.f[BUCKET_END] = max(s.f[NEXT_FORESEEN] + s.f[BUCKET], np.nextafter(s.failures[FAIL_TIME, at], np.inf))


@kernel
def keep_biggest(s, count):
    """Move the biggest of ``count`` jobs to the front of the list ORDER, equal ones by index; return how many count."""
    kept = min(count, s.i[BUCKET_BIGGEST])
    for place in range(kept):
        best = place
        for at in range(place + 1, count):
            job, other = s.lists[ORDER, at], s.lists[ORDER, best]
            size, most = s.job_i[ALLOCATED, job], s.job_i[ALLOCATED, other]
            if size > most or (size == most and job < other):
                best = at
        other = s.lists[ORDER, place]
        s.lists[ORDER, place] = s.lists[ORDER, best]
        s.lists[ORDER, best] = other
    return kept
