"""What a person meets: ranges that end, functions of any signature, results as they come, notebooks, large plans."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from faultsweep.sweeps.axes import read_axis
from faultsweep.sweeps.runner import progress as progress_module
from faultsweep.sweeps.runner.progress import Progress
from faultsweep.sweeps.runner.watch import InterruptedSweepError
from faultsweep.sweeps.sweep import Sweep

import faultsweep as fs
from faultsweep.errors import InputError
from tests.sweeps.functions import add, counted


@pytest.mark.parametrize(
    ("raw", "steps", "stops"),
    [
        ({"start": 0.1, "stop": 1, "step": 0.4}, ("0.45 (3 values)", "0.3 (4 values)"), "0.9 or 1.3"),
        ({"start": 10, "stop": 1, "step": -4}, ("-4.5 (3 values)", "-3 (4 values)"), "2 or -2"),
        ({"start": 0, "stop": 1, "step": 5}, ("1 (2 values)",), "0 or 5"),
    ],
)
def test_a_range_that_does_not_reach_its_stop_names_the_nearest_steps(raw, steps, stops):
    with pytest.raises(InputError, match="is not reached") as caught:
        read_axis("x", raw)
    assert f"a stop of {stops}" in str(caught.value)
    for step in steps:
        assert step in str(caught.value)
        number = float(step.split()[0])
        values = read_axis("x", {**raw, "step": number}).labels
        assert (values[0], values[-1]) == (raw["start"], raw["stop"])
        assert len(values) == int(re.search(r"(\d+) values", step)[1])


def by_place(a, b=2, /, c=3, *rest, d=4, **other):
    """Arguments of every kind."""
    assert not rest
    assert not other
    return {"y": 1000 * a + 100 * b + 10 * c + d}


def test_functions_that_take_arguments_by_place(tmp_path, client):
    sweep = Sweep(name="p", axes={"a": [1, 2], "c": [5, 6]}, function=by_place, outputs="y")
    data = sweep.run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert data.y.sel(a=2, c=5).item() == 2254
    data = Sweep(name="p", axes={"x": [3.0], "y": [4.0]}, function=lambda x, y, /: math.hypot(x, y)).run(
        tmp_path / "t.zarr", cluster=client, progress=False
    )
    assert 5.0 in [variable.item() for variable in data.data_vars.values() if variable.dtype == float]
    with pytest.raises(InputError, match="wrap it, such as"):
        Sweep(name="p", axes={"x": [1]}, function=lambda *many: 1)
    with pytest.raises(InputError, match=r"wrap <ufunc 'sqrt'>, such as lambda x: numpy.sqrt\(x\)"):
        Sweep(name="p", axes={"x": [1.0]}, function=np.sqrt)


def test_a_stream_gives_each_result_once(tmp_path, client):
    sweep = Sweep(
        name="s", axes={"a": [1, 2, 3], "b": [0.0, 0.5]}, replicates=2, function=add, outputs=["sum", "product"]
    )
    seen = list(sweep.stream(tmp_path / "s.zarr", cluster=client, progress=False))
    assert len(seen) == 12
    for result in seen:
        assert result.status == "done"
        assert result.values == add(**{**result.labels, "seed": 0})
    assert len({tuple(result.labels.values()) for result in seen}) == 12
    assert list(sweep.stream(tmp_path / "s.zarr", cluster=client, progress=False)) == []


def test_a_stream_that_is_left_stops_the_run(tmp_path, client):
    calls = tmp_path / "calls"
    sweep = Sweep(
        name="s",
        axes={"a": list(range(300)), "b": list(range(100))},
        fixed={"calls": str(calls)},
        function=counted,
        outputs="y",
    )
    for number, result in enumerate(sweep.stream(tmp_path / "s.zarr", cluster=client, progress=False)):
        assert result.values["y"] == result.labels["a"] * 10 + result.labels["b"]
        if number == 5:
            break
    data = fs.open_results(tmp_path / "s.zarr")
    done = int((data.status == 1).sum())
    assert 5 < done < 30_000
    assert len(calls.read_text().splitlines()) == done, "what was finished is in the store"


def test_a_stream_raises_what_the_run_raises(tmp_path, client):
    stream = Sweep(name="s", axes={"a": [1]}, function=add, outputs="sum").stream(
        tmp_path / "no" / "such.zarr", workers=0
    )
    with pytest.raises(InputError, match="workers"):
        next(stream)
    assert issubclass(InterruptedSweepError, Exception)


def test_a_stream_says_at_once_what_it_cannot_take():
    sweep = Sweep(name="s", axes={"a": [1]}, function=add, outputs="sum")
    with pytest.raises(InputError, match="store: expected a path"):
        sweep.stream(3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'workres'"):
        sweep.stream(workres=1)


def test_sweeps_and_runs_show_themselves_in_notebooks():
    sweep = Sweep(name="s", title="<b>s</b>", axes={"a": ["<script>", *map(str, range(20))]}, function=lambda a: 1.0)
    text = sweep._repr_html_()
    assert "21 cells" in text
    assert "<script>" not in text
    assert "<b>s</b>" not in text
    run = fs.simulate(fs.load_workload("nasa-model", num_jobs=20), machine="flat:128")
    assert "mean_wait_s" in run._repr_html_()
    assert "flat:128" in run._repr_html_()


def test_the_bar_of_a_notebook(monkeypatch, capsys):
    import IPython
    from IPython.display import HTML

    shown = []

    class Handle:
        def update(self, what):
            shown.append(what)

    class ZMQInteractiveShell:
        pass

    def display(what, display_id):
        shown.append(what)
        return Handle()

    monkeypatch.setattr(IPython, "get_ipython", ZMQInteractiveShell)
    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(progress_module, "_NOTEBOOK_S", 0.0)
    with Progress(10) as bar:
        bar.pace.work()
        bar.add(4, failed=1)
        bar.add(6)
    assert all(isinstance(what, HTML) for what in shown)
    texts = [what.data for what in shown]
    assert 'value="4" max="10"' in " ".join(texts)
    assert "1 failed" in texts[-1]
    assert texts[-1].startswith('<progress value="10" max="10">')
    assert capsys.readouterr().err == ""


def test_a_grid_that_is_too_large_is_refused_at_once(tmp_path):
    sweep = Sweep(name="g", axes={name: list(range(1000)) for name in "xyz"}, function=lambda x, y, z: 1.0, outputs="r")
    start = time.perf_counter()
    with pytest.raises(InputError, match=r"1,000,000,000 cells .* sample instead"):
        sweep.plan(tmp_path / "s.zarr", measure=False)
    assert time.perf_counter() - start < 2


def test_impossible_numbers_of_jobs_are_told_by_plan(tmp_path):
    sweep = Sweep(name="j", axes={"num_jobs": [100, 10**12]}, fixed={"log": "nasa-model"})
    plan = sweep.plan(tmp_path / "s.zarr", measure=False)
    [(text, count)] = plan.foreseen.items()
    assert count == 1
    assert "num_jobs = 1,000,000,000,000" in text
    assert sys.getsizeof(text) < 1000


CELLS = """
import faultsweep as fs
sweep = fs.Sweep(name="cells", axes={"a": [1, 2, 3]}, function=lambda a: a * 1.5, outputs="y")
sweep
---
print(float(sweep.run("cells.zarr", workers=1).y.sum()))
---
print(sorted(float(result.values["y"]) for result in sweep.stream("again.zarr", workers=1, progress=False)))
"""


@pytest.mark.slow
def test_a_sweep_in_a_real_notebook(tmp_path):
    """In a kernel, whose event loop runs: the table of the sweep, the bar, the results, and a stream."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS.split("---")])
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    table, bar, stream = (cell["outputs"] for cell in book["cells"])
    assert "3 cells" in table[0]["data"]["text/html"]
    [shown] = [out["data"]["text/html"] for out in bar if "data" in out]
    assert shown.startswith('<progress value="3" max="3">')
    assert [out["text"] for out in bar if out["output_type"] == "stream"] == ["9.0\n"]
    assert [out.get("text") for out in stream] == ["[1.5, 3.0, 4.5]\n"]


