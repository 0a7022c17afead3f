"""``faultsweep plan | run | status | rerun``: what they print, and every mistake as one sentence and exit code 2."""

from __future__ import annotations

import csv
import json
import resource
import shutil
import subprocess
import sys

import pytest
import xarray as xr
from faultsweep.sweeps.grid import parse_select
from faultsweep.sweeps.runner.prepare import attributes, prepare
from faultsweep.sweeps.store.manifest import manifest_size, replace_file, root_text
from faultsweep.sweeps.store.statuses import DONE
from faultsweep.sweeps.store.store import create
from faultsweep.sweeps.sweep import Sweep

SPEC = """
name = "small"
[fixed]
log = "{log}"
machine = "flat:4"
[axes]
scheduler = ["fcfs", "backfill"]
load_scale = [1, 1.5]
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "tiny.swf"
    rows = [
        f"{i} {10 * i} -1 {30 + 7 * i} {1 + i % 4} -1 -1 {1 + i % 4} {60 + 7 * i} -1 1 1 1 1 1 -1 -1 -1"
        for i in range(12)
    ]
    path.write_text("; MaxNodes: 4\n; MaxProcs: 4\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def spec(tmp_path, log):
    path = tmp_path / "small.toml"
    path.write_text(SPEC.format(log=log))
    return path


@pytest.fixture
def call(on_client, command):
    """Run the command line in this process, on the tests' cluster; returns exit code, output and error output."""
    return command


def test_paths_in_a_spec_start_from_its_folder(tmp_path, log, call, monkeypatch):
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / "data").mkdir(parents=True)
    elsewhere.mkdir()
    log.rename(project / "data" / "tiny.swf")
    (project / "data" / "failures.csv").write_text("time_s,node,down_s\n40,1,20\n90,3,10\n")
    text = SPEC.format(log="data/tiny.swf").replace("[axes]", '[axes]\nfailures = ["none", "data/failures.csv"]')
    (project / "small.toml").write_text(text)
    monkeypatch.chdir(elsewhere)
    code, out, err = call("run", project / "small.toml", "--store", project / "s.zarr")
    assert (code, "8 done" in out) == (0, True), err
    results = xr.open_zarr(project / "s.zarr")
    assert results.failures.values.tolist() == ["none", "data/failures.csv"]
    assert set(json.loads(results.attrs["pins"])) == {"log data/tiny.swf", "failures data/failures.csv"}

    moved = tmp_path / "moved"
    project.rename(moved)
    cell = "scheduler=backfill,load_scale=1.5,failures=data/failures.csv"
    assert "equal to the store" in call("rerun", moved / "s.zarr", "--select", cell)[1]
    assert "0 simulations to run" in call("plan", moved / "small.toml", "--store", moved / "s.zarr", "--no-measure")[1]
    copy, options = shutil.copy(moved / "small.toml", elsewhere / "copy.toml"), ["--store", moved / "s.zarr"]
    assert call("plan", copy, *options, "--no-measure")[0] == 2
    assert "0 simulations to run" in call("plan", copy, *options, "--no-measure", "--folder", moved)[1]

    (moved / "data" / "tiny.swf").unlink()
    code, _, err = call("plan", moved / "small.toml", "--store", moved / "s.zarr", "--no-measure")
    assert code == 2
    assert f"{moved / 'data' / 'tiny.swf'}" in err
    assert len(err.splitlines()) == 1


def test_paths_of_a_python_sweep_start_from_its_folder(tmp_path, log, monkeypatch):
    settings = {"axes": {"scheduler": ["fcfs"]}, "fixed": {"log": "tiny.swf", "machine": "flat:4"}}
    assert Sweep(**settings, folder=tmp_path).plan(tmp_path / "s.zarr", measure=False).missing == 1
    monkeypatch.chdir(tmp_path)
    assert Sweep(**settings).plan("s.zarr", measure=False).missing == 1


