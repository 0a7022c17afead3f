"""Co-allocation over clusters (akshitha2011): traffic, the fluid model and the agent's choice, in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any


def mesh_rows(nodes: int) -> int:
    """Rows of the mesh: the largest divisor of the number of nodes not above its square root."""
    return max(rows for rows in range(1, isqrt(nodes) + 1) if nodes % rows == 0)


def mesh_edges(nodes: int) -> list[tuple[int, int]]:
    """The edges of the mesh, ranks row by row."""
    columns = nodes // mesh_rows(nodes)
    right = [(rank, rank + 1) for rank in range(nodes) if (rank + 1) % columns]
    below = [(rank, rank + columns) for rank in range(nodes - columns)]
    return right + below


def leaving_edges(parts: Sequence[int]) -> list[int]:
    """For each cluster the mesh edges that leave it; clusters take consecutive ranks in order."""
    cluster_of = [cluster for cluster, count in enumerate(parts) for _ in range(count)]
    crossing = [(cluster_of[a], cluster_of[b]) for a, b in mesh_edges(sum(parts)) if cluster_of[a] != cluster_of[b]]
    return [sum(cluster in edge for edge in crossing) for cluster in range(len(parts))]


def traffic(parts: Sequence[int], bandwidth: Any, mesh_share: Any) -> list[Fraction]:
    """What a job with ``parts`` nodes in the clusters puts on each trunk: all-to-all and nearest-neighbour traffic."""
    nodes, m, b = sum(parts), Fraction(mesh_share), Fraction(bandwidth)
    demands = []
    for count, edges in zip(parts, leaving_edges(parts), strict=True):
        all_to_all = (1 - m) * b * count * (nodes - count) / (nodes - 1) if nodes > 1 else Fraction(0)
        demands.append(all_to_all + m * b / 4 * edges)
    return demands


@dataclass(eq=False)
class Running:
    """A job that communicates: compute and communication time on one cluster, demand on each trunk, part done."""

    compute: Any
    communicate: Any
    demands: Sequence[Any]
    done: Fraction = Fraction(0)

    def seconds(self, saturations: Sequence[Fraction]) -> Fraction:
        """The time the whole job would take at these saturations: only the worst of its own trunks counts."""
        worst = max((s for s, demand in zip(saturations, self.demands, strict=True) if demand > 0), default=0)
        return self.compute + max(Fraction(1), worst) * Fraction(self.communicate)

    def remaining(self, saturations: Sequence[Fraction]) -> Fraction:
        return (1 - self.done) * self.seconds(saturations)


def saturations(jobs: Sequence[Running], capacities: Sequence[Any]) -> list[Fraction]:
    """Demand over capacity of each trunk."""
    return [
        sum((Fraction(job.demands[i]) for job in jobs), Fraction(0)) / Fraction(capacity)
        for i, capacity in enumerate(capacities)
    ]


def finish_times(jobs: Sequence[tuple[Running, Any]], capacities: Sequence[Any]) -> list[Fraction]:
    """When each of the jobs (job, start) ends: shares are computed anew at every start and end."""
    waiting = sorted(jobs, key=lambda entry: entry[1])
    running: list[Running] = []
    ends: dict[Running, Fraction] = {}
    now = Fraction(0)
    while waiting or running:
        shares = saturations(running, capacities)
        next_end = min((now + job.remaining(shares) for job in running), default=None)
        next_start = Fraction(waiting[0][1]) if waiting else None
        then = min(time for time in (next_end, next_start) if time is not None)
        for job in running:
            job.done += (then - now) / job.seconds(shares)
        now = then
        for job in [job for job in running if job.done == 1]:
            running.remove(job)
            ends[job] = now
        while waiting and waiting[0][1] == now:
            running.append(waiting.pop(0)[0])
    return [ends[job] for job, _ in jobs]


def fits(stated: Sequence[Sequence[Any]], capacities: Sequence[Any]) -> bool:
    """Whether the demands that the scheduler believes in fit the trunks (bandwidth-aware co-allocation)."""
    return all(sum(demand[i] for demand in stated) <= capacity for i, capacity in enumerate(capacities))


@dataclass(eq=False)
class Candidate:
    """A co-allocated job as the agent sees it."""

    name: str
    parts: Sequence[int]
    underestimated: bool
    running: Running


def agent_choice(
    jobs: Sequence[Candidate], capacities: Sequence[Any], overhead: Any, waiting: Sequence[int], cp_frac: Any
) -> tuple[int | None, str | None]:
    """Steps 1 and 2 of the agent (akshitha2011, II.E): the most saturated trunk and the job to take, if any.

    A waiting job of a size in ``waiting`` could use the nodes that the job frees in one cluster; all others are busy.
    """
    shares = saturations([job.running for job in jobs], capacities)
    if max(shares) <= 1:
        return None, None
    trunk = shares.index(max(shares))
    for job in sorted(jobs, key=lambda job: -job.running.demands[trunk]):
        on_trunk = job.running.demands[trunk] > 0
        cheap = overhead < Fraction(cp_frac) * job.running.remaining(shares)
        useful = any(size <= max(job.parts) for size in waiting)
        if on_trunk and job.underestimated and cheap and useful:
            return trunk, job.name
    return trunk, None
