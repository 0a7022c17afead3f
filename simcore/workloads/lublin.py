"""The workload model of Lublin and Feitelson, with its published constants.

U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
J. Parallel and Distributed Computing 63(11), 2003; constants as in the authors' program lublin99.c (Parallel Workloads
Archive). The model has no requested times: ours are those of the SDSC SP2 log.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.streams import stream
from faultsweep.simcore.workloads.requested import requested_times
from numpy.typing import NDArray

from faultsweep.errors import InputError
from faultsweep.extras import OptionalModule

special = OptionalModule("scipy.special", "the Lublin model of jobs")

NODES = 128
BUCKETS = 48  # half hours of a day
BUCKET_S = 1800
FIRST_BUCKET = 11  # the daily cycle's distribution function runs from half past five
LONGEST_LOG_RUN = 12.0  # run times are at most e^12 s, about two days
LONGEST_LOG_GAP = 13.0  # gaps at most e^13 s, about five days


@dataclass(frozen=True)
class Kind:
    """The constants of one kind of jobs, for a machine of 128 nodes.

    ``size_*`` are base-2 logarithms of sizes: uniform in [low, medium] with probability ``size_low_prob``, else in
    [medium, high]. Logarithms of run times are a mixture of two gamma distributions, the first with probability
    ``p_slope x size + p_intercept``; logarithms of gaps in the rush hours are gamma, and the arrivals over the day
    follow a gamma density over half hours. All gammas are (shape, scale).
    """

    serial_prob: float
    power_of_two_prob: float
    size_low: float
    size_medium: float
    size_high: float
    size_low_prob: float
    run_first: tuple[float, float]
    run_second: tuple[float, float]
    p_slope: float
    p_intercept: float
    gap: tuple[float, float]
    gap_shape_factor: float  # from the gaps of rush hours to those of all hours
    day: tuple[float, float]


KINDS: dict[str, Kind] = {
    "interactive": Kind(
        serial_prob=0.1541,
        power_of_two_prob=0.625,
        size_low=1,
        size_medium=3,
        size_high=5.5,
        size_low_prob=0.705,
        run_first=(3.8351, 0.6605),
        run_second=(7.073, 0.6856),
        p_slope=-0.0118,
        p_intercept=0.9156,
        gap=(6.5510, 0.6621),
        gap_shape_factor=0.9797,
        day=(8.9186, 3.6680),
    ),
    "batch": Kind(
        serial_prob=0.2927,
        power_of_two_prob=0.6686,
        size_low=1.2,
        size_medium=5,
        size_high=7,
        size_low_prob=0.875,
        run_first=(6.57, 0.823),
        run_second=(639.1, 0.0156),
        p_slope=-0.003,
        p_intercept=0.6986,
        gap=(6.0415, 0.8531),
        gap_shape_factor=1.0519,
        day=(6.1271, 5.2740),
    ),
    # one kind for all jobs, fitted to the logs as a whole
    "typeless": Kind(
        serial_prob=0.244,
        power_of_two_prob=0.576,
        size_low=0.8,
        size_medium=4.5,
        size_high=7,
        size_low_prob=0.86,
        run_first=(4.2, 0.94),
        run_second=(312, 0.03),
        p_slope=-0.0054,
        p_intercept=0.78,
        gap=(10.2303, 0.4871),
        gap_shape_factor=1.0225,
        day=(8.1737, 3.9631),
    ),
}


def generate(
    num_jobs: int,
    seed: int = 0,
    replicate: int = 0,
    *,
    nodes: int = NODES,
    kinds: tuple[str, ...] = ("interactive", "batch"),
) -> Workload:
    """Return ``num_jobs`` jobs of the model; all times in whole seconds, time 0 is midnight.

    Parameters
    ----------
    nodes : size of the machine, 8 or more; the logarithms of medium and high sizes move with it.
    kinds : names of KINDS whose arrivals are merged: interactive and batch, or typeless.
    """
    if nodes < 8:
        raise InputError(f"lublin: {nodes} nodes are too few for the model (valid: 8 or more)")
    parts = [_jobs(name, num_jobs, seed, replicate, nodes) for name in kinds]
    submit, size, run, u_requested = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(submit, kind="stable")[:num_jobs]
    return Workload(
        job_id=np.arange(1, num_jobs + 1),
        submit_s=submit[order],
        run_s=run[order],
        requested_s=requested_times(run[order], u_requested[order]),
        size=size[order].astype(np.int64),
        user=np.full(num_jobs, -1),
        name="lublin",
        nodes=nodes,
        header=(
            "; Computer: model of Lublin and Feitelson (JPDC 63(11), 2003)",
            "; Acknowledge: Uri Lublin and Dror Feitelson, Hebrew University",
            "; Note: requested times are modelled on the SDSC SP2 log",
        ),
        content_hash=_content_hash(nodes, kinds),
    )


def _content_hash(nodes: int, kinds: tuple[str, ...]) -> str:
    return "sha256:" + hashlib.sha256(repr((nodes, [KINDS[name] for name in kinds])).encode()).hexdigest()


def _jobs(name: str, num_jobs: int, seed: int, replicate: int, nodes: int) -> tuple[NDArray[np.float64], ...]:
    """Return submit times, sizes, run times and a uniform number of each job of one kind, each of shape (jobs,)."""
    kind = _for_machine(KINDS[name], nodes)
    u = stream(seed, replicate, f"{name} jobs of lublin").random((num_jobs, 7)).T
    size = np.minimum(_sizes(kind, *u[:3]), nodes)
    return _submits(kind, u[3]), size, _runs(kind, size, *u[4:6]), u[6]


def _for_machine(kind: Kind, nodes: int) -> Kind:
    """Move the medium and high sizes to a machine of another size, as the authors' program asks for."""
    shift = math.log2(nodes / NODES)
    medium = max(kind.size_medium + shift, kind.size_low)
    return replace(kind, size_medium=medium, size_high=max(kind.size_high + shift, medium))


