"""What each thing that a log tells of its machine adds to a simulation of its waits, one after another.

Queue names, priorities and limits are estimated from the part of the log before the cut, chosen by what explains most
there, and judged on the rest. Outages are facts of the part that judges: the clock of the simulation stands still
during them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.workloads.accounting.records import JobRecords
from faultsweep.simcore.workloads.transforms import take
from faultsweep.sweeps.validation import (
    FEWEST_JOBS,
    Floats,
    Interval,
    Judged,
    RealJobs,
    cut_of,
    explained_share,
    judge,
    real_jobs,
    simulate_starts,
)
from numpy.typing import NDArray

from faultsweep.errors import InputError
from faultsweep.extras import require

_IDLE_SHARE = 0.02
"""Of the nodes: with no more in use for a while, while jobs wait, the machine is out of service."""
_SHORTEST_OUTAGE_S = 1800.0
_STRICT, _AGE = 100_000_000, 10_000_000
"""Weights: of queues, of which the better goes first whatever the wait; and of a wait of a year (0.1 s counts)."""
_YEAR_H = 8760.0
_WAITS = tuple(round(_AGE * hours / _YEAR_H) for hours in (6, 24, 168))
"""Weights of which the best have as much as a wait of so many hours."""
_BY_WAIT = {
    "queue_order": "multifactor",
    "priority_share_weight": 0,
    "priority_age_weight": _AGE,
    "priority_max_age_h": _YEAR_H,
}
"""The order of submission, with weights that others can be added to."""
_RUNNING_QUANTILES = (0.5, 0.9, 1.0)


@dataclass(frozen=True)
class Step:
    """What one thing adds to all before it.

    Attributes
    ----------
    what : what is taken into account from here on.
    added : the settings that this adds; empty if none of those tried explained more before the cut.
    tried : settings that were tried before the cut.
    """

    what: str
    added: dict[str, Any]
    tried: int
    explained: Interval
    rank_correlation: Interval
    real_mean_s: float
    sim_mean_s: float


class _Tried(NamedTuple):
    settings: dict[str, Any]
    share: float


def contributions(
    records: JobRecords, nodes: int, settings: Mapping[str, Any], cut: float = 0.5, machine: str = ""
) -> list[Step]:
    """Return what queue names, priorities, limits and outages add, in this order; the first step is without them.

    Parameters are those of ``validate``; ``cut`` is above 0.

    Raises
    ------
    InputError
        If there is nothing before the cut, or too few jobs can be judged.
    """
    require("what each thing adds", "scipy")
    real, machine = real_jobs(records), machine or f"flat:{nodes}"
    cut_s = cut_of(real, cut)
    before = np.flatnonzero((real.workload.submit_s < cut_s) & np.isfinite(real.wait_s))
    if cut <= 0 or len(before) < FEWEST_JOBS:
        raise InputError(
            f"{records.name}: {len(before)} jobs with a known start are before the cut, too few to choose settings "
            f"(valid: {FEWEST_JOBS} or more)"
        )
    chosen, steps = dict(settings), [_step("no more than this", judge(real, cut_s, machine, settings), {}, 0)]
    for what, candidates in (("queue names", queues), ("priorities", priorities), ("limits", limits)):
        wanted = [one for one in candidates(real, before, chosen) if not set(one) & set(settings)]
        added = _best(real, before, machine, chosen, wanted)
        chosen |= added
        steps.append(_step(what, judge(real, cut_s, machine, chosen), added, len(wanted)))
    spans = outages(real, nodes)
    found = judge(real, cut_s, machine, chosen, spans)
    hours = sum(end - begin for begin, end in spans if begin >= cut_s) / 3600.0
    return [*steps, _step("outages", found, {"hours out of service": round(hours, 1)} if hours else {}, 0)]


def _step(what: str, found: Judged, added: dict[str, Any], tried: int) -> Step:
    return Step(
        what,
        added,
        tried,
        found.explained,
        found.rank_correlation,
        float(found.real_s.mean()),
        float(found.sim_s.mean()),
    )


def _best(
    real: RealJobs,
    before: NDArray[np.int64],
    machine: str,
    chosen: Mapping[str, Any],
    candidates: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return the settings that explain most of the waits before the cut; none if they explain no more without."""
    early, true = take(real.workload, before), real.wait_s[before]
    best = _Tried({}, -np.inf)
    for added in ({}, *candidates):
        try:
            start, simulated = simulate_starts(early, machine, {**chosen, **added})
        except InputError:
            continue  # a combination that there is not
        share = explained_share((start - early.submit_s)[simulated], true[simulated])
        if share > best.share:
            best = _Tried(added, share)
    return best.settings


