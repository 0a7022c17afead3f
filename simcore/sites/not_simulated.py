"""What a site's file says that a simulation of the site does not heed."""

from __future__ import annotations

from collections.abc import Iterator

from faultsweep.simcore.sites.limits import LIMITS_OF_QOS, limits_of, submit_limits_of
from faultsweep.simcore.sites.preempting import NEVER, graces_of
from faultsweep.simcore.sites.site import Backfill, Priority, Qos, Site


def not_simulated(site: Site) -> list[str]:
    """Return a line for each kind of rule that the file has and no simulation heeds."""
    return [line for line in _lines(site) if line]


def _lines(site: Site) -> Iterator[str]:
    yield _named("least sizes of partitions", [part.name for part in site.partitions if part.min_nodes > 1])
    rules = dict.fromkeys(rule.name for rule in limits_of(site))
    yield _named("limits of running jobs, unless asked for (--site-limits)", list(rules))
    rules = dict.fromkeys(rule.name for rule in submit_limits_of(site))
    yield _named("limits of submitted jobs, unless asked for (--site-submit-limits)", list(rules))
    yield _named("partitions that are down", [part.name for part in site.partitions if not part.up])
    if len({part.priority_tier for part in site.partitions}) > 1 and not site.preempt_by:
        yield "priority tiers of partitions, unless they are asked for (--site-tiers)"
    yield _named("other rules of QOS", _with_rules(site))
    windows = [window.name for window in site.reservations if not window.maintenance]
    yield _named("who may use advance reservations, unless asked for (--site-reservations)", windows)
    yield _named("licences", [licence.name for licence in site.licences])
    yield _named("features of nodes", sorted({feature for nodes in site.nodes for feature in nodes.features}))
    failing = [nodes.name for nodes in site.nodes if nodes.mtbf_h is not None]
    yield _named("mtbf_h of node classes, unless asked for (--failures mtbf)", failing)
    if site.priority.kind != "fifo":
        options = " ".join(priority_options(site.priority))
        yield f"{site.priority.kind} priority of jobs, unless it is asked for: {options}"
    if site.scheduler == "slurm":
        yield f"the passes of SLURM, unless they are asked for: {' '.join(pass_options(site.backfill))}"
    if site.scheduler == "pbs" and site.backfill.kind == "builtin":
        yield "its strict order, unless it is asked for: --scheduler fcfs"
    elif site.scheduler == "pbs" and site.backfill.top_jobs is not None:
        yield f"its top jobs, unless they are asked for: --scheduler top-jobs --top-jobs {site.backfill.top_jobs}"
    if site.preempt_by:
        options = " ".join(preempt_options(site))
        yield f"preemption by {site.preempt_by} and tiers of partitions, unless they are asked for: {options}"
        yield _named("modes of preemption of their own", _with_modes(site))


_DELAYS = ("--request-step-s 60", "--requeue-hold-s 121", "--start-delay-s 0.09")
"""Limits in whole minutes, the hold of requeued jobs, and the middle of the 40 to 140 ms from a pass to the begin of a
job, as measured with SLURM 22.05."""


def pass_options(backfill: Backfill) -> list[str]:
    """Return the options of a run whose scheduler makes SLURM's passes, as far as the site says more than SLURM's
    defaults."""
    if backfill.kind == "builtin":
        return ["--scheduler fcfs"]
    depth = backfill.default_queue_depth
    values = {
        "main-depth": None if depth is None else depth + 1,  # SLURM looks at one job more than it says
        "full-interval-s": backfill.full_interval_s,
        "backfill-interval-s": backfill.interval_s,
        "backfill-window-h": None if backfill.window_s is None else backfill.window_s / 3600.0,
        "backfill-resolution-s": backfill.resolution_s,
        "backfill-depth": backfill.max_job_test,
        "backfill-user-depth": backfill.max_job_user,
    }
    of_slurm = ["--scheduler slurm", *_DELAYS]
    return [*of_slurm, *(f"--{name} {value:.9g}" for name, value in values.items() if value is not None)]


_MODES = {"REQUEUE": "requeue", "CANCEL": "cancel", "CHECKPOINT": "checkpoint", "SUSPEND": "suspend"}


def preempt_options(site: Site) -> list[str]:
    """Return the options of a run in which jobs of a site preempt others."""
    mode = next((_MODES[word] for word in site.preempt_mode.upper().split(",") if word in _MODES), "requeue")
    if mode == "suspend":  # suspended jobs stop at once: no grace, exempt time or wait has an effect
        return [f"--preemption {mode}"]
    values = {"preempt-exempt-s": site.preempt_exempt_s or None, "preempt-wait-s": site.preempt_wait_s}
    options = [f"--{name} {value:.9g}" for name, value in values.items() if value is not None]
    return [f"--preemption {mode}", *(["--site-grace"] if graces_of(site) else []), *options]


def _with_modes(site: Site) -> list[str]:
    """Return the partitions or QOS whose jobs are preempted in another way than those of the site."""
    owners = site.qos if site.preempt_by == "qos" else site.partitions
    return [each.name for each in owners if each.preempt_mode.upper() not in ("", NEVER, site.preempt_mode.upper())]


def priority_options(priority: Priority) -> list[str]:
    """Return the options of a run whose queue has the order of a site, as far as ``multifactor`` has its factors.

    Shares of accounts, factors of partitions and priorities of QOS are read from the site.
    """
    weights = priority.weights
    values = {
        "priority-age-weight": weights.get("age", 0.0),
        "priority-share-weight": weights.get("fairshare", 0.0),
        "priority-size-weight": weights.get("jobsize", 0.0),
        "priority-partition-weight": weights.get("partition"),
        "priority-qos-weight": weights.get("qos"),
        "priority-association-weight": weights.get("assoc"),
        "priority-max-age-h": None if priority.max_age_s is None else priority.max_age_s / 3600.0,
        "priority-half-life-h": None if priority.half_life_s is None else priority.half_life_s / 3600.0,
        "priority-period-s": priority.calc_period_s,
    }
    options = [f"--{name} {value:.9g}" for name, value in values.items() if value is not None]
    tres = [f"{name[5:]}:{weight:.9g}" for name, weight in weights.items() if name.startswith("tres_")]
    fair_share = f"--priority-fair-share {'fair-tree' if priority.fair_tree else 'classic'}"
    return [
        "--queue-order multifactor",
        *options,
        *([f"--priority-tres-weights {','.join(tres)}"] if tres else []),
        fair_share,
        *(["--priority-small-first"] if priority.favour_small else []),
    ]


def _with_rules(site: Site) -> list[str]:
    """Return the QOS that say more than their priority, their limits and preemption."""
    plain = dict.fromkeys(LIMITS_OF_QOS) | {"priority": 0, "preempts": [], "preempt_mode": "", "grace_s": 0.0}
    return [qos.name for qos in site.qos if qos.model_copy(update=plain) != Qos(name=qos.name)]


def _named(what: str, names: list[str]) -> str:
    """Return a line with up to five names, "" without any."""
    if not names:
        return ""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{what}: {', '.join(names[:5])}{more}"
