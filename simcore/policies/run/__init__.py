"""What every run has, and which roles it asks."""

from __future__ import annotations

import math

from faultsweep.simcore.contract import CLUSTERS, SITE, Config, Parameter, Policy, Refusal, Role, Run, constant
from faultsweep.simcore.engine.fairness import OWNER_METRICS, OWNERS
from faultsweep.simcore.finders.names import FINDERS
from faultsweep.simcore.model.machines import may_be_site
from faultsweep.simcore.policies.co_allocation.trunks import trunks_fail
from faultsweep.simcore.policies.failures import happen

EVENT_ORDERS = {
    "instant": "All events of an instant, then one scheduling pass.",
    "submits-first": "One pass after every event, submissions before completions (pyss).",
    "ends-first": "One pass after every event, completions before submissions.",
}


def on_torus(run: Run) -> bool:
    """Tell whether jobs take boxes of a torus."""
    return bool(run["machine"].startswith("torus:"))


def on_flat(run: Run) -> bool:
    """Tell whether jobs take any free nodes of one machine."""
    return bool(run["machine"].startswith("flat:"))


def on_clusters(run: Run) -> bool:
    """Tell whether the machine is clusters joined by trunks."""
    return bool(run["machine"].startswith("clusters:"))


def on_one_machine(run: Run) -> bool:
    """Tell whether there is one machine, not clusters."""
    return not on_clusters(run)


def chooses_nodes(run: Run) -> bool:
    """Tell whether it is open which nodes a job gets: on a flat machine and on a site."""
    return on_flat(run) or may_be_site(run["machine"])


def may_kill(run: Run) -> bool:
    """Tell whether failures, of nodes or of trunks, may kill jobs."""
    return happen(run) or trunks_fail(run)


def has_dues(run: Run) -> bool:
    """Tell whether it is measured what those got who have shares of the machine."""
    return bool(run["fairness"] and run["fairness_by"] in ("user", "account"))


def _sizes_on_sites(config: Config, kind: str, machine: str) -> str:
    processors = config["procs_per_node"]
    if kind != SITE or processors == 0:
        return ""
    return f"procs_per_node: {processors!r} is not for a site of shared nodes, whose jobs take cores (valid there: 0)"


def _partitions_on_sites(config: Config, kind: str, machine: str) -> str:
    drawn = config["num_partitions"]
    if kind != SITE or drawn == 0:
        return ""
    return f"num_partitions: {drawn!r} is not for a site, which has partitions of its own (valid there: 0)"


def _delays_on_clusters(config: Config, kind: str, machine: str) -> str:
    delay = config["start_delay_s"]
    if kind != CLUSTERS or delay == 0:
        return ""
    return f"start_delay_s: {delay!r} is not for machines of clusters (valid there: 0)"


def _event_order(config: Config, kind: str, machine: str) -> str:
    order = config["event_order"]
    if order == "instant":
        return ""
    if kind == CLUSTERS:
        return f"event_order: {order!r} is not for machines of clusters (valid there: instant)"
    if kind == SITE:
        return f"event_order: {order!r} is not for a site of shared nodes (valid there: instant)"
    if config["checkpoint"] != "none":
        return f"event_order: {order!r} is for runs without checkpoints (valid with them: 'instant')"
    return ""


ROLE = Role(
    "What every run has.",
    chooses=constant("run"),
    refuses=(
        Refusal(("start_delay_s",), _delays_on_clusters),
        Refusal(("procs_per_node",), _sizes_on_sites),
        Refusal(("num_partitions",), _partitions_on_sites),
        Refusal(("event_order", "checkpoint"), _event_order),
    ),
)

POLICY = Policy(
    "run",
    "",
    parameters=(
        Parameter(
            "machine",
            str,
            "torus:4x4x8",
            "torus:XxYxZ, flat:N, clusters:N+N+..., midplanes:N, or FILE.toml: a site, or a partition menu.",
            "machine",
        ),
        Parameter(
            "event_order",
            str,
            "instant",
            "Order of simultaneous events and scheduling passes.",
            "scheduling",
            choices=EVENT_ORDERS,
        ),
        Parameter(
            "start_delay_s",
            float,
            0.0,
            "Delay between being scheduled and starting.",
            "scheduling",
            minimum=0,
            maximum=1e9,
            unit="s",
        ),
        Parameter(
            "finder",
            str,
            "columns",
            "How free boxes are found; all finders give the same schedule, in different times.",
            "scheduling",
            choices=FINDERS,
            live=lambda run: on_torus(run) and run["time_scheduling"],
        ),
        Parameter("slowdown_bound_s", float, 10.0, "Gamma of the bounded slowdown.", "metrics", minimum=1e-9, unit="s"),
        Parameter(
            "max_restarts",
            int,
            10_000,
            "Restarts of one job after failures above which the run is truncated.",
            "run",
            minimum=0,
            live=may_kill,
        ),
        Parameter(
            "horizon_s",
            float,
            math.inf,
            "Time since the first submission at which the run is truncated.",
            "run",
            minimum=0,
            unit="s",
        ),
        Parameter(
            "fairness",
            bool,
            False,
            "Whether fairness among users is measured: gini_wait, jain_bounded_slowdown and share_gap.",
            "metrics",
        ),
        Parameter(
            "fairness_by",
            str,
            "user",
            "Among whom fairness is measured.",
            "metrics",
            choices={owner: f"The {owner} of a job." for owner in OWNERS},
            live=lambda run: run["fairness"],
        ),
        Parameter(
            "owner",
            str,
            "none",
            "Whose jobs are measured apart (owner_jobs, owner_mean_wait_s, owner_share, ...).",
            "metrics",
            choices={"none": "Nobody's."},
            form=rf"({'|'.join(OWNERS)}):.+",
            form_doc=" or ".join(f"{owner}:NAME" for owner in OWNERS),
        ),
        Parameter(
            "time_scheduling",
            bool,
            False,
            "Whether the time of scheduling is measured: mean_scheduling_s and max_scheduling_s.",
            "run",
        ),
    ),
    uses=(("priority_shares", has_dues),),
    metrics=(
        ("lost_to_delay", lambda run: run["start_delay_s"] > 0),
        ("gini_wait", lambda run: run["fairness"]),
        ("jain_bounded_slowdown", lambda run: run["fairness"]),
        ("share_gap", has_dues),
        *((name, lambda run: run["owner"] != "none") for name in OWNER_METRICS),
        ("mean_scheduling_s", lambda run: run["time_scheduling"]),
        ("max_scheduling_s", lambda run: run["time_scheduling"]),
    ),
    consults=(
        "jobs",
        "estimates",
        "failures",
        "checkpointing",
        "restart",
        "recovery",
        "scheduling",
        "queue_order",
        ("limits", on_one_machine),
        ("preemption", lambda run: may_be_site(run["machine"])),
        ("placement", on_torus),
        ("node_choice", chooses_nodes),
        ("co_allocation", on_clusters),
        ("split", on_clusters),
    ),
)
