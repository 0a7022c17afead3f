"""What large grids cost: processor time and memory against cells and workers, and whether faults change a bit.

    python -m benchmarks.grid                            # cells to 10^5, 1 to 32 workers, 1,000 simulated workers
    python -m benchmarks.grid cells --cells 1000000      # one part, to so many cells
    python -m benchmarks.grid --small                    # every part once, small: the test of this file

Simulations do nothing here: all that is measured is the sweep engine. Scheduler, workers and sweep are processes of
their own, as in a batch job, and talk TLS. Times are processor times, since a few processors stand for many: what the
sweep's process and the scheduler take of theirs for a cell bounds how many cells a second any number of workers can do.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import xarray as xr
from faultsweep.cluster.settings import SCHEDULER
from faultsweep.sweeps.runner.progress import PROGRESS
from faultsweep.sweeps.runner.watch import SweepStoppedError
from faultsweep.sweeps.store.store import run_folder
from faultsweep.sweeps.sweep import Sweep

from benchmarks.sweep_overhead import RESULTS, Figures, axis, circumstances, folder
from faultsweep.files import read_fields

METRICS = 4
SIMULATED_WORKERS = 1000
_NAMES = [f"m{number}" for number in range(METRICS)]


def nothing(a: float, b: float, c: float) -> dict[str, float]:
    """Return a few numbers at once."""
    return {name: a + number * b - c for number, name in enumerate(_NAMES)}


def sweep_of(cells: int) -> Sweep:
    """Return a sweep of about so many cells that do nothing."""
    side = max(2, round(cells ** (1 / 3)))
    lengths = (side, side, max(1, round(cells / side**2)))
    axes = {name: axis(length) for name, length in zip("abc", lengths, strict=True)}
    return Sweep(axes=axes, function=nothing, outputs=_NAMES)


def expected(sweep: Sweep) -> dict[str, np.ndarray]:
    """Return what the store has to hold, to the bit."""
    a, b, c = np.meshgrid(*(np.array(one.labels, dtype=float) for one in sweep.spec.axes[:3]), indexing="ij")
    return {name: a + number * b - c for number, name in enumerate(_NAMES)}


def is_right(store: Path, sweep: Sweep) -> bool:
    """Tell whether every result in a store is what the function gives, to the bit."""
    results = xr.open_zarr(store)
    given = all(np.array_equal(results[name].values[..., 0], values) for name, values in expected(sweep).items())
    return given and bool((results.status == 1).all())


def digest(store: Path) -> str:
    """Return a hash of all results of a store."""
    results = xr.open_zarr(store)
    content = b"".join(np.ascontiguousarray(results[name].values).tobytes() for name in (*_NAMES, "status"))
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@contextmanager
def cluster(place: Path, workers: int) -> Iterator[tuple[Path, psutil.Process, psutil.Process]]:
    """Start a scheduler and the workers of a node, as a batch job does; yields its file and the two processes."""
    place.mkdir(mode=0o700)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    module = [sys.executable, "-P", "-m"]
    with contextlib.ExitStack() as stack:
        processes = []
        for name, more in (("scheduler", ()), ("nannies", (str(workers),))):
            command = [*module, f"faultsweep.cluster.{name}", str(place), *more, "--interface", "lo"]
            process = subprocess.Popen(command, **quiet)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            processes.append(psutil.Process(process.pid))
        while not (place / SCHEDULER).exists():
            time.sleep(0.05)
        scheduler, nannies = processes
        while len(_forked(nannies)) < workers:
            time.sleep(0.1)
        yield place / SCHEDULER, scheduler, nannies


def _forked(nannies: psutil.Process) -> list[psutil.Process]:
    """Return the workers of a node, which are forked from a child of its nannies."""
    return [process for process in nannies.children(recursive=True) if process.ppid() != nannies.pid]


def _spent_s(process: psutil.Process, recursive: bool = False) -> float:
    found = [process, *(process.children(recursive=True) if recursive else ())]
    return sum(sum(one.cpu_times()[:2]) for one in found)


def _peak_bytes(process: psutil.Process) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def run(cells: int, workers: int) -> Figures:
    """Run so many cells on so many real workers, in a process of its own; returns what each cell took."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as base:
        place, sweep = Path(base), sweep_of(cells)
        store = place / "s.zarr"
        with cluster(place / "cluster", workers) as (file, scheduler, nannies):
            before = [time.process_time(), _spent_s(scheduler), _spent_s(nannies, recursive=True), time.perf_counter()]
            sweep.run(store, cluster=str(file), progress=False)
            after = [time.process_time(), _spent_s(scheduler), _spent_s(nannies, recursive=True), time.perf_counter()]
            peaks = [1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, _peak_bytes(scheduler)]
        size = np.prod([len(one) for one in sweep.spec.axes])
        spent = [(late - early) for early, late in zip(before, after, strict=True)]
        plan = sweep.plan(place / "other.zarr", workers=workers, measure=False)
        return {
            "cells": int(size),
            "workers": workers,
            "sweep, us of processor a cell": 1e6 * spent[0] / size,
            "scheduler, us of processor a cell": 1e6 * spent[1] / size,
            "workers, us of processor a cell": 1e6 * spent[2] / size,
            "wall, s": spent[3],
            "sweep, MB": peaks[0] / 1e6,
            "scheduler, MB": peaks[1] / 1e6,
            "plan says of both, MB": plan.controller_bytes / 1e6,
            "bytes of store a cell": sum(one.stat().st_size for one in store.rglob("*") if one.is_file()) / size,
            "right to the bit": str(is_right(store, sweep)),
        }


