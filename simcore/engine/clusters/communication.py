"""What jobs communicate and what they say of it: bandwidth per processor, estimates, and who states one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.streams import stream
from numpy.typing import NDArray

from faultsweep.errors import InputError


@dataclass(frozen=True)
class Communication:
    """What jobs communicate, in order of submission; all arrays are float64 of shape (jobs,).

    Attributes
    ----------
    communicate_s : T_C, the part of the run time on one cluster that is communication, s; the rest is T_P.
    bandwidth_mbps : bandwidth that each processor needs, Mbit/s.
    stated_mbps : what the user states it to be; NaN where nothing is stated.
    """

    communicate_s: NDArray[np.float64]
    bandwidth_mbps: NDArray[np.float64]
    stated_mbps: NDArray[np.float64]

    def rmspe(self) -> float:
        """Return the root mean square percentage error of the statements, %; NaN if there is none."""
        stated = ~np.isnan(self.stated_mbps) & (self.bandwidth_mbps > 0)
        if not stated.any():
            return math.nan
        error = self.stated_mbps[stated] / self.bandwidth_mbps[stated] - 1.0
        return float(100.0 * np.sqrt(np.mean(error * error)))


def draw(workload: Workload, config: Mapping[str, Any]) -> Communication:
    """Draw what the jobs of a workload communicate, from the parameters of a resolved configuration.

    Each number has a stream of its own, one value for each job, so that a job has the same bandwidth whatever is stated
    of it, and the same sign and share of the error at every size of it.
    """
    count = len(workload)
    seed, replicate = config["seed"], config["replicate"]

    def uniform(purpose: str) -> NDArray[np.float64]:
        return stream(seed, replicate, f"clusters/{purpose}").random(count)

    bandwidth = _bandwidths(uniform("bandwidth"), config)
    error = uniform("error")
    directions = {"both": 2.0 * error - 1.0, "under": -error, "over": error}
    stated = bandwidth * (1.0 + config["estimate_error_pct"] / 100.0 * directions[config["error_direction"]])
    silent = uniform("information") * 100.0 >= config["information_pct"]
    return Communication(
        communicate_s=config["communication_share"] * workload.run_s,
        bandwidth_mbps=bandwidth,
        stated_mbps=np.where(silent, np.nan, stated),
    )


def _bandwidths(u: NDArray[np.float64], config: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return bandwidths by their distribution, to 1 kbit/s, none above a node's link."""
    mean, spread = config["ppbw_mbps"], config["ppbw_spread_pct"] / 100.0
    if config["ppbw_distribution"] == "uniform":
        drawn = mean * (1.0 + spread * (2.0 * u - 1.0))
    elif config["ppbw_distribution"] == "exponential":
        drawn = -mean * np.log1p(-u)
    else:
        return np.full(len(u), min(mean, config["link_mbps"]))
    return np.minimum(np.rint(drawn * 1000.0) / 1000.0, config["link_mbps"])


def check(communication: Communication, workload: Workload, link_mbps: float) -> Communication:
    """Return what was given if it can be simulated, or raise InputError."""
    if not isinstance(communication, Communication):
        raise InputError(f"communication: expected a Communication, got {communication!r:.60}")
    rows = {name: np.asarray(getattr(communication, name), np.float64) for name in Communication.__annotations__}
    for name, values in rows.items():
        if values.shape != (len(workload),):
            raise InputError(
                f"communication: {name} has shape {values.shape}, expected one value per job, {len(workload)}"
            )
    share = (rows["communicate_s"] >= 0) & (rows["communicate_s"] <= workload.run_s)
    bandwidth = (rows["bandwidth_mbps"] >= 0) & (rows["bandwidth_mbps"] <= link_mbps)
    stated = np.isnan(rows["stated_mbps"]) | ((rows["stated_mbps"] >= 0) & np.isfinite(rows["stated_mbps"]))
    for name, valid, what in (
        ("communicate_s", share, "0 to its run time"),
        ("bandwidth_mbps", bandwidth, f"0 to link_mbps, {link_mbps:g}"),
        ("stated_mbps", stated, "0 or more, or NaN for nothing stated"),
    ):
        if not valid.all():
            job = int(np.flatnonzero(~valid)[0])
            raise InputError(
                f"communication: {name} of job {workload.job_id[job]} is {rows[name][job]:g} (valid: {what})"
            )
    return Communication(**rows)
