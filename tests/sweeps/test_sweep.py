"""Sweeps of functions, end to end: spec, grid, local cluster, store."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial, update_wrapper, wraps
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from faultsweep.sweeps import plan as plan_module
from faultsweep.sweeps import sweep as sweep_module
from faultsweep.sweeps.built_in import TARGETS
from faultsweep.sweeps.plan import print_plan
from faultsweep.sweeps.rerun import rerun
from faultsweep.sweeps.runner import runner as runner_module
from faultsweep.sweeps.runner.prepare import attributes, prepare
from faultsweep.sweeps.runner.task_sizes import count_tasks
from faultsweep.sweeps.simulator import SimulatorTarget
from faultsweep.sweeps.spec import read_spec
from faultsweep.sweeps.status import describe_failures, read_status
from faultsweep.sweeps.store.statuses import (
    COPY,
    DONE,
    EXCLUDED,
    FAILED,
    FAILED_COPY,
    NOT_REQUESTED,
    TRUNCATED,
    TRUNCATED_COPY,
)
from faultsweep.sweeps.store.store import Store, create
from faultsweep.sweeps.substitutes import lacks_results
from faultsweep.sweeps.sweep import Sweep
from faultsweep.sweeps.target import FunctionTarget, Output, _with_source, function_hash

from faultsweep.errors import InputError
from tests.sweeps import functions


def small(**changes):
    settings = {
        "name": "small",
        "axes": {"a": [1, 2, 3], "b": {"start": 0.1, "stop": 0.3, "step": 0.1}},
        "replicates": 2,
        "function": functions.add,
        "outputs": {"sum": "s", "product": ""},
    }
    return Sweep(**{**settings, **changes})


@pytest.fixture
def run(client):
    """Run a sweep on the tests' own cluster."""
    return lambda sweep, store, **options: sweep.run(store, cluster=client, progress=False, **options)


def test_a_run_starts_and_stops_its_own_cluster(tmp_path):
    results = small().run(tmp_path / "s.zarr", workers=2, progress=False)
    assert (results.status == DONE).all()
    assert sorted(path.name for path in (tmp_path / "s.zarr.run").iterdir()) == [
        "journals",
        "log.txt",
        "marks",
        "progress.json",
        "state.json",
    ]


def test_what_is_no_cluster_is_refused_also_where_nothing_is_left_to_run(tmp_path, run):
    run(small(), tmp_path / "s.zarr")
    for odd in (3, [], b"local"):
        with pytest.raises(InputError, match="cluster: expected local, "):
            small().run(tmp_path / "s.zarr", cluster=odd, progress=False)


def test_every_cell_has_the_value_of_the_function(tmp_path, run):
    results = run(small(), tmp_path / "s.zarr")
    assert dict(results.sizes) == {"a": 3, "b": 3, "replicate": 2}
    assert (results.status == DONE).all()
    assert results["sum"].attrs["units"] == "s"
    for a in (1, 2, 3):
        for b in (0.1, 0.2, 0.3):
            for replicate in (0, 1):
                expected = functions.add(a, b, replicate=replicate)
                cell = results.sel(a=a, b=b, replicate=replicate)
                assert float(cell["sum"]) == expected["sum"]
                assert float(cell["product"]) == expected["product"]
    assert (results.wall_s > 0).all()


def test_store_is_read_by_xarray_alone(tmp_path, run):
    run(small(), tmp_path / "s.zarr")
    results = xr.open_zarr(tmp_path / "s.zarr")
    assert results.b.values.tolist() == [0.1, 0.2, 0.3]
    assert results.status.dtype == np.int8
    assert results.status.attrs["flag_meanings"].split()[DONE] == "done"
    assert set(results.data_vars) == {"sum", "product", "status", "wall_s", "error"}


def test_axes_grow_and_nothing_runs_twice(tmp_path, run):
    calls = tmp_path / "calls"
    settings = {"name": "n", "function": functions.counted, "outputs": "y", "fixed": {"calls": str(calls)}}
    run(Sweep(axes={"a": [1, 2], "b": [1.0, 2.0]}, **settings), tmp_path / "s.zarr")
    assert len(calls.read_text().splitlines()) == 4
    run(Sweep(axes={"a": [1, 2], "b": [1.0, 2.0]}, **settings), tmp_path / "s.zarr")
    assert len(calls.read_text().splitlines()) == 4
    results = run(Sweep(axes={"a": [0, 2, 1], "b": [2.0, 1.0, 1.5]}, **settings), tmp_path / "s.zarr")
    lines = calls.read_text().splitlines()
    assert len(lines) == len(set(lines)) == 9
    assert results.a.values.tolist() == [0, 1, 2]
    assert results.b.values.tolist() == [1.0, 1.5, 2.0]
    assert np.array_equal(results.y.values[:, :, 0], np.add.outer([0, 10, 20], [1.0, 1.5, 2.0]))


