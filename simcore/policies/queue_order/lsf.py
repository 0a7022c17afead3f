"""``lsf``: fair share of users as IBM Spectrum LSF reckons it.

The job of the user with the highest dynamic priority comes first, of equal users the first to arrive:

    shares / (c CPU_TIME_FACTOR + r RUN_TIME_FACTOR + (1 + n) RUN_JOB_FACTOR)

c : processor time of the user's jobs, h; all nodes (cores) that a job holds are busy. An hour counts as 0.1 h when
    HIST_HOURS have passed.
r : time for which the user's running jobs have run, h.
n : nodes (cores) that they hold: LSF's job slots.

It is reckoned anew at every pass, and stays as it is while the pass starts jobs.

Source: IBM Spectrum LSF, Administering, "Fair share scheduling", "Dynamic user priority".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, Config, Parameter, Policy, Refusal, Run
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.model.machines import Machine
from faultsweep.simcore.policies.queue_order.associations import Associations, parse_numbers, users_of
from numpy.typing import NDArray

from faultsweep.errors import InputError

_HOUR = 3600.0
_STEPS = 1e9
"""Of logarithms: users who have used as much must come out equal, whatever the last bits of sums are."""


@kernel
def note_run(s: State, job: int, nodes: int) -> None:
    """Count a job that begins to hold nodes, or, below 0, stops, as its user's."""
    at = s.job.association[job]
    if at < 0:
        return
    s.used[at] = _used_at(s, at)
    s.used_until[at] = s.now
    s.in_use[at] += nodes
    if nodes > 0:
        s.job.counted_since[job] = s.now
        s.runs[at] += 1.0
        s.runs_since[at] += s.now
    else:
        s.runs[at] -= 1.0
        s.runs_since[at] -= s.job.counted_since[job]


@inlined
def _used_at(s: State, at: int) -> float:
    """Return the decayed usage of a user now, node-seconds."""
    span = s.now - s.used_until[at]
    if s.half_life == 0.0:
        return s.used[at] + s.in_use[at] * span
    rate = np.log(2.0) / s.half_life
    return s.used[at] * np.exp(-rate * span) - s.in_use[at] * np.expm1(-rate * span) / rate


@kernel
def dynamic_priority(s: State, job: int) -> float:
    """Return the base-2 logarithm of the priority of a job's user as of now, to nine decimals."""
    at = s.job.association[job]
    if at < 0:
        return -np.inf
    ran = s.runs[at] * s.now - s.runs_since[at]
    found = s.lsf_cpu_time * _used_at(s, at) / _HOUR + s.lsf_run_time * ran / _HOUR
    found += s.lsf_run_job * (1.0 + s.in_use[at])
    return np.floor(np.log2(s.due[at] / found) * _STEPS + 0.5) / _STEPS if s.due[at] > 0.0 else -np.inf


def noted_priority(s: State, job: int) -> float:
    """Return it, for the checks of debug mode, as it was found when the pass began: what the pass starts changes it."""
    return float(s.job.utility[job])


def _users(jobs: Mapping[str, NDArray[Any]], machine: Machine, run: Run) -> Associations:
    shares = dict(parse_numbers(run["lsf_shares"], "lsf_shares", "anna:3,ben:1"))
    return users_of(jobs, shares, "queue_order = lsf", "another order")


def _begin(s: State, run: Run) -> None:
    s.lsf_cpu_time, s.lsf_run_time = run["lsf_cpu_time_factor"], run["lsf_run_time_factor"]
    s.lsf_run_job = run["lsf_run_job_factor"]
    s.half_life = _HOUR * run["lsf_hist_hours"] * math.log10(2.0)
    s.used_until[:] = 0.0 if not len(s.job.submit) else float(s.job.submit[0])


def _bad_shares(config: Config, kind: str, machine: str) -> str:
    try:
        parse_numbers(config["lsf_shares"], "lsf_shares", "anna:3,ben:1")
    except InputError as error:
        return str(error)
    return ""


def _factor(name: str, default: float, least: float, doc: str) -> Parameter:
    return Parameter(name, float, default, doc, "scheduling", minimum=least, maximum=1e9)


POLICY = Policy(
    "lsf",
    "By the dynamic priority of its user, from shares, processor time, run time and slots, as LSF's fair share.",
    machines=ONE_MACHINE,
    parameters=(
        _factor("lsf_cpu_time_factor", 0.7, 0, "Weight of an hour of processor time (LSF: CPU_TIME_FACTOR)."),
        _factor("lsf_run_time_factor", 0.7, 0, "Weight of an hour that a running job has run (LSF: RUN_TIME_FACTOR)."),
        _factor("lsf_run_job_factor", 3.0, 1e-6, "Weight of a node that running jobs hold (LSF: RUN_JOB_FACTOR)."),
        Parameter(
            "lsf_hist_hours",
            float,
            5.0,
            "Time in which an hour of processor time comes to count as 0.1 h (LSF: HIST_HOURS); 0: it never decays.",
            "scheduling",
            minimum=0,
            maximum=1e6,
            unit="h",
        ),
        Parameter("lsf_shares", str, "", "Shares of users, such as anna:3,ben:1; others have 1.", "scheduling"),
    ),
    kernels={"utility": dynamic_priority, "usage_changes": note_run},
    facts={"expected_utility": noted_priority, "associations": _users},
    refuses=(Refusal(("lsf_shares",), _bad_shares),),
    begins=_begin,
)
