"""How much of a machine's real waits a simulation explains: its jobs simulated, and compared with what really happened.

The first part of a log may choose the settings (``calibrate``); the rest judges them. At the cut the simulation starts
warm: jobs that ran go on for the time that they really had left, and jobs that waited wait. Judged are jobs submitted
at least one largest run time after the cut, whose start the log knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.accounting.records import JobRecords, Text, to_workload
from faultsweep.simcore.workloads.transforms import take
from numpy.typing import NDArray

from faultsweep.errors import InputError
from faultsweep.extras import OptionalModule, require
from faultsweep.units import counted

stats = OptionalModule("scipy.stats", "a rank correlation")

Floats = NDArray[np.float64]

WEEK_S = 7 * 86_400.0
RESAMPLES = 1000  # bootstrap samples
FEWEST_JOBS = 50
FEWEST_WEEKS = 8
"""Of fewer a bootstrap draws intervals that are too narrow by far."""
CANDIDATES: dict[str, tuple[str, ...]] = {
    "scheduler": ("fcfs", "backfill", "conservative"),
    "estimates": ("requested", "actual"),
    "queue_order": ("fcfs", "wfp"),
}
"""Settings that ``calibrate`` tries, all with all, but FCFS without backfilling, which asks for no estimates."""
PLAIN = ("requested", "fcfs")


class RealJobs(NamedTuple):
    """The jobs of a log that can be simulated, with what really happened; all arrays of shape (jobs,).

    ``wait_s`` is NaN where the log does not know the start. ``held`` jobs became eligible after their submission.
    """

    workload: Workload
    wait_s: Floats
    partition: Text
    user: Text
    held: int


class Interval(NamedTuple):
    """A value and its 95 % interval over weeks; NaN where there are fewer than FEWEST_WEEKS."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Group:
    """Waits of some of the judged jobs, real and simulated, s."""

    by: str
    name: str
    jobs: int
    real_mean_s: float
    sim_mean_s: float
    real_median_s: float
    sim_median_s: float
    explained: float


@dataclass(frozen=True)
class Validation:
    """The comparison.

    Attributes
    ----------
    explained : 1 - sum |simulated - real wait| / sum |median real wait - real wait| over the judged jobs: 1 is perfect,
        0 no better than one constant, below 0 worse.
    rank_correlation : Spearman's, of simulated and real waits.
    groups : waits by partition, size class and hour of the day.
    names : what the medians of a name in the part before the cut explain, without any simulation.
    curves : hours since the cut, and nodes in use and jobs that wait, real and simulated.
    notes : what was left out and what is not modelled.
    """

    log: str
    machine: str
    settings: dict[str, Any]
    jobs: int
    judged: int
    cut_s: float
    explained: Interval
    rank_correlation: Interval
    real_mean_s: float
    sim_mean_s: float
    real_utilisation: float
    sim_utilisation: float
    groups: list[Group]
    names: dict[str, float]
    curves: dict[str, Floats]
    notes: list[str] = field(default_factory=list)


def real_jobs(records: JobRecords) -> RealJobs:
    """Return the jobs that can be simulated; their waits count from when they were eligible.

    Raises
    ------
    InputError
        If there is none, or the log knows no start.
    """
    records, held = records.from_eligible()
    workload = to_workload(records)
    kept = records.take(workload.job_id - 1)
    first = kept.numbers("first_start_s")
    start = np.where(np.isnan(first), kept.numbers("start_s"), first)
    wait = start - kept.columns["submit_s"]
    if not np.isfinite(wait).any():
        raise InputError(f"{records.name}: the log has no real start times, so there is nothing to compare with")
    return RealJobs(workload, wait, kept.text("partition"), kept.text("user"), held)


