"""What makes a workload hard for a machine that fails, as knobs: how concentrated its work is, how long its longest
jobs are, how many jobs are serial, and whether they come by day.

Work is size x run time. A job is hit by a failure in proportion to it, so that at equal load a workload whose work is
in few jobs loses more: E[W²] / E[W]² of the work W of a job, the concentration, says how much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.policies.failures.source import DAY_S
from faultsweep.simcore.streams import round_ms, stream
from numpy.typing import NDArray

from faultsweep.errors import InputError

Floats = NDArray[np.float64]

_MOST_UNEQUAL = 8.0
"""Largest exponent of run times that is tried."""
_STEPS = 80


def shape(workload: Workload, config: Mapping[str, Any]) -> Workload:
    """Apply ``longest_run_h``, ``serial_share``, ``work_concentration`` and ``arrival_cycle`` to jobs in nodes.

    Raises
    ------
    InputError
        If no exponent gives the concentration that is asked for, or sizes are those of a site.
    """
    if config["longest_run_h"] > 0:
        workload = with_longest_run(workload, 3600.0 * config["longest_run_h"])
    if config["serial_share"] >= 0:
        rng = stream(config["seed"], config["replicate"], "workload/serial")
        workload = with_serial_share(workload, config["serial_share"], rng)
    if config["work_concentration"] > 0:
        workload = with_concentration(workload, config["work_concentration"])
    if config["arrival_cycle"] > 0:
        workload = with_daily_cycle(workload, config["arrival_cycle"])
    return workload


def concentration(size: NDArray[np.int64], run_s: Floats) -> float:
    """Return E[W²] / E[W]² of the work of jobs: 1 if all are alike, the number of jobs if one has it all."""
    work = size * run_s
    share = work / work.sum() if work.sum() > 0 else work
    return float(len(work) * np.sum(share**2))


def knobs(workload: Workload) -> dict[str, float]:
    """Return the values of ``longest_run_h``, ``serial_share``, ``work_concentration`` and ``arrival_cycle`` that jobs
    have.

    The cycle is the strength of the daily wave in their submissions, wherever its crest is: twice the length of the
    mean of exp(2 pi i t / day).
    """
    wave = np.exp(2j * np.pi * (workload.submit_s - workload.submit_s[0]) / DAY_S)
    return {
        "longest_run_h": float(workload.run_s.max()) / 3600.0,
        "serial_share": float(np.mean(workload.size == 1)),
        "work_concentration": concentration(workload.size, workload.run_s),
        "arrival_cycle": float(min(1.0, 2.0 * abs(wave.mean()))),
    }


def with_longest_run(workload: Workload, longest_s: float) -> Workload:
    """Cut run times and requested times."""
    run_s, requested_s = np.minimum(workload.run_s, longest_s), np.minimum(workload.requested_s, longest_s)
    return replace(workload, run_s=run_s, requested_s=requested_s)


def with_serial_share(workload: Workload, share: float, rng: np.random.Generator) -> Workload:
    """Give a share of the jobs one node: jobs drawn at random become serial, or serial ones get the size of another
    parallel job, until there are as many as asked for."""
    if workload.demand is not None:
        raise InputError(f"{workload.name}: serial_share is not for sites, whose jobs ask for cores (valid: -1)")
    size = workload.size.copy()
    wanted = round(share * len(size))
    order = rng.permutation(len(size))
    serial, parallel = order[size[order] == 1], order[size[order] > 1]
    if wanted >= len(serial):
        size[parallel[: wanted - len(serial)]] = 1
    elif not len(parallel):
        raise InputError(f"{workload.name}: serial_share = {share:g} needs parallel jobs, and all are serial")
    else:
        grown = serial[: len(serial) - wanted]
        size[grown] = workload.size[rng.choice(parallel, len(grown))]
    return replace(workload, size=size)


def with_concentration(workload: Workload, wanted: float) -> Workload:
    """Raise run times to a power and scale them, so that the work has the concentration, and its sum stays.

    Sizes and the order of run times stay; requested times keep their ratio to run times.
    """

    def powered(exponent: float) -> Floats:
        relative = (workload.run_s / workload.run_s.max()) ** exponent
        return relative * (np.sum(workload.size * workload.run_s) / np.sum(workload.size * relative))

    def found(exponent: float) -> float:
        return concentration(workload.size, powered(exponent))

    low, high = 0.0, _MOST_UNEQUAL
    if not found(low) <= wanted <= found(high):
        raise InputError(
            f"{workload.name}: work_concentration = {wanted:g} cannot be reached by changing the run times of these "
            f"{len(workload):,} jobs (valid: {found(low):.4g} to {found(high):.4g}; as they are: {found(1.0):.4g})"
        )
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if found(middle) < wanted else (low, middle)
    run_s = np.maximum(round_ms(powered((low + high) / 2.0)), 1e-3)
    return replace(workload, run_s=run_s, requested_s=workload.requested_s * (run_s / workload.run_s))


def with_daily_cycle(workload: Workload, strength: float) -> Workload:
    """Move submissions so that their rate is multiplied by 1 - strength x cos(2 pi t / day), t since the first one.

    So many jobs as before come in each day; most half a day after the first submission.
    """
    fine = np.linspace(0.0, DAY_S, 86_401)
    passed = fine - strength * DAY_S / (2.0 * np.pi) * np.sin(2.0 * np.pi * fine / DAY_S)
    first = workload.submit_s[0]
    day, within = np.divmod(workload.submit_s - first, DAY_S)
    moved = first + day * DAY_S + round_ms(np.interp(within, passed, fine))
    return replace(workload, submit_s=np.maximum.accumulate(moved))
