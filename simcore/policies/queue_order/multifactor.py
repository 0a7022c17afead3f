"""``multifactor``: a weighted sum of factors, as SLURM's plugin priority/multifactor orders its queue.

The priority of a job is a whole number from 1 on, rounded down: the sum of weights times factors from 0 to 1 of its
age, the fair share of its user, its size, its partition, its QOS, its association and what it asks for of its
partition, with its site factor and less its nice value.
Priorities are calculated once in a period, counted from the first submission: between two calculations they do not
change, and a job that is submitted then has no age yet.

Usage decays with a half-life (usage.py). Of an association, a user in an account, with the part S of all shares (that
of its account times its own of those in the account), the fair-share factor is

- ``users``, ``classic``: 2^(-E / S / damping). E is the effective usage: for what is in the root, the part U of all
  usage; else U + (that of the account it is in - U) x its part of the shares there;
- ``fair-tree``: the rank of the association, of all of them. On each level of the tree accounts and users come in
  falling order of their part of the shares there by their part of the usage there; those of an account follow each
  other, accounts that are equal are taken as one, and users that are equal have the rank of the first.

Source: the documentation of SLURM's multifactor priority plugin, "classic" fair share (PriorityFlags=NO_FAIR_TREE) and
the Fair Tree algorithm.
"""

from __future__ import annotations

import math

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, Condition, Config, Parameter, Policy, Refusal, Run
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.model.machines import may_be_site
from faultsweep.simcore.policies.queue_order.associations import (
    TRES,
    associations,
    lasting_priority,
    parse_numbers,
    parse_shares,
)
from faultsweep.simcore.policies.queue_order.fair_share import FAIR_SHARES, expected_factor
from faultsweep.simcore.policies.queue_order.usage import (
    calculated_at,
    calculated_next,
    expected_usage,
    note_usage,
    used_when,
)

from faultsweep.errors import InputError, unknown_name

ROUNDING = 1e-6
"""Added before a priority is rounded down, so that the last bits of a sum do not decide."""


@kernel
def _share_factor(s: State, leaf: int, time: float) -> float:
    """Return the fair-share factor of an association by the usage up to the last calculation; 1 while nobody has used
    anything."""
    if s.factor_at[leaf] != time:
        if s.fair_tree == 1:
            _rank_all(s, time)
        else:
            s.factor[leaf] = _classic_factor(s, leaf, time)
            s.factor_at[leaf] = time
    return s.factor[leaf]


@kernel
def _classic_factor(s: State, leaf: int, time: float) -> float:
    if s.inverse_share[leaf] == np.inf:
        return 0.0
    total = used_when(s, s.parent.shape[0] - 1, time)
    if total <= 0.0:
        return 1.0
    effective = 0.0
    for level in range(s.path.shape[1]):
        at = s.path[leaf, level]
        if at >= 0:
            part = used_when(s, at, time) / total
            effective = part if level == 0 else part + (effective - part) * s.due[at]
    return 2.0 ** (-effective * s.inverse_share[leaf] / s.share_damping)


@kernel
def _rank_all(s: State, time: float) -> None:
    """Give all associations the factors of Fair Tree; the order of the last time is nearly theirs."""
    for at in range(s.parent.shape[0] - 1):
        s.level[at] = _level(s, at, time)
    leaves = s.ranking.shape[0]
    for count in range(1, leaves):
        leaf, place = s.ranking[count], count
        while place > 0 and _order_of(s, s.ranking[place - 1], leaf) < 0:
            s.ranking[place] = s.ranking[place - 1]
            place -= 1
        s.ranking[place] = leaf
    for place in range(leaves):
        leaf = s.ranking[place]
        rank = float(leaves - place) / leaves
        if place > 0:
            before = s.ranking[place - 1]
            rank = s.factor[before] if abs(_order_of(s, before, leaf)) != 1 else rank
        s.factor[leaf] = rank
        s.factor_at[leaf] = time


@kernel
def _level(s: State, at: int, time: float) -> float:
    """Return how much of what it is due on its level an association has left: the base-2 logarithm, to nine decimals,
    because those that are equal must come out equal."""
    if s.due[at] <= 0.0:
        return -np.inf
    used = used_when(s, at, time)
    if used <= 0.0:
        return np.inf
    left = np.log2(s.due[at] * used_when(s, s.parent[at], time) / used)
    return np.floor(left * 1e9 + 0.5) / 1e9


