"""Which jobs a run has: those of a log, or of a model."""

from __future__ import annotations

from faultsweep.simcore.contract import CLUSTERS, Config, Named, Parameter, Policy, Refusal, Role, Run
from faultsweep.simcore.workloads.models import is_model
from faultsweep.simcore.workloads.owners import DRAWN
from faultsweep.simcore.workloads.resampling import RESAMPLES
from faultsweep.simcore.workloads.transforms import SIZE_MAPS


def _draws(run: Run) -> bool:
    return _resampled(run) or _draws_owners(run) or _redraws_sizes(run)


def _resampled(run: Run) -> bool:
    return bool(run["resample"] != "none")


def _draws_owners(run: Run) -> bool:
    return any(run[name] > 0 for name in DRAWN)


def _redraws_sizes(run: Run) -> bool:
    return bool(run["serial_share"] >= 0)


def _drawn(name: str, what: str, of_whom: str) -> Parameter:
    doc = f"{what} that are drawn, by Zipf's law, {of_whom}; 0: as the log has them."
    return Parameter(name, int, 0, doc, "workload", minimum=0, maximum=100_000)


DEPENDENCIES = {
    "none": "No job waits for another one: each may start from its submission on.",
    "log": "A job may start when those that it follows have ended, and its think time is over (SWF: fields 17, 18).",
}


def _on_clusters(config: Config, kind: str, machine: str) -> str:
    if kind != CLUSTERS or config["dependencies"] == "none":
        return ""
    return f"dependencies: {config['dependencies']!r} is not for machines of clusters (valid there: 'none')"


_SHARED = (
    Parameter("log", str, "", "Named log, path of a log or of a workload model.", "workload"),
    Parameter(
        "timezone",
        str,
        "",
        "Zone of times in an accounting dump that name none, such as Europe/Berlin; not given: UTC.",
        "workload",
    ),
    Parameter("offset", int, 0, "Valid jobs of the log to pass over.", "workload", minimum=0, unit="jobs"),
    Parameter(
        "num_jobs", int, 0, "Valid jobs of the log to use; 0 uses all of them.", "workload", minimum=0, unit="jobs"
    ),
    Parameter(
        "resample",
        str,
        "none",
        "Whether each replicate has other jobs of the log's users.",
        "workload",
        choices=RESAMPLES,
    ),
    Parameter(
        "load_scale",
        float,
        1.0,
        "The load scale c: multiplies run times and estimates.",
        "workload",
        minimum=1e-9,
        maximum=1e9,
    ),
    Parameter(
        "target_utilisation",
        float,
        0.0,
        "Load that the jobs used offer the machine, by scaling run times and estimates; 0: not given.",
        "workload",
        minimum=0,
        maximum=1000,
    ),
    Parameter(
        "arrival_scale", float, 1.0, "Divides the interarrival times of jobs.", "workload", minimum=1e-9, maximum=1e9
    ),
    Parameter(
        "procs_per_node",
        int,
        0,
        "Processors of a node of the log; 0 takes the header's MaxProcs / MaxNodes.",
        "workload",
        minimum=0,
    ),
    Parameter(
        "size_map", str, "exact", "What happens to sizes of a log of another machine.", "workload", choices=SIZE_MAPS
    ),
    Parameter(
        "longest_run_h",
        float,
        0.0,
        "Longest run time and requested time of a job, before the load is scaled: longer ones are cut; 0: as they are.",
        "workload",
        minimum=0,
        maximum=1e7,
        unit="h",
    ),
    Parameter(
        "work_concentration",
        float,
        0.0,
        "E[W²] / E[W]² of the work W of a job, by longer and shorter run times of equal work in all; 0: as it is.",
        "workload",
        minimum=0,
        maximum=1e9,
    ),
    Parameter(
        "serial_share",
        float,
        -1.0,
        "Share of jobs on one node: jobs drawn at random become serial or parallel; -1: as it is.",
        "workload",
        minimum=-1,
        maximum=1,
    ),
    Parameter(
        "arrival_cycle",
        float,
        0.0,
        "Strength of a daily cycle of submissions, 0 (none of its own) to 1 (none at all at night).",
        "workload",
        minimum=0,
        maximum=1,
    ),
    Parameter(
        "dependencies",
        str,
        "none",
        "Whether jobs wait for the end of those that they follow in the log.",
        "workload",
        choices=DEPENDENCIES,
    ),
    _drawn("num_users", "Users", "one for each job"),
    _drawn("num_accounts", "Accounts", "one for each user"),
    _drawn("num_partitions", "Partitions", "one for each job"),
    _drawn("num_qos", "QOS", "one for each job"),
    Parameter(
        "zipf_owners",
        float,
        1.0,
        "Zipf exponent of drawn users, accounts, partitions and QOS: the share of the k-th falls as k^-exponent.",
        "workload",
        minimum=0,
        maximum=10,
        live=_draws_owners,
    ),
)

ROLES = (
    Role(
        "Which jobs a run has.",
        chooses=lambda run: "model" if is_model(run["log"]) else "log",
        parameters=_SHARED,
        refuses=(Refusal(("dependencies",), _on_clusters),),
        name="jobs",
    ),
)

_USES: tuple[Named, ...] = (
    *(p.name for p in _SHARED if p.name not in ("timezone", "load_scale", "zipf_owners")),
    ("zipf_owners", _draws_owners),
    ("load_scale", lambda run: run["target_utilisation"] <= 0),
)

POLICIES = (
    Policy("log", "", role="jobs", uses=("timezone", *_USES), consults=(("seed", _draws),)),
    Policy("model", "", role="jobs", uses=_USES, consults=("seed",)),
)
