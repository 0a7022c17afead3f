"""Bringing the failures of one machine and time to another: nodes, span of time, and number.

What must survive is what makes failures bad: that they come in bursts, and that few nodes bear many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.policies.failures.source import DAY_S, MOST_FAILURES, Span, refuse_too_many
from faultsweep.simcore.streams import round_ms
from numpy.typing import NDArray

from faultsweep.errors import InputError, unknown_name

FAILURE_FITS = {
    "auto": "Exact for a trace of our own, scaled for any other log.",
    "exact": "The times of the log, from the first submission on.",
    "scale": "The log's span stretched or compressed to that of the jobs.",
    "repeat": "The log again and again until the jobs end.",
    "calendar": "A trace of our own whose times are those of the job log's clock.",
}
NODE_MAPS = {
    "auto": "Identity if the machines agree, else a permutation.",
    "identity": "A node of the log is the node of that number.",
    "rank": "The log's nodes, most failures first, laid over the machine's.",
    "permutation": "The same over the machine's nodes in random order.",
}

_GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, spread evenly
BURST_GAP_FRAC = 0.1  # failures closer than this share of the mean gap belong to one burst


def has_identity(records: FailureRecords, machine_nodes: int, torus: tuple[int, ...] = ()) -> bool:
    """Tell whether the log's nodes are the machine's: a trace of our own, or a log of as large a machine.

    ``torus`` holds the sides of the machine, if it is one; the midplanes of Blue Gene/L are those of 4x4x8 alone.
    """
    if records.own:
        return True
    if records.torus and torus and records.torus != torus:
        return False
    return records.numbered and records.num_nodes == machine_nodes


def map_nodes(
    records: FailureRecords, machine_nodes: int, how: str, rng: np.random.Generator, torus: tuple[int, ...] = ()
) -> NDArray[np.int64]:
    """Return the machine's node of every failure, int64 (k,).

    Parameters
    ----------
    records : the failures.
    machine_nodes : nodes of the machine that is simulated.
    how : "identity" takes the log's numbers. "rank" orders the log's nodes by failures, most first (ties: by number),
        and lays them over the machine's nodes in this order: a log's node that covers several nodes of the machine
        shares its failures out among them, burst by burst; several log's nodes that cover one node of the machine give
        it all of theirs. So the worst tenth of the nodes keeps its share of the failures.
        "permutation" is "rank" with the machine's nodes in random order. "auto" is "identity" where it exists, else
        "permutation".
    rng : for the permutation.
    torus : sides of the machine if it is a torus.

    Raises
    ------
    InputError
        If the nodes of the log are not nodes of the machine and identity is asked for.
    """
    if how not in NODE_MAPS:
        raise unknown_name("node map", how, NODE_MAPS, where="node_map")
    if how == "auto":
        how = "identity" if has_identity(records, machine_nodes, torus) else "permutation"
    if how == "identity":
        if not records.numbered or int(records.node.max(initial=0)) >= machine_nodes:
            worst = int(records.node.max(initial=0))
            raise InputError(
                f"{records.name}: names node {records.node_name[worst]}, the machine has nodes 0 to "
                f"{machine_nodes - 1} (node_map = rank or permutation maps them)"
            )
        return records.node
    place = _cover(records, machine_nodes)
    return place if how == "rank" else np.argsort(rng.random(machine_nodes), kind="stable")[place]


def _cover(records: FailureRecords, machine_nodes: int) -> NDArray[np.int64]:
    """Lay the log's nodes, most failing first, over the machine's nodes."""
    per_node = np.bincount(records.node, minlength=records.num_nodes)
    rank = np.empty(records.num_nodes, np.int64)
    rank[np.argsort(-per_node, kind="stable")] = np.arange(records.num_nodes)
    within = np.mod((bursts_of(records.time_s) + 1) * _GOLDEN, 1.0)
    place = np.floor((rank[records.node] + within) * (machine_nodes / records.num_nodes)).astype(np.int64)
    return np.minimum(place, machine_nodes - 1)


class Fitted(NamedTuple):
    """Failures since the first submission: times, the row of the log each is from, the period if they repeat (else
    0)."""

    time_s: NDArray[np.float64]
    row: NDArray[np.int64]
    period_s: float


def fit_times(
    records: FailureRecords,
    span: Span,
    fit: str,
    rng: np.random.Generator,
    *,
    node_ratio: float = 1.0,
    num_failures: int = -1,
    failures_per_day: float = -1.0,
) -> Fitted:
    """Place the failures of a log in the span of the jobs, and thin or superpose them to the number asked for.

    Parameters
    ----------
    records : the failures.
    span : of the jobs.
    fit : "exact" keeps the times between failures: those of a trace of our own are seconds since the first submission,
        a log begins at it. "calendar" takes the times of a trace of our own as times on the job log's clock. "scale"
        stretches the log to the span, and ends there. "repeat" keeps the pace of the log: it is cut, or begins
        again, until the span is full, and this pattern goes on for ever. "auto" is "exact" for a trace of our own, else
        "scale".
    rng : for thinning and superposing.
    node_ratio : nodes of the machine / nodes of the log.
    num_failures : failures in the whole log's span, scaled to the span of the jobs used; negative: not given.
    failures_per_day : their rate; negative: not given. With neither, "exact" and "calendar" keep all failures, the
        others the log's failures per node and day, as oliner2004 does (section 6.2).

    Notes
    -----
    Thinning takes whole bursts (failures closer than a tenth of the mean gap) in random order until there are enough,
    the last one in part: under one seed, fewer failures are a part of more. For more failures than the log has, "scale"
    runs through the log as many times as it takes, at a faster pace, and thins that, which keeps the variation of the
    times between failures. "repeat" and "exact" superpose copies of the log, shifted around the span by random times;
    bursts stay what they are, and slower variation evens out, as it does where machines are added.
    """
    fit = _known_fit(records, fit)
    wanted = _wanted(records.name, span, num_failures, failures_per_day)
    keeps = fit in _KEEPING
    _check_spans(records, span, keeps, counted=wanted is not None)
    if fit == "scale":
        if wanted is None:
            wanted = _whole(records.name, len(records) * node_ratio * span.length_s / records.span_s)
        time_s, row, period = _scale(records, span, laps=max(1, -(-wanted // len(records))))
    elif fit == "repeat":
        time_s, row, period = _repeat(records, span)
        if wanted is None:
            wanted = _whole(records.name, len(row) * node_ratio)
    else:
        time_s, row, period = _kept(records, span, fit, only_inside=wanted is not None)
        if wanted is None:
            wanted = len(row)
            refuse_too_many(records.name, wanted)
    if wanted == len(row):
        return Fitted(time_s, row, period)
    if not len(row):
        raise InputError(f"{records.name}: has no failure in the span of the jobs, so it cannot be scaled to {wanted}")
    first, length = (time_s[0], time_s[-1] - time_s[0]) if keeps else (0.0, span.length_s)
    return _choose(time_s, row, wanted, float(first), float(length), rng)._replace(period_s=period)


_KEEPING = ("exact", "calendar")
"""Fits that keep the times between failures."""


def _known_fit(records: FailureRecords, fit: str) -> str:
    """Return a fit by its name, "auto" as what it is for these failures; refuse one that is not for them."""
    if fit not in FAILURE_FITS:
        raise unknown_name("fit", fit, FAILURE_FITS, where="failure_fit")
    if fit == "auto":
        return "exact" if records.own else "scale"
    if fit == "calendar" and not records.own:
        raise InputError(
            f"{records.name}: is on a clock of its own, so failure_fit = calendar cannot bring it to the jobs' clock "
            "(valid: exact, scale, repeat)"
        )
    return fit


def _check_spans(records: FailureRecords, span: Span, keeps: bool, counted: bool) -> None:
    """Refuse a span of no length, of the jobs or of the failures, where it is needed: ``counted`` says that a number
    of failures was asked for."""
    if span.length_s <= 0 and (counted or not keeps):
        raise InputError(
            f"{records.name}: the jobs used are all submitted at one time, so there is no span to fit failures to "
            "(failure_fit = exact keeps their own times)"
        )
    if not keeps and records.span_s <= 0:
        raise InputError(f"{records.name}: all its failures are at one time, so they cannot be scaled to another span")


def _wanted(name: str, span: Span, num_failures: int, failures_per_day: float) -> int | None:
    """Return the number of failures asked for in the span of the jobs used; ``name`` is what the log is called."""
    if num_failures >= 0 and failures_per_day >= 0:
        raise InputError("failures: give num_failures or failures_per_day, not both")
    if num_failures >= 0:
        share = span.length_s / span.full_s if span.full_s > 0 else 1.0
        return _whole(name, num_failures * share)
    if failures_per_day >= 0:
        return _whole(name, failures_per_day * span.length_s / DAY_S)
    return None


def _whole(name: str, count: float) -> int:
    """Return a number of failures as a whole one; refuse one that is too large, which may be infinity."""
    rounded = float(np.floor(count + 0.5))
    refuse_too_many(name, rounded)
    return int(rounded)


def _kept(records: FailureRecords, span: Span, fit: str, only_inside: bool) -> Fitted:
    """Keep the times between failures ("exact", "calendar"); ``only_inside``: of the failures in the span."""
    zero = span.origin_s if fit == "calendar" else 0.0 if records.own else records.time_s[0]
    time_s = records.time_s - zero
    row = np.arange(len(records))
    if only_inside:
        row = np.flatnonzero((time_s >= 0.0) & (time_s <= span.length_s))
    return Fitted(time_s[row], row, 0.0)


def _again_s(records: FailureRecords) -> float:
    """Return the time after which a log begins again: a mean gap lies between its end and its beginning."""
    return records.span_s * len(records) / (len(records) - 1)


def _laps(records: FailureRecords, laps: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the times since the first failure, and the rows, of a log that is run through ``laps`` times."""
    since = np.tile(records.time_s - records.time_s[0], laps)
    return since + np.repeat(np.arange(laps) * _again_s(records), len(records)), np.tile(np.arange(len(records)), laps)


