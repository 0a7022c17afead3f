"""Every shipped experiment runs and gives its figure, made small: few jobs, two loads, models for logs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from faultsweep.analysis.figures import FIGURES
from faultsweep.analysis.figures.draw import draw_html
from faultsweep.analysis.figures.layout import DARK
from faultsweep.cluster.site import Site
from faultsweep.sweeps import detached
from faultsweep.sweeps.logs import NAMED_LOGS
from faultsweep.sweeps.open import open_jobs, open_results
from faultsweep.sweeps.plan import print_plan
from faultsweep.sweeps.spec import experiments, load_toml
from faultsweep.sweeps.substitutes import lacks_results, replace_logs, with_substitutes
from faultsweep.sweeps.sweep import Sweep
from typer.testing import CliRunner

from faultsweep.cli import app
from faultsweep.cli.figure import _experiments_of
from faultsweep.errors import InputError

from .picturing import check_kept, drawn


def small(name, monkeypatch, tmp_path):
    """The raw spec of an experiment with few jobs, two loads, three replicates, and models for all logs."""
    monkeypatch.setenv("FAULTSWEEP_LOGS", str(tmp_path))
    raw = replace_logs({"name": name, **load_toml(experiments()[name])}, tmp_path, {}, {})
    raw["fixed"].update(
        {"days": 5.0} if raw.get("target") == "failures" else {"num_jobs": 1500 if name.startswith("akshitha") else 150}
    )
    raw["replicates"] = 3
    raw.pop("exclude", None)
    if "finder" in raw["axes"]:
        raw["axes"]["finder"] = ["columns"]  # the others have to be compiled
    few = {"load_scale": [0.7, 1.4], "accuracy": [0.0, 0.9], "num_failures": [0, 40_000]}
    few |= {"target_utilisation": [0.7, 0.95], "mttr_h": [0.5, 4.0], "mtbf_h": [0.5, 8.0], "arrival_scale": [1.0, 1.4]}
    few |= {"estimate_error_pct": [0.0, 100.0], "information_pct": [0.0, 50.0], "overhead_s": [0.0, 5400.0]}
    few |= {"cp_frac": [0.01, 0.64], "ppbw_mbps": [150.0, 400.0], "trunk_mbps": [500.0, 4000.0]}
    raw["axes"].update({axis: values for axis, values in few.items() if axis in raw["axes"]})
    for row in raw["axes"].get("workload", []):
        row.update({name: 40_000 for name in row if name == "num_failures"})
    return raw


LONG = {f"zhang2004-fig-{number}" for number in range(4, 12)}
"""Experiments of hundreds of cells; one of their kind is always run."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in FIGURES]
)
@pytest.mark.sampled(8)
def test_an_experiment_gives_its_figure(name, client, monkeypatch, tmp_path):
    raw = small(name, monkeypatch, tmp_path)
    sweep = Sweep(**raw)
    sweep.run(tmp_path / "a.zarr", cluster=client, progress=False)
    results = open_results(tmp_path / "a.zarr")
    if "finder" in raw["axes"]:  # what is measured differs from run to run
        results = results.assign(mean_scheduling_s=0 * results["utilisation"] + 1e-4)
        results = results.assign(max_scheduling_s=0 * results["utilisation"] + 2e-3)
    figure = FIGURES[name](results)
    assert figure.name == name
    said = {"failures": "5 days"}.get(raw.get("target", ""), "Substitute log")
    assert ("lublin" if raw["fixed"].get("log") == "lublin" else said) in figure.text
    assert all(panel.curves or panel.bars or panel.heat for panel in figure.panels)
    values = [part.y for panel in figure.panels for part in [*panel.curves, *panel.bars]]
    values += [panel.heat.value for panel in figure.panels if panel.heat]
    assert figure.table or any(np.isfinite(y).all() for y in values)
    check_pictures(figure, name)
    if figure.table:
        draw_html(figure, tmp_path / "a.html")


def check_pictures(figure, name):
    """Compare a figure with what was looked at: as it is by default, at 400 pixels, and at 800 where it differs."""
    check_kept(drawn(figure, dpi=40), f"experiments/{name}")
    check_kept(drawn(figure, 400 / 96, DARK, dpi=40), f"experiments/{name}-narrow-dark")
    if figure.columns > 2 and not figure.table:
        check_kept(drawn(figure, 800 / 96, dpi=40), f"experiments/{name}-800")