def test_a_narrower_spec_leaves_the_rest_alone(tmp_path, run):
    run(small(axes={"a": [1, 2], "b": [0.1, 0.2]}), tmp_path / "s.zarr")
    results = run(small(axes={"a": [3], "b": [0.1]}, replicates=1), tmp_path / "s.zarr")
    assert results.status.sel(a=3, b=0.1).values.tolist() == [DONE, NOT_REQUESTED]
    assert (results.status.sel(a=3, b=0.2) == NOT_REQUESTED).all()
    assert (results.status.sel(a=[1, 2]) == DONE).all()
    full = run(small(), tmp_path / "s.zarr")
    assert (full.status == DONE).all()


def test_equal_simulations_run_once_and_are_marked(tmp_path, run):
    calls = tmp_path / "calls"
    sweep = Sweep(
        axes={"a": [1, 2], "b": [1.0, 2.0, 3.0]},
        fixed={"calls": str(calls)},
        function=functions.counted,
        outputs=["y"],
        inert={"b": lambda config: config["a"] == 1},
    )
    results = run(sweep, tmp_path / "s.zarr")
    assert len(calls.read_text().splitlines()) == 4
    assert results.status.values[:, :, 0].tolist() == [[DONE, COPY, COPY], [DONE, DONE, DONE]]
    assert (results.y.sel(a=1) == results.y.sel(a=1, b=1.0)).all()


def test_copies_of_what_was_cut_or_failed_are_marked(tmp_path, run):
    target = functions.Uneven(functions.counted, ["y"], {"b": lambda config: True})
    raw = {"axes": {"a": [0, 1, 2], "b": [1.0, 2.0]}, "fixed": {"calls": str(tmp_path / "calls")}}
    sweep = Sweep.of(read_spec(raw, target))
    results = run(sweep, tmp_path / "s.zarr")
    expected = [[DONE, COPY], [TRUNCATED, TRUNCATED_COPY], [FAILED, FAILED_COPY]]
    assert results.status.values[:, :, 0].tolist() == expected
    assert results.y.values[:2, :, 0].tolist() == [[1, 1], [11, 11]]
    assert np.isnan(results.y.values[2]).all()
    assert np.isnan(results.wall_s.values[:, 1]).all()
    assert set(results.error.values[2].ravel()) == {str(results.error.values[2, 0, 0])}
    assert describe_failures(tmp_path / "s.zarr").endswith("2 cells failed; --retry-failed runs them again")
    assert sweep.plan(tmp_path / "s.zarr", measure=False).missing == 0
    (tmp_path / "calls.mended").touch()
    results = run(sweep, tmp_path / "s.zarr", retry_failed=True)
    assert results.status.values[2, :, 0].tolist() == [DONE, COPY]
    assert results.y.values[2, :, 0].tolist() == [21, 21]
    assert (results.error == "").all()
    assert len((tmp_path / "calls").read_text().splitlines()) == 3


def test_excluded_cells_are_not_run(tmp_path, run):
    results = run(small(exclude=[{"a": [1, 2], "b": 0.2}]), tmp_path / "s.zarr")
    assert (results.status.sel(a=[1, 2], b=0.2) == EXCLUDED).all()
    assert (results.status == DONE).sum() == 14
    assert np.isnan(results["sum"].sel(a=1, b=0.2)).all()


def test_formulas_are_coordinates(tmp_path, run):
    sweep = small(axes={"a": [1, 2], "seed": [0, 1]}, formulas={"b": "sqrt(a) * max(seed, 2)"}, replicates=1)
    results = run(sweep, tmp_path / "s.zarr")
    assert results.b.dims == ("a", "seed")
    assert float(results["product"].sel(a=2, seed=1)[0]) == 2 * (2**0.5 * 2) / 3


def test_vectors_have_a_dimension_of_their_own(tmp_path, run):
    outputs = [Output("total"), Output("parts", "m", "Parts", dim="part", labels=("x", "y", "z"))]
    results = run(Sweep(axes={"a": [1, 2]}, function=functions.vector, outputs=outputs), tmp_path / "s.zarr")
    assert results.parts.dims == ("a", "replicate", "part")
    assert results.parts.sel(a=2, part="z").item() == 8


def test_a_failing_configuration_keeps_its_error_and_the_others_go_on(tmp_path, run):
    sweep = Sweep(axes={"a": range(6)}, fixed={"what": "raise"}, function=functions.moody, outputs=["y"])
    results = run(sweep, tmp_path / "s.zarr")
    assert results.status.values[:, 0].tolist() == [DONE, DONE, DONE, FAILED, DONE, DONE]
    assert "ValueError: three is not liked (functions.py:" in str(results.error.values[3, 0])
    assert read_status(tmp_path / "s.zarr")["failed"][0]["a"] == 3