def validate(
    records: JobRecords,
    nodes: int,
    settings: Mapping[str, Any],
    cut: float = 0.5,
    not_modelled: Sequence[str] = (),
    machine: str = "",
) -> Validation:
    """Simulate the jobs after the cut and compare with their real waits.

    Parameters
    ----------
    nodes : of the machine.
    settings : parameters of the simulation, such as scheduler and estimates.
    cut : share of the log's span before the cut, 0 (a cold start) to less than 1.
    not_modelled : what a site file says that the simulation does not know.
    machine : a site's file; if not given, all nodes are whole and alike.
    """
    real, machine = real_jobs(records), machine or f"flat:{nodes}"
    cut_s = cut_of(real, cut)
    found = judge(real, cut_s, machine, settings)
    curves = _curves(real, found.rows, found.start_s, cut_s)
    return Validation(
        log=records.name,
        machine=machine,
        settings=dict(settings),
        jobs=len(found.rows),
        judged=len(found.judged),
        cut_s=cut_s,
        explained=found.explained,
        rank_correlation=found.rank_correlation,
        real_mean_s=float(found.real_s.mean()),
        sim_mean_s=float(found.sim_s.mean()),
        real_utilisation=float(np.nanmean(curves["real nodes"])) / nodes,
        sim_utilisation=float(np.nanmean(curves["sim nodes"])) / nodes,
        groups=_groups(records, real, found.judged, found.sim_s),
        names=_what_names_tell(real, found.judged, cut_s),
        curves=curves,
        notes=[*_notes(records, real, nodes, found.fits, curves, machine), *not_modelled],
    )


class Judged(NamedTuple):
    """What came of the jobs after the cut: rows of the log and times, all arrays.

    Attributes
    ----------
    fits : bool, shape (jobs from the cut on,), whether the machine has room for the job.
    rows, start_s : shape (jobs that fit,), the jobs that were simulated and their starts.
    judged, sim_s, real_s : shape (jobs that are judged,), these jobs and their waits.
    """

    fits: NDArray[np.bool_]
    rows: NDArray[np.int64]
    start_s: Floats
    judged: NDArray[np.int64]
    sim_s: Floats
    real_s: Floats
    explained: Interval
    rank_correlation: Interval


def judge(
    real: RealJobs,
    cut_s: float,
    machine: str,
    settings: Mapping[str, Any],
    outages: Sequence[tuple[float, float]] = (),
) -> Judged:
    """Simulate the jobs from a cut on, and compare their waits; the clock stands still during ``outages``, (begin, end)
    in s.

    Raises
    ------
    InputError
        If too few jobs can be judged.
    """
    part, rows = warm_start(real, cut_s)
    clock = Clock([(max(begin, cut_s), end) for begin, end in outages if end > cut_s])
    part = take(part, np.arange(len(part)), submit_s=clock.without_outages(part.submit_s))
    start, fits = simulate_starts(part, machine, settings)
    rows, start = rows[fits], clock.with_outages(start[fits])
    submit = real.workload.submit_s[rows]
    known = np.isfinite(real.wait_s[rows]) & (submit >= cut_s + float(real.workload.run_s.max()) * (cut_s > 0))
    if known.sum() < FEWEST_JOBS:
        raise InputError(
            f"{real.workload.name}: {known.sum()} jobs can be judged, too few (valid: {FEWEST_JOBS} or more that are "
            "submitted one largest run time after the cut, and whose start is known)"
        )
    judged, sim = rows[known], (start - submit)[known]
    true = real.wait_s[judged]
    weeks = (real.workload.submit_s[judged] / WEEK_S).astype(int)
    intervals = _explained_interval(sim, true, weeks), _spearman_interval(sim, true, weeks)
    return Judged(fits, rows, start, judged, sim, true, *intervals)


class Clock:
    """A clock that stands still while a machine is out of service."""

    def __init__(self, outages: Sequence[tuple[float, float]]) -> None:
        """Take the spans, (begin, end) in s, in order, none within another one."""
        self._begin, end = np.array(outages, np.float64).reshape(-1, 2).T
        self._length = end - self._begin
        self._lost = np.concatenate(([0.0], np.cumsum(self._length)))
        self._stops = self._begin - self._lost[:-1]

    def without_outages(self, time_s: Floats) -> Floats:
        """Return what the clock shows at some times, s."""
        begun = np.searchsorted(self._begin, time_s, "right")
        last = np.maximum(begun - 1, 0)
        if not len(self._begin):
            return time_s
        inside = np.minimum(time_s - self._begin[last], self._length[last])
        return time_s - np.where(begun > 0, self._lost[last] + inside, 0.0)

    def with_outages(self, shown_s: Floats) -> Floats:
        """Return when the clock shows some times, s; where it stands still, when it goes on."""
        return shown_s + self._lost[np.searchsorted(self._stops, shown_s, "right")]