@pytest.mark.sampled(0)
def test_a_shipped_sweep_without_a_figure_of_its_own_is_drawn_as_its_table_says(client, monkeypatch, tmp_path):
    from faultsweep.cli.figure import _figure, _layout

    raw = small("what-if", monkeypatch, tmp_path)
    raw["best"]["most"] = 20  # replicates, of 200
    sweep = Sweep(**raw)
    layout = _layout("what-if", sweep)
    assert (layout.kind, layout.x, layout.y) == ("bars", "saving", ("mean_response_s",))
    sweep.run(tmp_path / "a.zarr", cluster=client, progress=False)
    check_pictures(_figure(sweep, layout, open_results(tmp_path / "a.zarr")), "what-if")


def test_jobs_of_a_cell_are_those_of_its_run(client, monkeypatch, tmp_path):
    raw = small("krevat2003-fig-4-1", monkeypatch, tmp_path)
    Sweep(**raw).run(tmp_path / "a.zarr", cluster=client, progress=False)
    results = open_results(tmp_path / "a.zarr")
    jobs = open_jobs(results, workload="SDSC", replicate=1)
    assert jobs.sizes["job"] == 150
    wait = results["mean_wait_s"].sel(workload="SDSC", replicate=1).item()
    assert jobs["wait_s"].mean().item() == pytest.approx(wait, rel=1e-12)
    assert not np.array_equal(jobs["run_s"], open_jobs(results, workload="SDSC")["run_s"])
    with pytest.raises(InputError, match="more than one cell is left along workload"):
        open_jobs(results)
    with pytest.raises(InputError, match="no cell with the label"):
        open_jobs(results, workload="LLNL")


def test_replicates_of_a_log_are_copies(client, shared, tmp_path):
    sweep = Sweep(
        axes={"scheduler": ["fcfs", "backfill"]},
        fixed={"log": "nasa", "num_jobs": 50, "machine": "flat:128"},
        replicates=3,
        logs=shared / "job-logs",
    )
    sweep.run(tmp_path / "a.zarr", cluster=client, progress=False)
    status = open_results(tmp_path / "a.zarr")["status"]
    assert status.values.tolist() == [[1, 4, 4], [1, 4, 4]]


def test_a_log_that_is_here_is_used(shared, tmp_path):
    replaced = {}
    raw = {
        "axes": {"w": [{"label": "NASA", "log": "nasa"}, {"label": "other", "log": "my.swf"}]},
        "fixed": {"log": "sdsc"},
    }
    assert replace_logs(raw, shared / "job-logs", replaced, {}) == raw
    assert replaced == {}


