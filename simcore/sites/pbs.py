"""A site from what ``qmgr -c 'print server'`` and ``qmgr -c 'print node @default'`` of PBS print, and from the file
``sched_config`` of its scheduler."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from faultsweep.simcore.sites.facts import Facts, Keys, known
from faultsweep.simcore.sites.site import Backfill, NodeClass, Partition, Priority, Site, made
from faultsweep.simcore.workloads.accounting.pbs import pbs_memory_mb
from faultsweep.simcore.workloads.accounting.units import clock

from faultsweep.errors import InputError

_HELD = frozenset(
    (
        *("queue_type", "enabled", "started", "priority", "resources_max.walltime", "resources_default.walltime"),
        *("resources_min.nodect", "resources_max.nodect", "max_running", "max_user_run"),
        *("max_run", "max_run_res.ncpus"),
    )
)

_STRICT = "sched_config.strict_ordering"
_RUN_LIMITS = ("max_run", "max_run_res.ncpus")


def build(facts: Facts, nodes: int = 0, cores: int = 1) -> Site:
    """Return the site; ``nodes`` of ``cores`` are taken where no file describes the nodes."""
    missing: list[str] = []
    classes = _node_classes(facts)
    if not classes and not nodes:
        raise InputError("the files name no node (valid: qmgr -c 'print node @default', or --nodes and --cores)")
    classes = classes or [made(NodeClass, "nodes", name="node", count=nodes, cores=cores)]
    counts = {of_class.name: of_class.count for of_class in classes}
    partitions = [
        _partition(name, keys, counts, facts, missing)
        for name, keys in facts.queues.items()
        if known(keys, "queue_type").lower() != "route"
    ]
    routes = [name for name, keys in facts.queues.items() if known(keys, "queue_type").lower() == "route"]
    missing += [f"queue {name}: a route queue" for name in routes]
    missing += [
        f"sched_config: {key.removeprefix('sched_config.')}"
        for key, value in facts.config.items()
        if key.startswith("sched_config.") and value == "true" and key != _STRICT
    ]
    for key, value in facts.config.items():
        if key.startswith("pbs.") and ("formula" in key or "max_" in key):
            missing.append(f"server: {key.removeprefix('pbs.')} = {value}")
    return made(
        Site,
        "the files",
        name="site",
        scheduler="pbs",
        nodes=classes,
        partitions=partitions,
        priority=Priority(kind="formula" if known(facts.config, "pbs.job_sort_formula") else "fifo"),
        backfill=_backfill(facts.config),
        not_represented=missing,
    )


def _backfill(config: Keys) -> Backfill:
    """Return which jobs have reservations: in a strict order without any, nobody overtakes the first job."""
    depth = known(config, "pbs.backfill_depth")
    top_jobs = int(depth) if re.fullmatch(r"\d{1,9}", depth) else None
    strict = known(config, _STRICT) == "true"
    if strict and top_jobs is None:
        top_jobs = 1  # the default of backfill_depth
    return Backfill(kind="builtin" if strict and top_jobs == 0 else "backfill", top_jobs=top_jobs)


def _node_classes(facts: Facts) -> list[NodeClass]:
    kinds: dict[tuple[Any, ...], list[str]] = {}
    for host, keys in facts.pbs_nodes.items():
        memory = known(keys, "resources_available.mem")
        kind = (
            _count(keys, "resources_available.ncpus", "np") or 1,
            _count(keys, "resources_available.ngpus", "gpus") or 0,
            int(pbs_memory_mb(memory)) if re.fullmatch(r"[0-9]{1,15}[kmgtKMGT]?[bBwW]?", memory) else 0,
        )
        kinds.setdefault(kind, []).append(host)
    taken: Counter[str] = Counter()
    classes = []
    for (cores, gpus, memory), hosts in kinds.items():
        stem = re.match(r"[A-Za-z_-]*", hosts[0])
        name = (stem[0] if stem else "").rstrip("-_") or "node"
        taken[name] += 1
        name += f"-{taken[name]}" if taken[name] > 1 else ""
        listed = ",".join(hosts) if len(hosts) < 4 else f"{hosts[0]} to {hosts[-1]}"
        values = {"cores": cores, "gpus": gpus, "memory_mb": memory}
        classes.append(made(NodeClass, f"nodes {listed}", name=name, count=len(hosts), hosts=listed, **values))
    return classes


def _partition(name: str, keys: Keys, counts: dict[str, int], facts: Facts, missing: list[str]) -> Partition:
    for key, value in keys.items():
        if key not in _HELD:
            missing.append(f"queue {name}: {key} = {value}")
    priority = _count(keys, "priority")
    jobs, cores = (_run_limits(f"queue {name}: {key}", known(keys, key), missing) for key in _RUN_LIMITS)
    return made(
        Partition,
        f"queue {name}",
        name=name,
        nodes=counts,
        default=known(facts.config, "pbs.default_queue") == name,
        up=known(keys, "enabled").lower() != "false" and known(keys, "started").lower() != "false",
        default_time_s=_seconds(keys, "resources_default.walltime"),
        max_time_s=_seconds(keys, "resources_max.walltime"),
        min_nodes=_count(keys, "resources_min.nodect") or 0,
        max_nodes=_count(keys, "resources_max.nodect"),
        priority_factor=1 if priority is None else priority,
        max_run_jobs=jobs.get("o:PBS_ALL", _count(keys, "max_running")),
        max_user_run_jobs=jobs.get("u:PBS_GENERIC", _count(keys, "max_user_run")),
        max_run_cores=cores.get("o:PBS_ALL"),
        max_user_run_cores=cores.get("u:PBS_GENERIC"),
    )


def _run_limits(what: str, text: str, missing: list[str]) -> dict[str, int]:
    """Return the limits of a text such as [o:PBS_ALL=10],[u:PBS_GENERIC=5]; those for others are listed."""
    found = {}
    for item in filter(None, re.split(r"[\[\],\s]+", text)):
        limit = re.fullmatch(r"(o:PBS_ALL|u:PBS_GENERIC)=(\d{1,12})", item)
        if limit:
            found[limit[1]] = int(limit[2])
        else:
            missing.append(f"{what} = [{item}]")
    return found


def _count(keys: Keys, *names: str) -> int | None:
    text = known(keys, *names)
    return int(text) if re.fullmatch(r"-?\d{1,12}", text) else None


def _seconds(keys: Keys, name: str) -> float | None:
    text = known(keys, name)
    if not text:
        return None
    try:
        return clock(text)
    except ValueError:
        raise InputError(f"{name} is {text[:40]!r}, not a duration (such as 24:00:00)") from None
