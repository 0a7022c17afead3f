"""What a run would do, and about how long it would take: nothing is changed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.cluster.connect import connect
from faultsweep.sweeps.memory import grid_bytes, worker_bytes
from faultsweep.sweeps.runner.prepare import LOOKED_AT, Prepared, assumptions, prepare
from faultsweep.sweeps.runner.progress import format_bytes, format_count, format_seconds
from faultsweep.sweeps.runner.runner import PREPARE_S
from faultsweep.sweeps.runner.task import BatchResult, Columns, Context, describe_error, run_batch, warm
from faultsweep.sweeps.runner.task_sizes import count_tasks
from faultsweep.sweeps.spec import Spec
from faultsweep.sweeps.store.collector import describe_counts
from faultsweep.sweeps.store.jobs import compressed_size
from faultsweep.sweeps.store.replay import count_journalled
from faultsweep.sweeps.store.statuses import STATUS_NAMES
from faultsweep.sweeps.store.store import LABEL_CHUNK, chunk_shape
from faultsweep.sweeps.target import VARIABLES

from faultsweep.terminal import make_console, print_json

MEASURED_CELLS = 8
_MEASURE_S = 20.0
_PATIENCE_S = 3.0
_OVERHEAD_S = 5e-5
"""What the engine adds to a simulation, about."""
_ARRAY_BYTES = 2900
"""What zarr.json says of an array, in its own file and in both of the root's (a mean over the simulator's metrics)."""
_FRAME_BYTES = 190
"""What the compressed chunk of an array has beside its numbers, and its lines in the manifest."""


@dataclass
class Plan:
    """What a run would do.

    Attributes
    ----------
    shape : axis -> rows of the store as it will be.
    cells, excluded, simulations, missing : cells in all; excluded ones; different simulations; those yet to be run.
    copies, not_requested : cells that take the result of an equal one; cells that no spec has asked for.
    journalled : simulations that a run has finished which ended early, and that will be taken from its journals.
    status : cells of the present store by status (empty without one).
    tasks, seconds, workers : estimates for the missing simulations on so many workers, the start of the workers
        included; NaN if not measured.
    start_s : the part of ``seconds`` that a run takes before the first simulation: workers, compiled code, logs.
    run_s : measured times of some missing simulations, in seconds.
    errors : what went wrong in these.
    precision : which replicates may be added, in words, "" if none.
    foreseen : errors that are known without a run -> how many missing simulations will end with them.
    assumptions : what is assumed because a log does not say it, once for a log.
    bytes : size of the store, about, when it is complete; without per-job results if nothing was measured.
    files : of the complete store, and at most beside it while it is made, about; what a quota of files has to allow.
    controller_bytes, worker_bytes : memory of scheduler and sweep, and of one worker (0: not known), about.
    """

    name: str
    store: str
    shape: dict[str, int]
    cells: int
    excluded: int
    simulations: int
    missing: int
    copies: int
    not_requested: int
    status: dict[str, int]
    workers: int
    run_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    foreseen: dict[str, int] = field(default_factory=dict)
    assumptions: list[str] = field(default_factory=list)
    precision: str = ""
    tasks: float = math.nan
    seconds: float = math.nan
    start_s: float = math.nan
    keep_jobs: bool = False
    bytes: int = 0
    controller_bytes: int = 0
    worker_bytes: int = 0
    files: int = 0
    journalled: int = 0
    grows: bool = False
    configuration: dict[str, Any] = field(default_factory=dict)
    spec: str = ""

    def __repr__(self) -> str:
        """Show in one line what is to be run; ``print_plan`` prints all."""
        missing = f"{self.missing:,} of {format_count(self.simulations, 'simulation')} to run"
        workers = format_count(self.workers, "worker")
        takes = f", about {format_seconds(self.seconds)} on {workers}" if self.run_s else ""
        return f"Plan({self.name}: {missing}{takes}; store {self.store}, about {format_bytes(self.bytes)})"


def make_plan(
    spec: Spec,
    path: Path,
    workers: int,
    measure: bool = True,
    recompute: bool = False,
    retry_failed: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Plan:
    """Plan a run of ``spec`` into the store at ``path``; times a few missing cells in a worker process if asked to.

    ``recompute`` and ``retry_failed`` are those of the run. ``say`` is told what takes long.
    """
    prepared = prepare(spec, path, recompute, retry_failed)
    status = prepared.store.status() if prepared.store else np.zeros(0, dtype=np.int8)
    counts = np.bincount(status, minlength=len(STATUS_NAMES))
    plan = Plan(
        name=spec.name,
        store=str(path),
        shape={axis.name: len(axis) for axis in prepared.grid.axes},
        cells=prepared.grid.size,
        excluded=int(prepared.excluded.sum()),
        simulations=int((prepared.source == np.arange(prepared.grid.size)).sum()),
        missing=len(prepared.todo),
        copies=int(((prepared.source >= 0) & (prepared.source != np.arange(prepared.grid.size))).sum()),
        not_requested=int(((prepared.source < 0) & ~prepared.excluded).sum()),
        status={name: int(n) for name, n in zip(STATUS_NAMES, counts, strict=True) if n},
        workers=workers,
        bytes=_estimate_bytes(prepared, len(spec.to_toml())),
        grows=prepared.grows,
        configuration=prepared.grid.fixed,
        spec=spec.to_toml(),
        keep_jobs=prepared.keep_jobs,
        controller_bytes=grid_bytes(prepared, workers),
        worker_bytes=worker_bytes(spec, path),
        files=_estimate_files(prepared, workers),
    )
    if prepared.store is not None and not prepared.recompute:
        plan.journalled = count_journalled(prepared)
    plan.missing -= plan.journalled
    plan.precision = _describe_precision(spec, plan)
    plan.foreseen = _foresee(spec, prepared)
    plan.assumptions = assumptions(spec, prepared)
    if measure and len(prepared.todo):
        _measure(plan, spec, prepared, say)
    return plan


def _estimate_bytes(prepared: Prepared, text_bytes: int) -> int:
    """Return the size of the complete store, without per-job results, from the length of its spec.

    Numbers hardly compress, while status and missing errors vanish. A chunk costs its frame, however little is in it,
    and every array is described three times: by itself, in the root and in the root's copy.
    """
    grid = prepared.grid
    numbers = 1 + sum(out.width + 2 * out.texts for out in prepared.outputs)
    lengths = prepared.store.chunks.lengths if prepared.store else chunk_shape(grid.shape, prepared.outputs)
    chunks = math.prod(-(-n // length) for n, length in zip(grid.shape, lengths, strict=True))
    coordinates = {*grid.dims_of, *(axis.name for axis in grid.axes)}
    arrays = len(prepared.outputs) + len(VARIABLES) + len(coordinates)
    rows = sum(len(axis) * max(1, len(axis.columns)) for axis in grid.axes)
    return 8 * (numbers * grid.size + rows) + _FRAME_BYTES * chunks * numbers + _ARRAY_BYTES * arrays + 3 * text_bytes


def _estimate_files(prepared: Prepared, workers: int) -> int:
    """Return about how many files a run makes at most.

    A chunk is one file of every variable, and of the status two; an array is described in one, and in the copy of the
    root. Beside the store every worker has a mark and two journals, that which it writes and the one before, and about
    as many more have to be removed yet.
    """
    grid = prepared.grid
    lengths = prepared.store.chunks.lengths if prepared.store else chunk_shape(grid.shape, prepared.outputs)
    chunks = math.prod(-(-n // length) for n, length in zip(grid.shape, lengths, strict=True))
    coordinates = {*grid.dims_of, *(axis.name for axis in grid.axes)}
    rows = sum(2 * -(-len(axis) // LABEL_CHUNK) for axis in grid.axes)
    variables = len(prepared.outputs) + len(VARIABLES) + (2 if prepared.keep_jobs else 0)
    return chunks * (variables + 1) + variables + 3 * len(coordinates) + rows + 5 * workers + 20


def _describe_precision(spec: Spec, plan: Plan) -> str:
    """Return a sentence on the replicates that may be added, "" if none are."""
    if spec.best is not None:
        most, first = spec.best.most, spec.best.first
        if most == first:
            return f"every policy has {first} replicates; none are added, because the cap (most) is {most}, too"
        return (
            f"where the best {spec.best.axis} by {spec.best.metric} is in doubt, up to {most} replicates: at most "
            f"{plan.simulations * (most - first) // first:,} more simulations"
        )
    if spec.precision is None:
        return ""
    most, first = spec.precision.most, len(spec.axes[-1])
    more = plan.simulations * (most - first) // first
    return (
        f"where an interval of {', '.join(spec.precision.metrics)} is wider than {100 * spec.precision.within:g} %, up "
        f"to {most} replicates: at most {more:,} more simulations"
    )


def _foresee(spec: Spec, prepared: Prepared) -> dict[str, int]:
    """Return errors that are known without a run, with the number of simulations that will end with them."""
    found: dict[str, int] = {}
    for foresight in spec.target.foresights() if len(prepared.todo) else ():
        cells, counts = prepared.grid.different(prepared.todo, foresight.decided_by)
        for cell, count in zip(cells[:LOOKED_AT], counts, strict=False):
            text = foresight.check(prepared.grid.config(int(cell)))
            if text:
                found[text] = found.get(text, 0) + int(count)
    return found


def _measure(plan: Plan, spec: Spec, prepared: Prepared, say: Callable[[str], None]) -> None:
    """Time some missing cells, spread over the grid, in a process of their own (one may hang, or end it)."""
    step = max(1, len(prepared.todo) // MEASURED_CELLS)
    cells = prepared.todo[step // 2 :: step][:MEASURED_CELLS]
    cells = np.concatenate([cells[:1], cells])  # the first run of a process reads the log; it is not timed
    context = Context("plan", spec.target, prepared.outputs, prepared.grid.fixed, None, "", _MEASURE_S, plan.keep_jobs)
    packed, job_bytes = context.pack(), []
    failed: dict[str, list[int]] = {}
    begin = time.monotonic()
    with connect("local", 1) as client:
        start_s = time.monotonic() - begin
        note = partial(say, spec.target.preparing_note([prepared.grid.config(int(cells[0]))]))
        plan.start_s = start_s + _warm(failed, client, packed, prepared, cells[0], note)
        for number, cell in enumerate(cells):
            one = np.array([cell])
            arguments = (packed, 1, Columns(prepared.grid.columns(one)), prepared.keys[:, one], _MEASURE_S)
            begin = time.monotonic()
            try:
                result: BatchResult = client.submit(run_batch, *arguments, pure=False).result(2 * _MEASURE_S)
            except Exception as error:  # whatever a run raises, or does to its process
                failed.setdefault(_describe(error), []).append(int(cell))
                continue
            if number == 0 and result.wall_s[0] < _MEASURE_S / 10:
                plan.start_s += time.monotonic() - begin
                continue
            plan.run_s.append(float(result.wall_s[0]))
            for text in result.errors.values():
                failed.setdefault(text, []).append(int(cell))
            job_bytes += [compressed_size(jobs) for jobs in result.jobs or () if jobs is not None]
            if sum(plan.run_s) > _MEASURE_S:
                break
    for text, where in failed.items():
        first, *others = dict.fromkeys(where)
        labels = ", ".join(f"{name}={label}" for name, label in prepared.grid.labels(first).items())
        plan.errors.append(f"{text} (at {labels}{f' and {len(others)} more' if others else ''})")
    if job_bytes:
        plan.bytes += int(plan.simulations * np.mean(job_bytes))
    if plan.run_s:
        mean = float(np.mean(plan.run_s))
        plan.seconds = plan.start_s + plan.missing * (mean + _OVERHEAD_S) / plan.workers
        plan.tasks = count_tasks(plan.missing, mean + _OVERHEAD_S, plan.workers)


def _describe(error: Exception) -> str:
    """Return what happened to a cell that gave no result, in words."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return "the run ended its process"
    if isinstance(error, TimeoutError):
        return f"not over after {2 * _MEASURE_S:.0f} s"
    return describe_error(error)


