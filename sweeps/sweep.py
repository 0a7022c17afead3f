"""A sweep as a Python object: plan it, run it, run one of its cells again."""

from __future__ import annotations

import contextlib
import errno
import inspect
import json
import math
import os
import shutil
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.cluster.connect import choose, connect
from faultsweep.cluster.forking import begin_early
from faultsweep.cluster.guard import check_script
from faultsweep.cluster.interrupts import ended_by_sigterm, interrupts_wait
from faultsweep.cluster.phases import DISK_FULL
from faultsweep.sweeps.built_in import SIMULATOR, TARGETS, built_in_target, check_target
from faultsweep.sweeps.grid import Grid, first_cell
from faultsweep.sweeps.plan import Plan, make_plan
from faultsweep.sweeps.precision import rule_of, with_replicates
from faultsweep.sweeps.rerun import Rerun, rerun
from faultsweep.sweeps.rounds import replicates_wanted
from faultsweep.sweeps.runner.first import First, find_first
from faultsweep.sweeps.runner.prepare import Prepared, assumptions, attributes, check_store, prepare
from faultsweep.sweeps.runner.progress import LOG, PROGRESS, LogFile, Progress, format_count
from faultsweep.sweeps.runner.runner import Runner
from faultsweep.sweeps.runner.segments import sync_disk
from faultsweep.sweeps.runner.task import Context, output_columns
from faultsweep.sweeps.runner.watch import InterruptedSweepError, SweepStoppedError
from faultsweep.sweeps.spec import Spec, find_spec, load_spec, read_spec
from faultsweep.sweeps.store.collector import Collector, Results, describe_counts
from faultsweep.sweeps.store.jobs import derive, drop_unused
from faultsweep.sweeps.store.journal import DIED, JournalWriter, jobs_beside, unpack_jobs
from faultsweep.sweeps.store.lock import Lock
from faultsweep.sweeps.store.manifest import is_sealed, settle, verify
from faultsweep.sweeps.store.newest import CELLS, list_cells
from faultsweep.sweeps.store.provenance import describe_run
from faultsweep.sweeps.store.repair import check, repair, seal
from faultsweep.sweeps.store.replay import find_journals, match_records, open_run
from faultsweep.sweeps.store.statuses import DONE, FAILURES, FINAL, PENDING, STATUS_NAMES
from faultsweep.sweeps.store.store import Store, check_format, create, run_folder, sweep_partials
from faultsweep.sweeps.stream import Listener, Result, stream
from faultsweep.sweeps.target import FunctionTarget, Output, Target
from numpy.typing import NDArray

from faultsweep.arguments import LABEL, LABELS, PATH, TEXT, TRUTH, instance, takes
from faultsweep.errors import InputError
from faultsweep.extras import require
from faultsweep.files import html_table, refuse_url
from faultsweep.terminal import plain

