"""What the sweep engine costs beside the simulations: per configuration, at a million cells, and against two peers.

    python -m benchmarks.sweep_overhead                 # everything, about five minutes on two calm cores
    python -m benchmarks.sweep_overhead short open      # some parts
    python -m benchmarks.sweep_overhead --small         # every part once, small: the test of this file

xyzpy and pipefunc are measured on the same work where they are installed (``pip install xyzpy pipefunc``). All write
everything to disk. Times are wall times; "short" includes the start of the workers. Two plain processes that do the
work and write nothing are timed before and after each measurement of work: what other programs take of the processors
at the time, they take of these, too.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import xarray as xr
from faultsweep.analysis.open import open_results
from faultsweep.cluster.connect import connect
from faultsweep.sweeps.journal import JournalWriter
from faultsweep.sweeps.prepare import prepare
from faultsweep.sweeps.sweep import Sweep

TARGETS = {
    "short": {"faultsweep, nothing, ms per configuration": 0.3, "faultsweep over plain processes, 1 ms, ms each": 0.3},
    "efficiency": {"efficiency": 0.95},
    "million": {"s": 120.0, "scheduler and client, MB": 600.0},
    "open": {
        "open and read a slice, s": 0.3,
        "open_results and read a slice, s": 0.3,
        "decide what is missing, s": 5.0,
    },
}
"""What the figures must reach: an efficiency at least, all others at most."""
RESULTS = Path(__file__).resolve().parent / "results"
METRICS = [f"m{i:02d}" for i in range(30)]
WORKERS = 2
LONG_S = 0.05

Figures = dict[str, float | str]


def nothing(a: float, b: float, c: float = 0.0) -> dict[str, float]:
    """Return thirty numbers at once."""
    return dict.fromkeys(METRICS, a + b + c)


def millisecond(a: float, b: float, c: float = 0.0) -> dict[str, float]:
    """Return thirty numbers after a millisecond of work."""
    work(0.001)
    return dict.fromkeys(METRICS, a + b + c)


def noop(a: float, b: float, c: float) -> float:
    """Return one number at once."""
    return a


def work(seconds: float) -> int:
    """Keep one processor busy for so much processor time (not wall time: other processes do not shorten it)."""
    end, rounds = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        rounds += 1
    return rounds


def long_run(i: float) -> float:
    """Return a number after 50 ms of work."""
    work(LONG_S)
    return i


def axis(length: int) -> list[float]:
    """Return the values 0.0, 1.0, ... of an axis."""
    return [float(i) for i in range(length)]


@contextmanager
def folder() -> Iterator[Path]:
    """Give a temporary folder beside the working directory, where disks are real."""
    path = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR"), prefix="sweep-overhead-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def seconds_of(action: Callable[[], Any]) -> float:
    """Return the wall time of a call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def short(small: bool) -> Figures:
    """Measure 20,000 short configurations of thirty metrics on two workers: ours, xyzpy, pipefunc."""
    a, b = (10, 8) if small else (200, 100)
    figures: Figures = {"configurations": a * b}
    for name, function in (("nothing", nothing), ("1 ms", millisecond)):
        for peer, measure in PEERS.items():
            with folder() as path:
                try:
                    took = measure(function, a, b, path)
                except ImportError:
                    figures[f"{peer}, {name}"] = "not installed"
                    continue
                figures[f"{peer}, {name}, ms per configuration"] = 1000 * took / (a * b)
    with folder() as path, connect("local", WORKERS) as client:
        took = _ours(nothing, a, b, path, cluster=client)
        figures["faultsweep, nothing, on workers that are there, ms each"] = 1000 * took / (a * b)
    ours, plain = (figures[f"{way}, 1 ms, ms per configuration"] for way in ("faultsweep", "plain processes"))
    figures["faultsweep over plain processes, 1 ms, ms each"] = float(ours) - float(plain)
    return figures


def _ours(function: Callable[..., Any], a: int, b: int, path: Path, cluster: Any = "local") -> float:
    sweep = Sweep(axes={"a": axis(a), "b": axis(b)}, function=function, outputs=METRICS)
    took = seconds_of(lambda: sweep.run(path / "s.zarr", workers=WORKERS, cluster=cluster, progress=False))
    results = xr.open_zarr(path / "s.zarr")
    assert (results.status == 1).all()
    assert np.array_equal(results.m29.values[:, :, 0], np.add.outer(axis(a), axis(b)))
    return took