def _sizes(
    kind: Kind, u: NDArray[np.float64], u_stage: NDArray[np.float64], u_within: NDArray[np.float64]
) -> NDArray[np.float64]:
    low, medium, high = kind.size_low, kind.size_medium, kind.size_high
    is_low = u_stage <= kind.size_low_prob
    exponent = np.where(is_low, low + u_within * (medium - low), medium + u_within * (high - medium))
    is_power = u <= kind.serial_prob + kind.power_of_two_prob
    exponent = np.where(is_power, np.floor(exponent + 0.5), exponent)
    return np.where(u <= kind.serial_prob, 1.0, np.floor(np.exp2(exponent) + 0.5))


def _runs(
    kind: Kind, size: NDArray[np.float64], u_gamma: NDArray[np.float64], u: NDArray[np.float64]
) -> NDArray[np.float64]:
    first = u_gamma <= np.clip(kind.p_slope * size + kind.p_intercept, 0, 1)
    log_run = np.where(first, _gamma(*kind.run_first, u, LONGEST_LOG_RUN), _gamma(*kind.run_second, u, LONGEST_LOG_RUN))
    return np.maximum(1.0, np.floor(np.exp(log_run)))


def _submits(kind: Kind, u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return submit times: gaps are paid in a time that runs by the number of arrivals in each half hour of the day."""
    shape, scale = kind.gap
    gaps = np.exp(_gamma(shape * kind.gap_shape_factor, scale, u, LONGEST_LOG_GAP))
    points = gaps.cumsum() / BUCKET_S
    paid = np.concatenate(([0.0], _day_weights(kind).cumsum()))
    clock = BUCKET_S * np.arange(BUCKETS + 1.0)
    days = np.floor(points / BUCKETS)
    return np.floor(days * clock[-1] + np.interp(points - days * BUCKETS, paid, clock))


def _day_weights(kind: Kind) -> NDArray[np.float64]:
    """Return the arrivals in each half hour from midnight on, shape (48,), mean 1."""

    shape, scale = kind.day
    edges = np.arange(FIRST_BUCKET, FIRST_BUCKET + BUCKETS + 1) - 0.5
    weights = np.roll(np.diff(special.gammainc(shape, edges / scale)), FIRST_BUCKET - 1)
    return weights * (BUCKETS / weights.sum())


def _gamma(shape: float, scale: float, u: NDArray[np.float64], longest: float) -> NDArray[np.float64]:
    """Invert the gamma distribution below ``longest``; the authors' program draws again above it."""

    return scale * special.gammaincinv(shape, u * special.gammainc(shape, longest / scale))
