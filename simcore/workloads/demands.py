"""What jobs need of the nodes of a site, and which jobs can never run there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from faultsweep.simcore.model.nodes import ALL_NODES, NodeTable
from faultsweep.simcore.model.workload import DEMANDED, Demand, Workload, take
from faultsweep.simcore.workloads.swf import header_number
from numpy.typing import NDArray

from faultsweep.errors import InputError

NO_PARTITION = "of a partition that the site does not have"
DOES_NOT_FIT = "larger than the nodes of its partition"
TOO_LONG = "of more time than its partition allows"
TOO_MANY_NODES = "of more nodes than its partition allows"


def for_site(workload: Workload, site: NodeTable, size_map: str, machine: str) -> Workload:
    """Return a workload with sizes in cores, and partitions as indices of those of the site.

    A job that no idle site could run is an error, or left out and counted where the sizes are mapped by "drop".

    Raises
    ------
    InputError
        Naming the first such job; also where "scale" or "clip" would change what accounting says of the jobs.
    """
    processors = workload.procs_per_node
    if workload.demand is None:
        workload = replace(workload, nodes=workload.nodes * processors, procs_per_node=1)
        too_long = _asked_s(workload) > site.max_time_s[site.default]
        return _without(workload, {TOO_LONG: too_long}, size_map, machine, site)
    if size_map in ("scale", "clip"):
        raise InputError(
            f"size_map: {size_map!r} is not for jobs with cores, GPUs and memory of their own, as {workload.name} has "
            "(valid for them: exact, drop)"
        )
    demand = _on_partitions(workload.demand, site)
    workload = replace(workload, demand=demand, size=demand.chunks * demand.cores, nodes=0, procs_per_node=1)
    nodes = np.where(demand.per_node == 1, demand.chunks, 0)  # of others it is not known beforehand
    reasons = {
        NO_PARTITION: demand.partition < 0,
        DOES_NOT_FIT: ~_fits(demand, site),
        TOO_LONG: _asked_s(workload) > np.array(site.max_time_s)[demand.partition],
        TOO_MANY_NODES: nodes > np.array(site.max_nodes)[demand.partition],
    }
    return _without(workload, reasons, size_map, machine, site)


def _without(
    workload: Workload, reasons: dict[str, NDArray[np.bool_]], size_map: str, machine: str, site: NodeTable
) -> Workload:
    """Leave out the jobs that one of the reasons holds for, each counted by the first; or name the first of them.

    Raises
    ------
    InputError
        If there are some and ``size_map`` is not "drop", or no job is left.
    """
    kept = np.ones(len(workload), np.bool_)
    counts = {}
    for reason, bad in reasons.items():
        here = bad & kept
        if here.any() and size_map != "drop":
            raise InputError(_sentence(workload, site, int(np.argmax(here)), reason, machine))
        if here.any():
            counts[reason] = int(here.sum())
        kept &= ~bad
    if not kept.any():
        left_out = "; ".join(f"{reason}: {count:,}" for reason, count in {**workload.dropped, **counts}.items())
        raise InputError(f"{workload.name}: no job fits {machine} (left out: {left_out})")
    return take(workload, kept, dropped={**workload.dropped, **counts}) if counts else workload


def _asked_s(workload: Workload) -> NDArray[np.float64]:
    """Return the time that jobs ask for, or take where that is not known, s."""
    return np.where(np.isnan(workload.requested_s), workload.run_s, workload.requested_s)


def date_of(workload: Workload) -> float:
    """Return time zero of a log's clock in seconds since 1970 UTC; 0 where the log has no date."""
    return workload.epoch_s or float(header_number(workload.header, "UnixStartTime"))