def test_plan_run_status_rerun(tmp_path, spec, call):
    store = tmp_path / "s.zarr"
    code, out, _ = call("plan", spec, "--store", store, "--no-measure")
    assert code == 0
    assert "small: 4 cells (2 scheduler x 2 load_scale x 1 replicate), 0 excluded" in out
    assert "4 simulations to run" in out
    assert not store.exists()
    planned = json.loads(call("plan", spec, "--store", store, "--no-measure", "--json")[1])["bytes"]
    code, out, _ = call("run", spec, "--store", store)
    assert code == 0
    assert "4 done" in out
    assert call("run", spec, "--store", store)[0] == 0
    code, out, _ = call("status", store, "--json")
    found = json.loads(out)
    assert found["status"]["done"] == 4
    assert found["complete"]
    assert planned == pytest.approx(found["size_bytes"], rel=0.15)
    assert found["running"] is None
    assert found["pins"][f"log {tmp_path / 'tiny.swf'}"].startswith("sha256:")
    code, out, _ = call("status", spec, "--store", store)
    assert "4 done" in out
    code, out, _ = call(
        "rerun",
        store,
        "--select",
        "scheduler=backfill,load_scale=1.5",
        "--events-out",
        tmp_path / "e.csv",
        "--jobs-out",
        tmp_path / "j.csv",
        "--json",
    )
    again = json.loads(out)
    assert code == 0
    assert again["different"] == []
    assert again["metrics"]["jobs_submitted"] == 12
    assert len(list(csv.DictReader((tmp_path / "j.csv").open()))) == 12
    kinds = [row["kind"] for row in csv.DictReader((tmp_path / "e.csv").open())]
    assert kinds.count("finish") == 12
    code, out, _ = call("plan", spec, "--store", store, "--json")
    assert json.loads(out)["missing"] == 0


def test_one_cell_is_a_cell(spec, tmp_path, call):
    spec.write_text(spec.read_text().partition("[axes]")[0])
    code, out, _ = call("plan", spec, "--store", tmp_path / "s.zarr", "--no-measure")
    assert (code, "small: 1 cell (1 replicate)" in out, "1 simulation to run" in out) == (0, True, True), out


def test_plan_times_cells(spec, tmp_path, call):
    code, out, _ = call("plan", spec, "--store", tmp_path / "s.zarr", "--json", "--workers", "2")
    plan = json.loads(out)
    assert code == 0
    assert len(plan["run_s"]) == 4
    assert plan["seconds"] > 0


def test_plan_shows_what_is_resolved(spec, tmp_path, call):
    _, out, _ = call("plan", spec, "--store", tmp_path / "s.zarr", "--no-measure", "--resolved")
    assert 'scheduler = ["fcfs", "backfill"]' in out
    assert "slowdown_bound_s = 10.0" in out


def test_a_log_that_changed_is_refused_until_recompute(tmp_path, spec, log, call):
    store = tmp_path / "s.zarr"
    assert call("run", spec, "--store", store)[0] == 0
    log.write_text(log.read_text().replace("\n1 10 -1 37", "\n1 10 -1 99"))
    for command in (("run", spec, "--store", store), ("rerun", store, "--select", "scheduler=fcfs,load_scale=1")):
        code, _, err = call(*command)
        assert code == 2
        assert "has changed: the store has sha256:" in err
        assert ", now it is sha256:" in err
    assert call("run", spec, "--store", store, "--recompute")[0] == 0
    assert call("rerun", store, "--select", "scheduler=fcfs,load_scale=1")[0] == 0


def edit(path, old, new):
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