STORE_VARIABLE = "FAULTSWEEP_STORE"
"""Environment variable of a batch job: the store that it was submitted for."""
SUBMISSION_VARIABLE = "FAULTSWEEP_SUBMISSION"
"""Environment variable of a batch job, the same in all its lives: what is done once per submission is known by it."""
SYNC_S = 600.0
"""Time that the disk has to take what was written, before a run ends."""
_SHOWN_LABELS = 8
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Sweep:
    """A parameter sweep of the simulator, or of a function of your own.

    ``Sweep(axes={"scheduler": ["fcfs", "backfill"], "load_scale": {"start": 0.5, "stop": 1.5, "num": 5}},
    fixed={"log": "nasa"}, replicates=3)`` takes what a TOML spec has (see ``sweeps.axes`` for the forms of axes).
    With ``function`` it runs that function with the parameters as keyword arguments; ``outputs`` name what it returns.
    """

    @takes(target=TEXT, version=LABEL, logs=PATH, folder=PATH)
    def __init__(
        self,
        *,
        axes: Mapping[str, Any],
        name: str = "sweep",
        title: str = "",
        target: str = SIMULATOR,
        fixed: Mapping[str, Any] | None = None,
        replicates: int | None = None,
        seed: int | None = None,
        formulas: Mapping[str, str] | None = None,
        exclude: Sequence[Mapping[str, Any]] = (),
        metrics: Sequence[str] | None = None,
        keep_jobs: bool = False,
        figure: Mapping[str, Any] | None = None,
        precision: str | float | Mapping[str, Any] | None = None,
        best: Mapping[str, Any] | None = None,
        better: Mapping[str, str] | None = None,
        function: Callable[..., Any] | None = None,
        outputs: Iterable[str | Output] | Mapping[str, str] | None = None,
        inert: Mapping[str, Callable[[Mapping[str, Any]], bool]] | None = None,
        version: str = "",
        logs: str | Path | None = None,
        folder: str | Path | None = None,
    ) -> None:
        """Check everything at once.

        Parameters
        ----------
        axes, name, title, target, fixed, replicates, seed, formulas : as in a TOML spec.
        exclude, metrics, keep_jobs, figure, precision, best, better : as in a TOML spec.
        function, outputs : run this function; outputs are names, or a mapping of names to units, or Outputs.
        inert : for a function, argument -> rule(configuration) that is true where the argument has no effect.
        version : for a function; change it when what it calls or reads has changed. A store refuses to mix versions.
        logs : folder that is searched first for named job logs.
        folder : where relative paths of job and failure logs start; the working directory if not given.

        Raises
        ------
        InputError
            All problems, one sentence a line.
        """
        raw: dict[str, Any] = {"name": name, "title": title, "seed": seed, "replicates": replicates, "metrics": metrics}
        raw = {
            key: value for key, value in raw.items() if value is not None and not (isinstance(value, str) and not value)
        }
        raw |= {"target": target} if target != SIMULATOR else {}
        raw |= {"keep_jobs": keep_jobs} if keep_jobs is not False else {}
        raw |= {"precision": precision} if precision is not None else {}
        raw |= {"best": best} if best is not None else {}
        parts = {"fixed": fixed, "axes": axes, "formulas": formulas, "exclude": exclude, "figure": figure}
        parts |= {"better": better}
        raw |= {key: part for key, part in parts.items() if not _is_nothing(part)}
        self.spec = read_spec(raw, _make_target(target, function, outputs, inert, version, logs, folder or Path.cwd()))

    @classmethod
    @takes(spec_or_name=PATH, version=LABEL, logs=PATH, folder=PATH)
    def from_toml(
        cls,
        spec_or_name: str | Path,
        *,
        function: Callable[..., Any] | None = None,
        outputs: Iterable[str | Output] | Mapping[str, str] | None = None,
        inert: Mapping[str, Callable[[Mapping[str, Any]], bool]] | None = None,
        version: str = "",
        logs: str | Path | None = None,
        folder: str | Path | None = None,
    ) -> Sweep:
        """Read a sweep from a TOML file, or a shipped one by its name.

        Relative paths in it start from ``folder``, the file's own if not given.
        """
        path = find_spec(spec_or_name)
        raw = load_spec(path)
        wanted = raw.get("target", SIMULATOR)
        if function is None:
            check_target(raw, str(path))
        target = _make_target(wanted, function, outputs, inert, version, logs, folder or path.parent)
        return cls.of(read_spec(raw, target, where=str(path)))

    @classmethod
    def of(cls, spec: Spec) -> Sweep:
        """Return the sweep of a checked spec."""
        sweep = cls.__new__(cls)
        sweep.spec = spec
        return sweep

    def __repr__(self) -> str:
        """Show name and axes in one line."""
        axes = ", ".join(f"{axis.name} ({len(axis):,})" for axis in self.spec.axes)
        return f"Sweep({self.spec.name} of {self.spec.target.name}: {axes})"

    def _repr_html_(self) -> str:
        """Show the axes in a notebook."""
        spec = self.spec
        rows = []
        for axis in spec.axes:
            more = ", …" if len(axis) > _SHOWN_LABELS else ""
            rows.append((axis.name, f"{len(axis):,}", ", ".join(map(str, axis.labels[:_SHOWN_LABELS])) + more))
        cells = math.prod(len(axis) for axis in spec.axes)
        outputs = ", ".join(out.name for out in spec.outputs) or "what the first cell gives"
        title = f"{spec.title or spec.name}: {cells:,} cells of {spec.target.name}"
        return html_table(title, ("axis", "values", ""), rows, f"metrics: {outputs}")

    @takes(store=PATH)
    def stream(self, store: str | Path | None = None, **options: Any) -> Iterator[Result]:
        """Run the sweep as ``run`` does, with its options, and yield each result as soon as it is there.

        Results come in the order in which they finish, without copies and without those that the store had before. If
        the loop is left early, the run stops after the configurations that are running; finished results are stored.
        """
        check_script()
        inspect.signature(self.run).bind(store, **options)  # what it does not know is said here, not in the loop
        return stream(partial(self.run, store, **options))

    @takes(store=PATH)
    def store_path(self, store: str | Path | None = None) -> Path:
        """Return where the results go: ``store``, or ``NAME.zarr`` in the working directory."""
        path = Path(store if store is not None else f"{self.spec.name}.zarr")
        refuse_url(path)
        return path.resolve()

    @takes(measure=TRUTH, recompute=TRUTH, retry_failed=TRUTH, progress=TRUTH)
    def plan(
        self,
        store: str | Path | None = None,
        *,
        workers: int | None = None,
        measure: bool = True,
        recompute: bool = False,
        retry_failed: bool = False,
        progress: bool = True,
    ) -> Plan:
        """Return what ``run`` would do with this store; times a few cells unless ``measure`` is false."""
        _check_options(workers)
        if measure:
            check_script()
        say = partial(print, file=sys.stderr, flush=True) if progress else lambda text: None
        number = workers or os.cpu_count() or 1
        return make_plan(
            self._known(self.store_path(store)), self.store_path(store), number, measure, recompute, retry_failed, say
        )

    @takes(select=LABELS)
    def rerun(
        self,
        store: str | Path | None = None,
        *,
        select: Mapping[str, Any] | str | None = None,
        events: bool = False,
        trace: bool = False,
        run_code: bool = False,
    ) -> Rerun:
        """Run one cell of a store again and compare it bit by bit; ``select`` names it by its labels.

        The store alone says what the cell's configuration is; the simulator, or the function, is this sweep's.
        ``events`` asks for the event trace of a simulation, in ``run.events``, ``trace`` for the steps of the agent on
        clusters, in ``run.decisions``. See ``faultsweep.rerun``.
        """
        path = self.store_path(store)
        return rerun(path, select or {}, target=self._known(path).target, events=events, trace=trace, run_code=run_code)

    @takes(
        credentials=PATH,
        listener=instance(Listener, "a Listener"),
        recompute=TRUTH,
        retry_failed=TRUTH,
        progress=TRUTH,
        dask_dashboard=TRUTH,
        only_damaged=TRUTH,
        results=TRUTH,
    )
    def run(
        self,
        store: str | Path | None = None,
        *,
        workers: int | None = None,
        cluster: Any = None,
        credentials: str | Path | None = None,
        recompute: bool = False,
        retry_failed: bool = False,
        time_limit_s: float = 0.0,
        progress: bool = True,
        dask_dashboard: bool = False,
        listener: Listener | None = None,
        only_damaged: bool = False,
        results: bool = True,
    ) -> Any:
        """Simulate what the store lacks, and return all results as ``faultsweep.open_results`` does.

        Parameters
        ----------
        store : path of the Zarr store; made if it is not there, resumed and extended if it is.
        workers, cluster, credentials : see ``faultsweep.cluster.connect``.
        recompute : replace all results (after a log or the model has changed).
        retry_failed : run failed cells again.
        time_limit_s : end a configuration that takes longer, and let it fail; 0 is no limit.
        progress : show what is going on.
        listener : is told the results as they come, and may stop the run (see ``stream``).
        dask_dashboard : serve the dashboard of Dask on the loopback while this runs, for whoever has the link that is
            printed; only of a cluster that is started here.
        only_damaged : run the cells that have lost their results again, and nothing else.
        results : return the results; if false, return None without loading xarray, which saves a second of processor
            time.

        Raises
        ------
        InputError
            The store cannot take these results, another process writes it, or it cannot be written. Or, at the end,
            simulations failed that were to add to results, which stay as they were.
        SweepStoppedError
            The run ended early; what was finished is in the store. InterruptedSweepError if the user asked for it.
        """
        self._refuse_to_run()
        _check_options(workers, time_limit_s, dask_dashboard, cluster)
        path = self.store_path(store)
        notes = _claim(path)
        spec = self._known(path)
        check_store(spec, path, recompute)
        folder = _make_run_folder(path)
        own = None if credentials is None else Path(credentials)
        show = _print if dask_dashboard else None
        started = _Workers(cluster, workers, own, folder / "slurm", show, spec.target.simulates)
        with ExitStack() as stack:
            stack.enter_context(ended_by_sigterm())
            lock = _enter_lock(stack, folder)
            stack.enter_context(LogFile(folder / "log.txt"))
            run = _Run(spec, path, folder, lock, time_limit_s, progress, listener, only_damaged=only_damaged)
            for text in notes:
                run.say(text)
            _run_rounds(run, started, recompute, retry_failed)
        return _results_of(path) if results else None

    def _refuse_to_run(self) -> None:
        """Raise InputError for a search, which is no run, and where what chooses replicates is not installed."""
        self.spec.refuse_search()
        if self.spec.precision is not None or self.spec.best is not None:
            require("a sweep that chooses its replicates", "scipy")

    def _known(self, path: Path) -> Spec:
        """Return the spec, with the outputs that the store has if the function declares none."""
        spec = self.spec
        if not spec.outputs and isinstance(spec.target, FunctionTarget) and (path.exists() or path.is_symlink()):
            store = Store(path, mode="r")
            return _having(spec, [store.output(name) for name in store.metrics])
        return spec


