"""Limits of running and submitted jobs by whom they belong to: users, accounts, partitions and QOS."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from faultsweep.simcore.contract import CLUSTERS, Config, Named, Parameter, Policy, Refusal, Role, Run
from faultsweep.simcore.model.limits import Rule
from faultsweep.simcore.model.machines import may_be_site
from faultsweep.simcore.model.nodes import NodeTable
from faultsweep.simcore.model.workload import Label
from faultsweep.simcore.workloads.owners import DRAWN

from faultsweep.errors import InputError

OWNERS = {"user": "user", "account": "account", "partition": "partition", "qos": "QOS", "array": "job array"}
"""Whose running jobs may be limited, with the word for it; of an array its tasks."""


def _most(owner: str, word: str) -> tuple[Parameter, Parameter]:
    jobs = f"Most running jobs of each {word} (SLURM: MaxJobs, GrpJobs); 0: no limit."
    nodes = f"Most nodes, on a site cores, that running jobs of each {word} ask for (SLURM: GrpTRES); 0: no limit."
    return (
        Parameter(f"{owner}_max_jobs", int, 0, jobs, "scheduling", minimum=0, unit="jobs"),
        Parameter(f"{owner}_max_nodes", int, 0, nodes, "scheduling", minimum=0, unit="nodes"),
    )


PARAMETERS = tuple(parameter for owner, word in OWNERS.items() for parameter in _most(owner, word))
SITE_LIMITS = Parameter("site_limits", bool, False, "Heed the limits of running jobs of the site's file.", "scheduling")
SITE_SUBMIT_LIMITS = Parameter(
    "site_submit_limits",
    bool,
    False,
    "Refuse jobs above the limits of submitted jobs of the site's file.",
    "scheduling",
)
SITE_RESERVATIONS = Parameter(
    "site_reservations",
    bool,
    False,
    "Jobs run in the advance reservations of the site's file that they ask for.",
    "scheduling",
)
METRICS = ("mean_time_at_limit_s", "jobs_at_limit")


def given(run: Run) -> tuple[str, ...]:
    """Return the parameters of a run that limit something."""
    return tuple(parameter.name for parameter in PARAMETERS if run[parameter.name] > 0)


def _on_site(run: Run) -> bool:
    return may_be_site(run["machine"])


def _may_limit(run: Run) -> bool:
    return bool(given(run)) or (run["site_limits"] and _on_site(run))


def _may_refuse(run: Run) -> bool:
    return bool(run["site_submit_limits"] and _on_site(run))


def _may_miss(run: Run) -> bool:
    return bool(run["site_reservations"] and _on_site(run))


def _on_clusters(config: Config, kind: str, machine: str) -> str:
    found = next((parameter.name for parameter in PARAMETERS if config[parameter.name] > 0), "")
    if kind != CLUSTERS or not found:
        return ""
    return f"{found}: {config[found]!r} is not for machines of clusters (valid there: 0)"


_USES: tuple[Named, ...] = (
    *(parameter.name for parameter in PARAMETERS),
    *((name, _on_site) for name in ("site_limits", "site_submit_limits", "site_reservations")),
)

ROLE = Role(
    "How many jobs may run at a time.",
    chooses=lambda run: "owners",
    parameters=(*PARAMETERS, SITE_LIMITS, SITE_SUBMIT_LIMITS, SITE_RESERVATIONS),
    refuses=(Refusal(tuple(parameter.name for parameter in PARAMETERS), _on_clusters),),
    metrics=(
        *((name, _may_limit) for name in METRICS),
        ("jobs_refused", _may_refuse),
        ("reservations_missed", _may_miss),
    ),
)

POLICIES = (Policy("owners", "", uses=_USES),)


def rules_of(run: Run, site_rules: tuple[Rule, ...] = ()) -> tuple[Rule, ...]:
    """Return the limits of a run: those of its parameters, and of its site if they are asked for."""
    rules = [Rule(name, (name.split("_")[0],), **{f"most_{name.split('_')[2]}": run[name]}) for name in given(run)]
    return (*rules, *(site_rules if run["site_limits"] else ()))


def submit_rules_of(run: Run, site: NodeTable) -> tuple[Rule, ...]:
    """Return the limits of submitted jobs of a site, if they are asked for."""
    return site.submit_limits if run["site_submit_limits"] else ()


def check_owners(run: Run, owners: Mapping[str, Label]) -> None:
    """Raise InputError for a parameter that limits the jobs of owners that no job has."""
    for name in given(run):
        owner = name.split("_")[0]
        if not _is_known(owners.get(owner)):
            drawn = [f"{parameter} above 0" for parameter, label in DRAWN.items() if label == owner]
            log = "a dump whose jobs have names such as 123_7" if owner == "array" else "a log that names them"
            valid = ", ".join((log, *drawn))
            raise InputError(f"{name}: no job of the workload has a {OWNERS[owner]} (valid: {valid}, or {name} = 0)")


def refused_sentence(refused: int, jobs: int) -> str:
    """Return what to say of jobs that limits of submitted jobs refused; "" if none."""
    return f"{refused:,} of {jobs:,} jobs were refused by the site's limits of submitted jobs" if refused else ""


def unknown_sentence(run: Run, site: NodeTable, label: Label | None) -> str:
    """Return what to say of jobs that ask for advance reservations which the site's file does not have; "" if none."""
    if not run["site_reservations"] or label is None:
        return ""
    unknown = np.array([*(name not in site.window_names for name in label.names), False])[label.codes]
    lacking = "ask for advance reservations that the site's file lacks, and wait like all others"
    return f"{int(unknown.sum()):,} jobs {lacking}" if unknown.any() else ""


def unlimited_sentence(run: Run, site: NodeTable, owners: Mapping[str, Label]) -> str:
    """Return what to say of limits of a site's file that limit nobody, because no job tells whose it is; "" if none."""
    rules = (*rules_of(run, site.limits)[len(given(run)) :], *submit_rules_of(run, site))
    asked = {label for rule in rules for label in (*rule.each, *(label for label, _ in rule.where))}
    unknown = [word for label, word in OWNERS.items() if label in asked and not _is_known(owners.get(label))]
    words = " or ".join(unknown)
    return f"no job has a known {words}, so the limits by {words} of the site's file do nothing" if unknown else ""


def _is_known(label: Label | None) -> bool:
    return label is not None and bool((label.codes >= 0).any())
