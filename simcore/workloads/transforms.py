"""What a configuration does to a log before a run: spans, load, arrival rate, sizes, estimates.

All are pure functions. Before a run, times become seconds since the first submission (``from_origin``): so a log that
begins later gives the same results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from faultsweep.simcore.model.workload import Workload, take
from faultsweep.simcore.policies.co_allocation import co_allocates
from faultsweep.simcore.streams import round_ms, stream
from faultsweep.simcore.workloads.owners import DRAWN, draw_owners
from faultsweep.simcore.workloads.resampling import resample
from faultsweep.simcore.workloads.shaping import shape
from faultsweep.simcore.workloads.splitting import split_over
from faultsweep.simcore.workloads.swf import header_number
from numpy.typing import NDArray

from faultsweep.errors import InputError, unknown_name

SIZE_MAPS = {
    "exact": "Sizes as the log has them; one larger than the machine is an error.",
    "scale": "Sizes times nodes of the machine / nodes of the log, rounded up.",
    "clip": "Sizes larger than the machine become the machine.",
    "drop": "Jobs larger than the machine are left out, and counted.",
}

DRAWN_BY = {name: parameter for parameter, name in DRAWN.items()}
TOO_LARGE = "larger than the machine"
_NOTED_LOAD = 0.01
"""A smaller share of load is nothing that a user has to be told."""
_LARGEST = np.iinfo(np.int64).max


def prepare(
    workload: Workload,
    config: Mapping[str, Any],
    machine_nodes: int,
    clusters: tuple[int, ...] = (),
    node_size: int = 1,
) -> tuple[Workload, NDArray[np.float64]]:
    """Apply the workload parameters of a resolved configuration to a log or to the output of a model.

    Parameters
    ----------
    workload : as read or generated; sizes in processors.
    config : resolved configuration; ``offset``, ``num_jobs``, ``resample``, ``procs_per_node``, ``size_map``,
        ``arrival_scale``, ``load_scale``, ``target_utilisation``, ``estimates``, ``estimate_factor``,
        ``default_request_s``, ``request_step_s``, those of ``shape`` and of ``DRAWN``, ``seed`` and
        ``replicate`` are used.
    machine_nodes : nodes of the machine that is simulated, or of the largest job that it can hold.
    clusters : nodes of its clusters, if it has any: then ``split`` says to which each job is submitted.
    node_size : nodes of the log in one of its nodes.

    Returns
    -------
    tuple
        The workload with sizes in nodes and times since its first submission, and the estimated run time of each job
        in seconds, float64 of shape (jobs,).

    Raises
    ------
    InputError
        If the log has too few jobs, or a job does not fit the machine and ``size_map`` does not say what to do.
    """
    workload = span(workload, config["offset"], config["num_jobs"])
    if config["resample"] != "none":
        workload = resample(workload, config["seed"], config["replicate"])
    workload = draw_owners(workload, config)
    largest = largest_size(config, machine_nodes, clusters)
    holder = "the largest cluster" if largest < machine_nodes else "the machine"
    workload = map_sizes(workload, largest, config["procs_per_node"], config["size_map"], node_size, holder)
    workload = from_origin(workload)
    if config["default_request_s"] > 0 and config["estimates"] == "requested":
        unknown = np.isnan(workload.requested_s)
        workload = replace(workload, requested_s=np.where(unknown, config["default_request_s"], workload.requested_s))
    if clusters:
        workload = split_over(workload, clusters, config["split"], config["seed"], config["replicate"])
    workload = scale_arrivals(shape(workload, config), config["arrival_scale"])
    if config["target_utilisation"] > 0:
        workload = scale_to_utilisation(workload, config["target_utilisation"], machine_nodes)
    else:
        workload = scale_load(workload, config["load_scale"])
    drawn = config["seed"], config["replicate"]
    return workload, estimates(
        workload, config["estimates"], config["estimate_factor"], *drawn, step_s=config["request_step_s"]
    )


def doubts(workload: Workload, config: Mapping[str, Any]) -> dict[str, str]:
    """Return what has to be assumed of a log because it does not say it: a sentence by the parameter, or the metric,
    that it is about."""
    jobs = span(workload, config["offset"], config["num_jobs"])
    vain = _vain_zone(workload, config["timezone"])
    found = {**workload.notes, **vain}
    if vain:
        found.pop("timezone", None)  # it says to give a zone
    unknown = int(np.isnan(jobs.requested_s).sum())
    if config["estimates"] == "requested" and unknown:
        limit = config["default_request_s"]
        found["default_request_s"] = f"{unknown:,} of {len(jobs):,} jobs have no requested time; their estimate is " + (
            f"{limit:g} s (default_request_s)" if limit else "their run time (default_request_s gives them another)"
        )
    pairs = jobs.dependencies
    if pairs is not None and config["dependencies"] == "none":
        count = len(np.unique(pairs.job))
        found["dependencies"] = (
            f"{count:,} of {len(jobs):,} jobs follow another one, and do not wait for its end (dependencies = log lets "
            "them wait)"
        )
    if pairs is None and config["dependencies"] == "log":
        found["dependencies"] = "no job is known to follow an earlier one, so dependencies = log changes nothing"
    nodes, processors = (header_number(workload.header, key) for key in ("MaxNodes", "MaxProcs"))
    mixed = (
        nodes and processors % nodes and (workload.nodes, workload.procs_per_node) == (nodes, -(-processors // nodes))
    )
    if mixed and not config["procs_per_node"] and processors < nodes:
        found["procs_per_node"] = (
            f"the log's header has fewer processors ({processors:,}) than nodes ({nodes:,}): one of them is wrong, and "
            "sizes are counted in nodes of 1 processor (procs_per_node says another number)"
        )
    elif mixed and not config["procs_per_node"]:
        found["procs_per_node"] = (
            f"the log's {processors:,} processors on {nodes:,} nodes do not divide: nodes are of several kinds, and "
            f"sizes are counted in nodes of {workload.procs_per_node} processors (procs_per_node says another number)"
        )
    owner = config["fairness_by"]
    if config["fairness"] and not config[DRAWN_BY[owner]] and not _have(jobs, owner):
        found["gini_wait"] = f"no job has a {owner}, so fairness is not measured ({DRAWN_BY[owner]} draws them)"
    found |= _without_labels(jobs, config)
    shared = _shared_nodes(jobs, config["procs_per_node"])
    if shared:
        found["offered_load"] = shared
    return {about: f"{workload.name}: {sentence}" for about, sentence in found.items()}


def _vain_zone(workload: Workload, timezone: str) -> dict[str, str]:
    """Return the sentence for a zone that was given, and that no time was read in."""
    zone = workload.timezone or ("UTC" if "timezone" in workload.notes else "")
    if timezone in ("", zone):
        return {}
    when = "when it was imported or loaded (logs import and load_workload take a zone)"
    read = zone and f"they were read in {zone} {when}"
    why = read or "each names its zone, or is on a clock without a date"
    return {"vain_timezone": f"timezone = {timezone} changes nothing in the times of this log: {why}"}


def _have(jobs: Workload, owner: str) -> bool:
    """Tell whether some jobs say which user, account, partition or QOS they are of."""
    if owner == "user":
        return bool((jobs.user >= 0).any())
    return owner in jobs.labels or (owner == "partition" and jobs.demand is not None)


def _without_labels(jobs: Workload, config: Mapping[str, Any]) -> dict[str, str]:
    """Return a sentence for each weight of a priority that changes nothing, because jobs do not say what it weighs."""
    asked = {"partition": "priority_partition_weight", "qos": "priority_qos_weight"}
    if config["queue_order"] != "multifactor":
        return {}
    found = {
        weight: f"no job has a {name}, so {weight} changes nothing ({DRAWN_BY[name]} draws them)"
        for name, weight in asked.items()
        if config[weight] and name not in jobs.labels and jobs.demand is None and not config[DRAWN_BY[name]]
    }
    tree = config["priority_share_weight"] and config["priority_fair_share"] != "users"
    if tree and "account" not in jobs.labels and not config["num_accounts"]:
        found["priority_fair_share"] = (
            "no job has an account, so all users are in the same one (num_accounts draws them)"
        )
    return found


def _shared_nodes(jobs: Workload, procs_per_node: int) -> str:
    """Return the sentence for jobs that share nodes in the log and do not here, "" if that changes little."""
    per_node = procs_per_node or jobs.procs_per_node
    if per_node <= 1 or not len(jobs):
        return ""
    held = -(-jobs.size // per_node) * per_node
    relative = jobs.run_s / jobs.run_s.max()  # so that no product is too large
    more = float((held * relative).sum() / (jobs.size * relative).sum()) - 1.0
    if more < _NOTED_LOAD:
        return ""
    parts = int((held > jobs.size).sum())
    return (
        f"{parts:,} of {len(jobs):,} jobs use a part of their last node of {per_node} processors; no node is shared "
        f"here, so the offered load is {100 * more:.3g} % above that of the processors (procs_per_node = 1 simulates "
        "processors)"
    )


def largest_size(config: Mapping[str, Any], machine_nodes: int, clusters: tuple[int, ...]) -> int:
    """Return the nodes of the largest job that a run takes: those of the machine, or of its largest cluster.

    A job that no cluster holds can only run over several, so the log must have it as it is, and jobs be co-allocated.
    """
    if not clusters or (config["size_map"] == "exact" and co_allocates(config)):
        return machine_nodes
    return max(clusters)


def span(workload: Workload, offset: int = 0, num_jobs: int = 0) -> Workload:
    """Return ``num_jobs`` jobs (0: all) after passing over ``offset``."""
    total = len(workload)
    if offset >= total or offset + num_jobs > total:
        wanted = f"jobs {offset} to {offset + num_jobs - 1}" if num_jobs else f"jobs from {offset} on"
        raise InputError(f"{workload.name}: {wanted} requested (offset, num_jobs), but it has only {total} valid jobs")
    end = offset + num_jobs if num_jobs else total
    return take(workload, slice(offset, end))


def from_origin(workload: Workload) -> Workload:
    """Return the workload with submissions in seconds since the first one."""
    if not len(workload):
        return workload
    first = float(workload.submit_s[0])
    return replace(workload, submit_s=workload.submit_s - first, origin_s=workload.origin_s + first)


def scale_load(workload: Workload, load_scale: float) -> Workload:
    """Multiply run times and requested times by the load scale c (krevat2003, ch. 4)."""
    return replace(workload, run_s=workload.run_s * load_scale, requested_s=workload.requested_s * load_scale)


def scale_to_utilisation(workload: Workload, utilisation: float, machine_nodes: int) -> Workload:
    """Scale run times so that the jobs offer the machine this load: size x run time over nodes x span of submissions.

    Sizes are in nodes. zhang2004 sets utilisations from 0.70 to 0.95 by the mean run time.

    Raises
    ------
    InputError
        If all jobs come at once.
    """
    span_s = float(workload.submit_s[-1] - workload.submit_s[0])
    if span_s <= 0:
        raise InputError(f"{workload.name}: target_utilisation needs jobs that come at different times")
    offered = float((workload.size * workload.run_s).sum()) / (machine_nodes * span_s)
    return scale_load(workload, utilisation / offered)


def scale_arrivals(workload: Workload, arrival_scale: float) -> Workload:
    """Divide the gaps between submissions; the first one keeps its time."""
    if arrival_scale == 1:  # first + (t - first) may differ from t in the last bit
        return workload
    first = workload.submit_s[0]
    return replace(workload, submit_s=first + (workload.submit_s - first) / arrival_scale)


def map_sizes(
    workload: Workload,
    machine_nodes: int,
    procs_per_node: int = 0,
    size_map: str = "exact",
    node_size: int = 1,
    holder: str = "the machine",
) -> Workload:
    """Turn sizes from processors into nodes of the machine that is simulated.

    Parameters
    ----------
    machine_nodes : nodes of that machine.
    procs_per_node : processors of a node of the log; 0 takes the log's own.
    size_map : "exact" keeps sizes and refuses a job that is too large, "scale" multiplies by machine nodes / nodes of
        the log and rounds up, "clip" cuts sizes to the machine, "drop" leaves out (and counts) jobs that are too large.
    node_size : nodes of the log in one node of the machine (512 in a midplane); "scale" does not need it.

    holder : what holds no larger jobs, for messages: the machine, or its largest cluster.

    Raises
    ------
    InputError
        Naming the first job that is too large, under "exact", and under "scale" when a job exceeds the log's machine.
    """
    if size_map not in SIZE_MAPS:
        raise unknown_name("size map", size_map, SIZE_MAPS)
    per_node = (procs_per_node or workload.procs_per_node) * (1 if size_map == "scale" else node_size)
    size = -(-workload.size // per_node)
    nodes = -(-workload.nodes * workload.procs_per_node // per_node)
    if size_map == "scale":
        if not nodes:
            raise InputError(
                f"{workload.name}: size_map = scale needs the log's number of nodes (MaxNodes in its header)"
            )
        fits_63_bits = int(size.max()) * machine_nodes <= _LARGEST
        exact = size if fits_63_bits else size.astype(object)
        size = np.clip(-(-exact * machine_nodes // nodes), 1, _LARGEST).astype(np.int64)
        nodes = machine_nodes
    elif size_map == "clip":
        size = np.minimum(size, machine_nodes)
    fits = size <= machine_nodes
    if size_map != "drop" and not fits.all():
        raise _too_large(workload, size, int(np.flatnonzero(~fits)[0]), machine_nodes, size_map, holder)
    if not fits.any():
        raise InputError(f"{workload.name}: all jobs are larger than the machine of {machine_nodes} nodes")
    mapped = replace(workload, size=size, nodes=nodes, procs_per_node=1)
    if fits.all():
        return mapped
    return take(mapped, fits, dropped=dict(workload.dropped) | {TOO_LARGE: int((~fits).sum())})


def _too_large(
    workload: Workload, size: NDArray[np.int64], row: int, machine_nodes: int, size_map: str, holder: str
) -> InputError:
    others = ", ".join(name for name in SIZE_MAPS if name not in ("exact", size_map))
    return InputError(
        f"{workload.name}: job {workload.job_id[row]} needs {size[row]} nodes and {holder} has {machine_nodes} "
        f"(size_map = {size_map}; {others} would make or leave out such jobs)"
    )


def estimates(
    workload: Workload,
    kind: str = "actual",
    factor: float = 1.0,
    seed: int = 0,
    replicate: int = 0,
    step_s: float = 0.0,
) -> NDArray[np.float64]:
    """Return what the scheduler believes of run times, in seconds, shape (jobs,).

    "actual" is the run time, "requested" the requested time rounded up to whole steps (the run time where there is
    none), "f-model" uniform in [run time, factor x run time], rounded to 1 ms inside these bounds (Mu'alem and
    Feitelson, IEEE TPDS 2001).
    """
    run = workload.run_s
    if kind == "actual":
        return run.copy()
    if kind == "requested":
        requested = workload.requested_s if step_s == 0 else np.ceil(workload.requested_s / step_s) * step_s
        return np.where(np.isnan(requested), run, requested)
    if kind != "f-model":
        raise unknown_name("estimates", kind, ("actual", "requested", "f-model"))
    share = stream(seed, replicate, "estimates").random(len(run))
    return np.clip(round_ms(run * (1 + (factor - 1) * share)), run, factor * run)