def queues(real: RealJobs, before: NDArray[np.int64], chosen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return orders of the queue in which queues with shorter past waits come first: always, or as if their jobs had
    waited for longer."""
    names, codes = real.partition.names, real.partition.codes[before]
    waits = {code: float(np.median(real.wait_s[before][codes == code])) for code in np.unique(codes).tolist()}
    ranked = sorted((wait, names[code]) for code, wait in waits.items() if code >= 0)
    if len(ranked) < 2:
        return []
    factors = ",".join(f"{name}:{len(ranked) - place}" for place, (_, name) in enumerate(ranked))
    weights = (*_WAITS, _STRICT)
    return [
        _BY_WAIT | {"priority_partition_factors": factors, "priority_partition_weight": weight} for weight in weights
    ]


def priorities(real: RealJobs, before: NDArray[np.int64], chosen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return orders of the queue by size, estimate and fair share of users, beside that of queues or instead of it."""
    several = len(np.unique(real.user.codes)) > 1
    shares = [{"priority_share_weight": weight} for weight in _WAITS] if several else []
    small = [{"priority_size_weight": weight, "priority_small_first": True} for weight in _WAITS]
    alone = [_BY_WAIT | {"priority_partition_weight": 0} | one for one in (*shares, *small)]
    beside = [*shares, *small] if chosen.get("priority_partition_weight") else []
    return [*({"queue_order": order} for order in ("wfp", "sjf", "saf")), *alone, *beside]


def limits(real: RealJobs, before: NDArray[np.int64], chosen: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return limits of users' running jobs and nodes: what users had in use at most while more of theirs waited."""
    found: list[dict[str, Any]] = []
    for name, most in zip(("user_max_jobs", "user_max_nodes"), _most_in_use(real, before), strict=True):
        values = sorted({int(np.quantile(most, share)) for share in _RUNNING_QUANTILES}) if len(most) else []
        largest = int(real.workload.size[before].max()) if name == "user_max_nodes" else 1
        found += [{name: value} for value in values if value >= largest]
    return found


def _most_in_use(real: RealJobs, before: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the most running jobs, and nodes, that users had when one of their jobs was submitted and had to wait."""
    users, jobs, nodes = real.user.codes[before], [], []
    for user in np.unique(users[users >= 0]).tolist():
        rows = before[users == user]
        submit, size = real.workload.submit_s[rows], real.workload.size[rows]
        start = submit + real.wait_s[rows]
        end, waits = start + real.workload.run_s[rows], submit[real.wait_s[rows] > 0]
        if not len(waits):
            continue
        running = _sum_at(waits, start, np.ones(len(rows))) - _sum_at(waits, end, np.ones(len(rows)))
        in_use = _sum_at(waits, start, size) - _sum_at(waits, end, size)
        jobs.append(running.max())
        nodes.append(in_use.max())
    used = [np.array(values, float) for values in (jobs, nodes)]
    return used[0][used[0] > 0], used[1][used[1] > 0]


def _sum_at(times: Floats, events: Floats, amounts: NDArray[Any]) -> Floats:
    """Return the sum of the amounts of events up to each of some times."""
    order = np.argsort(events)
    total = np.concatenate(([0.0], np.cumsum(amounts[order])))
    return total[np.searchsorted(events[order], times, "right")]


def outages(real: RealJobs, nodes: int) -> list[tuple[float, float]]:
    """Return the spans, s, in which a machine did next to nothing for half an hour or more, though it had room for the
    job that had waited longest."""
    known = np.isfinite(real.wait_s)
    submit, size = real.workload.submit_s[known], real.workload.size[known]
    start = submit + real.wait_s[known]
    end = start + real.workload.run_s[known]
    times = np.unique(np.concatenate((start, end)))
    in_use = _sum_at(times, start, size) - _sum_at(times, end, size)
    found = []
    for first, last in _runs(in_use <= _IDLE_SHARE * nodes):
        begin, stop = float(times[first]), float(times[min(last, len(times) - 1)])
        if stop - begin < _SHORTEST_OUTAGE_S:
            continue
        waited = np.flatnonzero((submit < stop) & (start >= stop))
        if len(waited) and size[waited[0]] <= nodes - in_use[first:last].max():
            found.append((max(begin, float(submit[waited[0]])), stop))
    return [(begin, stop) for begin, stop in found if stop - begin >= _SHORTEST_OUTAGE_S]


def _runs(wanted: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the begin and the end of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], wanted, [False]))))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]
