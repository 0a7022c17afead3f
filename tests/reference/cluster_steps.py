"""The fluid model on clusters by small fixed steps: approximate, and independent of how events are found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.reference.clusters import traffic


def work_by_steps(system: Any, run: Any, step: float) -> tuple[NDArray[np.float64], int]:
    """The work that each job has done at its finish, s, and how many starts, stops and failures there were.

    ``system`` is a ``tests.clusters.System`` and ``run`` what the engine made of it: only what happened when is taken
    from it, starts, stops, failures and repairs, not how fast any job was.
    """
    first = np.cumsum(system.sizes) - np.array(system.sizes)
    count, capacity = len(system.jobs), np.array(system.trunks)
    compute, talk = (np.array([row[k] for row in system.jobs]) for k in (1, 2))
    mesh, half = system.parameters["mesh_share"], system.parameters["overhead_s"] / 2
    stops = {(run.decisions.time_s[k], run.decisions.job_id[k]) for k in np.flatnonzero(run.decisions.verdict >= 6)}
    changes: list[tuple[float, str, int, Any]] = []
    checkpoints, kills = np.zeros(count, int), np.zeros(count, int)
    begins: dict[int, tuple[float, str, int]] = {}
    for time, kind, k, _, nodes in run.events.rows():
        if kind in ("finish", "kill", "checkpoint"):
            changes = [each for each in changes if each[:3] != begins.get(k) or each[0] <= time]
            changes.append((time, kind, k, None))
            checkpoints[k] += kind == "checkpoint"
            kills[k] += kind == "kill"
        elif kind == "start":
            parts = [sum(a <= node < a + n for node in nodes) for a, n in zip(first, system.sizes, strict=True)]
            pause = half * (checkpoints[k] > 0) + system.parameters["restart_cost_s"] * (kills[k] > 0)
            begins[k] = (time + pause, "start", k)
            changes.append((*begins[k], [float(d) for d in traffic(parts, system.jobs[k][5], mesh)]))
        elif kind in ("fail", "repair") and nodes[0] >= sum(system.sizes):
            changes.append((time, kind, nodes[0] - sum(system.sizes), None))
    changes += [(time, "stop", k, None) for time, k in stops] if half else []
    changes.sort(key=lambda change: change[0])  # of one instant in the order in which they happened
    done, saved, finished = np.zeros(count), np.zeros(count), np.full(count, np.nan)
    works, demand, down = np.zeros(count, bool), np.zeros((count, len(capacity))), np.zeros(len(capacity), bool)
    now = changes[0][0]
    for time, kind, k, demands in changes:
        while now < time - step / 2:
            now += step
            total = (demand * works[:, None]).sum(axis=0)
            saturation = np.where(down & (total > 0), np.inf, total / capacity)
            worst = np.maximum(1.0, np.where(demand > 0, saturation, 0.0).max(axis=1))
            with np.errstate(invalid="ignore"):
                span = np.where(talk > 0, compute + worst * talk, compute)
            done[works] += (step * (compute + talk) / span)[works]
        if kind in ("fail", "repair"):
            down[k] = kind == "fail"
            continue
        works[k] = kind == "start"
        if kind == "start":
            demand[k] = demands
        elif kind == "kill":
            done[k] = saved[k]
        elif kind == "checkpoint":
            saved[k] = done[k]
        elif kind == "finish":
            finished[k] = done[k]
    return finished, len(changes)
