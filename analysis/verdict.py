"""Which policy is best, in words, as a table and as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from faultsweep.analysis.figures.figure import BLUE, LOOKS, Bars, Curve, Figure, Panel, Style
from faultsweep.analysis.figures.units import axis_to_read, in_units_to_read
from faultsweep.analysis.figures.words import (
    in_words,
    label_in_words,
    label_to_read,
    quantity,
    range_in_words,
    row_label,
)
from faultsweep.analysis.ranking import higher_is_better, rank
from faultsweep.analysis.regions import measuring_axes, not_significant, policy_axis
from faultsweep.analysis.statistics import REPLICATE, check_axes, mean_interval, paired_ratio
from faultsweep.simcore.workloads.models import is_model
from faultsweep.sweeps.axes import Axis
from faultsweep.sweeps.best import Best, Region, read_best, regions_of
from faultsweep.sweeps.open import COPIES, check_results, fixed_parameters, is_one_of, metric_names
from faultsweep.sweeps.outputs import Output
from faultsweep.sweeps.refinement import Refined
from faultsweep.sweeps.search import Search
from faultsweep.sweeps.selection import FEWEST, Selection, ratio_bounds
from faultsweep.sweeps.store.opener import stored_spec
from faultsweep.sweeps.store.statuses import NOT_REQUESTED
from numpy.typing import NDArray

from faultsweep.arguments import TEXT, takes
from faultsweep.errors import InputError, unknown_name

USUAL_METRIC = "mean_bounded_slowdown"
AS_GOOD = "as good or worse"
OUT = ("worse", AS_GOOD)
"""Results of policies that a selection has left behind; of the latter the interval reaches beyond the best."""
NOT_RANDOM = "Nothing is random: all replicates of a policy are one simulation, so there is no interval."
NO_RESULT = "no result"
"""Of policies with a simulation that failed, or that gave no number."""
_SHOWN_REGIONS = 12
_MOST_NAMED = 6  # policies of a sentence
_MOST_TIMES = 1_000  # to which the interval of a margin is told; beyond it numbers mean nothing
_MOST_IN_PERCENT = 3.0  # of the best mean; more is said as a factor
_FAR = 1e6  # times a ratio: drawn for an interval without an upper end
_MOST_LINEAR = 5.0  # a ratio above which the axis of ratios is logarithmic


@dataclass(frozen=True)
class Verdict:
    """What a selection says.

    Attributes
    ----------
    sentence : the answer.
    table : a row per region and policy, best first: the labels of the region, ``policy``, ``mean, low, high, n``,
        ``worse, worse_low, worse_high`` (how much worse than the best, 0.12 is 12 %) and ``result`` in words.
    shown : the same rows for people: regions and policies in words, and columns of regions named in words.
    simulations, saved : how many were run of the replicates that were looked at, copies left out, and how many fewer
        these are than if all policies of a region had as many as the one with most.
    metric, decides : what decided, in words, and as results call it.
    scope : what the answer holds for, "" if for more than one log.
    """

    sentence: str
    table: pd.DataFrame
    shown: pd.DataFrame
    simulations: int
    saved: int
    metric: str
    decides: str
    scope: str = ""

    @property
    def is_random(self) -> bool:
        """Tell whether some policy was simulated more than once: if not, all replicates are copies."""
        return not self.simulations or self.simulations > len(self.table)


@takes(policy=TEXT, metric=TEXT)
def compare_policies(
    results: xr.Dataset,
    policy: str | None = None,
    metric: str | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return how policies compare in every region: the combinations of labels of the other axes.

    Parameters
    ----------
    results : opened by ``fs.open_results``.
    policy : the axis whose labels are compared; the scheduler, or the first axis of names, if not given.
    metric : the metric that decides; the mean bounded slowdown, or the first metric, if not given.
    level : confidence of single intervals, and of all ratios of a region together.

    Returns
    -------
    A row per region and policy, best first: labels of the region; the policy; ``mean, low, high, n``; ``ratio,
    ratio_low, ratio_high`` to the best mean, paired under common random numbers; ``p``, adjusted by Holm's method over
    all pairs of the region; and ``as_good``, whether it does not differ significantly from the best: ``pd.NA`` where
    means differ but cannot be tested, as with one replicate. ``attrs["scope"]`` says "for this log only" if all
    replicates are of one log.

    Raises
    ------
    InputError
        There is no such axis or metric, or no axis to compare along, or nothing says whether more of it is better.
    """
    check_results(results)
    metrics = [str(name) for name in results.data_vars if "replicate" in results[name].dims]
    metric = metric or (USUAL_METRIC if USUAL_METRIC in results else _first_metric(results))
    if metric not in results.data_vars:
        raise unknown_name("metric", metric, metrics)
    policy = policy_axis(results) if policy is None else policy
    if policy is None:
        measured = " and ".join(measuring_axes(results))
        but = f" but {measured}, along which it differs what is measured" if measured else ""
        raise InputError(f"no axis of names has two labels or more{but}; name the axis whose labels are compared")
    values, status, higher = results[metric].load(), results["status"], higher_is_better(results, metric)
    if policy not in status.dims:
        raise unknown_name("axis", policy, map(str, status.dims))
    check_axes(status.dims)
    others = [str(dim) for dim in status.dims if dim not in (policy, REPLICATE)]
    shown = [dim for dim in others if status.sizes[dim] > 1]
    rows = []
    for labels in product(*(results[dim].values for dim in others)):
        at = dict(zip(others, labels, strict=True))
        table = rank(values.sel(at, drop=True), policy, status.sel(at, drop=True), level, higher)
        for number, label in enumerate(table[policy].values):
            row = {dim: at[dim] for dim in shown} | {policy: label}
            row |= {name: table[name].values[number] for name in _COLUMNS}
            untested = np.isnan(row["p"]) and table["difference"].values[number] != 0
            rows.append(row | ({"as_good": pd.NA} if untested else {}))
    frame = pd.DataFrame(rows, columns=[*shown, policy, *_COLUMNS]).astype({"as_good": "boolean"})
    frame.attrs["scope"] = scope_of(results)
    return frame


