"""What parameters cannot be combined: refused before anything runs, and foreseen by the plan of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faultsweep.simcore.model.machines import CLUSTERS, Machine
from faultsweep.simcore.parameters import SHORTEST_INTERVAL_S
from faultsweep.simcore.registry import CLUSTER_SCHEDULERS, SCHEDULERS

from faultsweep.errors import InputError

Config = Mapping[str, Any]

_ON_CLUSTERS: dict[str, tuple[str | float, ...]] = {
    "scheduler": tuple(CLUSTER_SCHEDULERS),
    "event_order": ("instant",),
    "checkpoint": ("none",),
    "recovery": ("arrival",),
    "start_delay_s": (0.0,),
    "queue_order": ("fcfs",),
}
"""The values that machines of clusters have, of parameters of which they have not all."""

COMBINED = (
    "machine",
    *_ON_CLUSTERS,
    "agent_interval_s",
    "bucket_repeat_s",
    "precision",
    "false_positive_rate",
)
"""The parameters that ``check_combination`` looks at."""


def check_combination(config: Config, machine: Machine) -> None:
    """Raise InputError for parameters of a resolved configuration that are each valid, and not together."""
    if config["precision"] < 1 and config["false_positive_rate"] > 0:
        raise InputError("precision: give precision or false_positive_rate, not both")
    _check_interval(config, "bucket_repeat_s", "for once")
    _check_interval(config, "agent_interval_s", "for not by itself")
    if machine.kind == CLUSTERS:
        _check_clusters(config)
        return
    _check_scheduler(config, machine)
    order = config["event_order"]
    if order != "instant" and config["checkpoint"] != "none":
        raise InputError(f"event_order: {order!r} is for runs without checkpoints (valid with them: 'instant')")


def _check_interval(config: Config, name: str, zero: str) -> None:
    """Raise InputError for an interval between none, which is written as 0, and the shortest."""
    if 0 < config[name] < SHORTEST_INTERVAL_S:
        least = f"{SHORTEST_INTERVAL_S:g} or more"
        raise InputError(f"{name}: {config[name]:g} is too short (valid: 0 {zero}, or {least})")


def _check_clusters(config: Config) -> None:
    for name, valid in _ON_CLUSTERS.items():
        if config[name] not in valid:
            choices = ", ".join(value if isinstance(value, str) else f"{value:g}" for value in valid)
            raise InputError(f"{name}: {config[name]!r} is not for machines of clusters (valid there: {choices})")


def _check_scheduler(config: Config, machine: Machine) -> None:
    scheduler = config["scheduler"]
    if scheduler not in SCHEDULERS:
        valid = ", ".join(name for name in SCHEDULERS if machine.menu is None or name != "conservative")
        raise InputError(f"scheduler: {scheduler!r} is for machines of clusters (valid on {machine.name}: {valid})")
    if scheduler != "conservative":
        return
    if machine.menu is not None:
        raise InputError(
            f"scheduler: conservative is not for a machine with a partition menu, as {machine.name!r} "
            "(valid: fcfs, backfill)"
        )
    if config["queue_order"] != "fcfs":
        order = config["queue_order"]
        raise InputError(f"queue_order: {order} is not for the scheduler conservative (valid with it: fcfs)")
