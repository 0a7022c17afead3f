"""Whether running jobs make way for waiting ones, and what becomes of them."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import SENTENCES, Config, Parameter, Refusal, Role, Run
from faultsweep.simcore.contract import SITE as ON_SITE
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.model.machines import Machine, may_be_site

from faultsweep.errors import InputError

METRICS = ("preemptions", "jobs_preempted", "jobs_cancelled", "lost_to_preemption")


def preempts(run: Run) -> bool:
    """Tell whether jobs may preempt others: on sites only."""
    return may_be_site(run["machine"]) and not run.is_("preemption", "none")


def requeues(run: Run) -> bool:
    """Tell whether a job that another one preempts waits again."""
    return preempts(run) and not run.is_("preemption", "cancel", "suspend")


def has_others_leave(run: Run) -> bool:
    """Tell whether jobs that others preempt leave their nodes."""
    return preempts(run) and not run.is_("preemption", "suspend")


def gives_grace(run: Run) -> bool:
    """Tell whether a preempted job may have some time left."""
    return has_others_leave(run) and (run["preempt_grace_s"] > 0 or run["site_grace"])


def check_preempting(run: Run, machine: Machine) -> None:
    """Raise InputError if jobs are to preempt others on a site that does not say which."""
    if machine.site is not None and preempts(run) and not machine.site.preempting.by:
        raise InputError(
            f"preemption: {machine.name} does not say which jobs may preempt others "
            "(valid: a file with preempt_by, or preemption = 'none')"
        )


def _not_with(config: Config, kind: str, machine: str) -> str:
    scheduler = config["scheduler"]
    if config["preemption"] == "none" or kind != ON_SITE or scheduler in ("fcfs", "backfill", "slurm"):
        return ""
    return (
        f"preemption: {config['preemption']!r} is not for scheduler = {scheduler!r}: a reservation would "
        "not hold that a job makes way for (valid: fcfs, backfill, slurm)"
    )


ROLE = Role(
    "Whether running jobs make way for waiting ones.",
    Parameter(
        "preemption",
        str,
        "none",
        "What becomes of a job whose place one of a higher partition or QOS of the site takes.",
        "scheduling",
        choices=SENTENCES,
    ),
    parameters=(
        Parameter(
            "site_tiers",
            bool,
            False,
            "Jobs of partitions with a higher tier come first (SLURM: PriorityTier); always so with preemption.",
            "scheduling",
        ),
        Parameter(
            "preempt_grace_s",
            float,
            0.0,
            "Time that a job has left when it is preempted.",
            "scheduling",
            minimum=0,
            maximum=1e9,
            unit="s",
        ),
        Parameter(
            "site_grace",
            bool,
            False,
            "Where the partition or QOS of a preempted job has a grace time in the site's file, it has that (SLURM: "
            "GraceTime).",
            "scheduling",
        ),
        Parameter(
            "preempt_exempt_s",
            float,
            0.0,
            "Time for which a job has run before it can be preempted (SLURM: PreemptExemptTime).",
            "scheduling",
            minimum=0,
            maximum=1e9,
            unit="s",
        ),
    ),
    refuses=(Refusal(("preemption", "scheduler"), _not_with),),
    metrics=tuple((name, preempts) for name in METRICS),
)

TIMES = ("preempt_grace_s", "site_grace", "preempt_exempt_s")


def begin(s: State, run: Run) -> None:
    """Set what every kind of preemption has in the state of a run."""
    s.in_tiers = 1
    s.job.preempts_from[:] = -np.inf
    s.preempt_grace, s.preempt_exempt = run["preempt_grace_s"], run["preempt_exempt_s"]
    s.own_graces = int(run["site_grace"])
