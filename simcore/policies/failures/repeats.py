"""Whether what failures cost is decided by jobs that are hit again and again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from faultsweep.simcore.contract import Config
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.policies.failures.source import DAY_S
from faultsweep.simcore.workloads.shaping import concentration

DOMINATE = 2.0
"""So many times what first hits cost: repeated ones dominate."""
_MANY = 0.02  # below, two terms of the series are right to 1e-4: exponentials of all jobs take as long as a short run
_LONGEST = 700.0  # e to the power of more is no number


class Repeats(NamedTuple):
    """What jobs lose that start again from nothing.

    one_hit : mean over jobs of work lost / run time, were each hit at most once: half of its expected hits.
    expected : the same with every hit of every attempt, under independent failures.
    jobs : jobs that are hit more than once in the mean.
    work : share of the work that is theirs.
    """

    one_hit: float
    expected: float
    jobs: int
    work: float


def repeats(workload: Workload, nodes: int, failures_per_day: float) -> Repeats:
    """Return what independent failures cost jobs without checkpoints.

    A job that expects h hits while it runs once loses (e^h - 1) / h - 1 of its run time in the mean before an attempt
    gets through, and h / 2 if only the first hit counts (Daly, 2006, without checkpoints).
    """
    hits = failures_per_day / DAY_S / nodes * workload.size * workload.run_s
    lost = hits / 2.0 * (1.0 + hits / 3.0)  # the beginning of the series
    many = hits > _MANY
    capped = np.minimum(hits[many], _LONGEST)
    lost[many] = np.expm1(capped) / capped - 1.0
    work = workload.size * workload.run_s
    again = hits > np.log(2.0)
    return Repeats(
        float(np.mean(hits / 2.0)), float(np.mean(lost)), int(np.sum(again)), float(work[again].sum() / work.sum())
    )


def repeats_sentence(workload: Workload, nodes: int, failures_per_day: float, config: Config) -> str:
    """Return the sentence on repeated hits, "" where they do not dominate or work is saved."""
    if config["checkpoint"] != "none" or not 0.0 < failures_per_day < np.inf:
        return ""
    found = repeats(workload, nodes, failures_per_day)
    if not found.expected >= DOMINATE * found.one_hit or not found.jobs:
        return ""
    return (
        f"failures: {found.jobs:,} of {len(workload):,} jobs, which are {100 * found.work:.2g} % of the work "
        f"(concentration {concentration(workload.size, workload.run_s):.3g}), are hit more than once in the mean "
        f"before an attempt gets through: such jobs decide what is lost, {_times(found)} what first hits cost "
        "(checkpoints, longest_run_h and work_concentration change it)"
    )


def _times(found: Repeats) -> str:
    ratio = found.expected / found.one_hit
    return f"{ratio:.2g} times" if ratio < 10 else f"{ratio:.0f} times" if ratio < 1000 else "more than 1,000 times"
