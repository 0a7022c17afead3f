"""Running one cell of a store again, from the store alone and the pinned logs, and comparing it bit by bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.sweeps.built_in import TARGETS, built_in_target
from faultsweep.sweeps.grid import find_rows, parse_select
from faultsweep.sweeps.store.statuses import STATUS_NAMES, WITH_RESULT
from faultsweep.sweeps.store.store import Store
from faultsweep.sweeps.target import Outcome, Output, Target, describe_lost, describe_version, has_default

from faultsweep.arguments import LABELS, PATH, TRUTH, takes
from faultsweep.errors import InputError
from faultsweep.files import check_csv, check_writable, write_jobs
from faultsweep.terminal import make_console, print_json


@dataclass(frozen=True)
class Rerun:
    """A cell run again.

    Attributes
    ----------
    labels, configuration : of the cell.
    status : of the cell in the store.
    metrics, stored : name -> number (or list, for a vector), now and in the store.
    different : names of metrics that are not equal to the bit, but for those that are measured; empty where the store
        has no result (``status``), and nothing can be compared.
    run : the whole run of the simulator (None for another target).
    """

    labels: dict[str, Any]
    configuration: dict[str, Any]
    status: str
    metrics: dict[str, Any]
    stored: dict[str, Any]
    different: list[str]
    run: Any = None


@takes(path=PATH, select=LABELS, logs=PATH, events=TRUTH, trace=TRUTH, run_code=TRUTH)
def rerun(
    path: str | Path,
    select: Mapping[str, Any] | str,
    *,
    target: Target | None = None,
    logs: str | Path | None = None,
    events: bool = False,
    trace: bool = False,
    run_code: bool = False,
) -> Rerun:
    """Run the cell that ``select`` names again, by its labels: a mapping, or a text as on the command line.

    ``events`` asks for the event trace of a simulation (``run.events``), ``trace`` for the steps of the agent on
    clusters (``run.decisions``). Code that the store names is not executed: a store of a function of your own needs
    ``target``, a ``FunctionTarget``, and files with policies of your own need ``run_code``.

    Raises
    ------
    InputError
        No or more than one cell is selected; the log, the model or the function is not the one that is pinned; a trace
        is asked for, and there is none of such a run.
    """
    store = Store(Path(path), mode="r")
    target = stored_target(store, target, logs)
    cell, labels = _find(store, target, parse_select(select) if isinstance(select, str) else select)
    target.expect(stored_values(store))
    configuration = _configuration(store, cell, target)
    _check_pins(store, target, configuration)
    _check_code(store, target, configuration, run_code)
    status = int(store.arrays["status"][cell])
    stored = {name: _plain(store.arrays[name][cell]) for name in store.metrics}
    outcome, run = _run(store.path, target, configuration, events, trace)
    metrics = _by_name(target.outputs, outcome)
    lacks = [name for name in store.metrics if name not in metrics]
    if lacks:
        raise InputError(f"{store.path}: {describe_lost(lacks, target)}")
    metrics = {name: metrics[name] for name in store.metrics}
    compared = status in WITH_RESULT
    exact = [out.name for out in target.outputs if out.name in store.metrics and not out.measured]
    different = [name for name in exact if compared and not _same_bits(metrics[name], stored[name])]
    return Rerun(labels, configuration, STATUS_NAMES[status], metrics, stored, different, run)


def stored_target(store: Store, target: Target | None, logs: str | Path | None) -> Target:
    """Return the target that a store has results of, with logs looked for where its runs found them."""
    wanted = store.attributes["target"]
    if target is None and wanted in TARGETS:
        folders = [folder for entry in reversed(store.text("provenance")) for folder in entry.get("folders", ())]
        return built_in_target(wanted, logs, [*dict.fromkeys(folders), store.path.resolve().parent, Path.cwd()])
    if target is None:
        raise InputError(
            f"{store.path}: results of the function {wanted}, which no store holds; in Python, Sweep(function=...)"
            ".rerun(store, select={...}) runs a cell again"
        )
    if not isinstance(target, Target):
        raise InputError(f"target: expected FunctionTarget(function, outputs), got {target!r}")
    if target.name != wanted:
        raise InputError(f"{store.path}: results of {wanted}, not of {target.name}")
    return target


def stored_values(store: Store) -> dict[str, list[Any]]:
    """Return the values that a store has of each parameter."""
    fixed = {name: [value] for name, value in store.text("configuration").items()}
    return fixed | {name: list(values) for axis in store.axes() for name, values in axis.columns.items()}


def _find(store: Store, target: Target, select: Mapping[str, Any]) -> tuple[tuple[int, ...], dict[str, Any]]:
    axes = store.axes()
    rows = find_rows(axes, select, target.plain_name)
    return rows, {axis.name: axis.labels[row] for axis, row in zip(axes, rows, strict=True)}


def _configuration(store: Store, cell: tuple[int, ...], target: Target) -> dict[str, Any]:
    """Return the cell's full configuration: fixed parameters, axis parameters, values of formulas, in that order."""
    defaults = {name: p.default for name, p in target.parameters.items() if has_default(p)}
    configuration = {**defaults, **store.text("configuration")}
    at = dict(zip(store.dims, cell, strict=True))
    for axis, row in zip(store.axes(), cell, strict=True):
        configuration.update({name: values[row] for name, values in axis.columns.items()})
    for name in store.formulas:
        array = store.arrays[name]
        value = _plain(array[tuple(at[dim] for dim in array.metadata.dimension_names)])
        configuration[name] = int(value) if array.attrs.get("whole") else value
    return {name: target.check(name, value) for name, value in configuration.items()}


