"""Systems of clusters for tests: small ones by hand, random ones, and both implementations on the same one."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fractions import Fraction
from math import nan
from typing import Any

import numpy as np
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.clusters import state as cs
from faultsweep.simcore.engine.clusters.build import build_clusters
from faultsweep.simcore.engine.clusters.communication import Communication
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.simulate import Run, simulate

from tests.reference.cluster_simulator import Job, Options, Simulator


@dataclass
class System:
    """Clusters, jobs (submit, T_P, T_C, size, home, bandwidth, stated or None, estimate) and parameters."""

    sizes: tuple[int, ...]
    trunks: tuple[float, ...]
    jobs: list[tuple[float, float, float, int, int, float, float | None, float]]
    failures: list[tuple[float, int, float]] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)

    def engine(self, **options: Any) -> Run:
        """Run the engine."""
        columns = np.array([[nan if x is None else x for x in job] for job in self.jobs], float).T
        count = len(self.jobs)
        workload = Workload(
            job_id=np.arange(count),
            submit_s=columns[0],
            run_s=columns[1] + columns[2],
            requested_s=columns[7],
            size=columns[3].astype(np.int64),
            user=np.full(count, -1),
            home=columns[4].astype(np.int64),
        )
        machine = "+".join(f"{n}@{trunk:g}" for n, trunk in zip(self.sizes, self.trunks, strict=True))
        failures = None
        if self.failures:
            time_s, node, down_s = zip(*self.failures, strict=True)
            failures = FailureTrace(np.array(time_s, float) - columns[0].min(), np.array(node), np.array(down_s, float))
        defaults = {"scheduler": "first-fit", "mesh_share": 0.0, "estimates": "requested", "events": True}
        return simulate(
            workload,
            machine=f"clusters:{machine}",
            communication=Communication(columns[2], columns[5], columns[6]),
            failures=failures,
            **{"trace": True, "debug": True, **defaults, **self.parameters, **options},
        )

    def reference(self) -> Simulator:
        """Run the reference simulator."""
        given = {"meta_scheduler": "bandwidth-aware", "scheduler": "first-fit", **self.parameters}
        options = Options(
            meta=given["meta_scheduler"],
            scheduler=given["scheduler"],
            one_queue=given.get("queues") == "global",
            minimum_cut=given.get("partitioning") == "minimum-cut",
            mesh=Fraction(given.get("mesh_share", 0)),
            agent=given.get("agent", "none"),
            overhead=Fraction(given.get("overhead_s", 720)),
            believed_overhead=None if given.get("overhead_known", True) else Fraction(1800),
            cp_frac=Fraction(given.get("cp_frac", 0.04)),
            interval=Fraction(given.get("agent_interval_s", 300)),
            restart_cost=Fraction(given.get("restart_cost_s", 0)),
            stalls=given.get("trunk_outage") == "stall",
        )
        jobs = []
        for index, row in enumerate(self.jobs):
            submit, compute, communicate, size, home, bandwidth, stated, estimate = row
            exact = Fraction(submit), Fraction(compute), Fraction(communicate)
            believed = None if stated is None else Fraction(stated)
            jobs.append(Job(index, *exact, size, home, Fraction(bandwidth), believed, Fraction(estimate)))
        failures = [(Fraction(time), node, Fraction(lasts)) for time, node, lasts in self.failures]
        return Simulator(self.sizes, tuple(map(Fraction, self.trunks)), jobs, failures, options).run()


def job(submit, compute, communicate, size, home=0, bandwidth=300, stated=None, estimate=None):
    """A row of ``System.jobs``."""
    return submit, compute, communicate, size, home, bandwidth, stated, estimate or compute + communicate


def running_state(machine_name, rows, waiting=(), **parameters):
    """A state in which jobs have just started over the clusters, all other nodes are busy, and others wait.

    rows: (parts, true bandwidth, stated, T_P, T_C); waiting: sizes of jobs that may only run whole.
    """
    machine = parse_machine(machine_name)
    config = resolve(
        {"machine": machine_name, "scheduler": "first-fit", "meta_scheduler": "naive", "mesh_share": 0.0, **parameters}
    )
    count, others = len(rows), len(waiting)
    run_s = np.array([row[3] + row[4] for row in rows] + [1.0] * others, float)
    arrays = dict.fromkeys(("work_s", "run_s", "estimate_s"), run_s)
    arrays |= {"submit_s": np.zeros(len(run_s)), "home": np.zeros(len(run_s), np.int64)}
    arrays["size"] = np.array([sum(row[0]) for row in rows] + list(waiting))
    talk = Communication(
        np.array([row[4] for row in rows] + [0.0] * others, float),
        np.array([row[1] for row in rows] + [0.0] * others, float),
        np.array([row[2] for row in rows] + [nan] * others, float),
    )
    s = build_clusters(arrays, talk, machine, config, None, tracing=False, telling=True)
    for k, (parts, bandwidth, _, _, _) in enumerate(rows):
        size = sum(parts)
        s.parts[k] = parts
        s.demand[k] = [bandwidth * part * (size - part) / (size - 1) for part in parts]
        s.job.status[k], s.job.allocated[k], s.job.phase[k] = st.RUNNING, size, cs.WORKS
        s.job.spans[k], s.job.run_slot[k] = 2, k
        s.running[k] = s.spanning[k] = k
        s.run_end[k] = run_s[k]
    s.num_running = s.num_spanning = count
    s.now = 0.0
    s.free = 0
    s.free_here[:] = 0
    s.changed = 1
    s.queue[:others] = count + np.arange(others)
    s.job.status[count:] = st.WAITING
    s.job.offences[count:] = 2  # co-allocation is no way out for them
    s.queue_tail, s.next_arrival = others, count + others
    s.queued = sum(waiting)
    return s


def random_system(seed: int, **fixed: Any) -> System:
    """A system in which trunks are scarce; times have no ties but those that it asks for."""
    draw = random.Random(seed)
    sizes = tuple(draw.randint(2, 6) for _ in range(draw.randint(2, 4)))
    trunks = tuple(float(draw.choice([150, 300, 400, 700])) for _ in sizes)
    limit = sum(sizes) if draw.random() < 0.2 else max(sizes)
    meta = draw.choice(["local", "migration-only", "naive", "naive", "bandwidth-aware", "bandwidth-aware"])
    meta = fixed.get("meta_scheduler", meta)
    if meta not in ("naive",):
        limit = max(sizes)
    jobs, submit = [], 0.0
    for _ in range(draw.randint(6, 14)):
        submit += draw.choice([0.0, round(draw.expovariate(1 / 30), 3)])
        size = draw.randint(1, limit)
        run = [round(draw.uniform(0.5, 200), 3) for _ in range(2)]
        bandwidth = float(draw.choice([0, 100, 200, 300, 411]))
        stated = draw.choice([None, bandwidth, round(bandwidth * draw.uniform(0.2, 1.2), 3)])
        homes = [c for c, n in enumerate(sizes) if n >= size] or [0]
        estimate = sum(run) * draw.choice([1, 1, 0.5, 2.25])
        jobs.append((submit, *run, size, draw.choice(homes), bandwidth, stated, estimate))
    failures: list[tuple[float, int, float]] = []
    if draw.random() < 0.6:
        last = sum(sizes) + len(sizes) - 1
        times = sorted(round(draw.uniform(0, submit + 200), 3) for _ in range(draw.randint(1, 8)))
        failures = [(t, draw.randint(0, last), draw.choice([0.0, 5.25, 60.125])) for t in times]
    parameters = {
        "meta_scheduler": meta,
        "scheduler": draw.choice(["first-fit", "first-fit", "fcfs", "backfill"]),
        "queues": draw.choice(["local", "global"]),
        "partitioning": draw.choice(["largest-first", "minimum-cut"]),
        "mesh_share": draw.choice([0.0, 0.5, 1.0]),
        "agent": draw.choice(["none", "ctmr", "ctmr", "naive"]),
        "overhead_s": draw.choice([0.0, 1.5, 20.0]),
        "overhead_known": draw.random() < 0.8,
        "cp_frac": draw.choice([0.04, 0.5, 100.0]),
        "agent_interval_s": draw.choice([0.0, 17.0]),
        "restart_cost_s": draw.choice([0.0, 3.0]),
        "trunk_outage": draw.choice(["kill", "stall"]),
    }
    return System(sizes, trunks, jobs, failures, parameters | fixed)
