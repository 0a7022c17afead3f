"""Orders of the queue by a priority that a job has from its arrival on: estimate e, nodes n, time of submission.

F1 to F4 are functions that Carastan-Santos and de Camargo (SC 2017, table 3) fitted to simulations; the job with the
lowest value comes first. Their s, the time of submission, counts from the first one, and from 1 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.policies.prediction.predictors import coin_key, coins
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Queued(NamedTuple):
    """What a priority may depend on, for each job: estimate in s, nodes asked for, submission in s from 1 on, and a
    number drawn from [0, 1)."""

    estimate: Floats
    nodes: Floats
    submitted: Floats
    drawn: Floats


def _log10(values: Floats) -> Floats:
    """Return logarithms to nine decimals: the last bits differ between processors."""
    return np.asarray(np.round(np.log10(values), 9), np.float64)


PRIORITIES: Mapping[str, Callable[[Queued], Floats]] = {
    "sjf": lambda job: -job.estimate,
    "ljf": lambda job: job.estimate,
    "saf": lambda job: -job.estimate * job.nodes,
    "random": lambda job: job.drawn,
    "f1": lambda job: -(_log10(job.estimate) * job.nodes + 870.0 * _log10(job.submitted)),
    "f2": lambda job: -(np.sqrt(job.estimate) * job.nodes + 25600.0 * _log10(job.submitted)),
    "f3": lambda job: -(job.estimate * job.nodes + 6860000.0 * _log10(job.submitted)),
    "f4": lambda job: -(job.estimate * np.sqrt(job.nodes) + 530000.0 * _log10(job.submitted)),
}
"""The priority of each job by order of the queue, shape (jobs,): the highest comes first."""


def priorities(jobs: Mapping[str, NDArray[Any]], config: Mapping[str, Any]) -> Floats:
    """Return the priority of each job, shape (jobs,); 0 under an order that has none.

    jobs: arrays of shape (jobs,): ``submit_s`` (ascending), ``estimate_s`` and ``requested`` (nodes).
    """
    count = len(jobs["submit_s"])
    if config["queue_order"] not in PRIORITIES or count == 0:
        return np.zeros(count)
    drawn = coins(coin_key(config["seed"], config["replicate"], "queue"), 0, np.arange(count), 0)
    submitted = jobs["submit_s"] - jobs["submit_s"][0] + 1.0
    queued = Queued(jobs["estimate_s"], jobs["requested"].astype(np.float64), submitted, drawn)
    return PRIORITIES[config["queue_order"]](queued)