def _xyzpy(function: Callable[..., Any], a: int, b: int, path: Path) -> float:
    import xyzpy

    names = [f"{name}" for name in METRICS]
    runner = xyzpy.Runner(lambda a, b: tuple(function(a, b).values()), var_names=names)
    harvester = xyzpy.Harvester(runner, data_name=str(path / "s.zarr"), engine="zarr")
    combos = {"a": axis(a), "b": axis(b)}
    return seconds_of(lambda: harvester.harvest_combos(combos, parallel=True, num_workers=WORKERS, verbosity=0))


def _pipefunc(function: Callable[..., Any], a: int, b: int, path: Path) -> float:
    from concurrent.futures import ProcessPoolExecutor

    from pipefunc import Pipeline, pipefunc

    @pipefunc(output_name="y", mapspec="a[i], b[j] -> y[i, j]")
    def y(a: float, b: float) -> Any:
        return function(a, b)

    pipeline = Pipeline([y])
    inputs = {"a": axis(a), "b": axis(b)}
    options = {"storage": "file_array", "show_progress": False, "chunksizes": 200}
    with ProcessPoolExecutor(WORKERS) as pool:
        return seconds_of(lambda: pipeline.map(inputs, run_folder=path / "run", executor=pool, **options))


def _plain(function: Callable[..., Any], a: int, b: int, path: Path) -> float:
    return plain_processes(function, a * b, 2)


PEERS = {"faultsweep": _ours, "xyzpy": _xyzpy, "pipefunc": _pipefunc, "plain processes": _plain}


