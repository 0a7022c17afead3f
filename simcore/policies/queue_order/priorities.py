"""Orders of the queue by a priority that a job has from its arrival on: estimate e, nodes n, time of submission.

F1 to F4 are functions that Carastan-Santos and de Camargo (SC 2017, table 3) fitted to simulations; the job with the
lowest value comes first. Their s, the time of submission, counts from the first one, and from 1 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, Policy
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


_SENTENCES = {
    "sjf": "Shortest estimate first.",
    "ljf": "Longest estimate first.",
    "saf": "Smallest area, estimate x nodes, first.",
    "random": "In an order that is drawn once.",
    "f1": "By log10(estimate) x nodes + 870 log10(submission), lowest first (Carastan-Santos 2017).",
    "f2": "By sqrt(estimate) x nodes + 25,600 log10(submission), lowest first (Carastan-Santos 2017).",
    "f3": "By estimate x nodes + 6,860,000 log10(submission), lowest first (Carastan-Santos 2017).",
    "f4": "By estimate x sqrt(nodes) + 530,000 log10(submission), lowest first (Carastan-Santos 2017).",
}

_ALIASES = {"sjf": ("spt", "spf"), "ljf": ("lpt", "lpf")}

POLICIES = tuple(
    Policy(
        name,
        sentence,
        aliases=_ALIASES.get(name, ()),
        machines=ONE_MACHINE,
        consults=("seed",) if name == "random" else (),
        facts={"priority": PRIORITIES[name]},
    )
    for name, sentence in _SENTENCES.items()
)