MISTAKES = {
    "unknown scheduler": (
        ("fcfs", "fcsf"),
        "axes.scheduler: scheduler: unknown scheduler 'fcsf'; did you mean 'fcfs'?",
    ),
    "misspelt key": (("[fixed]", "[fixd]"), "unknown key 'fixd'; did you mean 'fixed'?"),
    "misspelt parameter": (("machine =", "machin ="), "fixed: unknown parameter 'machin'; did you mean 'machine'?"),
    "axis without values": (("[1, 1.5]", "[]"), "axes.load_scale: an axis without values"),
    "two axes set one parameter": (
        ("load_scale = ", 'x = [{label = "a", scheduler = "fcfs"}]\nload_scale = '),
        "axes.x: parameter 'scheduler' is already set by axes.scheduler",
    ),
    "value out of range": (("[1, 1.5]", "[0, 1.5]"), "axes.load_scale: load_scale: 0 is outside the valid range"),
    "value of another type": (("[1, 1.5]", '["a"]'), "axes.load_scale: load_scale: expected a number, got 'a'"),
    "digits that are not ASCII": (("flat:4", "flat:\u0664"), "machine: 'flat:\u0664' is not a machine"),
    "unknown machine": (("flat:4", "flut:4"), "machine: 'flut:4' is not a machine"),
    "no log": (('log = "', 'log = "/missing'), "log: "),
    "formula without a value": (
        ("[axes]", '[formulas]\nstart_delay_s = "1 / (load_scale - 1)"\n[axes]'),
        "formulas.start_delay_s: formula '1 / (load_scale - 1)' has no value for load_scale = 1.0",
    ),
    "exclusion of nothing": (
        ("[axes]", '[formulas]\nstart_delay_s = "2 * load_scale"\n[[exclude]]\nstart_delay_s = 4\n[axes]'),
        "exclude: the formula of start_delay_s never gives 4; the nearest is 3.0",
    ),
    "no TOML": (("[axes]", "[axes"), "not valid TOML"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_spec_is_one_sentence(tmp_path, spec, call, mistake):
    change, sentence = MISTAKES[mistake]
    edit(spec, *change)
    for command in ("plan", "run"):
        code, out, err = call(command, spec, "--store", tmp_path / "s.zarr")
        assert code == 2
        assert out == ""
        assert len(err.splitlines()) == 1
        assert err.startswith(f"{spec}: ")
        assert sentence in err
    assert not (tmp_path / "s.zarr").exists()


def test_a_damaged_log_is_one_sentence(spec, log, tmp_path, call):
    edit(log, "\n3 30", "\nx 30")
    code, _, err = call("run", spec, "--store", tmp_path / "s.zarr")
    assert (code, len(err.splitlines())) == (2, 1)
    assert f"{log}" in err
    assert "line 6" in err or ":6" in err


def test_a_job_larger_than_the_machine_fails_in_its_cell(spec, log, tmp_path, call):
    edit(spec, "flat:4", "flat:3")
    edit(spec, str(log), log.name)
    edit(spec, "[axes]", '[axes]\nmachine = ["flat:3", "flat:4"]')
    edit(spec, 'machine = "flat:3"\n', "")
    sentence = "tiny.swf: job 3 needs 4 nodes and the machine has 3"
    code, out, _ = call("plan", spec, "--store", tmp_path / "s.zarr", "--no-measure")
    assert (code, f"4 simulations will fail: {sentence}" in out) == (0, True)
    code, out, err = call("run", spec, "--store", tmp_path / "s.zarr")
    assert code == 2
    assert "4 done, 4 failed" in out
    first, last = err.splitlines()
    assert first.startswith(sentence)
    assert first.endswith("(in 4 cells)")
    assert last == f"{tmp_path / 's.zarr'}: 4 cells failed; --retry-failed runs them again"
    assert sentence in str(xr.open_zarr(tmp_path / "s.zarr").error.values[0, 0, 0, 0])
    assert call("run", spec, "--store", tmp_path / "s.zarr")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "nosuch"), "unknown experiment or spec file 'nosuch'"),
        (("run", "nosuch.toml"), "nosuch.toml: no such spec file"),
        (("status", "nosuch.zarr"), "nosuch.zarr: no such store"),
        (("rerun", "nosuch.zarr", "--select", "a=1"), "nosuch.zarr: no such store"),
        (("run", "SPEC", "--cluster", "tcp://127.0.0.1:1"), "cluster: cannot reach the scheduler at tcp://127.0.0.1:1"),
        (("run", "SPEC", "--cluster", "nowhere"), "cluster: 'nowhere' is neither local, an address"),
        (("run", "SPEC", "--store", "/proc/x.zarr"), "/proc/x.zarr.run: "),
        (("run", "SPEC", "--logs", "missing"), "missing"),
    ],
)
def test_mistakes_on_the_command_line(spec, call, monkeypatch, tmp_path, arguments, sentence):
    import functools

    from faultsweep.sweeps import sweep as sweep_module

    monkeypatch.chdir(tmp_path)
    if "--logs" in arguments:
        edit(spec, str(tmp_path / "tiny.swf"), "nasa")
    monkeypatch.setattr(sweep_module, "connect", functools.partial(sweep_module.connect, timeout_s=1))
    code, out, err = call(*(spec if argument == "SPEC" else argument for argument in arguments))
    assert (code, out) == (75 if "cannot reach" in sentence else 2, "")
    assert len(err.splitlines()) == 1
    assert sentence in err


