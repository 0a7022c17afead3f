"""What must hold in every event trace, checked from the trace and the jobs alone."""

from __future__ import annotations

from collections.abc import Sequence

from tests.reference.machines import Menu
from tests.reference.machines import machine as machine_of


def check_trace(events: Sequence[tuple], jobs: Sequence[Sequence], machine: str, whole: bool = True) -> None:
    """No node is shared or down, every allocation is a box of at least the job's size, and every job ends once (at
    most, where the run is not ``whole``)."""
    place = machine_of(machine)
    asked = {row[0]: row[4] for row in jobs}
    assert [row[0] for row in events] == sorted(row[0] for row in events), "times run backwards"
    instants: dict = {}
    for row in events:
        instants.setdefault(row[0], []).append(row)
    held: dict[int, set[int]] = {}
    started: set[int] = set()
    down: set[int] = set()
    ended: list[int] = []
    for rows in instants.values():
        for _, kind, job, nodes in rows:
            if kind in ("schedule", "start", "migrate"):
                assert kind != "start" or job not in started, f"job {job} starts twice"
                assert kind != "schedule" or job not in held, f"job {job} is scheduled twice"
                assert kind != "migrate" or job in held, f"job {job} migrates without nodes"
                assert kind != "start" or job not in held or held[job] == set(nodes), f"job {job} starts elsewhere"
                started |= {job} if kind == "start" else set()
                check_allocation(place, nodes, asked[job], grown_from=held.get(job))
                held[job] = set(nodes)
            elif kind in ("finish", "kill"):
                assert job in held, f"job {job} ends without having started"
                started.discard(job)
                del held[job]
                ended += [job] if kind == "finish" else []
            elif kind == "fail":
                down.add(nodes[0])
            elif kind == "repair":
                down.discard(nodes[0])
        in_use = [node for nodes in held.values() for node in nodes]
        assert len(in_use) == len(set(in_use)), f"nodes are shared at {rows[0][0]}"
        assert not down & set(in_use), f"a down node is in use at {rows[0][0]}"
    assert len(set(ended)) == len(ended), "a job ended twice"
    assert not whole or sorted(ended) == sorted(asked), "not every job ended exactly once"


def check_allocation(place, nodes, asked: int, grown_from) -> None:
    assert len(nodes) == len(set(nodes)) >= asked
    if isinstance(place, Menu):
        midplanes = [{node for node in one if node < place.nodes} for one in place.partitions]
        assert set(nodes) in midplanes, f"{nodes} is no partition"
        assert len(nodes) == place.round_up(asked)
    elif place.is_torus:
        assert frozenset(nodes) in place.boxes(len(nodes)), f"{nodes} is no box"
    else:
        assert len(nodes) == asked
    if grown_from is not None:
        assert len(nodes) == len(grown_from), "a migration changes the size"


def check_fcfs_order(events: Sequence[tuple], jobs: Sequence[Sequence]) -> None:
    """First starts are in the order of arrival."""
    place = {row[0]: i for i, row in enumerate(sorted(jobs, key=lambda row: row[1]))}
    starts = [place[job] for _, kind, job, _ in events if kind == "start"]
    assert starts == sorted(starts)


def check_head_is_not_delayed(events: Sequence[tuple], jobs: Sequence[Sequence], machine: str) -> None:
    """With exact estimates the first job of the queue starts no later than what runs when it gets there allows."""
    place = machine_of(machine)
    by_id = {row[0]: row for row in jobs}
    order = [row[0] for row in sorted(jobs, key=lambda row: row[1])]
    started = {job: time for time, kind, job, _ in events if kind == "start"}
    ends = {job: started[job] + by_id[job][2] for job in started}
    nodes = {job: set(n) for _, kind, job, n in events if kind == "start"}
    for time in sorted({row[0] for row in events}):
        waiting = [job for job in order if by_id[job][1] <= time < started[job]]
        if not waiting:
            continue
        head = waiting[0]
        running = [job for job in order if started[job] <= time < ends[job]]
        possible = [
            end
            for end in sorted({ends[job] for job in running})
            if place.can_hold(by_id[head][4], set().union(*(nodes[job] for job in running if ends[job] > end)))
        ]
        assert started[head] <= possible[0], f"job {head} is delayed beyond {possible[0]}"