def _plain(value: Any) -> Any:
    array = np.asarray(value)
    return array.tolist() if array.ndim else array.item()


def _check_pins(store: Store, target: Target, configuration: Mapping[str, Any]) -> None:
    problems = []
    version = store.attributes["model_version"]
    if version != target.version:
        problems.append(describe_version(version, target))
    stored = store.text("pins")
    for name, now in target.pins({key: [value] for key, value in configuration.items()}).items():
        if stored.get(name, now) != now:
            problems.append(f"{name} has changed: the store has {stored[name]}, now it is {now}")
    if problems:
        raise InputError("\n".join(f"{store.path}: {text}" for text in problems))


def _check_code(store: Store, target: Target, configuration: Mapping[str, Any], run_code: bool) -> None:
    """Refuse to execute a file that a store names, which a stranger may have sent, unless the user says so."""
    from faultsweep.simcore.parameters import OWN_PARAMETERS, is_own

    for name in OWN_PARAMETERS:
        value = str(configuration.get(name, ""))
        if target.name == "simulator" and is_own(name, value) and not run_code:
            raise InputError(
                f"{store.path}: the store names code, {name} = {value}; read that file, and say --run-code "
                "(run_code=True) if it may be executed"
            )


def _run(path: Path, target: Target, configuration: dict[str, Any], events: bool, trace: bool) -> tuple[Any, Any]:
    from faultsweep.sweeps.simulator import SimulatorTarget

    if isinstance(target, SimulatorTarget):
        run = target.simulate(configuration, events=events, trace=trace)
        return target.outcome(run), run
    if events or trace:
        raise _not_simulated(path, target.name)
    return target.run(configuration), None


def _not_simulated(path: Path, name: str) -> InputError:
    return InputError(f"{path}: results of {name}; only simulations have jobs, events and a trace to print or write")


def _by_name(outputs: Sequence[Output], outcome: Outcome) -> dict[str, Any]:
    """Return what a run gave as a store gives it: the values of each output, as Python has them."""
    words, texts = np.asarray(outcome.values, dtype=np.float64), list(outcome.texts)
    values: dict[str, Any] = {}
    start = first = 0
    for out in outputs:
        if out.dtype == "text":
            part = np.array(texts[first : first + out.texts], dtype=object).reshape(out.shape)
        else:
            part = out.decode(words[None, start : start + out.width])[0]
        values[out.name] = _plain(part)
        start, first = start + out.width, first + out.texts
    return values


def _same_bits(now: Any, stored: Any) -> bool:
    """Tell whether values are equal to the bit (any NaN is one NaN)."""
    a, b = np.atleast_1d(np.asarray(now)), np.atleast_1d(np.asarray(stored))
    if a.shape != b.shape or {a.dtype.kind, b.dtype.kind} - {"f", "c"}:
        return bool(np.array_equal(a, b))
    a, b = (x.view(np.float64) if x.dtype.kind == "c" else x.astype(np.float64) for x in (a, b))
    return bool(((a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))).all())


def print_rerun(
    path: Path,
    select: str,
    logs: Path | None,
    events_out: Path | None,
    jobs_out: Path | None,
    run_code: bool = False,
    as_json: bool = False,
    trace: bool = False,
    trace_out: Path | None = None,
) -> None:
    """Run a cell again, print it, and write its event trace, the agent's steps and per-job results if asked to."""
    outputs = [path for path in (events_out, jobs_out, trace_out) if path is not None]
    check_csv(outputs)
    check_writable(outputs)
    again = rerun(
        path,
        parse_select(select),
        logs=logs,
        events=events_out is not None,
        trace=trace or trace_out is not None,
        run_code=run_code,
    )
    console = make_console(highlight=False, soft_wrap=True, markup=False, stderr=as_json)
    for sentence in again.run.decisions.sentences() if trace else ():
        console.print(sentence)
    if trace_out is not None:
        again.run.decisions.write_csv(trace_out)
    if events_out is not None:
        again.run.events.write_csv(events_out)
    if jobs_out is not None:
        if again.run is None:
            raise _not_simulated(path, "failures")
        write_jobs(again.run.jobs, str(jobs_out))
    if as_json:
        print_json({name: value for name, value in again.__dict__.items() if name != "run"})
    else:
        console.print(", ".join(f"{name}={label}" for name, label in again.labels.items()) + f" ({again.status})")
        for name, value in again.metrics.items():
            note = f"   the store has {again.stored[name]!r}" if name in again.different else ""
            console.print(f"  {name:32} {value!r}{note}")
        if again.status not in [STATUS_NAMES[status] for status in WITH_RESULT]:
            console.print(f"the store has no result of this cell to compare with ({again.status})")
        else:
            console.print("different from the store" if again.different else "equal to the store, bit for bit")
    if again.different:
        raise InputError(f"{path}: {', '.join(again.different)} differ from the store")
