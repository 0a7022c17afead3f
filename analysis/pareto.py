"""The Pareto front of a sweep: configurations that no other one beats in every metric that counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from faultsweep.analysis.ranking import higher_is_better
from faultsweep.analysis.regions import measured_groups
from faultsweep.analysis.statistics import REPLICATE, check_axes
from faultsweep.sweeps.open import check_results, has_result, metric_names
from numpy.typing import NDArray

from faultsweep.arguments import NAMES, TRUTH, takes
from faultsweep.errors import InputError, unknown_name

Floats = NDArray[np.float64]


def is_on_front(
    columns: Sequence[Floats], higher: Sequence[bool], groups: NDArray[np.int64] | None = None
) -> NDArray[np.bool_]:
    """Return which points no other one beats: none is as good in every metric and better in one. NaN is beaten.

    groups : the group of each point, if only points of one group are compared: each group has a front of its own.
    """
    if groups is not None:
        front = np.zeros(len(groups), bool)
        for group in np.unique(groups):
            own = groups == group
            front[own] = is_on_front([column[own] for column in columns], higher)
        return front
    costs = np.stack([-c if up else c for c, up in zip(columns, higher, strict=True)], axis=1).astype(float)
    front = np.zeros(len(costs), bool)
    known = np.flatnonzero(np.isfinite(costs).all(1))
    left = known[np.lexsort(costs[known].T[::-1])]
    rest = costs[left].T.copy()
    while len(left):  # whoever would beat the first one comes before it
        best = rest[:, :1]
        stays = (rest < best).any(0)
        front[left[~stays][(rest[:, ~stays] == best).all(0)]] = True
        left, rest = left[stays], rest[:, stays]
    return front


@takes(metrics=NAMES, every=TRUTH)
def pareto_front(results: xr.Dataset, metrics: Sequence[str], every: bool = False) -> pd.DataFrame:
    """Return the configurations that no other one beats: as good in each metric, and better in one.

    Parameters
    ----------
    results : opened by ``fs.open_results``.
    metrics : two or more; each is averaged over the replicates that have a result.
    every : return all configurations with a result, with a column ``on_front``.

    Returns
    -------
    A row per configuration, the best of the first metric first: its labels on the axes that have several, its metrics,
    and ``n``, the number of replicates with a result. Means are taken as exact, however few replicates there are.
    Configurations that measure something else (jobs of another ``owner``, say) are not compared: there is a front for
    each owner.

    Raises
    ------
    InputError
        There are fewer than two metrics, or there is no such metric, or nothing says whether more of it is better.
    """
    check_results(results)
    known = [name for name in metric_names(results) if REPLICATE in results[name].dims]
    for name in metrics:
        if name not in known:
            raise unknown_name("metric", name, known)
    if len(set(metrics)) < 2:
        raise InputError("a Pareto front is of two metrics or more")
    check_axes(results["status"].dims)
    wanted = results[[*dict.fromkeys(metrics)]].load()
    shapes = {name: set(wanted[name].dims) for name in metrics}
    more = sorted({str(dim) for dims in shapes.values() for dim in dims} - set(map(str, results["status"].dims)))
    if more:
        raise InputError(
            f"a Pareto front is of metrics with a number for each simulation, and {', '.join(more)} is more"
        )
    done = has_result(results["status"])
    with np.errstate(over="ignore"):  # an infinite mean is beaten
        means = wanted.where(done).mean(REPLICATE)
    means["n"] = done.sum(REPLICATE)
    axes = [str(dim) for dim in means["n"].dims if means.sizes[dim] > 1]
    frame = means.squeeze(drop=True).reset_coords(drop=True).to_dataframe().reset_index() if axes else _of_one(means)
    frame = frame[[*axes, *dict.fromkeys(metrics), "n"]]
    higher = [higher_is_better(results, name) for name in metrics]
    groups = pd.Series(0, frame.index)
    for axis, numbers in measured_groups(results).items():
        of_label = dict(zip(results[axis].values.tolist(), numbers.tolist(), strict=True))
        groups = groups * len(numbers) + frame[axis].map(of_label)
    frame["on_front"] = is_on_front([frame[name].to_numpy() for name in metrics], higher, groups.to_numpy())
    frame = frame[frame["n"] > 0].sort_values(metrics[0], ascending=not higher[0], kind="stable")
    frame = frame.loc[groups[frame.index].sort_values(kind="stable").index]
    return (frame if every else frame[frame["on_front"]].drop(columns="on_front")).reset_index(drop=True)


def _of_one(means: xr.Dataset) -> pd.DataFrame:
    """Return the table of a sweep of one configuration."""
    return pd.DataFrame({str(name): [means[name].item()] for name in means.data_vars})
