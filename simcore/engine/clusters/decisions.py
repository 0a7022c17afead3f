"""What the agent did and why: every activation, the trunk, the candidates, and the verdict on each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from faultsweep.simcore.engine.clusters import state as cs
from numpy.typing import NDArray

from faultsweep.files import write_csv

VERDICTS = {
    cs.NOT_SATURATED: "no trunk is saturated",
    cs.SATURATED_TRUNK: "saturated",
    cs.HONEST: "left: did not understate its bandwidth",
    cs.TOO_COSTLY: "left: overhead too long",
    cs.USELESS: "left: no waiting job could start with its nodes and not without",
    cs.NOWHERE_ELSE: "left: was taken before, and no cluster can hold it alone",
    cs.TAKEN_FIRST: "taken",
    cs.TAKEN_AGAIN: "taken again: no longer co-allocated",
}
COLUMNS = (
    "time_s",
    "activation",
    "trunk",
    "saturation",
    "job_id",
    "demand_mbps",
    "stated_mbps",
    "overhead_limit_s",
    "waiting_job_id",
    "verdict",
)


@dataclass(frozen=True)
class Decisions:
    """The agent's steps in order, as arrays of shape (rows,).

    Each look at the trunks is a row without a job (-1), followed by one for each candidate that was examined, largest
    subscriber of the most saturated trunk first, until one was taken.

    Attributes
    ----------
    time_s : float64.
    activation : int64, number of the activation, from 1.
    trunk : int64, the most saturated trunk, from 0; ``saturation`` (float64) is its demand over capacity.
    job_id : int64, the candidate; -1 where the row is about the trunk.
    demand_mbps, stated_mbps : float64, what it puts on the trunk, and what it states per processor; NaN if nothing.
    overhead_limit_s : float64, CP_frac x its remaining time: the overhead must be below.
    waiting_job_id : int64, the waiting job that could use its nodes; -1 if none was found or looked for.
    verdict : int64, a key of VERDICTS.
    """

    time_s: NDArray[np.float64]
    activation: NDArray[np.int64]
    trunk: NDArray[np.int64]
    saturation: NDArray[np.float64]
    job_id: NDArray[np.int64]
    demand_mbps: NDArray[np.float64]
    stated_mbps: NDArray[np.float64]
    overhead_limit_s: NDArray[np.float64]
    waiting_job_id: NDArray[np.int64]
    verdict: NDArray[np.int64]

    @staticmethod
    def of(rows: NDArray[np.float64], job_id: NDArray[np.int64]) -> Decisions:
        """Return the decisions that a run recorded, rows of shape (rows, 10), with the log's job numbers."""
        whole = rows[:, [1, 2, 4, 8, 9]].astype(np.int64)
        jobs = np.where(whole[:, 2:4] >= 0, job_id[np.maximum(whole[:, 2:4], 0)], -1)
        return Decisions(
            time_s=rows[:, 0],
            activation=whole[:, 0],
            trunk=whole[:, 1],
            saturation=rows[:, 3],
            job_id=jobs[:, 0],
            demand_mbps=rows[:, 5],
            stated_mbps=rows[:, 6],
            overhead_limit_s=rows[:, 7],
            waiting_job_id=jobs[:, 1],
            verdict=whole[:, 4],
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.time_s)

    def sentences(self) -> Iterator[str]:
        """Yield a line for every row."""
        for k in range(len(self)):
            verdict = VERDICTS[int(self.verdict[k])]
            if self.job_id[k] < 0:
                yield (
                    f"{self.time_s[k]:.3f} s, activation {self.activation[k]}: trunk {self.trunk[k]} at saturation "
                    f"{self.saturation[k]:.4g}, {verdict}"
                )
                continue
            stated = "nothing" if np.isnan(self.stated_mbps[k]) else f"{self.stated_mbps[k]:.4g} Mbit/s"
            use = f", for waiting job {self.waiting_job_id[k]}" if self.waiting_job_id[k] >= 0 else ""
            yield (
                f"    job {self.job_id[k]}: {self.demand_mbps[k]:.4g} Mbit/s on the trunk, stated {stated} per "
                f"processor, overhead must be below {self.overhead_limit_s[k]:.4g} s: {verdict}{use}"
            )

    def write_csv(self, path: str | Path) -> None:
        """Write the decisions as CSV; what a row does not have is empty."""
        rows = (
            [*(_text(getattr(self, name)[k]) for name in COLUMNS[:-1]), VERDICTS[self.verdict[k]]]
            for k in range(len(self))
        )
        write_csv(path, COLUMNS, rows)


def _text(value: np.float64 | np.int64) -> str:
    if isinstance(value, np.integer):
        return "" if value < 0 else str(value)
    return "" if np.isnan(value) else f"{value:.17g}"
