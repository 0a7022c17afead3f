"""Whatever a caller gives a function of the Python interface, it does its work or says in a sentence what is wrong."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from faultsweep.analysis.plot import plot
from faultsweep.analysis.view.content import make_content
from faultsweep.analysis.view.replay import replay
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.swf import write_swf
from faultsweep.sweeps.logs import load_workload
from faultsweep.sweeps.open import open_results
from faultsweep.sweeps.store.pack import pack
from faultsweep.sweeps.sweep import Sweep

from faultsweep.errors import InputError

sys.path.append(str(Path(__file__).resolve().parent.parent / "docs"))
from site_pages import PYTHON

OTHERS: dict[str, Any] = {
    "None": None,
    "True": True,
    "-1": -1,
    "3": 3,
    "2.5": 2.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "word": "x",
    "no text": "",
    "bytes": b"x",
    "words": ["x"],
    "numbers": [1, 2],
    "nothing": (),
    "mapping": {"x": 1},
    "object": object(),
    "array": np.arange(3),
    "no dimension": np.array(0.5),
    "table": pd.DataFrame({"x": [1, 2]}),
    "values": xr.DataArray([1.0, 2.0], dims="x"),
    "NUL": "x\0y",
    "many digits": 10**400,
    "path": Path("x"),
    "function": len,
}
NOT_CALLED = {
    "simcore.simulate.Run": "simulate makes it",
    "simcore.engine.event_trace.EventTrace": "simulate makes it",
    "sweeps.stream.Result": "a sweep makes it",
    "sweeps.accessor.SweepAccessor": "xarray makes it",
    "analysis.plot.Plot": "plot makes it",
    "cluster.connect.connect": "it starts processes",
    "analysis.sensitivity.sobol_indices": "it takes results of a Sobol design",
    "errors.InputError": "it is what is raised",
    "extras.MissingExtraError": "it is what is raised",
}
LEFT_OUT = {"cluster": "it starts processes", "workers": "they are processes", "credentials": "of a cluster's own"}


def double(x: int) -> dict[str, int]:
    return {"y": 2 * x}


def small_sweep() -> Sweep:
    fixed = {"log": "sdsc-model", "machine": "flat:128", "num_jobs": 30}
    axes = {"scheduler": ["fcfs", "backfill"], "load_scale": [0.8, 1.2]}
    return Sweep(axes=axes, fixed=fixed, keep_jobs=True, replicates=2)


@pytest.fixture(scope="module")
def calls(client, tmp_path_factory):
    """Valid arguments of each function, by name."""
    folder = tmp_path_factory.mktemp("public")
    store = folder / "a.zarr"
    small_sweep().run(store, cluster=client, progress=False)
    jobs = load_workload("sdsc-model", num_jobs=30)
    write_swf(jobs, folder / "a.swf")
    pack(store, folder / "a.zip")
    run = simulate(jobs, machine="flat:128", num_users=3, events=True)
    events = run.events
    machine, data = parse_machine("flat:128"), open_results(store)
    seen = replay(events, machine)
    content = {"content": make_content(seen, "a"), "path": folder / "a.png"}
    arrays = ("job_id", "submit_s", "run_s", "requested_s", "size", "user")
    failure = {"time_s": np.array([1.0]), "node": np.array([1]), "down_s": np.array([5.0])}
    one = "scheduler=fcfs,load_scale=0.8,replicate=0"
    values = {"values": data["mean_wait_s"]}
    return {
        "simcore.simulate.Run.by": {"self": run, "owner": "user"},
        "simcore.engine.event_trace.EventTrace.write_csv": {"self": events, "path": folder / "a.csv"},
        "sweeps.sweep.Sweep.from_toml": {"spec_or_name": "demo"},
        "simcore.simulate.simulate": {"workload": jobs, "machine": "flat:128", "scheduler": "backfill"},
        "sweeps.logs.load_workload": {"name_or_path": folder / "a.swf"},
        "simcore.model.workload.Workload": {name: getattr(jobs, name) for name in arrays},
        "simcore.workloads.swf.read_swf": {"path": folder / "a.swf"},
        "simcore.workloads.swf.write_swf": {"workload": jobs, "path": folder / "b.swf"},
        "simcore.model.failure_trace.FailureTrace": failure,
        "sweeps.sweep.Sweep": {"axes": {"x": [1, 2]}, "function": double, "outputs": ["y"]},
        "sweeps.sweep.Sweep.run": {"self": small_sweep(), "store": store, "cluster": client, "progress": False},
        "sweeps.sweep.Sweep.plan": {"self": small_sweep(), "store": store, "measure": False},
        "sweeps.sweep.Sweep.rerun": {"self": small_sweep(), "store": store, "select": one},
        "sweeps.outputs.Output": {"name": "y"},
        "sweeps.target.FunctionTarget": {"function": double, "outputs": ["y"]},
        "sweeps.rerun.rerun": {"path": store, "select": one},
        "sweeps.open.open_results": {"path_or_url": store},
        "sweeps.open.open_jobs": {"data": data, "scheduler": "fcfs", "load_scale": 0.8, "replicate": 0},
        "analysis.plot.plot": {"results": data, "metric": "mean_wait_s"},
        "analysis.plot.Plot.save": {"self": plot(data, "mean_wait_s"), "path": folder / "b.png"},
        "analysis.verdict.compare_policies": {"results": data},
        "analysis.pareto.pareto_front": {"results": data, "metrics": ["mean_wait_s", "utilisation"]},
        "analysis.ranking.rank": {"values": data["mean_wait_s"].isel(load_scale=0), "along": "scheduler"},
        "analysis.regions.best_policies": {"data": data, "metric": "mean_wait_s", "policy": "scheduler"},
        "analysis.statistics.mean_interval": values,
        "analysis.statistics.paired_difference": {**values, "along": "scheduler", "baseline": "fcfs"},
        "analysis.statistics.saturation": {"utilisation": data["utilisation"]},
        "analysis.effects.main_effect": {**values, "axis": "load_scale"},
        "analysis.effects.variance_shares": values,
        "analysis.warmup.steady_means": {"data": data},
        "analysis.warmup.without_warm_up": {"data": data, "metrics": ["mean_wait_s"]},
        "analysis.warmup.unsteady": {"data": data},
        "analysis.view.replay.replay": {"events": events, "machine": machine},
        "analysis.view.replay.Pauses": {},
        "analysis.view.content.make_content": {"run": seen, "title": "a"},
        "analysis.view.png.draw_png": content,
        "analysis.view.html.draw_html": content,
        "analysis.report.write_report": {"data": data, "path": folder / "a.html"},
        "analysis.notebook.write_notebook": {"store": str(store), "path": folder / "a.ipynb"},
        "sweeps.store.pack.pack": {"store": store, "archive": folder / "b.zip"},
        "sweeps.store.pack.unpack": {"archive": folder / "a.zip", "store": folder / "b.zarr"},
        "sweeps.store.merge.merge": {"stores": [store, store], "path": folder / "c.zarr"},
        "analysis.compare.compare": {"a": str(store), "b": str(store)},
    }


PUBLIC = {name for _, names in PYTHON.values() for name in names}
METHODS = {f"sweeps.sweep.Sweep.{name}" for name in ("from_toml", "run", "plan", "rerun")} | {
    "analysis.plot.Plot.save",
    "simcore.simulate.Run.by",
    "simcore.engine.event_trace.EventTrace.write_csv",
}


def named(name: str) -> Any:
    """What has a name, such as ``sweeps.sweep.Sweep.run``."""
    module, found = name.split("."), []
    while module[-1][0].isupper() or not found:
        found.insert(0, module.pop())
    thing = import_module(f"faultsweep.{'.'.join(module)}")
    for attribute in found:
        thing = getattr(thing, attribute)
    return thing


@pytest.mark.sampled(15)
@pytest.mark.parametrize("name", sorted(PUBLIC - NOT_CALLED.keys() | METHODS))
def test_an_argument_is_taken_or_refused_by_a_sentence(calls, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    function, valid = named(name), calls[name]
    parameters = inspect.signature(function).parameters.values()
    names = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
    function(**valid)
    raw = []
    for argument in (each for each in names if each != "self" and each not in LEFT_OUT):
        for what, other in OTHERS.items():
            if (argument, what) == ("repeat", "many digits"):
                continue  # it would be repeated as often
            try:
                repr(function(**{**valid, argument: other}))
            except InputError as error:
                if not str(error):
                    raw.append((argument, what, "nothing is said"))
            except Exception as error:
                raw.append((argument, what, f"{type(error).__name__}: {error}"))
    assert not raw, "\n".join(map(str, raw))


def test_every_public_function_is_called_or_says_why_not(calls):
    assert calls.keys() == PUBLIC - NOT_CALLED.keys() | METHODS
    assert NOT_CALLED.keys() <= PUBLIC