_COLUMNS = ("mean", "low", "high", "n", "ratio", "ratio_low", "ratio_high", "p", "as_good")


def _first_metric(results: xr.Dataset) -> str:
    names = metric_names(results)
    if not names:
        raise InputError("nothing to compare: the results have no metric")
    return names[0]


def scope_of(results: xr.Dataset) -> str:
    """Return "for this log only" where all replicates have the jobs of one real log as it is, "" elsewhere.

    A log is one realisation: its replicates differ by their failures alone, and say nothing about another month of the
    same machine. Models draw other jobs for each replicate, and so does the parameter ``resample``.
    """
    if "configuration" not in results.attrs:
        return ""
    fixed = fixed_parameters(results)
    logs = np.unique(results["log"].values) if "log" in results.variables else [fixed.get("log")]
    ways = results["resample"].values.tolist() if "resample" in results.variables else [fixed.get("resample", "none")]
    real = [log for log in logs if isinstance(log, str) and not is_model(log)]
    if "none" not in ways or not real:
        return ""
    scope = "for this log only" if len(real) == 1 else "for these logs only"
    return scope if set(ways) == {"none"} else f"{scope} where it is not resampled"


def describe_scope(results: xr.Dataset) -> str:
    """Return a sentence that follows an answer which holds for one log only, "" behind others."""
    scope = scope_of(results)
    return f" This holds {scope}." if scope else ""


def selection_of(results: xr.Dataset) -> Best | None:
    """Return the selection that a sweep was run for, as its spec has it; None if it was run for none."""
    spec = stored_spec(results.attrs)
    if "best" not in spec:
        return None
    dims = [str(dim) for dim in results["status"].dims if dim != REPLICATE]
    columns = {axis: {axis: results[axis].values.tolist()} for axis in measuring_axes(results)}
    if "axis" in spec["best"] or policy_axis(results) is None:
        columns = {}  # it was run for that; without an axis of policies, before such axes were refused
    axes = [Axis(dim, results[dim].values.tolist(), columns.get(dim, {})) for dim in dims]
    axes.append(Axis(REPLICATE, list(range(max(FEWEST, int(spec.get("replicates", 1))))), {}))
    plain = [name for name in metric_names(results) if results[name].dims == results["status"].dims]
    outputs = [Output(name, better="higher" if _is_higher(results, name) else "lower") for name in plain]
    return read_best(spec["best"], axes, outputs, columns)


