"""What the sweep engine costs beside the simulations: per configuration, at a million cells, and against two peers.

    python -m benchmarks.sweep_overhead                 # everything, about ten minutes on two calm cores
    python -m benchmarks.sweep_overhead short open      # some parts
    python -m benchmarks.sweep_overhead --small         # every part once, small: the test of this file

xyzpy and pipefunc are measured on the same work, in the same run, where they are installed (``pip install xyzpy
pipefunc``). All leave a labelled dataset on disk. Times are wall times; "short" includes the start of the workers, of
all ways to sweep, and has rounds in which each has its turn: medians. Two plain processes that do the work and write
nothing are timed as well: in "efficiency" before and after each of the others, since what other programs take of the
processors at the time, they take of these, too; in "short" in each round. Every part says when it was measured, and how
busy the machine was. The exit code is 1 if a target was missed.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import xarray as xr
from faultsweep.cluster.connect import connect
from faultsweep.simcore import simulate as simulating
from faultsweep.simcore.engine.loop import advance
from faultsweep.simcore.engine.steps import Meter
from faultsweep.sweeps.open import open_results
from faultsweep.sweeps.runner.prepare import attributes, prepare
from faultsweep.sweeps.store.journal import JournalWriter
from faultsweep.sweeps.store.replay import open_run
from faultsweep.sweeps.store.store import create, run_folder
from faultsweep.sweeps.sweep import Sweep

TARGETS = {
    "short": {"faultsweep, nothing, ms per configuration": 0.3, "faultsweep over plain processes, 1 ms, ms each": 0.3},
    "efficiency": {"efficiency": 0.95},
    "simulations": {"ms of processor time a simulation": 8.0, "share of the compiled loop": 0.5},
    "million": {"s": 120.0, "scheduler and client, MB": 600.0},
    "open": {
        "open and read a slice, s": 0.3,
        "open_results and read a slice, s": 0.3,
        "decide what is missing, s": 5.0,
    },
}
"""What the figures must reach: those of LEAST at least, all others at most."""
LEAST = ("efficiency", "share of the compiled loop")
RESULTS = Path(__file__).resolve().parent / "results"
METRICS = [f"m{i:02d}" for i in range(30)]
WORKERS = 2
ROUNDS = 3
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
        rounds = [
            [_try(measure, function, {"a": axis(a), "b": axis(b)}, METRICS) for measure in PEERS.values()]
            for _ in range(1 if small else ROUNDS)
        ]
        for peer, taken in zip(PEERS, zip(*rounds, strict=True), strict=True):
            each = [1000 * took / (a * b) for took in taken if not isinstance(took, str)]
            figures[f"{peer}, {name}, ms per configuration"] = float(np.median(each)) if each else taken[0]
            if each:
                figures[f"{peer}, {name}, least to most"] = f"{min(each):.3f} to {max(each):.3f}"
    with folder() as path, connect("local", WORKERS) as client:
        took = _ours(nothing, {"a": axis(a), "b": axis(b)}, METRICS, path, cluster=client)
        figures["faultsweep, nothing, on workers that are there, ms each"] = 1000 * took / (a * b)
    ours, plain = (figures[f"{way}, 1 ms, ms per configuration"] for way in ("faultsweep", "plain processes"))
    figures["faultsweep over plain processes, 1 ms, ms each"] = float(ours) - float(plain)
    return figures


Axes = Mapping[str, list[float]]


def _try(measure: Callable[..., float], function: Callable[..., Any], axes: Axes, outputs: list[str]) -> float | str:
    """Return what a way to sweep takes for some work, in a folder of its own; words where it is not installed."""
    with folder() as path:
        try:
            return measure(function, axes, outputs, path)
        except ImportError:
            return "not installed"


def _ours(
    function: Callable[..., Any], axes: Axes, outputs: list[str], path: Path, cluster: Any = "local", check: bool = True
) -> float:
    sweep = Sweep(axes=axes, function=function, outputs=outputs)
    took = seconds_of(lambda: sweep.run(path / "s.zarr", workers=WORKERS, cluster=cluster, progress=False))
    results = xr.open_zarr(path / "s.zarr")
    assert (results.status == 1).all()
    if len(axes) == 2:
        assert np.array_equal(results[outputs[-1]].values[:, :, 0], np.add.outer(*axes.values()))
    return took


def _xyzpy(function: Callable[..., Any], axes: Axes, outputs: list[str], path: Path) -> float:
    import xyzpy

    def numbers(**config: float) -> Any:
        result = function(**config)
        return tuple(result.values()) if isinstance(result, dict) else result

    harvester = xyzpy.Harvester(
        xyzpy.Runner(numbers, var_names=outputs if len(outputs) > 1 else outputs[0]),
        data_name=str(path / "s.zarr"),
        engine="zarr",
    )
    return seconds_of(lambda: harvester.harvest_combos(dict(axes), parallel=True, num_workers=WORKERS, verbosity=0))


def _pipefunc(function: Callable[..., Any], axes: Axes, outputs: list[str], path: Path) -> float:
    from pipefunc import PipeFunc, Pipeline

    names = list(axes)
    specification = f"{', '.join(f'{name}[{name}_]' for name in names)} -> y[{', '.join(f'{name}_' for name in names)}]"
    pipeline = Pipeline([PipeFunc(function, output_name="y", mapspec=specification)])
    number = math.prod(map(len, axes.values()))
    chunk = max(1, min(200, number // (8 * WORKERS)))
    options = {"storage": "file_array", "show_progress": False, "chunksizes": chunk}

    def run() -> None:
        with ProcessPoolExecutor(WORKERS) as pool:
            found = pipeline.map(dict(axes), run_folder=path / "run", executor=pool, **options)["y"].output
        rows = [row if isinstance(row, dict) else {outputs[0]: row} for row in np.asarray(found).ravel()]
        shape = tuple(map(len, axes.values()))
        table = {name: (tuple(axes), np.array([row[name] for row in rows]).reshape(shape)) for name in outputs}
        xr.Dataset(table, dict(axes)).to_zarr(path / "s.zarr")

    return seconds_of(run)


def _plain(function: Callable[..., Any], axes: Axes, outputs: list[str], path: Path) -> float:
    return plain_processes(function, math.prod(map(len, axes.values())), len(axes))


OTHERS = {"xyzpy": _xyzpy, "pipefunc": _pipefunc}
PEERS = {"faultsweep": _ours, **OTHERS, "plain processes": _plain}


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
    after = plain_processes(long_run, number // 2, 1)
    plain = before + after
    figures: Figures = {
        "runs": number,
        "faultsweep, s": ours,
        "two plain processes, s": plain,
        "efficiency": plain / ours,
        "share of the processor time that is work": number * LONG_S / used,
    }
    for peer, measure in OTHERS.items():
        before, took = after, _try(measure, long_run, {"i": axis(number)}, ["y"])
        after = plain_processes(long_run, number // 2, 1)
        figures[f"{peer}, efficiency"] = took if isinstance(took, str) else (before + after) / took
    return figures


def simulations(small: bool) -> Figures:
    """Measure 1,000 simulations of 10,000 jobs (FCFS and EASY, Weibull failures) on two workers that are running.

    The workers add up what the loop takes in these very simulations.
    """
    number = 20 if small else 500
    fixed = {"log": "sdsc-model", "num_jobs": 500 if small else 10_000, "machine": "flat:128", "failures": "weibull"}
    schedulers = ["fcfs", "backfill"]
    process = psutil.Process()
    with folder() as path, connect("local", WORKERS) as client:
        taken, loops = [], []
        client.run(_time_loop)
        for name, count in (("warm", 4), ("measured", number)):
            scales_s = np.linspace(18_000.0, 36_000.0, count).tolist()
            sweep = Sweep(fixed=fixed, axes={"scheduler": schedulers, "weibull_scale_s": scales_s})
            before = _processor_s(process)
            sweep.run(path / name, cluster=client, progress=False)
            taken.append(_processor_s(process) - before)
            loops.append(sum(client.run(_loop_s).values()))
    each, loop = taken[1] / (2 * number), (loops[1] - loops[0]) / (2 * number)
    return {
        "simulations": 2 * number,
        "ms of processor time a simulation": 1e3 * each,
        "of it the compiled loop, ms": 1e3 * loop,
        "share of the compiled loop": loop / each,
    }


_LOOP = Meter(advance)
"""The compiled loop, with the processor time that it has taken in this process."""


def _time_loop() -> None:
    simulating.advance = _LOOP


def _loop_s() -> float:
    return _LOOP.taken_s


def _processor_s(process: psutil.Process) -> float:
    """Return the processor time of a process and its children so far."""
    return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))


def million(small: bool) -> Figures:
    """Measure 10^6 configurations that do nothing, with the memory of the process of scheduler and client.

    The peers get a tenth of them.
    """
    figures: Figures = {}
    side = 10 if small else 100
    tenth = [*_cube_axes(side).values()]
    tenth = {"a": tenth[0][: side // 10], "b": tenth[1], "c": tenth[2]}
    for name, measure, axes in [
        ("faultsweep", _ours, _cube_axes(side)),
        *((peer, measure, tenth) for peer, measure in OTHERS.items()),
    ]:
        with _peak() as peak:
            took = _try(measure, noop, axes, ["y"])
        number = math.prod(map(len, axes.values()))
        if name == "faultsweep":
            figures |= {"configurations": number, "s": took, "scheduler and client, MB": peak[0] / 1e6}
        else:
            figures[f"{name}, {number:,} configurations, s"] = took
    return figures


@contextmanager
def _peak() -> Iterator[list[int]]:
    """Give the largest memory of this process, in bytes, that was seen meanwhile."""
    peak, stop = [0], threading.Event()
    process = psutil.Process()

    def watch() -> None:
        while not stop.wait(0.1):
            peak[0] = max(peak[0], process.memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def _cube_axes(side: int) -> dict[str, list[float]]:
    return {"a": axis(side), "b": axis(side), "c": axis(side)}


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
        peers = _open_with_xyzpy(settings["axes"], path)
    cells = int(np.prod(lengths))
    return {
        "cells": cells,
        "filling, s": fill,
        "files": files,
        "open and read a slice, s": opened,
        "open_results and read a slice, s": opened_ours,
        "decide what is missing, s": decided,
        "resume from journals of all cells, s": replay,
        **peers,
        "pipefunc": "a file per configuration: not tried with so many",
    }


def _open_with_xyzpy(axes: Mapping[str, list[float]], path: Path) -> Figures:
    """Measure xyzpy on a file of its own with the same numbers, written at once (running them would take minutes)."""
    try:
        import xyzpy
    except ImportError:
        return {"xyzpy": "not installed"}
    shape = tuple(map(len, axes.values()))
    data = xr.Dataset({name: (tuple(axes), np.ones(shape)) for name in METRICS}, dict(axes))
    file = str(path / "xyzpy.zarr")
    fill = seconds_of(lambda: xyzpy.save_ds(data, file, engine="zarr"))
    at = dict.fromkeys([*axes][2:], 1)
    look = seconds_of(lambda: xyzpy.load_ds(file, engine="zarr")["m07"].isel(at).values)
    missing = seconds_of(lambda: xyzpy.find_missing_cases(xyzpy.load_ds(file, engine="zarr")))
    return {
        "xyzpy, writing without running, s": fill,
        "xyzpy, open and read a slice, s": look,
        "xyzpy, decide what is missing, s": missing,
    }


def _ten(a=0, b=0, c=0, d=0, e=0, f=0, g=0, h=0, i=0, j=0):
    return dict.fromkeys(METRICS, a + j)


def _six(a=0, b=0, c=0, d=0, e=0, f=0):
    return dict.fromkeys(METRICS, a + f)


def _resume_from_journals(sweep: Sweep, path: Path) -> float:
    """Return the time in which a store takes all its results from a journal, as after a kill at the end."""
    store = path / "other.zarr"
    prepared = prepare(sweep.spec, store)
    folder = run_folder(store)
    (folder / "journals").mkdir(parents=True)
    text = {"provenance": "[]", "open_runs": json.dumps([open_run("killed", folder)])}
    create(store, prepared.grid, prepared.outputs, {**attributes(sweep.spec, prepared), **text})
    writer = JournalWriter(folder / "journals" / "killed-1.journal", METRICS)
    values = [7.0] * len(METRICS)
    for key in prepared.keys.T.tolist():
        writer.write((key[0], key[1]), 1, 0.0, values)
    writer.close()
    took = seconds_of(lambda: sweep.run(store, workers=WORKERS, progress=False))
    assert (xr.open_zarr(store).m07 == 7.0).all(), "the journal was not taken"
    return took


def misses(figures: Figures, targets: Mapping[str, float]) -> list[str]:
    """Return the names of the figures that do not reach their targets."""
    return [
        name
        for name, target in targets.items()
        if (float(figures[name]) < target if name in LEAST else float(figures[name]) > target)
    ]


def circumstances() -> Figures:
    """Return when and on what a part is measured: the load is that of all programs, per minute."""
    versions = []
    for name in ("faultsweep", "distributed", "zarr", "xyzpy", "pipefunc"):
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "processors": float(os.cpu_count() or 0),
        "load before": round(os.getloadavg()[0], 2),
        "versions": ", ".join(versions),
    }


def print_figures(figures: Figures, targets: Mapping[str, float]) -> None:
    """Print figures with their targets beside them."""
    missed = misses(figures, {name: target for name, target in targets.items() if name in figures})
    for name, value in figures.items():
        text = value if isinstance(value, str) else f"{value:,.4g}"
        if name in targets:
            sign, word = ">=" if name in LEAST else "<=", "MISSED" if name in missed else "reached"
            text = f"{text:12} target {sign} {targets[name]:g}: {word}"
        print(f"    {name:58} {text}", flush=True)


PARTS = {"short": short, "efficiency": efficiency, "simulations": simulations, "million": million, "open": opening}


def main(arguments: list[str] | None = None) -> dict[str, Figures]:
    """Measure, print, and write the figures into benchmarks/results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--small", action="store_true", help="small numbers, nothing written")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    all_figures = {}
    for part in options.parts or PARTS:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as fresh:  # its memory is its own
            all_figures[part] = figures = {**circumstances(), **fresh.submit(PARTS[part], options.small).result()}
        print(str(PARTS[part].__doc__).splitlines()[0])
        print_figures(figures, TARGETS[part])
    if not options.small:
        options.output.mkdir(parents=True, exist_ok=True)
        file = options.output / "sweep_overhead.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**known, **all_figures}, indent=1) + "\n")
    return all_figures


if __name__ == "__main__":
    from benchmarks import sweep_overhead  # processes of others find what is measured under this name alone

    sys.exit(any(misses(figures, TARGETS[part]) for part, figures in sweep_overhead.main().items()))