@pytest.mark.parametrize("what", ["kill", "exit", "hang"])
def test_a_configuration_that_ends_its_process_is_quarantined(tmp_path, run, what):
    sweep = Sweep(axes={"a": range(6)}, fixed={"what": what}, function=functions.moody, outputs=["y"])
    results = run(sweep, tmp_path / "s.zarr", time_limit_s=1.0 if what == "hang" else 0.0)
    assert results.status.values[:, 0].tolist() == [DONE, DONE, DONE, FAILED, DONE, DONE]
    text = str(results.error.values[3, 0])
    assert ("time limit of 1 s" if what == "hang" else "process died 3 times") in text
    again = run(sweep, tmp_path / "s.zarr")
    assert again.status.values[3, 0] == FAILED


def test_many_configurations_that_end_their_process_do_not_end_the_run(tmp_path, run, monkeypatch):
    """What waits at a worker that dies is not at fault; and a run that goes on remembers the deaths before."""
    monkeypatch.setattr(runner_module, "_IDLE_DEATHS", 2)
    monkeypatch.setattr(runner_module, "MOST_DEATHS", 2)
    calls = tmp_path / "calls"
    sweep = Sweep(axes={"a": [2, 3, 4, 0, 1]}, fixed={"calls": str(calls)}, function=functions.deadly, outputs=["y"])
    suspect, seen = runner_module.Runner._suspect, []

    def dying(self, cell, *arguments, **options):
        suspect(self, cell, *arguments, **options)
        seen.append(cell)
        if len(seen) == 2:
            raise MemoryError("the client dies here")

    with monkeypatch.context() as patch:
        patch.setattr(runner_module.Runner, "_suspect", dying)
        with pytest.raises(MemoryError):
            run(sweep, tmp_path / "s.zarr")
    results = run(sweep, tmp_path / "s.zarr")
    assert results.status.sel(a=[2, 3, 4, 0, 1]).values[:, 0].tolist() == [FAILED] * 3 + [DONE] * 2
    texts = [str(results.error.sel(a=a).item()) for a in (2, 3, 4)]
    # a task that the scheduler gave to two workers counts twice, and the last death is always alone
    sentence = r"its worker process died [23] times running this \(a crash, or more memory than there is\)"
    assert all(re.search(sentence, text) for text in texts)
    counts = Counter(calls.read_text().split())
    assert all(counts[a] >= 2 for a in "234")
    assert sum(counts[a] for a in "234") <= 8, "twice each, and what the first run had in flight"
    assert read_status(tmp_path / "s.zarr")["status"]["failed"] == 3


def test_a_time_limit_holds_for_each_thread_of_a_worker(tmp_path):
    import dask
    import distributed

    calls = tmp_path / "calls"
    sweep = Sweep(
        axes={"a": [0, 1, 10, *range(11, 40)]}, fixed={"calls": str(calls)}, function=functions.deadly, outputs=["y"]
    )
    options = {"n_workers": 1, "threads_per_worker": 4, "dashboard_address": None}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        results = sweep.run(tmp_path / "s.zarr", cluster=client, progress=False, time_limit_s=1.0)
    assert results.status.sel(a=10).item() == FAILED
    assert "exceeded the time limit of 1 s" in str(results.error.sel(a=10).item())
    others = results.drop_sel(a=10)
    assert (others.status == DONE).all()
    assert np.array_equal(others.y.values[:, 0], 2.0 * others.a.values)
    assert Counter(calls.read_text().split())["10"] == 1


def test_no_time_limit_holds_for_getting_ready(tmp_path, run):
    """In any process, those that start anew, too; what is compiled is compiled by one, before the others get ready."""
    calls = tmp_path / "calls"
    target = functions.Cold(functions.sleepy, ["y"])
    raw = {"axes": {"a": [0, 1, 2, 10, *range(20, 26)]}, "fixed": {"calls": str(calls)}}
    results = run(Sweep.of(read_spec(raw, target)), tmp_path / "s.zarr", time_limit_s=0.6)
    assert results.status.sel(a=10).item() == FAILED
    assert results.wall_s.drop_sel(a=10).max() < 0.6
    assert (results.drop_sel(a=10).status == DONE).all()
    processes = [line.split()[0] for line in calls.read_text().splitlines()]
    assert len(set(processes)) > 2
    assert processes[0] == processes[1]
    # Once for each kind; once more in a process whose worker a late task of another run came to in between.
    assert len(processes) - len(set(calls.read_text().splitlines())) <= 1