def with_cores(workload: Workload, site: NodeTable) -> Workload:
    """Return a workload whose sizes are in cores with what its jobs need: of those that do not say it, single cores of
    any nodes of the default partition."""
    if workload.demand is not None:
        return workload
    count = len(workload)
    none = np.zeros(count, np.int64)
    one = np.ones(count, np.int64)
    whole = np.full(count, int(site.whole[site.default]))
    demand = Demand(workload.size, one, none, none, none, whole, np.full(count, site.default))
    held = replace(workload, demand=demand)
    bad = ~_fits(demand, site)
    if bad.any():
        raise InputError(_sentence(held, site, int(np.argmax(bad)), DOES_NOT_FIT, "the site"))
    return held


def _on_partitions(demand: Demand, site: NodeTable) -> Demand:
    """Return demands with indices of the site's partitions: of several that a job names, the first there is.

    A job that names none is of the default one, and where the site has no partitions, all jobs use all nodes. A
    partition without sharing makes its jobs take whole nodes.
    """
    places = {name: place for place, name in enumerate(site.partitions)}
    lookup = [next((places[each] for each in name.split(",") if each in places), -1) for name in demand.partitions]
    if site.partitions == (ALL_NODES,):
        lookup = [site.default] * len(lookup)
    partition = np.array([*lookup, site.default], np.int64)[demand.partition]
    whole = np.array([*site.whole, False])[partition].astype(np.int64)
    return replace(demand, partition=partition, partitions=site.partitions, whole=np.maximum(demand.whole, whole))


def _fits(demand: Demand, site: NodeTable) -> NDArray[np.bool_]:
    """Tell of each job whether the idle nodes of its partition hold it."""
    rows = np.stack([getattr(demand, name) for name in DEMANDED[1:]], axis=1)
    kinds, which = np.unique(rows, axis=0, return_inverse=True)
    most = np.array([_most_chunks(dict(zip(DEMANDED[1:], kind, strict=True)), site) for kind in kinds.tolist()])
    held: NDArray[np.bool_] = demand.chunks <= most[which.reshape(-1)]
    return held


def _most_chunks(need: dict[str, Any], site: NodeTable) -> int:
    """Return how many chunks of a kind the idle nodes of its partition hold."""
    if need["partition"] < 0:
        return 0
    count = site.cores // need["cores"]
    for name, has in (("gpus", site.gpus), ("memory_mb", site.memory_mb)):
        if need[name] > 0:
            count = np.minimum(count, has // need[name])
    if need["per_node"] > 0:
        count = np.minimum(count, need["per_node"])
    return int(count[site.members >> need["partition"] & 1 == 1].sum())


def _sentence(workload: Workload, site: NodeTable, row: int, reason: str, machine: str) -> str:
    """Return what is wrong with a job, in words."""
    drops = "size_map = drop leaves such jobs out"
    job, demand = f"{workload.name}: job {workload.job_id[row]}", workload.demand
    if reason == NO_PARTITION:
        valid = ", ".join(name for name in site.partitions if name) or "none"
        return f"{job} is of a partition that {machine} does not have (it has: {valid}; {drops})"
    partition = site.default if demand is None else int(demand.partition[row])
    where = f"partition {site.partitions[partition]}" if site.partitions[partition] else machine
    if reason == TOO_LONG:
        asked, most = _asked_s(workload)[row], site.max_time_s[partition]
        return f"{job} asks for {asked:g} s and {where} allows {most:g} s ({drops})"
    if demand is None:
        raise ValueError(f"a job without a demand is not {reason}")
    if reason == TOO_MANY_NODES:
        return f"{job} asks for {demand.chunks[row]} nodes and {where} allows {site.max_nodes[partition]:g} ({drops})"
    parts = [f"{demand.chunks[row]} x {demand.cores[row]} cores"]
    parts += [f"{demand.gpus[row]} GPUs"] if demand.gpus[row] else []
    parts += [f"{demand.memory_mb[row]} MiB"] if demand.memory_mb[row] else []
    return (
        f"{job} needs {', '.join(parts)}"
        + (f", {demand.per_node[row]} a node" if demand.per_node[row] else "")
        + f", which all nodes of {where} do not hold ({drops})"
    )