def _having(spec: Spec, outputs: Sequence[Output]) -> Spec:
    """Return a spec of a function with these outputs, checked again: no axis may have the name of one."""
    target = spec.target
    if not isinstance(target, FunctionTarget):
        raise TypeError(target.name)
    return read_spec(spec.raw, target.with_outputs(outputs), where=spec.where)


def _heal(path: Path) -> list[str]:
    """Mend a store whose files are absent or damaged, so that it can be read; returns sentences about it."""
    if not (path / "zarr.json").exists() and not is_sealed(path):
        return []
    try:
        found = check(path)
    except InputError:
        return []  # no store: what it is, is told where it is opened
    if not found.damage:
        return found.sentences(path)
    with Lock(_make_run_folder(path) / "lock"):
        done = repair(path)
    restored = f"{format_count(len(done.restored), 'file')} restored" if done.restored else ""
    again = f"{format_count(done.cells, 'cell')} simulated again" if done.cells else ""
    return [*found.sentences(path), f"{path}: {' and '.join(filter(None, (restored, again)))}"]


def _results_of(path: Path) -> Any:
    from faultsweep.sweeps.open import open_results

    return open_results(path)


def _print(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _last_submission(path: Path) -> str:
    return str(Store(path, mode="r").attributes.get("submission", "")) if path.exists() else ""


def _claim(path: Path) -> list[str]:
    """Make sure that a run may write the store, mend what a killed one has left, and return what was mended."""
    check_script()
    _check_submitted(path)
    if (run_folder(path) / "slurm").is_dir():
        from faultsweep.sweeps.batch_job import refuse_if_submitted  # takes long, and most sweeps have no job

        refuse_if_submitted(path)
    return _heal(path)


def _check_options(
    workers: int | None, time_limit_s: float = 0.0, dask_dashboard: bool = False, cluster: Any = None
) -> None:
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers: expected a whole number of 1 or more, got {workers!r}")
    if not isinstance(time_limit_s, int | float) or not 0 <= time_limit_s < math.inf:
        raise InputError(f"time_limit_s: expected seconds, 0 for no limit, got {time_limit_s!r}")
    if dask_dashboard and not (cluster is None or (isinstance(cluster, str) and cluster in ("local", "slurm"))):
        raise InputError("dask_dashboard: the cluster was not started here; ask for it where it is started")
    choose(cluster)


def _check_submitted(path: Path) -> None:
    """Raise InputError in a batch job that was submitted for another store."""
    wanted = os.environ.get(STORE_VARIABLE)
    if wanted and Path(wanted).resolve() != path:
        raise InputError(f"{path}: this job was submitted for {wanted}; let the script run its sweep into that store")


def _is_nothing(part: Any) -> bool:
    return part is None or (isinstance(part, Mapping | tuple | list) and not part)


def _make_target(
    name: Any, function: Any, outputs: Any, inert: Any, version: str, logs: str | Path | None, folder: str | Path
) -> Target:
    if function is None:
        if outputs is not None or inert is not None or version:
            raise InputError("outputs, inert and version belong to a function; give function as well")
        return built_in_target(name, logs, [folder])
    if name != SIMULATOR:
        raise InputError(f"target: {name!r} and a function are two targets; leave one out")
    made = FunctionTarget(function, outputs, inert, str(version))
    if made.name in TARGETS:
        raise InputError(f"function: {made.name!r} is the name of what a spec can run without one; rename the function")
    return made


def _run_rounds(run: _Run, workers: _Workers, recompute: bool, retry_failed: bool) -> None:
    """Simulate what is missing, and what follows from that, round by round; say so where the run ends early."""
    try:
        with workers as started:
            first = run.infer(started)
            with interrupts_wait():  # which do not end what makes, grows or tidies up a store
                run = run if recompute or retry_failed else run.begun_round()
                run.open(started, recompute, retry_failed)
                run.take_first(first)
            while True:
                run.simulate(started)
                with interrupts_wait():
                    run.close()
                    following = run.next_round()
                    if following is None:
                        break
                    run = following
                    run.open(started, recompute=False, retry_failed=False)
        run.check_added()
    except KeyboardInterrupt:  # while nothing was being simulated: the runner answers it itself
        run.say_stopped("stopped", InterruptedSweepError())
    except OSError as error:
        run.say_stopped(_describe_os_error(error, run.path))


def _make_run_folder(path: Path) -> Path:
    folder = run_folder(path)
    try:
        for part in ("journals", "marks"):
            (folder / part).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(error, folder) from None
    return folder


def _enter_lock(stack: ExitStack, folder: Path) -> Lock:
    try:
        return stack.enter_context(Lock(folder / "lock"))
    except OSError as error:
        raise _cannot_write(error, folder) from None


def _cannot_write(error: OSError, folder: Path) -> Exception:
    """Return the error of a run that cannot begin: a full disk may have room later, another folder never will."""
    if error.errno in _FULL:
        return SweepStoppedError(_describe_os_error(error, folder))
    return InputError(_not_here(error, error.filename or folder))


def _describe_os_error(error: OSError, path: Path) -> str:
    where = error.filename or error.strerror or path
    if error.errno in _FULL:
        return f"{path}: {DISK_FULL}; make room and run again, nothing that was finished is lost"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return _not_here(error, where)
    return f"{where}: {error.strerror or error}"


def _not_here(error: OSError, where: Path | str) -> str:
    return f"{where}: cannot write here ({error.strerror or error}); give another --store"


class _Workers:
    """The workers of a run: started when the first simulation is missing, and kept for the rounds that follow."""

    def __init__(
        self,
        cluster: Any,
        number: int | None,
        credentials: Path | None,
        folder: Path,
        dashboard: Callable[[str], None] | None,
        simulate: bool,
    ) -> None:
        """Take what ``faultsweep.cluster.connect`` is given, and whether they simulate; nothing is started yet."""
        self._options: dict[str, Any] = {"workers": number, "credentials": credentials, "folder": folder}
        self._options["dashboard"] = dashboard
        self._cluster = cluster
        self._simulate = simulate
        self._started = ExitStack()
        self._client: Any = None

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *error: Any) -> None:
        self._started.__exit__(*error)

    def expect(self) -> None:
        """Let begin meanwhile what takes longest to start, where workers are processes of this machine."""
        if self._client is None and self._are_here():
            begin_early(self._simulate)

    def client(self) -> tuple[Any, bool]:
        """Return a client, and whether the workers are processes of this machine that were started for this run."""
        self.expect()
        if self._client is None:
            self._client = self._started.enter_context(connect(choose(self._cluster), **self._options))
        return self._client, self._are_here()

    def _are_here(self) -> bool:
        cluster = choose(self._cluster)
        return isinstance(cluster, str) and cluster == "local"


