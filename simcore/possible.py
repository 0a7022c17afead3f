"""Which metrics nothing can happen to in a configuration, and what they are then.

Without failures nothing is lost to them, on a flat machine nothing migrates: policies declare which metrics they may
change. A store of runs that change none of them has no such metrics; when an axis grows by runs that may, those that
were there get what a run of theirs would give.
"""

from __future__ import annotations

from faultsweep.simcore.contract import Config, Named
from faultsweep.simcore.engine.metrics import METRICS, Known
from faultsweep.simcore.parameters import run_of
from faultsweep.simcore.policies.catalogue import ROLES


def _names(entries: tuple[Named, ...]) -> set[str]:
    return {entry if isinstance(entry, str) else entry[0] for entry in entries}


DECLARED = frozenset().union(
    *(_names((*role.metrics, *policy.metrics)) for role in ROLES.values() for policy in role.policies.values())
)
"""The metrics that some policy may change, and no run has without one."""


def impossible(config: Config) -> dict[str, Known]:
    """Return the metrics that are the same in every run of a resolved configuration, and what they are."""
    unchanged = DECLARED - run_of(config).metrics()
    return {name: metric.without for name, metric in METRICS.items() if name in unchanged and metric.without}