@kernel
def _order_of(s: State, one: int, other: int) -> int:
    """Return 1 if a leaf ranks before another one, -1 if after it, 0 if they are equal.

    2 or -2: the one is a user and the other in an account, and these are equal. The user comes first, and the first of
    the account has the same rank.
    """
    for level in range(s.path.shape[1]):
        mine, its = s.path[one, level], s.path[other, level]
        if s.level[mine] != s.level[its]:
            return 1 if s.level[mine] > s.level[its] else -1
        if mine == one or its == other:
            if mine == one and its == other:
                return 0
            return 2 if mine == one else -2
    return 0


@kernel
def priority_of(s: State, job: int) -> float:
    """Return the priority of a waiting job as it was calculated last."""
    calculated = calculated_at(s)
    found = s.job.priority[job]
    if s.age_weight != 0.0:
        found += s.age_weight * min(1.0, max(0.0, calculated - s.job.utility_since[job]) / s.longest_age)
    if s.share_weight != 0.0:
        found += s.share_weight * _share_factor(s, s.job.association[job], calculated)
    return max(1.0, np.floor(found + ROUNDING))


def expected_priority(s: State, job: int) -> float:
    """Return the same for the checks of debug mode, which share no code with kernels."""
    time, period, origin = float(s.now), float(s.priority_period), float(s.job.submit[0])
    if period:
        number = math.floor((time - origin) / period)
        time = max(origin + k * period for k in (number - 1, number, number + 1) if origin + k * period <= time)
    found = float(s.job.priority[job])
    found += float(s.age_weight) * min(1.0, max(0.0, time - float(s.job.utility_since[job])) / float(s.longest_age))
    if s.share_weight:
        used = [expected_usage(s, leaf, time) for leaf in range(len(s.ranking))]
        factor = expected_factor(
            used,
            s.parent.tolist(),
            s.due.tolist(),
            int(s.job.association[job]),
            float(s.share_damping),
            bool(s.fair_tree),
        )
        found += float(s.share_weight) * factor
    return float(max(1, math.floor(found + ROUNDING)))


def _begin(s: State, run: Run) -> None:
    s.age_weight, s.longest_age = run["priority_age_weight"], 3600.0 * run["priority_max_age_h"]
    s.share_weight, s.share_damping = run["priority_share_weight"], run["priority_share_damping"]
    s.half_life, s.priority_period = 3600.0 * run["priority_half_life_h"], run["priority_period_s"]
    s.fair_tree = int(run["priority_fair_share"] == "fair-tree")
    s.factor_at[:] = math.nan
    s.used_until[:] = -math.inf if not len(s.job.submit) else float(s.job.submit[0])


def _weighs(name: str) -> Condition:
    return lambda run: bool(run[name] != 0.0)


def _has_tree(run: Run) -> bool:
    return bool(run["priority_share_weight"] != 0.0 and run["priority_fair_share"] != "users")


def _is_damped(run: Run) -> bool:
    return bool(run["priority_share_weight"] != 0.0 and run["priority_fair_share"] != "fair-tree")


def _bad_numbers(config: Config, kind: str, machine: str) -> str:
    """Return what is wrong with the parameters that name accounts, partitions or QOS."""
    try:
        for name, _ in parse_numbers(config["priority_tres_weights"], "priority_tres_weights", "cpu:1000,gpu:5000"):
            if name not in TRES:
                raise unknown_name("priority_tres_weights", name, TRES)
        parse_shares(config["priority_shares"])
        for name in ("priority_partition_factors", "priority_qos_factors"):
            parse_numbers(config[name], name, "low:1,high:10")
    except InputError as error:
        return str(error)
    return ""


def _is_calculated(run: Run) -> bool:
    return bool(run["priority_age_weight"] or run["priority_share_weight"])


def _weight(name: str, default: float, doc: str) -> Parameter:
    return Parameter(name, float, default, doc, "scheduling", minimum=0, maximum=1e9)