def cells(most: int) -> list[Figures]:
    """Measure the cost of a cell against the number of cells, on two workers."""
    return [_fresh("run", number, 2) for number in (10**4, 10**5, 10**6, 10**7) if number <= most]


def workers(most: int) -> list[Figures]:
    """Measure the cost of a cell against the number of real worker processes."""
    return [_fresh("run", min(most, 10**5), number) for number in (1, 2, 4, 8, 16, 32)]


def simulated(most: int) -> list[Figures]:
    """Measure 1,000 simulated workers, with and without faults; a sweep with faults is resumed twice."""
    return [_fresh("run_simulated", min(most, 10**5), SIMULATED_WORKERS)]


def run_simulated(cells: int, workers: int) -> Figures:
    """Run cells on simulated workers: undisturbed, and with deaths, full disks and a loss of the scheduler."""
    import pytest

    from tests.sweeps import simulated as simulation
    from tests.sweeps.simulated import Cluster, Fault
    from tests.sweeps.simulated import simulated as on_simulated

    sweep = sweep_of(cells)
    with folder() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "TASK_S", simulation.TASK_S / workers)  # its clock counts one task after the other
        before = time.process_time()
        with on_simulated(patch, calm := Cluster(workers=workers)):
            sweep.run(place / "calm.zarr", progress=False)
        spent, points = time.process_time() - before, len(calm.points)
        deaths = [Fault("death", points * part // 20) for part in range(1, 8)]
        lives = ([*deaths, Fault("scheduler", points // 3)], [*deaths, Fault("ENOSPC", points // 4, lasting=True)], [])
        stops = 0
        for faults in lives:
            with on_simulated(patch, Cluster(faults, workers=workers)):
                try:
                    sweep.run(place / "s.zarr", progress=False)
                except SweepStoppedError:
                    stops += 1
        same = digest(place / "s.zarr") == digest(place / "calm.zarr")
        return {
            "cells": int(np.prod([len(one) for one in sweep.spec.axes])),
            "simulated workers": workers,
            "sweep and workers, us of processor a cell": 1e6 * spent / cells,
            "stops with faults": stops,
            "the same to the bit": str(same and is_right(place / "s.zarr", sweep)),
        }


def killed(most: int) -> list[Figures]:
    """Kill a sweep and a worker with signal 9, twice, at a third and at two thirds; the sweep is resumed twice."""
    return [_fresh("run_killed", min(most, 10**6), 8)]


def run_killed(cells: int, workers: int) -> Figures:
    """Run cells on real workers in three lives of the sweep, of which two are killed; returns what was left beside."""
    sweep = sweep_of(cells)
    journals, sizes = 0, []
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as base:
        store = Path(base) / "s.zarr"
        with cluster(Path(base) / "cluster", workers) as (file, _, nannies):
            for share in (1 / 3, 2 / 3, 1):
                command = [sys.executable, "-m", "benchmarks.grid", "--into", str(store), str(cells), str(file)]
                life = subprocess.Popen(command)
                while life.poll() is None and (share == 1 or _done(store) < share * cells):
                    time.sleep(0.05)
                if life.poll() is None:
                    _forked(nannies)[-1].kill()
                    life.kill()
                    left = [path.stat().st_size for path in (run_folder(store) / "journals").iterdir()]
                    journals, sizes = max(journals, len(left)), [*sizes, sum(left)]
                life.wait()
        return {
            "cells": int(np.prod([len(one) for one in sweep.spec.axes])),
            "workers": workers,
            "kills of the sweep": len(sizes),
            "journals at a kill, files": journals,
            "journals at a kill, MB": max(sizes, default=0) / 1e6,
            "right to the bit": str(is_right(store, sweep)),
        }


def _done(store: Path) -> int:
    progress = read_fields(run_folder(store) / PROGRESS, {"done": int})
    return int(progress["done"]) if progress else 0


def _fresh(name: str, cells: int, workers: int) -> Figures:
    """Measure in a process of its own: its memory and its processor time are its own.

    There this module is the main one, whose functions travel to the workers by value: they cannot import it.
    """
    command = [sys.executable, "-m", "benchmarks.grid", "--measure", name, str(cells), str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    print("   " + ", ".join(f"{key} {_short(value)}" for key, value in figures.items()), flush=True)
    return figures


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.4g}"


PARTS = {"cells": cells, "workers": workers, "killed": killed, "simulated": simulated}
MEASURED = {"run": run, "run_killed": run_killed, "run_simulated": run_simulated}


def draw(figures: dict[str, list[Figures]], path: Path) -> None:
    """Draw the cost of a cell against cells and workers, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for panel, part in zip(panels, ("cells", "workers"), strict=True):
        rows = figures.get(part, [])
        for who, marker in (("sweep", "o"), ("scheduler", "s"), ("workers", "^")):
            key = f"{who}, us of processor a cell"
            panel.plot([row[part] for row in rows], [row[key] for row in rows], marker=marker, label=who)
        panel.set(xscale="log", yscale="log", xlabel=part)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("processor time of a cell (µs)")
    panels[0].legend()
    figure.savefig(path)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> dict[str, list[Figures]]:
    """Measure, print, and write figures and curves into benchmarks/results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--cells", type=int, default=10**5, help="the largest grid")
    parser.add_argument("--small", action="store_true", help="one small measurement of each part, nothing written")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--into", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        name, number, at = options.measure
        print(json.dumps(MEASURED[name](int(number), int(at))))
        return {}
    if options.into:
        store, number, file = options.into
        sweep_of(int(number)).run(store, cluster=file, progress=False)
        return {}
    if options.small:
        small = {"run": (1000, 2), "run_killed": (3000, 2), "run_simulated": (3000, 50)}
        return {name.removeprefix("run_"): [_fresh(name, *sizes)] for name, sizes in small.items()}
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "grid.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    for part in options.parts or PARTS:
        print(str(PARTS[part].__doc__).splitlines()[0], flush=True)
        known |= {part: PARTS[part](options.cells), f"{part}: circumstances": circumstances()}
        file.write_text(json.dumps(known, indent=1) + "\n")
    draw(known, options.output / "grid.png")
    return known


if __name__ == "__main__":
    main()