def test_a_damaged_file_of_a_store_is_one_sentence_and_the_next_run_mends_it(spec, tmp_path, call):
    store = tmp_path / "s.zarr"
    assert call("run", spec, "--store", store)[0] == 0
    (chunk,) = [path for path in (store / "status" / "c").rglob("*") if path.is_file()]
    chunk.write_bytes(b"junk")
    code, out, _ = call("status", store)
    assert code == 7
    assert "status/c/0/0/0: damaged" in out
    code, _, err = call("report", store, "-o", tmp_path / "report.html")
    assert (code, err.count("\n")) == (2, 1)
    assert f"{store}: status/c/0/0/0 is damaged" in err
    assert f"faultsweep check {store} says what else is" in err
    code, _, err = call("run", spec, "--store", store)
    assert code == 0
    assert "1 file restored" in err
    assert call("check", store)[0] == 0


def test_the_status_of_a_file_that_is_neither_store_nor_spec(call):
    code, out, err = call("status", __file__)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.endswith("; nor is it a store, which is a folder\n")


def test_what_cannot_be_a_store_is_refused_before_anything_is_made(spec, log, tmp_path, call):
    (tmp_path / "junk.zarr").mkdir()
    other = tmp_path / "other.zarr"
    edit(spec, "[1, 1.5]", "[1]")
    assert call("run", spec, "--store", other)[0] == 0
    shutil.rmtree(tmp_path / "other.zarr.run")
    edit(spec, "flat:4", "flat:5")
    sentences = {
        log: "a file, not a store of a sweep; name a store, or a folder that is not there yet",
        tmp_path / "junk.zarr": "a folder that is not a store of a sweep (it has no zarr.json)",
        other: "fixed.machine: the store has 'flat:4', the spec 'flat:5'; what is fixed or computed makes another "
        "sweep: give it another store",
    }
    for path, sentence in sentences.items():
        for command in ("run", "plan"):
            assert call(command, spec, "--store", path) == (2, "", f"{path}: {sentence}\n")
    assert list(tmp_path.glob("*.run")) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("run",),
            "faultsweep run: missing argument 'SPEC-or-NAME' (A TOML file, or the name of a shipped experiment)",
        ),
        (("run", "x", "--workers", "0"), "faultsweep run: --workers: "),
        (("run", "x", "--time-limit", "soon"), "faultsweep run: --time-limit: "),
        (("list", "schedulers", "--logs"), "faultsweep list: unknown option '--logs' (valid: --json)"),
        (("run", "x", "--sotre", "s"), "faultsweep run: unknown option '--sotre'; did you mean '--store'? (valid: --"),
        (("run", "x", "y"), "faultsweep run: got unexpected extra argument"),
        (("rnu",), "faultsweep: unknown command 'rnu'; did you mean 'run'? (valid: "),
        (("logs", "descrbe"), "faultsweep logs: unknown command 'descrbe'; did you mean 'describe'?"),
        (("list", "machine"), "faultsweep list: "),
    ],
)
def test_mistakes_that_typer_finds_are_one_sentence(call, arguments, sentence):
    code, out, err = call(*arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith(sentence)


def test_a_command_without_arguments_prints_its_help(call):
    code, out, err = call()
    assert code == 2
    assert "Usage" in out + err
    assert call("--version")[0] == 0


def test_mistakes_in_a_selection(tmp_path, spec, call):
    """They are found before anything is simulated, so the store needs no results."""
    store = tmp_path / "s.zarr"
    described = Sweep.from_toml(spec).spec
    prepared = prepare(described, store)
    create(store, prepared.grid, prepared.outputs, {**attributes(described, prepared), "provenance": "[]"})
    for select, sentence in (
        ("scheduler=backfil,load_scale=1", "unknown value of scheduler 'backfil'; did you mean 'backfill'?"),
        ("schedular=backfill", "unknown axis or varied parameter 'schedular'; did you mean 'scheduler'?"),
        ("scheduler=fcfs", "--select: load_scale has 2 values (1.0, 1.5); name one"),
        ("scheduler", "--select: expected name=value,name=value, got 'scheduler'"),
        ("scheduler=fcfs,scheduler=backfill", "--select: scheduler stands twice; name one value"),
    ):
        code, _, err = call("rerun", store, "--select", select)
        assert (code, len(err.splitlines())) == (2, 1)
        assert sentence in err
    code, out, err = call("rerun", store, "--select", "scheduler=backfill,load_scale=1")
    assert (code, err) == (0, "")
    assert "the store has no result of this cell to compare with (pending)" in out


@pytest.mark.parametrize(
    ("text", "select"),
    [
        ("", {}),
        ("scheduler=backfill,load_scale=1.2", {"scheduler": "backfill", "load_scale": "1.2"}),
        (" scheduler = backfill , load_scale = 1.2, ", {"scheduler": "backfill", "load_scale": "1.2"}),
        ("policy=fcfs, 0,load_scale=1", {"policy": "fcfs, 0", "load_scale": "1"}),
        ('policy="a, b=2",load_scale=1', {"policy": "a, b=2", "load_scale": "1"}),
        ("policy='5\" disk',load_scale=1", {"policy": '5" disk', "load_scale": "1"}),
        ("policy=x=y", {"policy": "x=y"}),
    ],
)
def test_selections(text, select):
    assert parse_select(text) == select


def test_labels_with_a_comma_can_be_selected(tmp_path, spec, call):
    edit(
        spec,
        'scheduler = ["fcfs", "backfill"]',
        'policy = {zip = {scheduler = ["fcfs", "backfill"], growth_limit = [0, 1]}}',
    )
    assert call("run", spec, "--store", tmp_path / "s.zarr")[0] == 0
    code, out, err = call("rerun", tmp_path / "s.zarr", "--select", "policy=backfill, 1,load_scale=1.5")
    assert (code, err) == (0, "")
    assert "policy=backfill, 1, load_scale=1.5" in out


def test_a_store_of_another_version(tmp_path, spec, call):
    store = tmp_path / "s.zarr"
    assert call("run", spec, "--store", store)[0] == 0
    root = json.loads((store / "zarr.json").read_text())
    root["attributes"]["faultsweep_format"] = 99
    replace_file(store, "zarr.json", root_text(root, manifest_size(store)))  # whole, and of a later version
    for command in (("run", spec, "--store", store), ("status", store), ("plan", spec, "--store", store)):
        code, _, err = call(*command)
        assert (code, err.count("\n")) == (2, 1)
        assert "a store of format 99; this version of faultsweep reads format 1, 2" in err


def test_a_result_that_differs_is_told(tmp_path, spec, call):
    import zarr

    store = tmp_path / "s.zarr"
    assert call("run", spec, "--store", store)[0] == 0
    group = zarr.open_group(store, mode="r+")
    group["mean_wait_s"][0, 0, 0] += 1e-12
    group["mean_wait_s"][0, 0, 0] = 7.0
    code, out, err = call("rerun", store, "--select", "scheduler=fcfs,load_scale=1")
    assert code == 2
    assert "the store has 7.0" in out
    assert "mean_wait_s differ from the store" in err


def test_where_nothing_can_be_written_is_told_before_anything_runs(tmp_path, spec, call, read_only):
    store, failures, out = tmp_path / "s.zarr", tmp_path / "f.csv", read_only / "out"
    failures.write_text("time_s,node,down_s\n40,1,20\n90,3,10\n")
    assert call("run", spec, "--store", store, "--quiet")[0] == 0
    edit(spec, "[1, 1.5]", "[1, 1.5, 2]")
    small = ("--log", "sdsc-model", "--num-jobs", 10)
    for arguments in (
        ("run", spec, "--store", out),
        ("figure", spec, "--store", store, "-o", out),
        ("view", store, "--select", "scheduler=fcfs,load_scale=1", "-o", out),
        ("rerun", store, "--select", "scheduler=fcfs,load_scale=1", "--jobs-out", out),
        ("report", store, "-o", out),
        ("notebook", store, "-o", out),
        ("pack", store, read_only / "out.zip"),
        ("merge", store, store, "-o", out),
        ("simulate", *small, "--jobs-out", out),
        ("logs", "describe", "sdsc-model", "--num-jobs", 10, "--picture", read_only / "out.png"),
        ("logs", "fit", "sdsc-model", "-o", out),
        ("failures", "describe", failures, "--picture", read_only / "out.png"),
        ("failures", "generate", "weibull", "-o", out),
    ):
        code, said, err = call(*arguments)
        assert (code, said, err.count("\n")) == (2, "", 1), arguments
        assert err.startswith(f"{out}"), arguments
        assert "read-only" in err.lower(), arguments
    assert xr.open_zarr(store).sizes["load_scale"] == 2
    code, _, err = call("figure", spec, "--store", store, "-o", spec / "out")
    assert (code, err) == (2, f"{spec / 'out'}: {spec} is a file, not a folder; name another folder\n")


def test_a_cell_is_looked_into(tmp_path, spec, call):
    store = tmp_path / "s.zarr"
    assert call("run", spec, "--store", store, "--quiet")[0] == 0
    code, out, _ = call("view", store, "--select", "scheduler=backfill,load_scale=1.5", "-o", tmp_path / "out")
    name = "s-scheduler=backfill-load_scale=1.5-replicate=0"
    assert (code, out.split()) == (0, [str(tmp_path / "out" / f"{name}.{suffix}") for suffix in ("png", "html")])
    page = (tmp_path / "out" / f"{name}.html").read_text()
    title = "Backfill on a flat machine of 4 nodes: scheduler = backfill, load_scale = 1.5, replicate = 0"
    assert f"<title>{title}</title>" in page
    assert "A cell of s.zarr, simulated again. Held: log = " in page


def test_help_answers_at_once_and_names_every_command():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", "from faultsweep.__main__ import main; main()", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for command in ("simulate", "plan", "run", "status", "rerun", "figure", "list", "logs"):
        assert f" {command} " in done.stdout
    # processor time, because the machine may be busy; a calm one needs about as much wall time
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


SCRIPT = """
from faultsweep.sweeps.sweep import Sweep
def f(a):
    return a
{indent}Sweep(axes={{"a": [1, 2]}}, function=f, outputs="y").run({store!r}, workers=1, progress=False)
"""


def test_a_script_without_a_guard_gets_one_sentence(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.format(indent="", store=str(tmp_path / "s.zarr")))
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert 'line 5: put this under `if __name__ == "__main__":`' in last
    assert done.stderr.count("__main__") <= 3
    guarded = SCRIPT.format(indent='if __name__ == "__main__":\n    ', store=str(tmp_path / "s.zarr"))
    (tmp_path / "script.py").write_text(guarded)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (xr.open_zarr(tmp_path / "s.zarr").status == DONE).all()