def test_a_log_that_is_absent_has_a_substitute(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    replaced = {}
    raw = {"fixed": {"log": "sdsc"}, "axes": {"log": ["nasa", "kth-sp2", "lublin"], "policy": [{"label": "log"}]}}
    changed = replace_logs(raw, tmp_path, replaced, {})
    assert replaced == {"sdsc": "sdsc-model", "nasa": "nasa-model"}
    assert changed["axes"]["log"] == ["nasa-model", "kth-sp2", "lublin"]
    assert changed["axes"]["policy"] == [{"label": "log"}]


def test_the_log_of_t3d_has_atlas_as_its_substitute(shared, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    raw, replaced = {"fixed": {"log": "llnl"}}, {}
    assert replace_logs(raw, shared / "job-logs", replaced, {})["fixed"]["log"] == "llnl-atlas"
    assert replace_logs(raw, tmp_path, replaced, {})["fixed"]["log"] == "atlas-model"
    raw["axes"] = {"log": ["nasa", "llnl"]}
    assert replace_logs(raw, tmp_path, {}, {"log nasa": "", "log llnl-atlas": ""})["axes"]["log"] == [
        "nasa",
        "llnl-atlas",
    ]


def test_a_substitute_has_a_store_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _, place, substitutes = with_substitutes("oliner2004-fig-6", tmp_path, None, tmp_path)
    assert list(substitutes.values()) == ["sdsc-model", "nasa-model", "atlas-model"]
    assert place == tmp_path / "oliner2004-fig-6-sdsc-model-nasa-model-atlas-model.zarr"


@pytest.mark.parametrize("command", [["plan", "--no-measure"], ["run", "--quiet"]])
def test_plan_and_run_of_an_experiment_do_what_its_figure_does(command, monkeypatch, tmp_path, capsys):
    """They use the same substitutes and the same store, and say so; a log of a spec of one's own is asked for."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FAULTSWEEP_LOGS", raising=False)
    monkeypatch.chdir(tmp_path)
    ran = []
    monkeypatch.setattr(Sweep, "run", lambda sweep, store, **options: ran.append((sweep, store)))
    monkeypatch.setattr("faultsweep.sweeps.status.print_status", lambda *given, **options: 0)
    monkeypatch.setattr("faultsweep.sweeps.status.describe_failures", lambda store: "")
    name, *options = command
    result = CliRunner().invoke(app, [name, "oliner2004-fig-8", *options, "--logs", str(tmp_path)])
    place = "oliner2004-fig-8-atlas-model.zarr"
    assert result.exit_code == 0
    assert f"oliner2004-fig-8: atlas-model is the substitute of the log llnl-t3d in {place}\n" in result.output
    if name == "plan":
        assert f"at {tmp_path / place}" in result.output.replace("\n", "")
    else:
        [(sweep, store)] = ran
        assert (sweep.spec.axes[0].columns["log"], store) == (["atlas-model"], Path(place))


def test_a_submitted_experiment_takes_its_substitutes_along(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FAULTSWEEP_LOGS", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(detached, "plan_job", lambda *given: ("", 1))
    submission = detached.prepare_submission("oliner2004-fig-8", None, Site())
    assert submission.store.name == "oliner2004-fig-8-atlas-model.zarr"
    [(name, content)] = submission.files.items()
    copy = tmp_path / Path(name).name
    copy.write_bytes(content)
    sweep = Sweep.from_toml(copy)
    assert sweep.spec.axes[0].columns["log"] == ["atlas-model"]


LOG = "\n".join(f"{i} {10 * i} -1 {30 + 7 * i} {1 + i % 4} " + "-1 " * 6 + "1 1 1 1 1 1 -1" for i in range(12))


@pytest.fixture
def log_of_nasa(monkeypatch, tmp_path):
    """A folder with a small log under the name of NASA's, and no other log anywhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FAULTSWEEP_LOGS", raising=False)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "NASA-iPSC-1993-3.1-cln.swf").write_text("; MaxNodes: 4\n; MaxProcs: 4\n" + LOG)
    monkeypatch.setitem(NAMED_LOGS, "nasa", replace(NAMED_LOGS["nasa"], sha256=""))
    return tmp_path / "logs"


@pytest.fixture
def own_spec(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('[fixed]\nlog = "nasa"\nmachine = "flat:4"\n[axes]\nload_scale = [1.0, 1.5]\n')
    return path


def test_a_complete_store_is_drawn_without_its_logs(log_of_nasa, own_spec, client, monkeypatch, tmp_path):
    """And without a cluster, and in a folder that nobody may write."""
    store = tmp_path / "shared.zarr"
    Sweep.from_toml(own_spec, logs=log_of_nasa).run(store, cluster=client, progress=False)
    sweep, place, substitutes = with_substitutes(own_spec, None, store)
    assert (place, substitutes, sweep.spec.fixed["log"]) == (store, {}, "nasa")
    assert not lacks_results(sweep, place)


def test_a_store_thatlacks_results_says_that_it_needs_its_logs(log_of_nasa, own_spec, client, tmp_path):
    store = tmp_path / "shared.zarr"
    Sweep.from_toml(own_spec, logs=log_of_nasa).run(store, cluster=client, progress=False)
    own_spec.write_text(own_spec.read_text().replace("1.5]", "1.5, 2.0]"))
    sweep, place, _ = with_substitutes(own_spec, None, store)
    with pytest.raises(InputError) as error:
        lacks_results(sweep, place)
    assert str(error.value) == (
        f"{store}: 1 of 3 simulations are missing, and their inputs are not on this machine: nasa; name the folder"
        " that has it by --logs DIR"
    )
    sweep, place, _ = with_substitutes(own_spec, log_of_nasa, store)
    assert lacks_results(sweep, place)


def test_a_store_of_substitutes_stays_one(log_of_nasa, own_spec, client, tmp_path):
    store = tmp_path / "shared.zarr"
    small = own_spec.read_text().replace("[axes]", "num_jobs = 60\n[axes]").replace("flat:4", "flat:128")
    own_spec.write_text(small)
    sweep, _, substitutes = with_substitutes(own_spec, None, store)
    assert substitutes == {"nasa": "nasa-model"}
    sweep.run(store, cluster=client, progress=False)
    sweep, _, substitutes = with_substitutes(own_spec, log_of_nasa, store)
    assert substitutes == {"nasa": "nasa-model"}
    assert not lacks_results(sweep, store)


def test_the_plan_of_a_figure_shows_the_saving(monkeypatch, tmp_path, capsys):
    """Without failures a does nothing, and with a model of the jobs replicates still differ."""
    raw = small("oliner2004-fig-3", monkeypatch, tmp_path)
    plan = Sweep(**raw).plan(tmp_path / "a.zarr", measure=False)
    assert (plan.cells, plan.simulations) == (12, 9)
    print_plan(plan)
    assert "9 different simulations; 3 cells are copies (a parameter has no effect there)" in capsys.readouterr().out


def test_make_reproduce_draws_every_paper():
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    papers = re.search("^PAPERS := (.*)$", makefile, re.MULTILINE)[1].split()
    assert set(papers) == {name.partition("-")[0] for name in FIGURES} - {"demo"}


def test_a_paper_is_all_its_experiments():
    for paper in ("krevat2003", "oliner2004", "zhang2004"):
        assert _experiments_of(paper) == [name for name in FIGURES if name.startswith(f"{paper}-")]
    assert _experiments_of("demo") == ["demo"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["figure", "krevat"], "unknown experiment or spec file 'krevat'"),
        (["figure", "small.toml"], "small.toml: figure: y: unknown metric 'mean_wait'; did you mean 'mean_wait_s'?"),
        (["list", "machine"], "machines"),
    ],
)
def test_a_wrong_name_is_one_sentence(tmp_path, monkeypatch, command, arguments, sentence):
    (tmp_path / "small.toml").write_text(
        '[fixed]\nlog = "sdsc-model"\n[axes]\nload_scale = [1.0]\n[figure]\ny = "mean_wait"\n'
    )
    monkeypatch.chdir(tmp_path)
    code, out, err = command(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


def test_a_sweep_of_ones_own_is_drawn(on_client, capsys, tmp_path):
    """By the command, with a table or none; a copy of a shipped spec can ask for the shipped figure."""
    from faultsweep.cli.figure import figure
    from faultsweep.cli.options import Workers

    spec = tmp_path / "mine.toml"
    text = (
        '[fixed]\nlog = "nasa-model"\nnum_jobs = 60\n[axes]\nload_scale = [0.8, 1]\nscheduler = ["fcfs", "backfill"]\n'
    )
    for table in ("", '[figure]\ny = ["utilisation"]\nx = "scheduler"\n'):
        spec.write_text(text + table)
        figure(str(spec), output=tmp_path / "out", workers=Workers(), quiet=True)
        written = [f"mine{end}" for end in (".png", ".html", ".md", ".tex", "-data.md")]
        assert capsys.readouterr().out.split() == [str(tmp_path / "out" / name) for name in written]
    spec.write_text(text + '[figure]\nkind = "krevat2003-fig-5-2"\n')
    with pytest.raises(InputError, match=r"mine.toml: figure: kind: .* this sweep lacks workload$"):
        figure(str(spec), output=tmp_path / "out", workers=Workers(), quiet=True)
    workload = '[axes]\nworkload = [{label = "NASA"}, {label = "N", seed = 1}]'
    spec.write_text(text.replace("[axes]", workload) + '[figure]\nkind = "krevat2003-fig-5-2"\n')
    figure(str(spec), output=tmp_path / "two", workers=Workers(), quiet=True)
    spec.write_text('metrics = ["mean_wait_s"]\n' + spec.read_text())
    with pytest.raises(InputError, match=r"5-2 draws what mine does not have: \S*No variable named 'utilisation'$"):
        figure(str(spec), output=tmp_path / "three", workers=Workers(), quiet=True)
    assert (tmp_path / "two" / "mine.png").stat().st_size > 10_000


def test_lists_name_everything(capsys):
    from faultsweep.simcore.engine.metrics import METRICS
    from faultsweep.simcore.parameters import PARAMETERS
    from faultsweep.sweeps.logs import NAMED_LOGS

    from faultsweep.cli import lists

    expected = {
        "machines": ["torus:XxYxZ", "flat:N", "clusters:N+N+..."],
        "schedulers": PARAMETERS["scheduler"].choices,
        "meta-schedulers": PARAMETERS["meta_scheduler"].choices,
        "agents": PARAMETERS["agent"].choices,
        "queue-orders": PARAMETERS["queue_order"].choices,
        "recoveries": PARAMETERS["recovery"].choices,
        "placements": PARAMETERS["placement"].choices,
        "predictors": PARAMETERS["predictor"].choices,
        "finders": PARAMETERS["finder"].choices,
        "checkpoints": PARAMETERS["checkpoint"].choices,
        "node-choices": PARAMETERS["node_choice"].choices,
        "logs": NAMED_LOGS,
        "metrics": METRICS,
        "experiments": experiments(),
        "parameters": PARAMETERS,
    }
    assert set(expected) == set(lists.Kind)
    for kind, names in expected.items():
        lists.list_(lists.Kind(kind))
        out = capsys.readouterr().out
        assert all(name in out for name in names)