def _is_higher(results: xr.Dataset, metric: str) -> bool:
    """Tell whether more of a metric is better; False where nothing says so, which matters to no selection."""
    try:
        return higher_is_better(results, metric)
    except InputError:
        return False


def selected(results: xr.Dataset) -> Verdict | None:
    """Return the verdict of the selection that a sweep was run for, so far as it is; None if it was run for none."""
    best = selection_of(results)
    if best is None:
        return None
    dims = [*(str(dim) for dim in results["status"].dims if dim != REPLICATE), REPLICATE]
    status = results["status"].transpose(*dims).values
    values = results[best.metric].transpose(*dims).values.astype(float)
    asked = (status != NOT_REQUESTED).any(-1)
    found = regions_of(best, {dim: results[dim].values.tolist() for dim in dims}, status, values, asked)
    return judge(results, best, found)


def describe_promise(best: Best | None, verdict: Verdict) -> str:
    """Return in a sentence what a selection promises, and what it took."""
    if best is None:
        return ""
    if not verdict.is_random:
        return f"Selected by {verdict.metric}. {NOT_RANDOM}"
    return (
        f"Selected by {verdict.metric}: the best, or within {100 * best.zone:g}\u00a0% of it, with a probability of "
        f"{100 * best.confidence:g}\u00a0% in all regions; {verdict.simulations:,} simulations."
    )


def judge(results: xr.Dataset, best: Best, regions: Sequence[Region]) -> Verdict:
    """Return the verdict of a selection: ``regions`` of ``sweeps.best``, of results opened by ``open_results``."""
    tables = [_table(results, best, region, len(regions)) for region in regions]
    taken = np.sum([_count_simulations(results, best, region) for region in regions], axis=0)
    metric = in_words(results, best.metric)
    said = [_in_words(results, best, table) for table in tables]
    sentence = _sentence(best, metric, regions, said) + describe_scope(results)
    every, shown = (pd.concat(parts, ignore_index=True) for parts in (tables, said))
    return Verdict(sentence, every, shown, int(taken[0]), int(taken[1]), metric, best.metric, scope_of(results))


def _count_simulations(results: xr.Dataset, best: Best, region: Region) -> tuple[int, int]:
    """Return how many simulations a region took, and how many it saved; copies of others are none."""
    if region.selection is None:
        return 0, 0
    looked = region.selection.looked
    status = _of_region(results["status"], best, region).sel({best.axis: region.labels})
    copies = is_one_of(status.transpose(best.axis, REPLICATE), COPIES).values
    simulated = looked - (copies & (np.arange(copies.shape[1]) < looked[:, None])).sum(1)
    return int(simulated.sum()), int((looked.max(initial=0) - looked)[simulated > 0].sum())


def _of_region(part: Any, best: Best, region: Region) -> Any:
    """Return the part of results that is of a region: over the policies and the replicates."""
    part = part.sel(region.at)
    rest = [dim for dim in part.sizes if dim not in (best.axis, REPLICATE)]
    return part.squeeze(rest, drop=True)