def calibrate(
    records: JobRecords, nodes: int, settings: Mapping[str, Any], cut: float = 0.5, machine: str = ""
) -> tuple[dict[str, Any], list[tuple[dict[str, Any], float, float]]]:
    """Choose the settings of CANDIDATES that explain most of the waits before the cut.

    ``settings`` are fixed: what they name is not tried.

    Returns
    -------
    The best settings, and all that were tried with their explained share and rank correlation, best first.
    """
    require("a calibration", "scipy")
    real = real_jobs(records)
    cut_s = cut_of(real, cut)
    before = np.flatnonzero(real.workload.submit_s < cut_s)
    early = take(real.workload, before)
    names = [name for name in CANDIDATES if name not in settings]
    tried: list[tuple[dict[str, Any], float, float]] = []
    refused = "the first part of the log has no jobs"
    for values in product(*(CANDIDATES[name] for name in names)):
        chosen = {**settings, **dict(zip(names, values, strict=True))}
        tried_order = chosen["estimates"], chosen["queue_order"]
        if not settings and chosen["scheduler"] == "fcfs" and tried_order != PLAIN:
            continue
        try:
            start, simulated = simulate_starts(early, machine or f"flat:{nodes}", chosen)
        except InputError as error:  # a combination that there is not, if there are others
            refused = str(error)
            continue
        rows = before[simulated & np.isfinite(real.wait_s[before])]
        wait = start[np.isfinite(real.wait_s[before]) & simulated] - real.workload.submit_s[rows]
        true = real.wait_s[rows]
        tried.append((chosen, explained_share(wait, true), spearman(wait, true)))
    if not tried:
        raise InputError(f"{records.name}: none of the settings can be simulated: {refused}")
    tried.sort(key=lambda one: -one[1])
    return tried[0][0], tried


def explained_share(sim: Floats, real: Floats) -> float:
    """Return 1 - sum |sim - real| / sum |median - real|, NaN where all real waits are the same."""
    spread = np.abs(np.median(real) - real).sum()
    return float(1.0 - np.abs(sim - real).sum() / spread) if spread > 0 else float("nan")


def warm_start(real: RealJobs, cut_s: float) -> tuple[Workload, NDArray[np.int64]]:
    """Return the jobs from a cut on, and their rows in the log.

    Jobs that really ran at the cut come first, submitted at the cut with the time that they had left; then those that
    waited, in order of their submission; then all later ones.
    """
    work = real.workload
    start = work.submit_s + real.wait_s
    old = work.submit_s < cut_s
    running = np.flatnonzero(old & (start < cut_s) & (start + work.run_s > cut_s))
    waiting = np.flatnonzero(old & (start >= cut_s))
    rows = np.concatenate((running, waiting, np.flatnonzero(~old)))
    passed = np.zeros(len(rows))
    passed[: len(running)] = cut_s - start[running]
    part = take(
        work,
        rows,
        submit_s=np.maximum(work.submit_s[rows], cut_s if cut_s > 0 else 0.0),
        run_s=work.run_s[rows] - passed,
        requested_s=np.maximum(work.requested_s[rows] - passed, 1.0),
    )
    return part, rows


def cut_of(real: RealJobs, cut: float) -> float:
    """Return the time of a cut, s, of which a share of the log's span is before; 0 for none."""
    if not 0 <= cut < 1:
        raise InputError(f"cut is {cut:g} (valid: 0 or more, less than 1)")
    submit = real.workload.submit_s
    return float(submit[0] + cut * (submit[-1] - submit[0])) if cut > 0 else 0.0


