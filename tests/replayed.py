"""What the scheduler ``slurm`` makes of the jobs of a recording if its passes begin exactly when SLURM's did.

``python -m tests.replayed FILE ...`` prints of how many jobs the starts and nodes are the same. It must run without the
compiler (NUMBA_DISABLE_JIT=1), because it replaces the function that says when the next pass is.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
from faultsweep.simcore.policies.scheduling import slurm

from tests.recorded import Played, Recording, Ticks, placed, read

LATE_S = 0.1
BEYOND = np.arange(1.0, 1001.0)


def passes_began(recording: Recording) -> tuple[np.ndarray, np.ndarray]:
    """When the main, or full, and the backfilling passes of a recording began, in seconds since the first submission;
    before the first and after the last of them at regular times."""
    ticks, found = Ticks.of(recording), recording.noted.ticks
    assert ticks is not None
    main = found.get("full") or Ticks.regular(recording)
    steps = (ticks.main_interval_s, ticks.backfill_interval_s)
    before, after = ([step * BEYOND[:last] for step in steps] for last in (50, 1000))
    times = [np.array(times) for times in (main, found["backfill"])]
    parts = zip(before, times, after, strict=True)
    first, second = (np.concatenate([time[0] - early[::-1], time, time[-1] + late]) for early, time, late in parts)
    return first, second


@contextmanager
def beginning_as(recording: Recording) -> Iterator[None]:
    """Have the passes of runs begin when those of a recording did."""
    begin = recording.noted.calculated or recording.jobs[0].submit
    since = recording.jobs[0].submit - begin
    main, backfill = (np.round((times + since) * 1024) / 1024 for times in passes_began(recording))
    ticks = Ticks.of(recording)
    assert ticks is not None

    def next_one(time: float, first: float, interval: float) -> float:
        if interval > 1000.0:
            return np.inf
        times = main if interval == ticks.main_interval_s else backfill
        return float(times[np.searchsorted(times, time)])

    with mock.patch.object(slurm, "next_tick", next_one):
        yield


def elsewhere(folder: Path, recording: Recording) -> list[tuple[Played, float, tuple[int, ...]]]:
    """The jobs that ours starts at another time than SLURM, or on other nodes, with these."""
    with beginning_as(recording):
        mine = placed(folder, recording, seed=None)
    first, found = recording.jobs[0].submit, []
    for job in recording.jobs:
        start, nodes = mine[job.name]
        if abs(start - (job.start - first)) > LATE_S or set(nodes) != set(job.hosts):
            found.append((job, start, nodes))
    return found


def main(paths: list[Path]) -> None:
    """Print for each file how many jobs of how many of each run are started elsewhere."""
    with tempfile.TemporaryDirectory() as scratch:
        for path in paths:
            runs = read(path)
            counts = [len(elsewhere(Path(scratch), run)) for run in runs]
            print(path.stem, len(runs[0].jobs), *counts, flush=True)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
