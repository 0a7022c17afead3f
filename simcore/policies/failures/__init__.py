"""Sources of node failures: a log brought to a machine, or a generator."""

from __future__ import annotations

from faultsweep.simcore.contract import Parameter, Role, Run
from faultsweep.simcore.distributions import REPAIR_SIGMA


def _asks_for_none(run: Run) -> bool:
    return bool(run["num_failures"] == 0 or run["failures_per_day"] == 0)


FITTED: tuple[str, ...] = ("num_failures", "failures_per_day", "failure_fit", "node_map", "down_time_s")
"""What every log heeds that is brought to the span of the jobs and to the machine."""
NONE_WANTED = ((_asks_for_none, "none"),)
"""A log of which no failure is wanted."""


def happen(run: Run) -> bool:
    """Tell whether a run has failures of nodes."""
    return not run.is_("failures", "none")


LOSSES = (
    *("failures_seen", "failures_seen_per_day", "failures_that_hit", "jobs_hit", "restarts"),
    *("work_lost_node_s", "work_loss_ratio", "one_hit_work_loss_ratio", "lost_to_failures", "lost_to_down_time"),
)
"""The metrics of failures."""

ROLE = Role(
    "Where failures of nodes come from.",
    Parameter(
        "failures",
        str,
        "none",
        "none, the path of a failure log, or a generator: weibull, weibull-copula, mtbf, bursts.",
        "failures",
    ),
    otherwise="log",
    metrics=tuple((name, happen) for name in LOSSES),
    parameters=(
        Parameter(
            "down_time_s",
            float,
            -1.0,
            "Down time of every failure; -1: the source's own (a log's, else 0; 120 s for weibull; mttr_h for mtbf).",
            "failures",
            minimum=-1,
            unit="s",
        ),
        Parameter(
            "weibull_shape",
            float,
            0.85,
            "Shape beta of the times between failures of weibull and weibull-copula.",
            "failures",
            minimum=0.05,
            maximum=20,
        ),
        Parameter(
            "weibull_scale_s",
            float,
            18_000.0,
            "Scale eta of the times between failures of weibull and weibull-copula.",
            "failures",
            minimum=1e-3,
            maximum=1e9,
            unit="s",
        ),
        Parameter(
            "zipf_alpha",
            float,
            0.01,
            "Skewness alpha of the nodes that fail under weibull and weibull-copula; 0 is uniform, node 0 fails most.",
            "failures",
            minimum=0,
            maximum=20,
        ),
        REPAIR_SIGMA,
    ),
)