def plain_processes(function: Callable[..., Any], number: int, arguments: int) -> float:
    """Return the time in which two processes, started before, do so many calls and nothing else."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(WORKERS + 1)
    loop = (barrier, function, number // WORKERS, arguments)
    processes = [context.Process(target=_plain_loop, args=loop) for _ in range(WORKERS)]
    for process in processes:
        process.start()
    barrier.wait()
    start = time.perf_counter()
    for process in processes:
        process.join()
    return time.perf_counter() - start


def _plain_loop(barrier: Any, function: Callable[..., Any], number: int, arguments: int) -> None:
    function(*[0.0] * arguments)
    barrier.wait()
    for i in range(number):
        function(*[float(i)] * arguments)


def efficiency(small: bool) -> Figures:
    """Measure 2,000 runs of 50 ms on two workers against two plain processes; start-up is excluded in both."""
    number = 40 if small else 2_000
    process = psutil.Process()
    before = plain_processes(long_run, number // 2, 1)
    with folder() as path, connect("local", WORKERS) as client:
        sweep = Sweep(axes={"i": axis(number)}, function=long_run, outputs=["y"])
        used = _processor_s(process)
        ours = seconds_of(lambda: sweep.run(path / "s.zarr", cluster=client, progress=False))
        used = _processor_s(process) - used
    plain = before + plain_processes(long_run, number // 2, 1)
    return {
        "runs": number,
        "faultsweep, s": ours,
        "two plain processes, s": plain,
        "efficiency": plain / ours,
        "share of the processor time that is work": number * LONG_S / used,
    }


def _processor_s(process: psutil.Process) -> float:
    """Return the processor time of a process and its children so far."""
    return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))


def million(small: bool) -> Figures:
    """Measure 10^6 configurations that do nothing, with the memory of the process of scheduler and client."""
    with folder() as path:
        return _fill(path, 10 if small else 100)


def _fill(path: Path, side: int) -> Figures:
    peak, stop = [0], threading.Event()
    process = psutil.Process()

    def watch() -> None:
        while not stop.wait(0.1):
            peak[0] = max(peak[0], process.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    sweep = _cube(side)
    took = seconds_of(lambda: sweep.run(path / "s.zarr", workers=WORKERS, progress=False))
    stop.set()
    thread.join()
    return {"configurations": side**3, "s": took, "scheduler and client, MB": peak[0] / 1e6}


def _cube(side: int) -> Sweep:
    return Sweep(axes={"a": axis(side), "b": axis(side), "c": axis(side)}, function=noop, outputs=["y"])


def opening(small: bool) -> Figures:
    """Measure, on a store of 10^6 cells and 10 axes: opening it and reading a slice, and deciding what is missing."""
    lengths = [2] * 6 if small else [4] * 10
    names = "abcdefghij"[: len(lengths)]
    with folder() as path:
        settings = {"axes": {name: axis(n) for name, n in zip(names, lengths, strict=True)}, "outputs": METRICS}
        function = _ten if len(lengths) == 10 else _six
        sweep = Sweep(function=function, **settings)
        fill = seconds_of(lambda: sweep.run(path / "s.zarr", workers=WORKERS, progress=False))

        def look() -> None:
            results = xr.open_zarr(path / "s.zarr", chunks=None)
            at = dict.fromkeys((*names[2:], "replicate"), 1) | {"replicate": 0}
            assert results.m07.isel(at).values.shape == (lengths[0], lengths[1])

        look()
        opened = sorted(seconds_of(look) for _ in range(9))[4]

        def look_with_ours() -> None:
            at = dict.fromkeys((*names[2:], "replicate"), 1) | {"replicate": 0}
            assert open_results(path / "s.zarr").m07.isel(at).values.shape == (lengths[0], lengths[1])

        look_with_ours()
        opened_ours = sorted(seconds_of(look_with_ours) for _ in range(9))[4]
        decided = seconds_of(lambda: prepare(sweep.spec, path / "s.zarr"))
        files = sum(1 for file in path.rglob("*") if file.is_file())
        replay = _resume_from_journals(sweep, path)
    cells = int(np.prod(lengths))
    return {
        "cells": cells,
        "filling, s": fill,
        "files": files,
        "open and read a slice, s": opened,
        "open_results and read a slice, s": opened_ours,
        "decide what is missing, s": decided,
        "resume from journals of all cells, s": replay,
    }


def _ten(a=0, b=0, c=0, d=0, e=0, f=0, g=0, h=0, i=0, j=0):
    return dict.fromkeys(METRICS, a + j)


def _six(a=0, b=0, c=0, d=0, e=0, f=0):
    return dict.fromkeys(METRICS, a + f)


def _resume_from_journals(sweep: Sweep, path: Path) -> float:
    """Return the time in which a new store takes all its results from a journal, as after a kill at the end."""
    prepared = prepare(sweep.spec, path / "other.zarr")
    journals = path / "other.zarr.run" / "journals"
    journals.mkdir(parents=True)
    writer = JournalWriter(journals / "a.journal", METRICS)
    values = [1.0] * len(METRICS)
    for key in prepared.keys.T.tolist():
        writer.write((key[0], key[1]), 1, 0.0, values)
    writer.close()
    return seconds_of(lambda: sweep.run(path / "other.zarr", workers=WORKERS, progress=False))


def print_figures(figures: Figures, targets: Mapping[str, float]) -> None:
    """Print figures with their targets beside them."""
    for name, value in figures.items():
        text = value if isinstance(value, str) else f"{value:,.4g}"
        if name in targets:
            least = name == "efficiency"
            reached = float(value) >= targets[name] if least else float(value) <= targets[name]
            text = f"{text:12} target {'>=' if least else '<='} {targets[name]:g}: {'reached' if reached else 'MISSED'}"
        print(f"    {name:58} {text}", flush=True)


PARTS = {"short": short, "efficiency": efficiency, "million": million, "open": opening}


def main(arguments: list[str] | None = None) -> dict[str, Figures]:
    """Measure, print, and write the figures into benchmarks/results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--small", action="store_true", help="small numbers, nothing written")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    all_figures = {}
    for part in options.parts or PARTS:
        all_figures[part] = figures = PARTS[part](options.small)
        print(PARTS[part].__doc__)
        print_figures(figures, TARGETS[part])
    if not options.small:
        options.output.mkdir(parents=True, exist_ok=True)
        file = options.output / "sweep_overhead.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**known, **all_figures}, indent=1) + "\n")
    return all_figures


if __name__ == "__main__":
    main()