def _in_words(results: xr.Dataset, best: Best, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of a region with regions and policies as people read them."""
    places = list(table.columns[: list(table.columns).index("policy")])
    labels = {place: [label_to_read(results, place, label) for label in table[place]] for place in places}
    policies = [named_policy(results, best.axis, label) for label in table["policy"]]
    return table.assign(**labels, policy=policies).rename(
        columns={place: quantity(results, place).partition(" (")[0] for place in places}
    )


def named_policy(results: xr.Dataset, axis: str, label: Any) -> str:
    """Return a policy as a sentence has it: names as figures have them, numbers with what they are of."""
    return (label_to_read if isinstance(label, str) else label_in_words)(results, axis, label)


def _table(results: xr.Dataset, best: Best, region: Region, count: int) -> pd.DataFrame:
    """Return the rows of a region of ``count`` of them, best first, then what failed."""
    part = _of_region(results[[best.metric, "status"]], best, region)
    rows = []
    selection = region.selection
    if selection is not None:
        pairs = max(1, len(region.labels) + len(region.failed_labels) - 1)
        error = (1 - best.confidence) / count / pairs
        rows = [_row(part, best, region, selection, place, error) for place in range(len(region.labels))]
        rows.sort(key=lambda row: (row["result"] != "best", np.nan_to_num(row["worse"], nan=np.inf), row["mean"]))
    for label in region.failed_labels:
        rows.append({"policy": label, "result": NO_RESULT})
    columns = ["policy", "mean", "low", "high", "n", "worse", "worse_low", "worse_high", "result"]
    frame = pd.DataFrame(rows, columns=columns)
    for place, (axis, label) in enumerate(region.at.items()):
        frame.insert(place, axis, label)
    return frame


def _leader(values: xr.DataArray, best: Best, selection: Selection) -> int:
    """Return the row that may be the best and has the best mean."""
    means = {row: float(values[row, : max(1, int(selection.looked[row]))].mean()) for row in selection.alive}
    return (max if best.higher_is_better else min)(means, key=lambda row: means[row])


def _row(
    part: xr.Dataset, best: Best, region: Region, selection: Selection, place: int, error: float
) -> dict[str, Any]:
    label, stands = region.labels[place], selection.ties.get(place, place)
    n = int(selection.looked[stands])
    seen = part.sel({best.axis: label}).isel({REPLICATE: slice(0, n)})
    own = mean_interval(seen[best.metric].load(), seen["status"], best.confidence)
    row = {"policy": label, "n": n} | {name: float(own[name]) for name in ("mean", "low", "high")}
    values = part[best.metric].sel({best.axis: region.labels}).transpose(best.axis, REPLICATE).load()
    leader = _leader(values, best, selection)
    row |= _how_much_worse(values.values, best, selection, stands, leader, error)
    if stands == leader and selection.decided:
        row["result"] = "best"
    elif stands in selection.alive:
        row["result"] = "not decided"
    else:
        row["result"] = AS_GOOD if row["worse_low"] <= 0 else "worse"
    return row


def _how_much_worse(
    values: NDArray[np.float64], best: Best, selection: Selection, row: int, leader: int, error: float
) -> dict[str, float]:
    """Return how much worse than the leader a row is, as a share, with the bounds of the test that decides."""
    names = ("worse", "worse_low", "worse_high")
    n = int(selection.looked[row])
    if row == leader:
        return dict(zip(names, (0.0, np.nan, np.nan), strict=True))
    if n == 0 or not values[leader, :n].mean() > 0:  # no ratio to a mean of zero
        return dict.fromkeys(names, np.nan)
    first, most = best.first, best.most
    ratio, low, high = ratio_bounds(selection, values, row, leader, error=error, first=first, most=most)
    shares = (1 - ratio, 1 - high, 1 - low) if best.higher_is_better else (ratio - 1, low - 1, high - 1)
    return dict(zip(names, shares, strict=True))


def _sentence(best: Best, metric: str, regions: Sequence[Region], tables: Sequence[pd.DataFrame]) -> str:
    decided = [region.selection is not None and region.selection.decided for region in regions]
    if len(regions) == 1:
        return _of_one(best, metric, regions[0], tables[0])
    names = [_name(table) if known else "not decided" for table, known in zip(tables, decided, strict=True)]
    near = _or_near(best, pd.concat([table for table, known in zip(tables, decided, strict=True) if known] or tables))
    near += "," if near else ""
    counts = Counter(names).most_common()
    if len(counts) == 1 and decided[0]:
        return f"{names[0]} is best{near} in all {len(regions)} regions."
    known = [f"{name} in {count}" for name, count in counts if name != "not decided"]
    if not known:
        return f"None of {len(regions)} regions is decided."
    left = Counter(names)["not decided"]
    return f"Of {len(regions)} regions, best{near} is {', '.join(known)}" + (f"; {left} not decided." if left else ".")


def _or_near(best: Best, table: pd.DataFrame) -> str:
    """Return what follows "is best" where some policy may be better, by less than the zone."""
    may_be = bool((table["result"] == AS_GOOD).any())
    return f", or within {100 * best.zone:g} % of the best" if may_be else ""


def _name(table: pd.DataFrame) -> str:
    """Return the best policy of a table, with those that are the same simulations."""
    names = [str(label) for label in table.loc[table["result"] == "best", "policy"]]
    return " = ".join(names) if len(names) <= _MOST_NAMED + 1 else f"{names[0]} = {len(names) - 1} others"


def _named(policies: list[str]) -> str:
    """Return names that stay a sentence: the first of them, if they are many."""
    rest = len(policies) - _MOST_NAMED
    names = policies if rest < 2 else [*policies[:_MOST_NAMED], f"{rest} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _of_one(best: Best, metric: str, region: Region, table: pd.DataFrame) -> str:
    selection = region.selection
    if selection is None:
        return f"Not decided: each policy has a simulation without a result by {metric}."
    if not selection.decided:
        left = _named(table.loc[table["result"] == "not decided", "policy"].tolist())
        why = f"{best.most} replicates" if not selection.needed else "the replicates so far"
        return f"Not decided after {why}: each of {left} may be the best by {metric}."
    rest = table[table["result"].isin(OUT)]
    text = f"{_name(table)} is best by {metric}{_or_near(best, table)}"
    lost = _named(table.loc[table["result"] == NO_RESULT, "policy"].tolist())
    end = f"; without a result: {lost}." if lost else "."
    if rest.empty:
        alike = len(selection.ties) and not lost
        return f"No difference by {metric}: {_name(table)}." if alike else f"{text}{end}"
    second = rest.iloc[0]
    if np.isnan(second["worse"]):
        return f"{text}; second is {second['policy']}, {second['mean']:.4g} against {table.iloc[0]['mean']:.4g}{end}"
    worse = how_much_worse(*(float(second[part]) for part in ("worse", "worse_low", "worse_high")))
    return f"{text}; second is {second['policy']}, {worse}{end}"


def how_much_worse(share: float, low: float, high: float) -> str:
    """Return a share of the best mean in words: "12 % worse (4.0 to 21 %)", or "29 times as high (17 to 50)"."""
    if np.isinf(share):
        return "above a best mean of zero"
    many = share > _MOST_IN_PERCENT
    parts = [
        (f"{1 + part:,.0f}" if part >= 100 else f"{1 + part:.3g}") if many else _percent(part)
        for part in (share, low, high)
    ]
    unit = "" if many else " %"
    interval = "" if np.isnan([low, high]).any() else f" ({parts[1]} to {parts[2]}{unit})"
    if np.isinf(high):
        interval = f" ({parts[1]}{unit} or more)"
    elif high > (most := max(_MOST_TIMES, 10 * share)):
        interval = f" ({parts[1]}{unit} to more than {most:,.0f}{'' if many else ' times as high'})"
    return f"{parts[0]} times as high{interval}" if many else f"{parts[0]} % worse{interval}"


def second_place(data: xr.Dataset, metric: str, policy: str, row: Mapping[str, Any]) -> str:
    """Return what follows "A has the lowest mean wait": the second one of a row of ``regions.best_policies``."""
    if not row["next"]:
        return ""
    second = row_label(policy, row["next"])
    if row["margin"] == 0:
        return f", and so has {second}"
    worse = how_much_worse(*(float(row[part]) for part in ("margin", "margin_low", "margin_high")))
    return f"; second is {second}, {worse}{not_significant(data[metric], data['status'], row)}"


def _percent(share: float) -> str:
    """Return 0.123 as "12", with a decimal where it is below ten."""
    value = 100 * share
    text = f"{value:.1f}" if abs(value) < 9.95 else f"{value:,.0f}"
    return text.replace("-", "−")


def verdict_figure(name: str, best: Best, verdict: Verdict) -> Figure:
    """Return the picture of a verdict: the ratio of each policy to the best one, by region."""
    table = verdict.shown[verdict.shown["result"] != NO_RESULT]
    axes = list(table.columns[: list(table.columns).index("policy")])
    keys = [_in_line(zip(axes, row, strict=True)) for row in table[axes].values]
    regions = list(dict.fromkeys(keys))[:_SHOWN_REGIONS]
    policies = list(dict.fromkeys(str(label) for label in table["policy"]))
    cells = {
        (key, str(row["policy"])): row for key, (_, row) in zip(keys, table.iterrows(), strict=True) if key in regions
    }
    higher = best.higher_is_better
    if axes:
        bars = [
            _bars(label, [cells.get((region, label)) for region in regions], LOOKS[number % len(LOOKS)], higher)
            for number, label in enumerate(policies)
        ]
        categories = regions
    else:
        bars = [_bars(verdict.metric, [cells["", label] for label in policies], Style(BLUE), higher)]
        categories = policies
    highest = max((float(np.nanmax(part.y, initial=1.0)) for part in bars), default=1.0)
    label = f"{verdict.metric[:1].upper()}{verdict.metric[1:]}, ratio to the best mean"
    panel = Panel("", "", label, bars=bars, categories=categories, log_y=highest > _MOST_LINEAR)
    caption = _caption(best, verdict, len(set(keys)))
    return Figure(f"{name}-best", verdict.sentence, caption, [panel], 1)


def _caption(best: Best, verdict: Verdict, regions: int) -> list[str]:
    """Return the caption of the picture of a verdict on so many regions."""
    level, zone = f"{100 * best.confidence:g}\u00a0%", f"{100 * best.zone:g}\u00a0%"
    ratios = f"Ratios of means ({verdict.metric}) to the best one"
    drawn = [f"The first {_SHOWN_REGIONS} of {regions} regions are drawn."] if regions > _SHOWN_REGIONS else []
    if (verdict.table["result"].isin(OUT) & verdict.table["worse"].isna()).any():
        drawn.append("There are no ratios to a mean of zero.")
    if not verdict.is_random:
        return [f"{ratios}. {NOT_RANDOM}", *drawn]
    over = "in all regions" if regions > 1 else "for all policies"
    caption = [f"{ratios}, over the replicates that a policy has, paired under common random numbers.", *drawn]
    if verdict.table["worse_low"].notna().any():
        caption.append(
            f"Intervals are of the tests that decided: each of their ends holds with a probability of {level} {over} "
            "together, a little less often where all means are equal."
        )
    if (verdict.table["result"] == "best").any():
        together = " in all regions together." if regions > 1 else "."
        caption.append(
            f"What is called best is the best, or within {zone} of it, with a probability of {level}{together}"
        )
    count = f"{verdict.simulations:,} simulations, {verdict.saved:,} fewer than with equal numbers for all policies."
    return [*caption, count]


def _in_line(places: Iterable[tuple[str, str]]) -> str:
    """Return the labels of a region in one line: "load scale = 1.5, machine = torus 4x4x8"."""
    text = ", ".join(f"{axis} = {label}" for axis, label in places)
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _bars(label: str, rows: Sequence[Any], style: Style, higher: bool) -> Bars:
    parts = ("worse_low", "worse", "worse_high")
    worse = np.array([[np.nan if row is None else row[part] for part in parts] for row in rows], float).reshape(-1, 3)
    low, mean, high = (1 + worse.T) if not higher else (1 - worse.T)[[2, 1, 0]]
    return Bars(label, mean, style, low, np.where(np.isinf(high), _FAR * mean, high))  # goes on, with an arrow


def describe_searches(searches: Sequence[Search], found: Sequence[Refined], results: xr.Dataset) -> str:
    """Return the answer in every region, a sentence each."""
    answers = (describe_search(search, one, results) for search, one in zip(searches, found, strict=True))
    return " ".join(answers) + describe_scope(results)


def _region(search: Search, results: xr.Dataset) -> str:
    return ", ".join(label_in_words(results, axis, label) for axis, label in search.at.items())


def describe_search(search: Search, found: Refined, results: xr.Dataset) -> str:
    """Return in a sentence where policies cross or one saturates, or why that is not known.

    ``results`` are those of the search, or of the sweep, for what axes and metrics are called.
    """
    text = _answer(search, found, results)
    return f"{_region(search, results)}: {text}" if search.at else text


def _answer(search: Search, found: Refined, results: xr.Dataset) -> str:
    low, high = found.low, found.high
    ends = range_in_words(results, search.along, low, high)
    names = [named_policy(results, search.axis, label) for label in search.policies]
    if found.lacks is not None:
        place = range_in_words(results, search.along, found.lacks)
        return f"Not decided: {place} is excluded, or a simulation there has no result."
    if found.low_answer is None or found.high_answer is None:
        end = low if found.low_answer is None else high
        place = range_in_words(results, search.along, end)
        if end in found.equal:
            both = " and ".join(names[:2]) or "both"
            return (
                f"Not decided: the results of {both} at {place} are equal in the first {found.points[end]} replicates."
            )
        return f"Not decided: {search.most} replicates leave the answer at {place} open."
    level = f"{100 * search.confidence:g} % confidence"
    if search.find == "saturation":
        name = names[0] if names else ""
        if not found.found and found.low_answer:
            return f"{name} does not saturate at {ends}." if name else f"No saturation at {ends}."
        if not found.found:
            place = range_in_words(results, search.along, low)
            return f"{name or 'It'} is saturated at {place} already."
        text = f"{name} saturates at {ends} ({level})" if name else f"Saturation is at {ends} ({level})"
    else:
        metric = in_words(results, search.metric)
        greater = found.low_answer != search.higher_is_better
        below, above = (names[1], names[0]) if greater else names[:2]
        if not found.found:
            return f"No crossing: {below} is better by {metric} at both ends of {ends}."
        text = f"{below} is better by {metric} below {ends} ({level}), {above} above"
    if high - low <= search.width:
        return f"{text}."
    width = range_in_words(results, search.along, search.width).removeprefix(in_words(results, search.along)).strip()
    return f"{text}; {search.most} replicates do not narrow it to {width}."


def search_figure(
    name: str, results: xr.Dataset, searches: Search | Sequence[Search], found: Refined | Sequence[Refined]
) -> Figure:
    """Return the picture of searches: what was compared at the points that were tested, a panel for each region.

    Regions without such points have none.

    Raises
    ------
    InputError
        No region has one.
    """
    every = [searches] if isinstance(searches, Search) else list(searches)
    answers = [found] if isinstance(found, Refined) else list(found)
    tested = [(search, one) for search, one in zip(every, answers, strict=True) if one.points]
    if not tested:
        raise InputError(f"refine: there is nothing to draw; {describe_searches(every, answers, results)}")
    panels = [_search_panel(results, search, one) for search, one in tested]
    search = every[0]
    counts = [count for one in answers for count in one.points.values()]
    level = f"{100 * search.confidence:g}\u00a0%"
    what = "ratios of paired means less one" if search.find == "crossing" else "means"
    caption = [
        f"The points that were tested: {what}, with {level} confidence intervals of each, of {min(counts)} to "
        f"{max(counts)} replicates.",
    ]
    if len(every) == 1:
        return Figure(f"{name}-{search.find}", describe_searches(every, answers, results), caption, panels, 1)
    names = " and ".join(named_policy(results, search.axis, label) for label in search.policies)
    saturation = f"Saturation of {names}" if names else "Saturation"
    where = f"Where {names} cross" if search.find == "crossing" else saturation
    title = f"{where} along the {in_words(results, search.along)}, in {len(every)} regions"
    return Figure(f"{name}-{search.find}", title, [*caption, describe_searches(every, answers, results)], panels, 2)


def _search_panel(results: xr.Dataset, search: Search, found: Refined) -> Panel:
    known = {**search.at, **({search.axis: None} if search.axis else {}), search.along: None}
    at = {axis: results[axis].values[0] for axis in results["status"].dims if axis not in (*known, REPLICATE)}
    part = results[[search.metric, "status"]].sel({**at, **search.at})
    part = part.dropna(search.along, how="all", subset=[search.metric])
    part = axis_to_read(in_units_to_read(part, [search.metric]), search.along)
    values, status = part[search.metric].load(), part["status"]
    if search.find == "crossing":
        one, other = search.policies
        ratio = paired_ratio(values, search.axis, other, status, search.confidence).sel({search.axis: one})
        drawn = 100 * (ratio[["mean", "low", "high"]] - 1)
        names = [named_policy(results, search.axis, label) for label in (one, other)]
        label, signed = f"{quantity(part, search.metric).partition(' (')[0]}: {' against '.join(names)}, %", True
    else:
        chosen = {search.axis: search.policies[0]} if search.axis else {}
        drawn = mean_interval(values.sel(chosen), status.sel(chosen), search.confidence)
        label, signed = quantity(part, search.metric), False
    drawn = drawn.sortby(search.along)
    drawn = drawn.isel({search.along: np.isfinite(drawn["mean"].values)})
    x = drawn[search.along].values.astype(float)
    curve = Curve(label, x, drawn["mean"].values, drawn["low"].values, drawn["high"].values, LOOKS[0])
    return Panel(_region(search, results), quantity(part, search.along), label, curves=[curve], signed=signed)