def _warm(
    failed: dict[str, list[int]],
    client: Any,
    packed: bytes,
    prepared: Prepared,
    cell: int,
    say_preparing: Callable[[], None],
) -> float:
    """Prepare the process for its first run, and return how long that will take a run that comes after this plan."""
    from distributed import KilledWorker

    begin = time.monotonic()
    call = client.submit(warm, packed, [prepared.grid.config(int(cell))], pure=False)
    try:
        call.result(_PATIENCE_S)
    except TimeoutError:
        say_preparing()
        try:
            call.result(PREPARE_S)
        except TimeoutError:
            failed.setdefault(f"not ready after {PREPARE_S:.0f} s", []).append(int(cell))
        except KilledWorker as error:
            failed.setdefault(_describe(error), []).append(int(cell))
        return _PATIENCE_S  # compiled code is on the disk now
    except KilledWorker as error:
        failed.setdefault(_describe(error), []).append(int(cell))
    return time.monotonic() - begin


def print_plan(plan: Plan, resolved: bool = False, as_json: bool = False) -> None:
    """Print a plan, as text or JSON."""

    console = make_console(highlight=False, soft_wrap=True, markup=False)
    if as_json:
        print_json(asdict(plan))
        return
    if resolved:
        console.print(plan.spec)
        console.print(
            "# fixed: " + ", ".join(f"{name} = {value!r}" for name, value in plan.configuration.items()) + "\n"
        )
    shape = " x ".join(f"{n} {dim}" for dim, n in plan.shape.items())
    console.print(f"{plan.name}: {format_count(plan.cells, 'cell')} ({shape}), {plan.excluded:,} excluded")
    unasked = f"; not requested: {format_count(plan.not_requested, 'cell')}" if plan.not_requested else ""
    console.print(
        f"  {format_count(plan.simulations, 'different simulation')}; {plan.copies:,} cells are copies"
        " (a parameter has no effect there)" + unasked
    )
    if plan.status:
        counts = {i: plan.status.get(name, 0) for i, name in enumerate(STATUS_NAMES)}
        console.print(
            f"  {plan.store} has {describe_counts(counts, STATUS_NAMES)}" + ("; it grows" if plan.grows else "")
        )
    if plan.journalled:
        console.print(
            f"  finished by a run that ended early, in its journals: {format_count(plan.journalled, 'simulation')}"
        )
    console.print(f"  {format_count(plan.missing, 'simulation')} to run")
    if plan.run_s:
        low, high = min(plan.run_s), max(plan.run_s)
        console.print(
            f"  about {format_seconds(plan.seconds)} on {format_count(plan.workers, 'worker')}, in about"
            f" {format_count(plan.tasks, 'task')}"
            f" (timed: {format_seconds(low)} to {format_seconds(high)} each; {format_seconds(plan.start_s)} to start)"
        )
    without = ", without per-job results" if plan.keep_jobs and not plan.run_s else ""
    console.print(f"  about {format_bytes(plan.bytes)} on disk{without}, in {plan.files:,} files, at {plan.store}")
    each = f", {format_bytes(plan.worker_bytes)} for each worker" if plan.worker_bytes else ""
    console.print(f"  about {format_bytes(plan.controller_bytes)} of memory for scheduler and sweep{each}")
    if plan.precision:
        console.print(f"  {plan.precision}")
    for text in plan.assumptions:
        console.print(f"  assumed: {text}")
    for text, count in plan.foreseen.items():
        console.print(f"  {format_count(count, 'simulation')} will fail: {text}")
    for text in plan.errors:
        console.print(f"  a timed cell fails: {text}")