POLICY = Policy(
    "multifactor",
    "By age, fair share, size, partition, QOS, association and TRES, each with a weight, as SLURM's multifactor.",
    machines=ONE_MACHINE,
    parameters=(
        _weight("priority_age_weight", 1000.0, "Multifactor priority of a job that has waited for the longest age."),
        Parameter(
            "priority_max_age_h",
            float,
            168.0,
            "Wait from which on the age of a job no longer grows (SLURM: PriorityMaxAge).",
            "scheduling",
            minimum=1e-3,
            unit="h",
            live=_weighs("priority_age_weight"),
        ),
        _weight("priority_share_weight", 1000.0, "Multifactor priority of a job whose user has used nothing."),
        Parameter(
            "priority_fair_share",
            str,
            "users",
            "What users are due, and how their fair-share factor follows from what they have used.",
            "scheduling",
            choices=FAIR_SHARES,
            live=_weighs("priority_share_weight"),
        ),
        Parameter(
            "priority_shares",
            str,
            "",
            "Shares of accounts and of users in them, such as physics:50,optics in physics:2,physics/anna:2; others "
            "have 1. Empty: those of the site, or the same for all.",
            "scheduling",
            live=_has_tree,
        ),
        Parameter(
            "priority_half_life_h",
            float,
            168.0,
            "Time in which what a user has used counts half as much (SLURM: PriorityDecayHalfLife); 0: never.",
            "scheduling",
            minimum=0,
            unit="h",
            live=_weighs("priority_share_weight"),
        ),
        Parameter(
            "priority_share_damping",
            float,
            1.0,
            "Divides what a user has used of the share due in the fair-share factor (SLURM: FairShareDampeningFactor).",
            "scheduling",
            minimum=1e-3,
            maximum=1e6,
            live=_is_damped,
        ),
        _weight("priority_size_weight", 0.0, "Multifactor priority of a job of the whole machine."),
        Parameter(
            "priority_small_first",
            bool,
            False,
            "Small jobs get what large ones would get for their size (SLURM: PriorityFavorSmall).",
            "scheduling",
            live=_weighs("priority_size_weight"),
        ),
        _weight(
            "priority_partition_weight", 0.0, "Multifactor priority of a job of the partition with the largest factor."
        ),
        Parameter(
            "priority_partition_factors",
            str,
            "",
            "Factors of partitions (SLURM: PriorityJobFactor), such as long:1,short:10. Empty: those of the site, or "
            "the same for all.",
            "scheduling",
            live=lambda run: run.is_("queue_order", "pbs") or run["priority_partition_weight"] != 0.0,
        ),
        _weight("priority_qos_weight", 0.0, "Multifactor priority of a job of the QOS with the largest priority."),
        Parameter(
            "priority_qos_factors",
            str,
            "",
            "Priorities of QOS, such as normal:10,high:100. Empty: those of the site, or the same for all.",
            "scheduling",
            live=_weighs("priority_qos_weight"),
        ),
        Parameter(
            "priority_association_weight",
            float,
            0.0,
            "Multifactor priority of a job of the association with the largest priority of a site's file.",
            "scheduling",
            minimum=0,
            maximum=1e9,
            live=lambda run: may_be_site(run["machine"]),
        ),
        Parameter(
            "priority_tres_weights",
            str,
            "",
            "Multifactor priority of a job of all of its partition's cpu, gpu, mem or node, such as cpu:1000,gpu:5000 "
            "(SLURM: PriorityWeightTRES).",
            "scheduling",
        ),
        Parameter(
            "priority_nice",
            bool,
            True,
            "Whether the nice value of a job, where its log has one, is taken off its priority.",
            "scheduling",
        ),
        Parameter(
            "priority_site_factor",
            bool,
            True,
            "Whether the site factor of a job, where its log has one, is added to its priority.",
            "scheduling",
        ),
        Parameter(
            "priority_period_s",
            float,
            300.0,
            "Time between calculations of priorities (SLURM: PriorityCalcPeriod).",
            "scheduling",
            minimum=0,
            unit="s",
            zero="for a calculation at every event",
            live=_is_calculated,
        ),
    ),
    kernels={"utility": priority_of, "usage_changes": note_usage, "order_changes": calculated_next},
    facts={"expected_utility": expected_priority, "associations": associations, "lasting": lasting_priority},
    refuses=(
        Refusal(
            ("priority_shares", "priority_partition_factors", "priority_qos_factors", "priority_tres_weights"),
            _bad_numbers,
        ),
    ),
    begins=_begin,
)