def simulate_starts(part: Workload, machine: str, settings: Mapping[str, Any]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the simulated start of each job, and which jobs fit the machine."""
    given = {"size_map": "drop", "estimates": "requested", "scheduler": "backfill", **settings}
    run = simulate(part, machine=machine, **given)
    fits = np.isin(part.job_id, run.jobs["job_id"])
    start = np.full(len(part), np.nan)
    start[fits] = run.jobs["start_s"]
    return start, fits


def spearman(sim: Floats, real: Floats) -> float:
    """Return Spearman's rank correlation, NaN where one side is constant."""
    if len(sim) < 3 or np.ptp(sim) == 0 or np.ptp(real) == 0:
        return float("nan")
    return float(stats.spearmanr(sim, real).statistic)


def _explained_interval(sim: Floats, real: Floats, weeks: NDArray[np.int64]) -> Interval:
    off, spread = np.abs(sim - real), np.abs(np.median(real) - real)
    low, high = _over_weeks([off, spread], lambda sums: 1.0 - sums[0] / sums[1], weeks)
    return Interval(explained_share(sim, real), low, high)


def _spearman_interval(sim: Floats, real: Floats, weeks: NDArray[np.int64]) -> Interval:
    """Return Spearman's correlation; weeks are drawn with the ranks that their jobs have among all."""
    x, y = stats.rankdata(sim) / len(sim), stats.rankdata(real) / len(real)

    def correlation(sums: Floats) -> Floats:
        n, sx, sy, sxx, syy, sxy = sums
        return (n * sxy - sx * sy) / np.sqrt((n * sxx - sx**2) * (n * syy - sy**2))

    low, high = _over_weeks([np.ones(len(x)), x, y, x * x, y * y, x * y], correlation, weeks)
    return Interval(spearman(sim, real), low, high)


def _over_weeks(
    terms: Sequence[Floats], combine: Callable[[Floats], Floats], weeks: NDArray[np.int64]
) -> tuple[float, float]:
    """Return the 95 % bootstrap bounds of a function of sums over jobs; whole weeks are drawn, for jobs of a week are
    not independent."""
    names, place = np.unique(weeks, return_inverse=True)
    if len(names) < FEWEST_WEEKS:
        return float("nan"), float("nan")
    per_week = np.array([np.bincount(place, weights=term, minlength=len(names)) for term in terms])
    times = np.random.default_rng(0).multinomial(len(names), np.full(len(names), 1 / len(names)), RESAMPLES)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = combine(per_week @ times.T)
    values = values[np.isfinite(values)]
    if not len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def _groups(records: JobRecords, real: RealJobs, rows: NDArray[np.int64], sim: Floats) -> list[Group]:
    true = real.wait_s[rows]
    groups = [_group("all", "all jobs", sim, true)]
    partition = real.partition.codes[rows]
    for code in np.unique(partition).tolist():
        here = partition == code
        name = real.partition.names[code] if code >= 0 else "none"
        groups.append(_group("partition", name, sim[here], true[here]))
    exponent = np.ceil(np.log2(real.workload.size[rows])).astype(int)
    for power in np.unique(exponent).tolist():
        here = exponent == power
        low, high = (2 ** (power - 1) + 1 if power else 1), 2**power
        groups.append(_group("size", f"{low}-{high}" if low < high else str(high), sim[here], true[here]))
    since_s = real.workload.submit_s[rows] + (real.workload.epoch_s - float(records.columns["submit_s"][0]))
    hour = ((since_s + start_of_day_s(records)) // 3600 % 24).astype(int)
    for number in np.unique(hour).tolist():
        groups.append(_group("hour", f"{number:02d}", sim[hour == number], true[hour == number]))
    return groups


def start_of_day_s(records: JobRecords) -> float:
    """Return the time of day of the first submission: local where the log's header says it, else UTC."""
    for line in records.header:
        found = re.match(r"\s*;\s*StartTime:.*?(\d\d):(\d\d):(\d\d)", line)
        if found:
            hours, minutes, seconds = map(int, found.groups())
            unix = float(records.columns["submit_s"][0]) % 1
            return hours * 3600.0 + minutes * 60.0 + seconds + unix
    return float(records.columns["submit_s"][0]) % 86_400.0


def _group(by: str, name: str, sim: Floats, real: Floats) -> Group:
    means = float(real.mean()), float(sim.mean()), float(np.median(real)), float(np.median(sim))
    return Group(by, name, len(sim), *means, explained_share(sim, real))


def _what_names_tell(real: RealJobs, rows: NDArray[np.int64], cut_s: float) -> dict[str, float]:
    """Return the explained share of medians by name in the part before the cut: what no simulation is needed for."""
    before = np.flatnonzero((real.workload.submit_s < cut_s) & np.isfinite(real.wait_s))
    if len(before) < FEWEST_JOBS:
        return {}
    true = real.wait_s[rows]
    exponent = np.ceil(np.log2(real.workload.size)).astype(int)
    codes = {"partition": real.partition.codes, "size class": exponent, "user": real.user.codes}
    codes["partition and size class"] = real.partition.codes * 100 + exponent
    told = {}
    for name, values in codes.items():
        if len(np.unique(values)) < 2:
            continue
        guess = np.full(len(rows), np.median(real.wait_s[before]))
        for value in np.unique(values[rows]).tolist():
            past = real.wait_s[before][values[before] == value]
            if len(past):
                guess[values[rows] == value] = np.median(past)
        told[name] = explained_share(guess, true)
    return told


def _curves(real: RealJobs, rows: NDArray[np.int64], start: Floats, cut_s: float) -> dict[str, Floats]:
    """Return the mean nodes in use and jobs that wait in each hour, real and simulated, up to the last submission."""
    work = real.workload
    size, run, submit = work.size[rows].astype(np.float64), work.run_s[rows], work.submit_s[rows]
    really = submit + real.wait_s[rows]
    last = float(submit.max())
    edges = np.arange(cut_s, max(last, cut_s + 7200.0), 3600.0)
    known = np.isfinite(really)
    finish = np.where(really < cut_s, really + run, start + run)
    return {
        "hours": (edges[:-1] - edges[0]) / 3600.0,
        "real nodes": _level(edges, really[known], (really + run)[known], size[known]),
        "sim nodes": _level(edges, np.minimum(start, finish), finish, size),
        "real waiting": _level(edges, submit[known], really[known], np.ones(int(known.sum()))),
        "sim waiting": _level(edges, submit, np.where(really < cut_s, submit, start), np.ones(len(rows))),
    }


def _level(edges: Floats, begin: Floats, end: Floats, amount: Floats) -> Floats:
    """Return the mean sum of amounts between each two of ``edges``, of those whose interval has begun and not ended.

    Not the sum at the edges: jobs that are submitted on the hour would count wholly, or not at all.
    """
    return np.maximum(0.0, np.diff(_since(edges, begin, amount) - _since(edges, end, amount)) / np.diff(edges))


def _since(edges: Floats, time: Floats, amount: Floats) -> Floats:
    """Return the sum of amounts times what has passed since their times, at each of ``edges``."""
    order = np.argsort(time)
    passed = edges - edges[0]
    total = np.concatenate(([0.0], amount[order].cumsum()))
    weighted = np.concatenate(([0.0], (amount[order] * (time[order] - edges[0])).cumsum()))
    place = np.searchsorted(time[order], edges, "right")
    return total[place] * passed - weighted[place]


def _notes(
    records: JobRecords,
    real: RealJobs,
    nodes: int,
    simulated: NDArray[np.bool_],
    curves: Mapping[str, Floats],
    machine: str,
) -> list[str]:
    work, is_site = real.workload, machine.endswith(".toml")
    notes = [f"{counted(count, 'job')} not simulated: {reason}" for reason, count in work.dropped.items()]
    notes += work.notes.values()
    if not simulated.all():
        what = "no partition of the site has room" if is_site else "larger than the machine"
        notes.append(f"{counted(int((~simulated).sum()), 'job')} not simulated: {what}")
    if real.held:
        notes.append(
            f"{counted(real.held, 'job')} held at first, by a begin time, a dependency or by hand: counted as "
            "submitted when eligible"
        )
    unknown = int(np.isnan(real.wait_s).sum())
    if unknown:
        notes.append(f"{counted(unknown, 'job')} without a real start: simulated and not judged")
    peak = float(curves["real nodes"].max())
    if peak > nodes * (1 + 1e-9) and not is_site:
        notes.append(f"in its fullest hour the log has {peak:,.0f} nodes in use, of {nodes:,}: some jobs share nodes")
    known = real.wait_s[np.isfinite(real.wait_s)]
    if len(known) and known.min() == known.max():
        notes.append("all real waits are the same: no share is explained, and no rank is")
    missing = float(np.isnan(work.requested_s).mean())
    if missing:
        notes.append(f"{100 * missing:.1f} % of jobs have no requested time; their run time is taken")
    if is_site and "cores" not in records.columns:
        notes.append("the log does not tell cores: jobs take whole nodes")
    if len(real.partition.names) > 1 and not is_site:
        notes.append(f"{len(real.partition.names)} partitions or queues are simulated as one, of equal priority")
    restarted = int((records.numbers("restarts") > 0).sum())
    if restarted:
        notes.append(f"{restarted:,} jobs were restarted; only their last run is simulated")
    return [*notes, "not modelled: priorities, fair share, limits of users, reservations, outages of nodes"]
