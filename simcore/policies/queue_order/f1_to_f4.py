"""``f1`` to ``f4``: functions that Carastan-Santos and de Camargo (SC 2017, table 3) fitted to simulations.

The job with the lowest value comes first. Their s, the time of submission, counts from the first one, and from 1 s.
They share a file because each is one row of that table.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import Policy
from faultsweep.simcore.policies.queue_order.by_priority import Floats, Queued, by_priority


def _log10(values: Floats) -> Floats:
    """Return logarithms to nine decimals: the last bits differ between processors."""
    return np.asarray(np.round(np.log10(values), 9), np.float64)


def _f1(job: Queued) -> Floats:
    return -(_log10(job.estimate) * job.nodes + 870.0 * _log10(job.submitted))


def _f2(job: Queued) -> Floats:
    return -(np.sqrt(job.estimate) * job.nodes + 25600.0 * _log10(job.submitted))


def _f3(job: Queued) -> Floats:
    return -(job.estimate * job.nodes + 6860000.0 * _log10(job.submitted))


def _f4(job: Queued) -> Floats:
    return -(job.estimate * np.sqrt(job.nodes) + 530000.0 * _log10(job.submitted))


_LOWEST = "lowest first (Carastan-Santos 2017)."

POLICIES: tuple[Policy, ...] = (
    by_priority("f1", f"By log10(estimate) x nodes + 870 log10(submission), {_LOWEST}", _f1),
    by_priority("f2", f"By sqrt(estimate) x nodes + 25,600 log10(submission), {_LOWEST}", _f2),
    by_priority("f3", f"By estimate x nodes + 6,860,000 log10(submission), {_LOWEST}", _f3),
    by_priority("f4", f"By estimate x sqrt(nodes) + 530,000 log10(submission), {_LOWEST}", _f4),
)
