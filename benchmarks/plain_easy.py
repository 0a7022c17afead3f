"""FCFS and EASY on a flat machine in plain Python, as short as they can be: the yardstick for the compiled engine."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def schedule(
    submit: Sequence[float],
    run: Sequence[float],
    estimate: Sequence[float],
    size: Sequence[int],
    nodes: int,
    easy: bool,
) -> list[float]:
    """Return the start of every job: completions before arrivals of an instant, then one pass."""
    start = [0.0] * len(submit)
    ends: list[tuple[float, int]] = []
    running: dict[int, float] = {}
    queue: list[int] = []
    free, following = nodes, 0

    def begin(job: int, now: float) -> None:
        nonlocal free
        start[job] = now
        free -= size[job]
        running[job] = now + estimate[job]
        heapq.heappush(ends, (now + run[job], job))

    while following < len(submit) or ends:
        now = min(ends[0][0] if ends else float("inf"), submit[following] if following < len(submit) else float("inf"))
        while ends and ends[0][0] == now:
            _, job = heapq.heappop(ends)
            free += size[job]
            del running[job]
        while following < len(submit) and submit[following] == now:
            queue.append(following)
            following += 1
        while queue and size[queue[0]] <= free:
            begin(queue.pop(0), now)
        if easy and len(queue) > 1 and free:
            _backfill(queue, running, size, estimate, free, now, begin)
    return start


def _backfill(queue, running, size, estimate, free, now, begin):
    """Start later jobs that end by the head job's reservation or leave it the nodes that it needs then."""
    left, shadow = free, float("inf")
    for end, job in sorted((end, job) for job, end in running.items()):
        if left >= size[queue[0]] and end > shadow:
            break
        left += size[job]
        if left >= size[queue[0]]:
            shadow = max(end, now)
    extra = left - size[queue[0]]
    for job in queue[1:]:
        in_time = shadow > now and now + estimate[job] <= shadow
        if size[job] <= free and (in_time or size[job] <= extra):
            extra -= 0 if in_time else size[job]
            free -= size[job]
            queue.remove(job)
            begin(job, now)