PLAN = """
import sys, time
import faultsweep as fs
if sys.argv[2] == "function":
    axes = {"x": list(range(1000)), "y": list(range(100)), "z": [float(k) for k in range(100)]}
    sweep = fs.Sweep(name="p", axes=axes, function=lambda x, y, z: 1.0, outputs="r")
else:
    axes = {"load_scale": {"start": 0.5, "stop": 1.5, "num": 1000}, "mtbf_h": {"start": 10, "stop": 1000, "num": 50}}
    axes["scheduler"] = ["fcfs", "backfill"]
    fixed = {"log": "nasa-model", "num_jobs": 100, "failures": "mtbf"}
    sweep = fs.Sweep(name="p", axes=axes, fixed=fixed, replicates=100)
plan = sweep.plan(sys.argv[1], measure=False)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))  # of this program alone
print(plan.cells, plan.missing, time.process_time(), int(peak.split()[1]) / 1e6)
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["function", "simulator"])
def test_a_plan_of_ten_million_cells(tmp_path, target):
    """Within a minute and a gigabyte."""
    command = [sys.executable, "-c", PLAN, str(tmp_path / "s.zarr"), target]
    cells, missing, seconds, gigabytes = map(float, subprocess.check_output(command, timeout=300).split())
    assert cells == missing == 10_000_000
    assert seconds < 60
    assert gigabytes < 1
