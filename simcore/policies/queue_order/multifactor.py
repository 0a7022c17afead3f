"""``multifactor``: a weighted sum of factors, as SLURM's plugin priority/multifactor orders its queue.

A job of n of the machine's N nodes that has waited w, and whose user has used the share U of all that was used, has the
priority

    age weight x min(1, w / longest age) + fair-share weight x 2^(-U users / damping) + size weight x n / N

as a whole number, rounded down: all users are due the same share. Usage is in node-seconds and decays with a half-life.
Priorities are calculated once in a period, counted from the first submission: between two calculations they do not
change, and a job that is submitted then has no age yet.

Source: the documentation of SLURM's multifactor priority plugin ("classic" fair share: PriorityFlags=NO_FAIR_TREE).
"""

from __future__ import annotations

import math

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, Condition, Parameter, Policy, Run
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import State

from faultsweep.errors import InputError

ROUNDING = 1e-6
"""Added before a priority is rounded down, so that the last bits of a sum do not decide."""


@inlined
def calculated_at(s: State) -> float:
    """Return when priorities were calculated last, s."""
    if s.priority_period == 0.0:
        return s.now
    return _begin_of(s, _periods(s))


@inlined
def calculated_next(s: State) -> float:
    """Return when priorities are calculated next if nothing happens before, s; infinity if nothing can come of it."""
    if s.priority_period == 0.0 or (s.age_weight == 0.0 and s.share_weight == 0.0):
        return np.inf
    return _begin_of(s, _periods(s) + 1.0)


@inlined
def _begin_of(s: State, period: float) -> float:
    return s.job.submit[0] + period * s.priority_period


@inlined
def _periods(s: State) -> float:
    """Return how many whole periods have passed; their begins are compared, not their number, which is rounded."""
    count = np.floor((s.now - s.job.submit[0]) / s.priority_period)
    if _begin_of(s, count + 1.0) <= s.now:
        return count + 1.0
    return count - 1.0 if _begin_of(s, count) > s.now else count


@inlined
def note_usage(s: State, job: int, nodes: int) -> None:
    """Count from now on ``nodes`` more (or less, below 0) as used by the user of a job, and by all."""
    if s.share_weight == 0.0:
        return
    _use(s, s.job.user[job], nodes)
    _use(s, s.used.shape[0] - 1, nodes)


@kernel
def _use(s: State, user: int, nodes: int) -> None:
    calculated = calculated_at(s)
    if s.used_until[user] <= calculated:
        s.used_then[user] = _used_at(s, user, calculated)
    s.used[user] = _used_at(s, user, s.now)
    s.used_until[user] = s.now
    s.in_use[user] += nodes


@inlined
def _used_at(s: State, user: int, time: float) -> float:
    """Return the decayed usage at a time since the last change, node-seconds."""
    span = time - s.used_until[user]
    if s.half_life == 0.0:
        return s.used[user] + s.in_use[user] * span
    rate = np.log(2.0) / s.half_life
    return s.used[user] * np.exp(-rate * span) - s.in_use[user] * np.expm1(-rate * span) / rate


@inlined
def _used_when_calculated(s: State, user: int, time: float) -> float:
    return _used_at(s, user, time) if s.used_until[user] <= time else s.used_then[user]


@kernel
def _share_factor(s: State, user: int, time: float) -> float:
    """Return the fair-share factor of a user by the usage up to the last calculation; 1 while nobody has used
    anything."""
    if s.factor_at[user] != time:
        users = s.used.shape[0] - 1
        total = _used_when_calculated(s, users, time)
        mine = _used_when_calculated(s, user, time)
        s.factor[user] = 1.0 if total <= 0.0 else 2.0 ** (-mine / total * users / s.share_damping)
        s.factor_at[user] = time
    return s.factor[user]


@kernel
def priority_of(s: State, job: int) -> float:
    """Return the priority of a waiting job as it was calculated last."""
    calculated = calculated_at(s)
    found = s.size_weight * _size_factor(s, job)
    if s.age_weight != 0.0:
        found += s.age_weight * min(1.0, max(0.0, calculated - s.job.utility_since[job]) / s.longest_age)
    if s.share_weight != 0.0:
        found += s.share_weight * _share_factor(s, s.job.user[job], calculated)
    return np.floor(found + ROUNDING)


@inlined
def _size_factor(s: State, job: int) -> float:
    share = s.job.requested[job] / s.nodes
    return 1.0 - share if s.small_first == 1 else share


def expected_priority(s: State, job: int) -> float:
    """Return the same for the checks of debug mode, which share no code with kernels."""
    time, period, origin = float(s.now), float(s.priority_period), float(s.job.submit[0])
    if period:
        number = math.floor((time - origin) / period)
        time = max(origin + k * period for k in (number - 1, number, number + 1) if origin + k * period <= time)
    size = float(s.job.requested[job]) / float(s.nodes)
    found = float(s.size_weight) * (1 - size if s.small_first else size)
    found += float(s.age_weight) * min(1.0, max(0.0, time - float(s.job.utility_since[job])) / float(s.longest_age))
    if s.share_weight:
        users = len(s.used) - 1
        used = [_expected_usage(s, user, time) for user in range(users)]
        share = used[int(s.job.user[job])] / sum(used) if sum(used) > 0 else 0.0
        found += float(s.share_weight) * 2 ** (-share * users / float(s.share_damping))
    return float(math.floor(found + ROUNDING))


def _expected_usage(s: State, user: int, time: float) -> float:
    span = time - float(s.used_until[user])
    if span < 0:
        return float(s.used_then[user])
    used, nodes, half_life = float(s.used[user]), float(s.in_use[user]), float(s.half_life)
    if not half_life:
        return used + nodes * span
    left = 2 ** (-span / half_life)
    return float(used * left + nodes * (1 - left) * half_life / math.log(2))


def _begin(s: State, run: Run) -> None:
    s.age_weight, s.longest_age = run["priority_age_weight"], 3600.0 * run["priority_max_age_h"]
    s.share_weight, s.share_damping = run["priority_share_weight"], run["priority_share_damping"]
    s.half_life, s.priority_period = 3600.0 * run["priority_half_life_h"], run["priority_period_s"]
    s.size_weight, s.small_first = run["priority_size_weight"], int(run["priority_small_first"])
    s.factor_at[:] = math.nan
    s.used_until[:] = -math.inf if not len(s.job.submit) else float(s.job.submit[0])
    if s.share_weight and (s.job.user < 0).any():
        raise InputError(
            "priority_share_weight: fair share needs the users of jobs, and the workload has none "
            "(valid: a log with users, or priority_share_weight = 0)"
        )


def _weighs(name: str) -> Condition:
    return lambda run: bool(run[name] != 0.0)


def _is_calculated(run: Run) -> bool:
    return bool(run["priority_age_weight"] or run["priority_share_weight"])


def _weight(name: str, default: float, doc: str) -> Parameter:
    return Parameter(name, float, default, doc, "scheduling", minimum=0, maximum=1e9)


POLICY = Policy(
    "multifactor",
    "By age, fair share of the user and size, each with a weight, as SLURM's multifactor priority.",
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
            live=_weighs("priority_share_weight"),
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
    facts={"expected_utility": expected_priority, "by_user": True},
    begins=_begin,
)