@dataclass
class _Run:
    """One run of a sweep, from opening the store to leaving it tidy."""

    spec: Spec
    path: Path
    folder: Path
    lock: Lock
    time_limit_s: float
    show: bool
    listener: Listener | None = None
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    deaths: dict[int, int] = field(default_factory=dict)
    replicates: NDArray[np.int64] | None = None
    is_first: bool = True  # and no later round of one call of Sweep.run
    only_damaged: bool = False
    of_results: Mapping[str, Any] = field(default_factory=dict)

    def infer(self, workers: _Workers) -> First | None:
        """Run the first cell if it has to tell what the function gives; its outputs are the spec's from then on."""
        spec = self.spec
        if spec.outputs or not isinstance(spec.target, FunctionTarget):
            return None
        grid = Grid(spec.target, spec.axes, spec.fixed, spec.formulas, spec.exclude)
        cell = first_cell(grid)
        labels = ", ".join(f"{name}={label}" for name, label in grid.labels(cell).items())
        client, local = workers.client()
        config = grid.config(cell)
        first = find_first(client, spec.target, config, labels, self.time_limit_s, local, self.say)
        self.spec, self.of_results = _having(spec, first.outputs), first.attributes
        return first

    def take_first(self, first: First | None) -> None:
        """Put the result of the first cell into the store."""
        if first is None or self.collector.jobs is not None:
            return
        cell = first_cell(self.prepared.grid)
        if self.prepared.source[cell] == cell and self.collector.status[cell] == PENDING:
            texts = self.collector.table_of_texts({0: first.texts}, 1)
            status, wall = np.array([DONE], dtype=np.int8), np.array([first.wall_s])
            self.collector.add(Results(np.array([cell]), status, wall, first.values[None], texts=texts))
            self.collector.flush()

    def begun_round(self) -> _Run:
        """Return the run of the round that an earlier run has begun, since its journals are of that; else this one."""
        if not self.spec.adds_replicates or self.only_damaged or not self.path.exists():
            return self
        prepared = prepare(self.spec, self.path)
        if prepared.store is None or prepared.store.recomputing or prepared.grows or len(prepared.todo):
            return self
        return self._round(prepared.store, prepared) or self

    def next_round(self) -> _Run | None:
        """Return the run that adds replicates that a precision or a selection asks for; None if there are none."""
        following = self._round(self.store, self.prepared)
        return following and replace(following, is_first=False)

    def _round(self, store: Store, prepared: Prepared) -> _Run | None:
        if not self.spec.adds_replicates or self.only_damaged:
            return None
        have, needed = replicates_wanted(store, self.spec, prepared.asked)
        more = int((needed > have).sum())
        if not more:
            return None
        LOG.info("%d configurations get more replicates, up to %d", more, needed.max())
        spec = replace(self.spec, axes=with_replicates(self.spec.axes, int(needed.max())))
        return replace(self, spec=spec, replicates=needed, run_id=uuid.uuid4().hex[:12], deaths={})

    def open(self, workers: _Workers, recompute: bool, retry_failed: bool) -> None:
        """Make or grow the store, and take over what earlier runs left in their journals.

        A batch job that starts again goes on: what it was to recompute or to retry was forgotten at its first start.
        """
        submission = os.environ.get(SUBMISSION_VARIABLE, "")
        if submission and (recompute or retry_failed) and _last_submission(self.path) == submission:
            recompute = retry_failed = False
        sweep_partials(self.folder)
        shutil.rmtree(self.folder / "new.zarr", ignore_errors=True)
        if is_sealed(self.path) and check_format(self.path).get("open_runs", "[]") != "[]":
            settle(self.path, verify(self.path).behind)
        prepared = prepare(self.spec, self.path, recompute, retry_failed, self.replicates, self.only_damaged)
        if prepared.store is not None:
            find_journals(prepared.store)  # refuses a store that another run writes, before anything is changed
        self.prepared = prepared
        if len(prepared.todo):
            workers.expect()
        self.store = self._store(prepared)
        failed = prepared.again & prepared.asked & np.isin(prepared.status, FAILURES)
        if retry_failed and failed.any():
            self.store.forget(_corner(failed, prepared.grid.shape, self.store.chunks.shape))
        replacing = bool((prepared.again & ~np.isin(prepared.status, FAILURES)).any())
        self.collector = Collector(
            self.store,
            prepared.outputs,
            prepared.source,
            prepared.excluded,
            prepared.again,
            self._check,
            replacing,
            mark=not self.only_damaged,
        )
        if self.listener is not None:
            self.collector.listen = partial(self.listener.tell, prepared.grid, prepared.outputs)
        self._replay(skip_failed=retry_failed)
        self._clear_folder(but=self._keep_deaths())
        self._list_run()
        self._list_cells()
        if submission:
            self.store.commit(submission=submission)

    def _store(self, prepared: Prepared) -> Store:
        self.history = [{**describe_run(), "folders": [str(folder) for folder in self.spec.target.folders]}]
        if assumed := assumptions(self.spec, prepared):
            self.history[0]["assumptions"] = assumed
            for text in assumed if self.is_first else ():
                self.say(f"assumed: {text}")
        if prepared.store is None:
            self._clear_folder()  # the journals of a store that is gone may be of another function or log
            return create(
                self.path,
                prepared.grid,
                prepared.outputs,
                {**attributes(self.spec, prepared, self.of_results), "provenance": json.dumps(self.history)},
                self.spec.keep_jobs,
            )
        store = prepared.store
        self.history = [*store.text("provenance"), *(self.history if self.is_first else [])]
        store.repair()
        if not is_sealed(self.path):
            for text in seal(self.path):
                self.say(text)
            store.reopen()
        store.drop(prepared.dropped)
        pins = {**store.text("pins"), **prepared.pins}
        if prepared.recompute:
            # a kill at any moment leaves the old results, or cells that the next run knows it has to run
            store.commit(recomputing="begun", open_runs="[]")  # journals beside another place have old results, too
            self._clear_folder()
            store.forget(_corner(prepared.again, prepared.grid.shape, store.chunks.shape))
            store.commit(recomputing="on", pins=json.dumps(pins), model_version=self.spec.target.version)
        if prepared.grows:
            store.grow(prepared.grid.axes, prepared.grid, prepared.new_outputs, self.spec.keep_jobs)
        prepared.known.fill(store)
        if prepared.derived:
            derive(store, self.spec.target, prepared.derived)
        store.commit(
            precision_rule=rule_of(store),
            spec=self.spec.to_toml(),
            title=self.spec.title,
            pins=json.dumps(pins),
            provenance=json.dumps(self.history),
            model_version=self.spec.target.version,
        )
        return store

    def _replay(self, skip_failed: bool = False) -> None:
        """Fold what journals have into the store: of runs that were killed, or of this one when it stops."""
        left = find_journals(self.store)
        for text in left.notes:
            self.say(text)
        deaths: Counter[int] = Counter()
        for path, records, cells, numbers, columns in match_records(self.prepared, left.journals, skip_failed):
            status = records.status[numbers]
            deaths.update(cells[status == DIED].tolist())
            wanted = (status != DIED) & ~np.isin(self.collector.status[cells], FINAL)
            keep = numbers[wanted]
            errors = {new: records.errors[old] for new, old in enumerate(keep.tolist()) if old in records.errors}
            values = records.values[keep][:, columns]
            notes = {new: records.texts[old] for new, old in enumerate(keep.tolist()) if old in records.texts}
            texts = self.collector.table_of_texts(notes, len(keep))
            results = Results(cells[wanted], status[wanted], records.wall_s[keep], values, errors, texts=texts)
            if self.collector.jobs is not None:
                results = self.collector.with_jobs(results, _read_kept(path, records.jobs[:, keep]))
            self.collector.add(results)
        self.collector.flush()
        self.deaths = {cell: n for cell, n in deaths.items() if self.collector.status[cell] not in FINAL}

    def _check(self) -> None:
        """Raise if the store is another process' by now, or is not there any more."""
        self.lock.check()
        if not (self.path / "zarr.json").exists():
            raise SweepStoppedError(
                f"{self.path}: the store no longer exists here; if it was moved, run the sweep there to resume it"
            )

    def say(self, text: str) -> None:
        """Tell the user, and the log file."""
        LOG.info(text)
        if self.show:
            sys.stderr.write(plain(text) + "\n")

    def _keep_deaths(self) -> Path | None:
        """Write the deaths that earlier runs have seen into a journal of this one."""
        if not self.deaths:
            return None
        columns = output_columns(self.prepared.outputs)
        journal = JournalWriter(self.folder / "journals" / f"{self.run_id}-deaths.journal", columns)
        for cell, number in self.deaths.items():
            first, second = (int(part) for part in self.prepared.keys[:, cell])
            for _ in range(number):
                journal.write((first, second), DIED, 0.0, [np.nan] * len(columns))
        journal.sync()
        journal.close()
        return journal.path

    def _list_run(self, saved: bool = False) -> None:
        """Let the store know that this run's journals may have more than it has, or that they have not."""
        self._check()
        self.store.commit(open_runs=json.dumps([open_run(self.run_id, self.folder, saved)]))

    def _list_cells(self) -> None:
        """Let lookers-on know which cells the records of this run's journals belong to."""
        prepared = self.prepared
        wanted = (prepared.source >= 0) & (self.collector.status == PENDING)
        list_cells(self.folder, self.run_id, prepared.grid.shape, wanted, prepared.keys)

    def _clear_folder(self, but: Path | None = None) -> None:
        """Remove journals and marks; what was in them is in the store, and on the disk."""
        _sync(self.path)
        for part in ("journals", "marks"):
            for file in (self.folder / part).iterdir():
                if file != but:
                    file.unlink(missing_ok=True)

    def simulate(self, workers: _Workers) -> None:
        """Run what is missing."""
        todo = self.prepared.todo
        missing = self.collector.status[todo] == PENDING
        todo = todo if missing.all() else todo[missing]
        if not len(todo):
            return
        client, local = workers.client()
        nonce = uuid.uuid4().hex
        (self.folder / "nonce").write_text(nonce)
        context = Context(
            self.run_id,
            self.spec.target,
            self.prepared.outputs,
            self.prepared.grid.fixed,
            self.folder,
            nonce,
            self.time_limit_s,
            self.store.keeps_jobs,
        )
        total = int((self.prepared.source == np.arange(len(self.prepared.source))).sum())
        LOG.info("run %s: %d of %d simulations are missing", context.run_id, len(todo), total)
        bar = Progress(total, self.show, total - len(todo), self.folder / PROGRESS)
        with bar:
            grid, keys = self.prepared.grid, self.prepared.keys
            runner = Runner(client, context, self.folder, grid, keys, self.collector, bar, local, self.deaths)
            runner.is_unwanted = self.listener.is_gone if self.listener is not None else lambda: False
            try:
                runner.run(todo)
            except SweepStoppedError as error:
                self.say_stopped(str(error), error)

    def say_stopped(self, why: str, error: SweepStoppedError | None = None) -> None:
        """Save what there is, and raise the error that says how to go on."""
        kind = type(error) if error is not None else SweepStoppedError
        if not hasattr(self, "collector"):
            raise kind(why) from None
        # a full disk takes no more, but the journals stay and the next run reads them; Ctrl-C waits for what is saved:
        # the run stops in any case
        with contextlib.suppress(OSError, KeyboardInterrupt), interrupts_wait():
            self._replay()
            self._list_run(saved=True)
            (self.folder / CELLS).unlink(missing_ok=True)
        done = describe_counts(self.collector.counts(), STATUS_NAMES)
        raise kind(f"{why}; {self.path} has {done}; run again to resume") from None

    def close(self) -> None:
        """Leave a complete store with nothing beside it but the log file."""
        self.collector.flush()
        self._clear_folder()
        for name in ("nonce", CELLS):
            (self.folder / name).unlink(missing_ok=True)
        sweep_partials(self.path)
        adding = self.store.adding if self.collector.not_added else []
        self.store.commit(adding=json.dumps(adding), recomputing="", open_runs="[]")
        if self.store.keeps_jobs:
            drop_unused(self.store)
        LOG.info("finished: %s", describe_counts(self.collector.counts(), STATUS_NAMES))

    def check_added(self) -> None:
        """Raise InputError if results that were there did not get what was to be added to them."""
        errors = Counter(self.collector.not_added.values())
        if errors:
            [(error, number)] = errors.most_common(1)
            what = ", ".join(self.store.adding) or "per-job results"
            raise InputError(
                f"{self.path}: {what} could not be added to {errors.total():,} results, which stay as they were; run"
                f" again to try again ({number:,}: {error})"
            )


def _sync(path: Path) -> None:
    """Wait until everything written is on the disk.

    Raises
    ------
    OSError
        It is not after ``SYNC_S``, or never will be; what journals have must stay.
    """
    problems: list[OSError] = []

    def sync() -> None:
        try:
            sync_disk(path if path.exists() else path.parent)
        except OSError as error:
            problems.append(error)

    thread = threading.Thread(target=sync, daemon=True)
    thread.start()
    thread.join(SYNC_S)
    if thread.is_alive():
        raise OSError(errno.ETIMEDOUT, f"the disk has not taken all that was written within {SYNC_S:.0f} s", str(path))
    if problems:
        raise problems[0]


def _read_kept(journal: Path, places: NDArray[Any]) -> Iterator[dict[str, NDArray[Any]] | None]:
    """Yield the per-job results that records of a journal point at."""
    for offset, length in places.T.tolist():
        yield unpack_jobs(jobs_beside(journal), offset, length) if length else None


def _corner(cells: NDArray[np.bool_], shape: Sequence[int], part: Sequence[int]) -> NDArray[np.bool_]:
    """Return what a grid of ``shape`` has in its first corner of shape ``part``, flat."""
    return cells.reshape(shape)[tuple(slice(0, n) for n in part)].ravel()