@pytest.mark.parametrize("name", TARGETS)
def test_a_process_that_is_ready_imports_nothing_more(name):
    text = f"""
import sys
from faultsweep.sweeps.built_in import built_in_target
target = built_in_target({name!r})
config = {{name: parameter.default for name, parameter in target.parameters.items()}}
config |= {{"log": "nasa-model"}} if "log" in config else {{}}
target.warm(config)
before = set(sys.modules)
target.run(config, keep_jobs=True)
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_simulations_of_each_kind_are_compiled_before_work_is_spread(tmp_path):
    """And nothing is prepared twice for what differs in numbers only."""
    axes = {"machine": ["torus:4x4x8", "torus:4x4x4", "clusters:64+64"], "load_scale": [1, 2]}
    prepared = prepare(
        read_spec({"axes": axes, "fixed": {"log": "nasa-model"}}, SimulatorTarget()), tmp_path / "s.zarr"
    )
    target = prepared.grid.target
    cells, counts = prepared.grid.different(prepared.todo[1:], target.compiled_by)
    assert counts.tolist() == [1, 2, 2]
    assert len({target.preparation(prepared.grid.config(cell)) for cell in cells}) == 2


def test_rerun_gives_the_same_bits(tmp_path, run):
    run(small(formulas={"seed": "10 * a"}), tmp_path / "s.zarr")
    target = FunctionTarget(functions.add, {"sum": "s", "product": ""})
    again = rerun(tmp_path / "s.zarr", {"a": "2", "b": "0.30", "replicate": "1"}, target=target)
    assert again.labels == {"a": 2, "b": 0.3, "replicate": 1}
    assert again.configuration["seed"] == 20
    assert again.different == []
    assert again.metrics == functions.add(2, 0.3, seed=20, replicate=1)


def test_plan_counts_and_changes_nothing(tmp_path, run):
    sweep = small(inert={"replicate": lambda config: config["a"] == 1})
    plan = sweep.plan(tmp_path / "s.zarr")
    assert (plan.cells, plan.simulations, plan.missing) == (18, 15, 15)
    assert plan.run_s
    assert plan.seconds >= 0
    assert not (tmp_path / "s.zarr").exists()
    run(small(axes={"a": [1, 2], "b": [0.1, 0.2]}), tmp_path / "s.zarr")
    plan = sweep.plan(tmp_path / "s.zarr", measure=False)
    assert plan.grows
    assert plan.missing == 15 - 6
    assert plan.status == {"done": 8}  # of the store as it is
    run(sweep, tmp_path / "s.zarr")
    assert plan.bytes / 1.5 < Store(tmp_path / "s.zarr").size_bytes() < plan.bytes * 1.5


def test_plan_counts_per_job_results_and_the_start(tmp_path, run, capsys):
    settings = {"function": functions.with_many_jobs, "outputs": "y", "keep_jobs": True, "axes": {"a": range(30)}}
    sweep = Sweep(**settings)
    plan = sweep.plan(tmp_path / "s.zarr", workers=2)
    run(sweep, tmp_path / "s.zarr")
    assert plan.bytes == pytest.approx(Store(tmp_path / "s.zarr").size_bytes(), rel=0.2)
    assert plan.start_s > 0.1
    assert plan.seconds > plan.start_s
    blind = sweep.plan(measure=False)
    print_plan(blind)
    assert "on disk, without per-job results, in" in capsys.readouterr().out


@pytest.mark.parametrize(("runs", "sleep_s"), [(400, 0.004), (30, 0.05), (3000, 0.0)])
def test_plan_says_how_many_tasks_a_run_hands_out(tmp_path, run, monkeypatch, runs, sleep_s):
    sweep = Sweep(axes={"a": range(runs)}, function=functions.slow, outputs=["sum"], fixed={"sleep_s": sleep_s})
    submit, tasks = runner_module.Runner._submit, []
    monkeypatch.setattr(runner_module.Runner, "_submit", lambda self, cells: tasks.append(cells) or submit(self, cells))
    results = run(sweep, tmp_path / "s.zarr")
    expected = count_tasks(runs, float(results.wall_s.median()), 2)
    assert expected / 1.5 <= len(tasks) <= 1.5 * expected


def test_what_takes_long_before_the_first_run_is_said(tmp_path, on_client, monkeypatch, capsys):
    """The simulator says in these places that it is compiled."""
    monkeypatch.setattr(plan_module, "_PATIENCE_S", 0.1)
    monkeypatch.setattr(runner_module, "_PATIENCE_S", 0.1)
    sweep = Sweep.of(read_spec({"axes": {"a": [1, 2]}}, functions.SlowToStart(functions.add, ["sum", "product"])))
    plan = sweep.plan(tmp_path / "s.zarr")
    assert capsys.readouterr().err == "heating the oven\n"
    assert plan.start_s >= 0.1
    assert sweep.plan(tmp_path / "s.zarr", progress=False).run_s
    assert capsys.readouterr().err == ""
    sweep.run(tmp_path / "s.zarr")
    assert capsys.readouterr().err == "heating the oven\n"


def test_compiling_is_said_only_where_something_is_compiled(monkeypatch):
    compiled = {False: True, True: False}
    monkeypatch.setattr("faultsweep.sweeps.simulator.is_compiled", lambda clusters: compiled[clusters])
    notes = [SimulatorTarget().preparing_note([{"machine": each}]) for each in ("flat:4", "clusters:x.toml")]
    assert ["compiled" in note for note in notes] == [False, True]


def test_plan_says_which_timed_cells_fail_and_why(tmp_path, on_client):
    sweep = Sweep(axes={"a": range(7)}, function=functions.odd, outputs=["y", "z"])
    errors = sweep.plan(tmp_path / "s.zarr", workers=1).errors
    assert [text.partition(": ")[0] for text in errors[:3]] == ["SystemExit", "KeyboardInterrupt", "BrokenError"]
    assert [text[text.rindex("(") :] for text in errors] == [f"(at a={a}, replicate=0)" for a in range(5)]
    same = Sweep(axes={"a": range(1, 9)}, function=functions.odd_jobs, outputs="z")
    [text] = same.plan(tmp_path / "s.zarr", workers=1).errors
    assert re.search(r"lacks z \(at a=1, replicate=0 and \d more\)$", text)


def test_plan_of_a_recomputation_and_of_failed_cells(tmp_path, run):
    sweep = Sweep(axes={"a": range(6)}, fixed={"what": "raise"}, function=functions.moody, outputs=["y"])
    run(sweep, tmp_path / "s.zarr")
    options = [{}, {"retry_failed": True}, {"recompute": True}]
    assert [sweep.plan(tmp_path / "s.zarr", measure=False, **option).missing for option in options] == [0, 1, 6]


def test_a_cell_of_a_function_is_run_again_from_the_public_names(tmp_path, run):
    import faultsweep as fs

    run(small(), tmp_path / "s.zarr")
    again = small().rerun(tmp_path / "s.zarr", select={"a": 2, "b": 0.3})
    assert (again.different, again.labels) == ([], {"a": 2, "b": 0.3, "replicate": 0})
    target = fs.FunctionTarget(functions.add, ["sum", "product"])
    assert fs.rerun(tmp_path / "s.zarr", {"a": 2, "b": 0.3}, target=target).metrics == again.metrics
    with pytest.raises(InputError, match=r"results of the function add, .* Sweep\(function=...\).rerun"):
        fs.rerun(tmp_path / "s.zarr", {"a": 2, "b": 0.3})
    with pytest.raises(InputError, match="function add has changed"):
        Sweep(axes={"a": [1]}, function=_other_add, outputs=["sum"]).rerun(
            tmp_path / "s.zarr", select={"a": 1, "b": 0.1}
        )


def _other_add(a=0, b=0, mode="x", replicate=0, seed=0):
    return {"sum": a - b, "product": 0}


_other_add.__qualname__ = "add"


def test_what_journals_have_is_not_run_again_but_has_yet_to_be_taken(tmp_path, run, monkeypatch):
    sweep, store = small(axes={"a": [1]}, replicates=1), tmp_path / "s.zarr"
    with monkeypatch.context() as patch:
        patch.setattr(runner_module.Runner, "_deliver", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(sweep, store)
    plan = sweep.plan(store, measure=False)
    assert (plan.missing, plan.journalled) == (0, 1)
    assert lacks_results(sweep, store)
    assert (run(sweep, store).status == DONE).all()
    assert not lacks_results(sweep, store)


def test_plan_of_failed_cells_after_a_kill_runs_those_again_that_journals_have(tmp_path, run, monkeypatch):
    calls, store = tmp_path / "calls", tmp_path / "s.zarr"
    sweep = Sweep(axes={"a": range(30)}, fixed={"calls": str(calls)}, function=functions.grumpy, outputs=["y"])
    with monkeypatch.context() as patch:
        patch.setattr(runner_module.Runner, "_deliver", lambda *_: None)
        patch.setattr(sweep_module._Run, "close", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(sweep, store)
    first, again = (sweep.plan(store, measure=False, retry_failed=retry) for retry in (False, True))
    assert (first.missing, first.journalled) == (0, 30)
    assert (again.missing, again.journalled) == (15, 15)
    calls.write_text("")
    run(sweep, store, retry_failed=True)
    assert len(calls.read_text().split()) == 15


def test_plan_tells_copies_from_cells_that_nobody_asked_for(tmp_path, run):
    run(small(axes={"a": [1, 2], "b": [0.1, 0.2]}, replicates=1), tmp_path / "s.zarr")
    plan = small(axes={"a": [3], "b": [0.1]}, replicates=1).plan(tmp_path / "s.zarr", measure=False)
    assert (plan.cells, plan.simulations, plan.missing, plan.copies, plan.not_requested) == (6, 5, 1, 0, 1)
    plan = small(exclude=[{"a": 1}], inert={"b": lambda config: config["a"] == 3}).plan(measure=False)
    assert (plan.cells, plan.excluded, plan.copies, plan.not_requested) == (18, 6, 4, 0)


def test_what_a_function_encloses_is_part_of_its_version():
    def scaled(factor):
        return lambda a: factor * a

    class Line:
        def __init__(self, slope):
            self.slope = slope

        def __call__(self, a):
            return self.slope * a

        def at(self, a):
            return self.slope * a

    def by_default(factor):
        def line(a, slope=factor):
            return slope * a

        # numbers and text stand in the configuration, which the store compares
        return partial(line, slope=factor) if isinstance(factor, float) else line

    def decorated(factor):
        @wraps(functions.add)
        def line(a):
            return factor * functions.add(a)["sum"]

        return lru_cache(line)

    def decorated_by_an_object(factor):
        return update_wrapper(Line(factor), functions.add)

    values = [*((1.0, 2.0), ([1, 2], [1, 3]), ({1, 9}, {1, 8}), ({"a", "b"}, {"a", "c"}), (range(2), range(3)))]
    values += [(bytearray(b"1"), bytearray(b"2")), (np.arange(5000), np.arange(5000) % 4999)]
    makers = [scaled, Line, lambda slope: Line(slope).at, lambda slope: partial(Line.at, slope), by_default]
    for make in (*makers, decorated, decorated_by_an_object):
        for one, other in values:
            assert function_hash(make(one)) == function_hash(make(one))
            assert function_hash(make(one)) != function_hash(make(other))
        assert function_hash(make(object())) == function_hash(make(object()))
    # fmt: off
    one, other, third = (lambda a: a
                         + 1), (lambda a: a
                                + 2), lambda a: a + 3
    # fmt: on
    assert len({function_hash(each) for each in (one, other, third)}) == 3
    assert function_hash(partial(functions.add, 1)) != function_hash(partial(functions.slow, 1))


def test_a_decorated_function_has_a_version_of_all_its_parts():
    def around(function):
        return wraps(function)(lambda a: function(a))

    hashes = {function_hash(each) for each in (functions.add, around(functions.add), around(functions.zero))}
    assert len(hashes) == 3
    compiled = numba.njit(functions.noop)
    before = function_hash(compiled)
    compiled(1.0, 2.0, 3.0)
    assert function_hash(compiled) == before


def test_a_function_without_a_file_is_not_taken_for_what_its_module_has():
    def made(text: str) -> Callable[..., Any]:
        names = dict(globals())
        exec(compile(text, "no_such_file.py", "exec"), names)  # noqa: S102 - a text of this test
        return names["f"]

    for form in ("def f(x):\n return {}", "f = lambda x: {}"):
        one, other, again = (function_hash(made(form.format(body))) for body in ("x", "2 * x", "x"))
        assert one == again != other


def test_the_source_of_a_function_is_that_of_its_code():
    def decorated(x: float) -> float:
        return add_one(x)

    def add_one(x: float) -> float:
        return x + 1

    method = FunctionTarget(functions.add).check
    for function in (functions.add, decorated, wraps(add_one)(decorated), method, lambda x: add_one(x)):
        assert inspect.getsource(_with_source(function)) == inspect.getsource(function.__code__)


def uses_it_inside(x):
    import faultsweep.units

    return faultsweep.units


def uses_a_name_inside(x):
    return [lambda: read_spec for _ in range(int(x))]


def test_functions_that_may_simulate_are_known():
    import faultsweep as fs

    def encloses(x):
        return fs.simulate(x)

    def plain(x):
        return np.sqrt(x) + later

    assert FunctionTarget(encloses).simulates
    assert FunctionTarget(partial(encloses, 1.0)).simulates
    assert FunctionTarget(wraps(encloses)(lambda x: x)).simulates
    assert FunctionTarget(uses_it_inside).simulates
    assert FunctionTarget(uses_a_name_inside).simulates
    assert FunctionTarget(numba.njit(functions.add)).simulates, "it cannot be looked into"
    assert not FunctionTarget(plain).simulates
    assert not FunctionTarget(partial(plain)).simulates
    later = 1.0


def test_the_version_of_a_function_is_the_same_in_every_process():
    """Without its source, too; texts in a set are in another order in each."""
    code = "lambda a: a in {'x', 'y', 'z'}"
    text = f"from faultsweep.sweeps.target import *; print(function_hash(eval({code!r})))"
    found = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", text], env=environment, check=True, capture_output=True, text=True)
        found.add(done.stdout)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (Output("parts", dim="f", labels=(1, 2, 5)), "parts goes along f (1, 2, 4) in the store, along f (1, 2, 5) in"),
        (Output("parts", dim="g", labels=(1, 2, 4)), "parts goes along f (1, 2, 4) in the store, along g (1, 2, 4) in"),
        (Output("parts"), "parts goes along f (1, 2, 4) in the store, along nothing in the spec"),
    ],
)
def test_other_labels_of_a_vector_are_refused(tmp_path, run, output, sentence):
    """Results of new rows would stand under the labels of the old ones."""

    def sweep(output, rows):
        return Sweep(axes={"a": rows}, function=functions.vector, outputs=["total", output])

    first = sweep(Output("parts", dim="f", labels=(1, 2, 4)), [1])
    create(
        tmp_path / "s.zarr",
        (made := prepare(first.spec, tmp_path / "s.zarr")).grid,
        made.outputs,
        {**attributes(first.spec, made), "provenance": "[]"},
    )
    with pytest.raises(InputError, match=re.escape(sentence)):
        sweep(output, [1, 2]).plan(tmp_path / "s.zarr", measure=False)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"workers": 0}, "workers: expected a whole number of 1 or more, got 0"),
        ({"workers": 1.5}, "workers: expected a whole number of 1 or more, got 1.5"),
        ({"time_limit_s": -1}, "time_limit_s: expected seconds, 0 for no limit, got -1"),
        ({"time_limit_s": float("nan")}, "time_limit_s: expected seconds, 0 for no limit, got nan"),
    ],
)
def test_options_that_make_no_sense(tmp_path, options, sentence):
    with pytest.raises(InputError, match=sentence):
        small().run(tmp_path / "s.zarr", **options)
    assert list(tmp_path.iterdir()) == []


def test_outputs_that_no_store_can_hold():
    for outputs, sentence in (
        (["../x"], "outputs: '../x' cannot be a name in a store"),
        (["jobs"], "outputs: expected one or more different names, none of error, integrity, jobs,"),
        (
            [Output("u", dim="part", labels=(1, 2)), Output("v", dim="part", labels=(1, 3))],
            "v: other labels along part",
        ),
        ([Output("v", dim="status", labels=(1, 2))], "v: 'status' is taken in every store"),
        ([Output("v", dim="part", labels=(1, "b"))], "v: labels are different, and all text, all numbers or all times"),
        ([Output("v", dim="part", labels=(1, 1))], "v: labels are different, and all text, all numbers or all times"),
        ([Output("v", dim="part")], "v: a vector has both, the name of its dimension .dim. and a list of labels"),
        ([Output("v", dim="v", labels=(1, 2))], "v: 'v' is an output; give its dimension another name"),
        ({"v": 3}, "v: expected text as its unit, got 3"),
        (5, "outputs: expected names, or a mapping of names to units, got 5"),
    ):
        with pytest.raises(InputError, match=sentence):
            FunctionTarget(functions.vector, outputs)


def test_whatever_a_function_raises_or_gives_is_the_end_of_its_own_cell(tmp_path, run):
    """sys.exit() and texts that no file can hold, too; a result goes by its names, whatever has them."""
    sweep = Sweep(axes={"a": range(12)}, function=functions.odd, outputs=["y", "z"])
    results = run(sweep, tmp_path / "s.zarr").isel(replicate=0)
    errors = results.error.values.tolist()
    for error, begin in zip(
        errors,
        (
            *("SystemExit: 3 (", "KeyboardInterrupt: me (", "BrokenError: (its text cannot be had) ("),
            *(r"ValueError: half \ud800\x1b[31m (", "ValueError: xxx", "", "", ""),
            *("y: expected a number, got '2'", "the function gave None; expected a mapping of y, z"),
            *("the function gave {1.0, 2.0}; expected", "z: expected a number, got an object of type object"),
        ),
        strict=True,
    ):
        assert error.startswith(begin)
        assert bool(error) == bool(begin)
        assert len(error) < 1100
    assert results.y.values.tolist()[5:8] == [2.0] * 3
    assert results.z.values.tolist()[5:8] == [1.0] * 3
    # defaults that are no numbers stay the function's own, and the cell can be run again
    assert sweep.rerun(tmp_path / "s.zarr", select="a=6").different == []


@pytest.mark.parametrize(
    "value",
    [
        *(np.complex128(1 + 2j), np.array(1j), bytearray(b"1.5"), memoryview(b"7"), np.array("2.5"), np.str_("2.5")),
        *(np.array("2.5", dtype=object), np.ma.masked, np.ma.array(1.0, mask=True), np.timedelta64(5, "ns")),
        *(np.datetime64("2020-01-01", "ns"), pd.NaT, None, [1.0, 2.0], 10**400),
    ],
)
def test_what_float_takes_and_is_no_number_is_refused(value):
    with pytest.raises(InputError, match="y: expected a number, got"):
        FunctionTarget(lambda: {"y": value}, ["y"]).run({})


@pytest.mark.parametrize(
    "value",
    [
        *(2, 2.0, np.float32(2), np.int8(2), np.array(2), np.ma.array(2.0), Decimal("2"), Fraction(2)),
        *(xr.DataArray(2.0), np.array(Decimal(2)), np.longdouble(2), pd.Series([1.0, 2.0])[1]),
    ],
)
def test_numbers_of_any_type_are_numbers(value):
    assert FunctionTarget(lambda: {"y": value}, ["y"]).run({}).values == [2.0]
    parts = Output("parts", dim="f", labels=(1, 2))
    assert FunctionTarget(lambda: {"parts": [value, 1]}, [parts]).run({}).values == [2.0, 1.0]


@pytest.mark.parametrize("part", [memoryview(b"12"), bytearray(b"12"), {1: 5.0, 2: 6.0}, "12"])
def test_what_is_no_sequence_of_numbers_is_no_vector(part):
    parts = Output("parts", dim="f", labels=(1, 2))
    with pytest.raises(InputError, match="parts: expected 2 numbers along f, got"):
        FunctionTarget(lambda: {"parts": part}, [parts]).run({})


def test_per_job_results_that_no_store_can_hold_fail_their_cell_only(tmp_path, run):
    settings = {"function": functions.odd_jobs, "outputs": "y", "keep_jobs": True}
    sweep = Sweep(axes={"a": range(8)}, **settings)
    results = run(sweep, tmp_path / "s.zarr").isel(replicate=0)
    assert (results.status == [FAILED] * 6 + [DONE] * 2).all()
    assert "who: expected one number, true or false per job, got ['x']" in str(results.error.values[0])
    jobs = xr.open_zarr(tmp_path / "s.zarr", group="jobs")
    assert [int(jobs.file[int(results.jobs_offset[a])]) for a in (6, 7)] == [1, 2**40]
    more = run(Sweep(axes={"a": [8, 7]}, **settings), tmp_path / "s.zarr").isel(replicate=0)
    assert more.status.sel(a=[7, 8]).values.tolist() == [DONE, FAILED]
    assert np.isnan(more.y.sel(a=8))
    assert str(more.error.sel(a=8).values).startswith(
        "per-job results: file is float64 in one run and int64 in another"
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"function": max}, "function: <built-in function max> does not say which arguments it has"),
        ({"inert": {"b": 3}}, "inert: b: expected a function of the configuration, got 3"),
        ({"inert": {"b": lambda config: config["c"]}}, "inert: the rule of 'b' raises KeyError: 'c'"),
        ({"inert": {"b": lambda config: None}}, "inert: the rule of 'b' gives None; expected True or False"),
        ({"keep_jobs": "no"}, "keep_jobs: expected true or false, got 'no'"),
        ({"exclude": {"a": 1}}, "exclude: expected"),
        ({"target": "failures"}, "target: 'failures' and a function are two targets; leave one out"),
        (
            {"formulas": {"seed": "3 * a"}, "exclude": [{"seed": 5}]},
            "exclude: the formula of seed never gives 5; the nearest is",
        ),
    ],
)
def test_mistakes_of_a_sweep_in_python(tmp_path, settings, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)) as caught:
        small(**settings).plan(tmp_path / "s.zarr", measure=False)
    assert len(str(caught.value).splitlines()) == 1


def test_a_function_does_not_pass_for_the_simulator():
    def simulator(a):
        return a

    simulator.__qualname__ = "simulator"  # as of one in a module
    with pytest.raises(InputError, match="'simulator' is the name of what a spec can run"):
        small(function=simulator, axes={"a": [1]}, replicates=1)


def test_arrays_of_pandas_and_xarray_and_paths_are_values(tmp_path):
    axes = {"a": pd.Series([1, 2]), "b": xr.DataArray([0.5]), "mode": [tmp_path]}
    rows = [axis.labels for axis in small(axes=axes).spec.axes[:-1]]
    assert rows == [[1, 2], [0.5], [str(tmp_path)]]


def test_a_formula_that_was_whole_where_it_had_a_value_may_get_fractions(tmp_path, run):
    """What says that a number is whole belongs to the values that it was written with."""
    settings = {"fixed": {"b": 0.5}, "formulas": {"seed": "2 / a"}, "outputs": {"sum": "", "product": ""}}

    def halves(a=0.0, b=0.0, seed=0):
        return {"sum": a + b + seed, "product": seed}

    def sweep(values):
        return small(**settings, function=halves, axes={"a": values}, exclude=[{"a": 0.0}], replicates=1)

    run(sweep([0.0, 1.0, 2.0]), tmp_path / "s.zarr")
    run(sweep([0.0, 1.0, 2.0, 4.0]), tmp_path / "s.zarr")
    again = sweep([0.0, 4.0]).rerun(tmp_path / "s.zarr", select={"a": 4.0})
    assert (again.configuration["seed"], again.metrics["product"], again.different) == (0.5, 0.5, [])


def test_a_target_that_is_not_the_stores_is_refused(tmp_path, run):
    run(small(), tmp_path / "s.zarr")
    select = "a=1,b=0.1"
    for target, sentence in (
        (functions.add, "target: expected FunctionTarget(function, outputs), got"),
        (FunctionTarget(functions.add, ["sum"]), "the store has product, which the outputs of add do not name; let"),
        (FunctionTarget(functions.slow, ["sum"]), "results of add, not of slow"),
    ):
        with pytest.raises(InputError, match=re.escape(sentence)):
            rerun(tmp_path / "s.zarr", select, target=target)


def test_a_version_that_was_raised_is_refused(tmp_path, run):
    run(small(version="1"), tmp_path / "s.zarr")
    with pytest.raises(InputError, match="version"):
        run(small(version="2"), tmp_path / "s.zarr")
    with pytest.raises(InputError, match="version belong to a function"):
        Sweep(axes={"seed": [1]}, version="2")