def _scale(records: FailureRecords, span: Span, laps: int) -> Fitted:
    """Stretch the log, run through ``laps`` times, from the first to the last second of the span."""
    since, row = _laps(records, laps)
    time_s = round_ms(since * (span.length_s / since[-1]))
    return Fitted(np.minimum(time_s, span.length_s), row, 0.0)


def _repeat(records: FailureRecords, span: Span) -> Fitted:
    """Fill the span with the log at its own pace, over and over, half a mean gap from the edges."""
    again_s = _again_s(records)
    times = span.length_s / again_s
    if times * len(records) > MOST_FAILURES:
        raise InputError(
            f"{records.name}: lasts {records.span_s:.6g} s, so failure_fit = repeat would need it {times:,.0f} times "
            f"in the {span.length_s:.6g} s of the jobs, and a run has at most {MOST_FAILURES:,} failures "
            "(failure_fit = scale stretches it)"
        )
    since, row = _laps(records, math.floor(times) + 1)
    since += again_s / len(records) / 2
    inside = since < span.length_s
    return Fitted(np.minimum(round_ms(since[inside]), span.length_s), row[inside], span.length_s)


def bursts_of(time_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the number of the burst of every failure; times in order, shape (k,)."""
    if len(time_s) < 2:
        return np.zeros(len(time_s), np.int64)
    gap = np.diff(time_s, prepend=time_s[0])
    return np.cumsum(gap > BURST_GAP_FRAC * (time_s[-1] - time_s[0]) / (len(time_s) - 1))


def _choose(
    time_s: NDArray[np.float64],
    row: NDArray[np.int64],
    count: int,
    origin: float,
    length: float,
    rng: np.random.Generator,
) -> Fitted:
    """Take ``count`` failures burst by burst, from as many shifted copies as it takes."""
    times, rows, have = [], [], 0
    for part, shift in _copies(bursts_of(time_s), length, rng):
        if have >= count:
            break
        part = part[: count - have]
        have += len(part)
        shifted = time_s[part] if shift == 0 else origin + np.mod(time_s[part] - origin + shift, length)
        times.append(shifted)
        rows.append(row[part])
    if not times:
        return Fitted(np.empty(0), np.empty(0, np.int64), 0.0)
    all_times = np.minimum(round_ms(np.concatenate(times)), origin + length)
    all_rows = np.concatenate(rows)
    order = np.lexsort((all_rows, all_times))
    return Fitted(all_times[order], all_rows[order], 0.0)


def _copies(
    burst: NDArray[np.int64], length: float, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.int64], float]]:
    """Yield the failures of copy after copy in the order in which they are taken, and the shift of the copy."""
    shift = 0.0
    while True:
        lot = rng.random(int(burst[-1]) + 1)
        yield np.argsort(lot[burst], kind="stable"), shift
        shift = float(rng.random()) * length
