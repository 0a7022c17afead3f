"""Where a job may start on clusters: in its own, whole in any, or over several (akshitha2011)."""

from __future__ import annotations

from faultsweep.simcore.contract import SENTENCES, Config, Parameter, Role, Run
from faultsweep.simcore.workloads.splitting import SPLITS

QUEUES = {
    "local": "The queue discipline orders each cluster's queue for itself.",
    "global": "The queue discipline orders all waiting jobs as one queue.",
}
PARTITIONINGS = {
    "largest-first": "The cluster with most free nodes gives all of them, then the next (akshitha2011).",
    "minimum-cut": "The nodes of each cluster are chosen so that the trunks together carry least.",
}


def co_allocates(config: Config | Run) -> bool:
    """Tell whether any job may run over several clusters; if not, no trunk carries anything."""
    meta = config["meta_scheduler"]
    informed = meta == "bandwidth-aware" and config["information_pct"] > 0
    return bool(config["machine"].startswith("clusters:") and (meta == "naive" or informed))


def heeds_statements(config: Config | Run) -> bool:
    """Tell whether what jobs state of their bandwidth makes a difference."""
    heeds = config["meta_scheduler"] == "bandwidth-aware" or config["agent"] == "ctmr"
    return co_allocates(config) and heeds


def heeds_information(run: Run) -> bool:
    """Tell whether it makes a difference which jobs state their bandwidth."""
    return bool(run["meta_scheduler"] == "bandwidth-aware" or (co_allocates(run) and run["agent"] == "ctmr"))


def heeds_error(run: Run) -> bool:
    """Tell whether it makes a difference how wrong statements are."""
    return heeds_statements(run) and run["information_pct"] > 0


def cuts_meshes(run: Run) -> bool:
    """Tell whether jobs are divided by their meshes, also where nothing communicates."""
    return bool(run["partitioning"] == "minimum-cut")


def _draws_statements(run: Run) -> bool:
    errs = heeds_error(run) and run["estimate_error_pct"] > 0
    return errs or (heeds_information(run) and 0 < run["information_pct"] < 100)


_SHARED = (
    Parameter(
        "queues",
        str,
        "local",
        "Whether the queue discipline orders each cluster's queue, or all of them as one (global).",
        "clusters",
        choices=QUEUES,
    ),
    Parameter(
        "information_pct",
        float,
        100.0,
        "Share of the jobs that state their bandwidth at all; bandwidth-aware co-allocation takes no others.",
        "clusters",
        minimum=0,
        maximum=100,
        unit="%",
    ),
    Parameter(
        "estimate_error_pct",
        float,
        0.0,
        "Largest error of the bandwidth that a job states, uniform, of the true one.",
        "clusters",
        minimum=0,
        maximum=100,
        unit="%",
    ),
    Parameter(
        "partitioning",
        str,
        "largest-first",
        "How a job is divided over clusters: those with most free nodes first, or so that the trunks carry least.",
        "clusters",
        choices=PARTITIONINGS,
    ),
)

ROLE = Role(
    "Where a job may start on clusters.",
    Parameter(
        "meta_scheduler",
        str,
        "bandwidth-aware",
        "Where a job may start: in its own cluster only, whole in any, or over several: always, or if what it states "
        "fits the trunks.",
        "clusters",
        choices=SENTENCES,
    ),
    parameters=_SHARED,
    metrics=(
        *("lost_to_congestion", "co_allocations", "jobs_co_allocated", "started_elsewhere", "congestion_slowdown"),
        *("trunk_utilisation", "saturated_time_frac", "highest_saturation", "estimate_rmspe_pct"),
        *("agent_activations", "jobs_taken", "jobs_barred"),
    ),
)

ROLES = (
    Role(
        "Which cluster a job is submitted to.",
        Parameter(
            "split",
            str,
            "random",
            "Which cluster's queue a job is submitted to: drawn by size, in turn, by its user, or by laying "
            "consecutive parts of the log, one for each cluster, over each other (overlay).",
            "clusters",
            choices=SPLITS,
        ),
        name="split",
    ),
)

USES = (
    ("queues", lambda run: run["scheduler"] != "first-fit"),
    ("information_pct", heeds_information),
    ("estimate_error_pct", heeds_error),
    ("partitioning", co_allocates),
)
CONSULTS = (
    ("trunks", co_allocates),
    ("traffic", co_allocates),
    ("agents", co_allocates),
    ("error", lambda run: heeds_error(run) and run["estimate_error_pct"] > 0),
    ("seed", _draws_statements),
)
"""What every meta-scheduler uses and asks."""
