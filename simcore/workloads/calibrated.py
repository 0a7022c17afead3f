"""Workload models calibrated to real logs: sizes, arrivals, and run times by size class.

Jobs are drawn independently of each other. Gaps between arrivals are drawn in a time that runs faster in busy hours and
days, and run times by their distribution in the job's size class. What is not modelled: that users submit the same job
again and again, which makes real queues burstier.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.streams import stream
from faultsweep.simcore.workloads.requested import requested_times
from faultsweep.simcore.workloads.tables import TABLES
from numpy.typing import NDArray

HOUR_S = 3600.0


def generate(name: str, num_jobs: int, seed: int = 0, replicate: int = 0) -> Workload:
    """Return ``num_jobs`` jobs of the model ``name``, all times in whole seconds.

    Time 0 is a Monday at midnight.
    """
    model = TABLES[name]
    u_gap, u_size, u_run, u_requested = stream(seed, replicate, f"jobs of {name}").random((num_jobs, 4)).T
    size, kind = _sizes(model["classes"], u_size)
    run = np.empty(num_jobs)
    for number, of_class in enumerate(model["classes"]):
        here = kind == number
        run[here] = _quantile(of_class["run_quantiles_s"], u_run[here])
    run = np.maximum(1.0, np.rint(run))
    return Workload(
        job_id=np.arange(1, num_jobs + 1),
        submit_s=_submits(model, u_gap),
        run_s=run,
        requested_s=requested_times(run, u_requested),
        size=size,
        user=np.full(num_jobs, -1),
        name=name,
        nodes=model["nodes"],
        log_span_s=model["log_span_s"],
        header=tuple(f"; {line}" for line in model["header"]),
        content_hash="sha256:" + hashlib.sha256(json.dumps(model, sort_keys=True).encode()).hexdigest(),
    )


def _sizes(classes: list[dict[str, Any]], u: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the size of each job and the number of its class, both of shape (jobs,)."""
    sizes = np.array([size for of_class in classes for size in of_class["sizes"]])
    kinds = np.array([number for number, of_class in enumerate(classes) for _ in of_class["sizes"]])
    weights = np.array([weight for of_class in classes for weight in of_class["jobs"]]).cumsum()
    choice = np.searchsorted(weights, u * weights[-1], side="right")
    return sizes[choice], kinds[choice]


def _submits(model: dict[str, Any], u: NDArray[np.float64]) -> NDArray[np.float64]:
    gaps = model["mean_gap_s"] * _quantile(model["gap_quantiles"], u)
    return np.floor(from_busy_time(model["hour_weights"], model["day_weights"], gaps.cumsum()))


def from_busy_time(hours: list[float], days: list[float], busy_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return clock times for times that run faster in busy hours, slower in quiet ones; equal at each week's end."""
    clock, busy = _week(hours, days)
    week = busy[-1]
    return np.floor(busy_s / week) * week + np.interp(busy_s % week, busy, clock)


def to_busy_time(hours: list[float], days: list[float], clock_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Undo ``from_busy_time``."""
    clock, busy = _week(hours, days)
    return np.floor(clock_s / clock[-1]) * clock[-1] + np.interp(clock_s % clock[-1], clock, busy)


def _week(hours: list[float], days: list[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    busy = np.concatenate(([0.0], np.outer(days, hours).ravel().cumsum()))
    clock = np.arange(len(busy), dtype=np.float64) * HOUR_S
    return clock, busy * float(clock[-1] / busy[-1])


def _quantile(values: list[float], u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Invert a distribution function given at the levels of the tables, by linear interpolation of the logarithm."""
    return np.exp(np.interp(u, TABLES["levels"], np.log(values)))
