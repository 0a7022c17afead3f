"""What the dashboard shows, without a browser: choices and links, figures, heat maps, and the cells behind them."""

from __future__ import annotations

import shlex
import threading
import warnings
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product

import numpy as np
import pandas as pd
import panel as pn
import pytest
import xarray as xr
from bokeh.document import Document
from faultsweep.analysis.dashboard import choices as ch
from faultsweep.analysis.dashboard.app import Dashboard
from faultsweep.analysis.dashboard.cells import (
    ParallelPlot,
    ParetoPlot,
    Sample,
    _inks,
    formats_of,
    labels_at,
    parallel_figure,
    pareto_figure,
    taken_as_better,
)
from faultsweep.analysis.dashboard.difference import Difference
from faultsweep.analysis.dashboard.follow import FollowedStore, describe_run, describe_share
from faultsweep.analysis.dashboard.jobs import Gantt, lanes
from faultsweep.analysis.dashboard.links import Links
from faultsweep.analysis.dashboard.metrics import grouped, varying
from faultsweep.analysis.dashboard.overview import (
    make_overview,
    overview_figure,
    regions_html,
    shares_html,
    small_multiple,
)
from faultsweep.analysis.dashboard.plots import HeatPlot
from faultsweep.analysis.dashboard.takeaway import DOWNLOADS, OVERVIEW, PICTURED, Taken, table_to_take
from faultsweep.analysis.dashboard.view import (
    cells_at,
    cells_of,
    figure_of,
    heat_map,
    ids_of_heat,
    ids_of_points,
    shown,
)
from faultsweep.analysis.effects import variance_shares
from faultsweep.analysis.figures.draw import draw_html, draw_picture
from faultsweep.analysis.figures.parallel import shorten
from faultsweep.analysis.figures.units import in_units_to_read
from faultsweep.analysis.figures.words import in_words, label_in_words, labels_to_read
from faultsweep.analysis.pareto import is_on_front
from faultsweep.analysis.statistics import mean_interval
from faultsweep.sweeps.grid import parse_select
from faultsweep.sweeps.open import open_results

from faultsweep.errors import InputError

from .odd_stores import MAKERS
from .stores import STATUSES, make_results, write_results

LOADS = [0.5, 1.0, 2.0]
NOTHING = np.zeros(0, np.int64)
SHAPE = (3, 2, 2, 4)


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(4)
    axes = {"load": LOADS, "policy": ["never", "daly, 2 h"], "nodes": [64, 128]}
    status = np.full(SHAPE, STATUSES.index("done"), np.int8)
    status[2, 1, 1, 3] = STATUSES.index("failed")
    status[2, 0, 0] = STATUSES.index("pending")
    values = rng.gamma(5, 10, SHAPE)
    data = make_results(axes, {"wait_s": values, "loss": -values}, status, 4, name="small")
    data["wait_s"].attrs["units"] = "s"
    return write_results(tmp_path / "a.zarr", data.assign_coords(hours=("load", [12.0, 24.0, 48.0])))


@pytest.fixture
def data(path):
    return open_results(path)


def test_at_first_numbers_are_across_and_names_are_curves(data):
    first = ch.default_choices(data)
    assert (first.metric, first.x, first.curves, first.at) == ("wait_s", "load", "policy", {"nodes": "64"})
    assert ch.check(data, first) == first


def test_choices_travel_through_a_link(data):
    chosen = ch.check(data, replace(ch.default_choices(data), x="hours", at={"nodes": "128"}, log_y=True))
    assert ch.read_query(data, chosen.query()) == chosen
    assert ch.read_query(data, {}) == ch.default_choices(data)
    compared = ch.check(data, replace(chosen, show="ratio", baseline="policy=never"))
    assert ch.read_query(data, compared.query()) == compared


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"metric": "waits"}, "unknown metric 'waits'; did you mean 'wait_s'?"),
        ({"x": "policy"}, "one axis is chosen twice: policy, policy"),
        ({"view": "table"}, "unknown view 'table'"),
        ({"at.nodes": "65"}, "unknown label of nodes '65'"),
        ({"at.node": "64"}, "unknown axis 'node'"),
        ({"show": "ratio", "baseline": "load=0.5"}, "baseline: load is the axis that is drawn over"),
        ({"x": "waits"}, "unknown x 'waits'"),
        ({"x": "loss", "along": "nods"}, "unknown along 'nods'; did you mean 'nodes'?"),
        ({"x": "loss", "along": "load", "curves": "load"}, "one axis is chosen twice: load, load"),
        ({"delete_warm_up": "true"}, "delete_warm_up: wait_s is no mean over jobs that the store keeps"),
    ],
)
def test_a_wrong_link_is_one_sentence(data, query, sentence):
    with pytest.raises(InputError) as error:
        ch.read_query(data, query)
    assert str(error.value).startswith(sentence)


def test_a_figure_has_the_means_at_the_chosen_labels(data):
    chosen = ch.check(data, replace(ch.default_choices(data), at={"nodes": "128"}))
    figure = figure_of(data, chosen)
    assert figure.title == "Wait over load by policy, at nodes = 128"
    expected = mean_interval(data["wait_s"].sel(policy="daly, 2 h", nodes=128), data["status"])
    assert figure.panels[0].curves[1].y.tolist() == pytest.approx(expected["mean"].values.tolist())
    assert figure.panels[0].curves[1].x.tolist() == LOADS


def test_a_parameter_is_across_as_well_as_its_axis(data):
    chosen = ch.check(data, replace(ch.default_choices(data), x="hours"))
    assert figure_of(data, chosen).panels[0].curves[1].x.tolist() == [12, 24, 48]


def test_a_metric_is_across_and_its_points_are_those_of_an_axis(data):
    chosen = ch.check(data, replace(ch.default_choices(data), metric="loss", x="wait_s"))
    assert (chosen.along, chosen.at) == ("load", {"nodes": "64"})
    assert ch.read_query(data, chosen.query()) == chosen
    figure = figure_of(data, chosen)
    assert figure.title == "Loss over wait along load by policy, at nodes = 64"
    waits = data["wait_s"].sel(policy="daly, 2 h", nodes=64).mean("replicate").values
    assert figure.panels[0].curves[1].x.tolist() == pytest.approx(waits.tolist())
    assert figure.panels[0].curves[1].y.tolist() == pytest.approx((-waits).tolist())
    assert figure.panels[0].curves[1].rows.tolist() == [0, 1, 2]
    assert figure.panels[0].curves[0].rows.tolist() == [0, 1]  # nothing is known at the last load
    cells = cells_of(data, chosen, {"load": 1, "policy": 0})
    assert cells["wait_s"].tolist() == data["wait_s"].sel(load=1.0, policy="never", nodes=64).values.tolist()
    over_names = ch.check(data, replace(chosen, along="policy", curves="nodes", at={}))
    assert figure_of(data, over_names).panels[0].curves[0].x.shape == (2,)


def test_a_metric_is_across_beside_a_baseline_that_is_not_drawn(data):
    chosen = replace(ch.default_choices(data), metric="loss", x="wait_s", at={"nodes": "128"})
    figure = figure_of(data, ch.check(data, replace(chosen, show="difference", baseline="nodes=64")))
    waits = data["wait_s"].sel(policy="daly, 2 h")
    assert figure.panels[0].curves[1].x.tolist() == pytest.approx(waits.sel(nodes=128).mean("replicate").values)
    expected = (waits.sel(nodes=64) - waits.sel(nodes=128)).mean("replicate").values
    assert figure.panels[0].curves[1].y.tolist() == pytest.approx(expected.tolist())


def test_a_baseline_on_an_axis_that_is_not_drawn(data):
    """The label that the slider stands at is compared with the baseline, at every point."""
    chosen = replace(ch.default_choices(data), at={"nodes": "128"}, show="difference", baseline="nodes=64")
    figure = figure_of(data, ch.check(data, chosen))
    waits = data["wait_s"].sel(policy="daly, 2 h")
    expected = (waits.sel(nodes=128) - waits.sel(nodes=64)).mean("replicate").values
    assert figure.panels[0].curves[1].y.tolist() == pytest.approx(expected.tolist())
    assert "difference to nodes = 64" in figure.panels[0].y_label
    same = figure_of(data, ch.check(data, replace(chosen, at={"nodes": "64"})))
    assert same.panels[0].curves[1].y.tolist() == [0, 0, 0]


def test_names_across_are_bars_and_facets_are_panels(data):
    chosen = replace(ch.default_choices(data), x="policy", curves="nodes", facets="load", at={})
    figure = figure_of(data, ch.check(data, chosen))
    assert [panel.title for panel in figure.panels] == ["load = 0.5", "load = 1", "load = 2"]
    assert figure.panels[0].categories == ["never", "daly, 2 h"]
    expected = data["wait_s"].sel(load=0.5, nodes=128).mean("replicate").values
    assert figure.panels[0].bars[1].y.tolist() == pytest.approx(expected.tolist())


@pytest.mark.parametrize("log", [False, True])
def test_a_heat_map_has_a_value_a_pair(data, log, tmp_path):
    chosen = replace(ch.default_choices(data), view="heat map", heat_x="load", heat_y="policy", log_y=log)
    figure = heat_map(data, ch.check(data, chosen))
    heat = figure.panels[0].heat
    expected = data["wait_s"].sel(nodes=64).mean("replicate").transpose("policy", "load").values
    assert np.array_equal(heat.value, expected, equal_nan=True)
    assert np.isnan(heat.value[0, 2])
    draw_picture(figure, tmp_path / "a.svg")
    draw_html(figure, tmp_path / "a.html")
    assert (tmp_path / "a.svg").stat().st_size > 10_000


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_heat_map_of_values_below_zero_has_linear_colours(data):
    chosen = replace(
        ch.default_choices(data), view="heat map", metric="loss", heat_x="load", heat_y="policy", log_y=True
    )
    figure = heat_map(data, ch.check(data, chosen))
    assert not figure.panels[0].heat.log
    assert HeatPlot(figure.panels[0], figure.panels[0].heat, np.arange(6)).layout.renderers


def test_a_heat_map_of_differences_has_its_middle_at_zero(data):
    chosen = replace(ch.default_choices(data), view="heat map", heat_x="load", heat_y="policy", at={"nodes": "128"})
    figure = shown(data, ch.check(data, replace(chosen, show="ratio", baseline="nodes=64")))
    assert figure.panels[0].heat.centre == 1
    waits = data["wait_s"].sel(policy="daly, 2 h", load=1.0)
    ratio = (waits.sel(nodes=128).mean("replicate") / waits.sel(nodes=64).mean("replicate")).item()
    assert figure.panels[0].heat.value[1, 1] == pytest.approx(ratio)


def test_values_below_zero_are_in_the_picture(data, tmp_path):
    from faultsweep.analysis.figures.picture import draw_panel
    from matplotlib.figure import Figure as Canvas

    figure = figure_of(data, ch.check(data, replace(ch.default_choices(data), metric="loss")))
    axis = Canvas().subplots()
    draw_panel(axis, figure.panels[0])
    assert axis.get_ylim()[0] < np.nanmin(figure.panels[0].curves[0].y)


def test_the_cells_behind_a_point_have_the_command_that_reruns_them(path, data):
    cells = cells_of(data, ch.default_choices(data), {"load": 1, "policy": 1})
    assert cells["replicate"].tolist() == [0, 1, 2, 3]
    assert cells["wait_s"].tolist() == data["wait_s"].sel(load=1.0, policy="daly, 2 h", nodes=64).values.tolist()
    words = shlex.split(cells["rerun"][2])
    assert words[:4] == ["faultsweep", "rerun", str(path), "--select"]
    assert parse_select(words[4]) == {"load": "1.0", "policy": "daly, 2 h", "nodes": "64", "replicate": "2"}
    assert len(cells_of(data, ch.default_choices(data))) == 3 * 2 * 4


def test_a_store_is_opened_again_when_it_has_changed(path):
    store = FollowedStore(str(path))
    assert not store.look()
    assert describe_share(store.data) == (pytest.approx(44 / 48), "92% done: 43 of 48 cells have a result (1 failed)")
    changed = store.data[["status"]].isel(load=[2]).drop_vars(["load", "policy", "nodes", "replicate", "hours"])
    changed["status"][:] = STATUSES.index("done")
    changed.to_zarr(path, region={"load": slice(2, 3)})
    assert store.look()
    assert (store.version, describe_share(store.data)[0]) == (1, 1.0)
    assert store.data["wait_s"].notnull().all()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


def test_a_store_by_url_is_asked_again(path):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(path.parent))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        store = FollowedStore(f"http://127.0.0.1:{server.server_address[1]}/a.zarr")
        assert not store.look()
        changed = store.data[["status"]].isel(load=[2]).drop_vars(["load", "policy", "nodes", "replicate", "hours"])
        changed["status"][:] = STATUSES.index("done")
        changed.to_zarr(path, region={"load": slice(2, 3)})
        assert store.look()
        cells = cells_of(store.data, ch.default_choices(store.data), {"load": 0, "policy": 0})
        server.shutdown()
    assert cells["rerun"].tolist() == [""] * 4


def test_what_is_not_a_store_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="a folder that is not a store of a sweep"):
        FollowedStore(str(tmp_path))
    with pytest.raises(InputError, match="no such store"):
        FollowedStore(str(tmp_path / "a.zarr"))


def test_a_store_without_axes_has_nothing_to_show():
    with pytest.raises(InputError, match="nothing to show: the sweep has no axis but the replicates"):
        ch.default_choices(make_results({}, {"y": np.ones(3)}, replicates=3))


def test_at_first_the_best_policy_and_what_matters_are_said(path, data):
    slower = data["wait_s"].load() + 100.0 * (data["policy"] == "never")
    data["wait_s"] = slower.transpose(*data["wait_s"].dims).assign_attrs(units="s", better="lower")
    found = make_overview(data)
    assert found.sentence.startswith("daly, 2 h has the lowest wait; second is never")
    assert max(found.shares, key=found.shares.get) == ("policy",)
    assert (found.policy, found.x, found.panel) == ("policy", "load", "nodes")
    own = found.means[(found.means["curve"] == "never") & (found.means["panel"] == "nodes = 128")]
    values = in_units_to_read(data[["wait_s"]], ["wait_s"])["wait_s"].sel(policy="never", nodes=128).mean("replicate")
    assert own["mean"].tolist() == pytest.approx(values.values.tolist())
    assert "daly, 2 h" in regions_html(found)
    assert "Policy" in shares_html(found)


def test_an_axis_that_changes_nothing_has_no_panels(data):
    data["wait_s"] = data["wait_s"].load().isel(nodes=[0, 0]).assign_coords(nodes=data["nodes"]).assign_attrs(units="s")
    found = make_overview(data)
    assert found.shares["nodes",] < 1e-9
    assert (found.x, found.panel) == ("load", "")


def test_the_metric_of_a_selection_comes_first(data):
    data["mean_wait_s"] = data["wait_s"] * 2.0
    data["wait_s"].attrs["better"] = "lower"
    data.attrs["spec"] = '[best]\naxis = "policy"\nmetric = "wait_s"\n'
    assert ch.default_choices(data).metric == "wait_s"
    assert make_overview(data).metric == "wait_s"


def test_a_store_without_results_says_so(data):
    empty = data.where(False)
    empty["status"], empty.attrs = xr.zeros_like(data["status"]), data.attrs
    assert make_overview(empty).note == "No cell has a result yet."


def test_a_metric_is_in_one_unit_on_the_whole_page(tmp_path):
    """Waits of seconds at one size and of hours at the other: the page reads all of them in hours, each view, too."""
    waits = np.random.default_rng(1).gamma(5, 2, SHAPE) * np.array([1.0, 3600.0])[None, None, :, None]
    axes = {"load": LOADS, "policy": ["never", "daly"], "nodes": [64, 128]}
    results = make_results(axes, {"wait_s": waits, "loss_node_s": waits}, None, 4, name="one unit")
    results["wait_s"].attrs.update(units="s", better="lower")
    dashboard = Dashboard(FollowedStore(str(write_results(tmp_path / "a.zarr", results))), {})
    data, now, sample = dashboard.store.data, dashboard.choices, dashboard.facts.sample
    assert now.at == {"nodes": "64"}
    drawn, heat = figure_of(data, now).panels[0], heat_map(data, now).panels[0].heat
    words = [drawn.y_label, heat.quantity, dashboard.facts.overview.quantity, sample.values("wait_s")[1]]
    words += [pareto_figure(data, sample, ["wait_s", "loss_node_s"]).panels[0].x_label, dashboard.table.titles["m0"]]
    words += list(grouped(data, ["wait_s"])["Wait"])
    assert words == ["Wait (h)"] * len(words)
    assert list(grouped(data, ["loss_node_s"])["Failures and recovery"]) == ["Loss (node h)"]
    dashboard.links.choose(np.array([0]))
    dashboard._chosen(np.array([0]))
    assert "<th scope='col'>Wait (h)</th>" in dashboard.words["chosen"].object
    expected = results["wait_s"].sel(nodes=64, policy="never").mean("replicate") / 3600
    assert np.allclose(drawn.curves[0].y, expected)
    other = results.isel(nodes=[0]).assign_attrs(name="before")
    assert {row[1] for row in Difference(data, other).rows} == {"Wait (h)"}


def test_metrics_that_do_not_vary_are_not_offered(data):
    data["loss"] = xr.full_like(data["loss"].load(), 3.0)
    assert varying(data) == ["wait_s"]
    groups = grouped(data, ["wait_s", "loss"])
    assert groups == {"Wait": {"Wait": "wait_s"}, "Failures and recovery": {"Loss": "loss"}}
    assert grouped(data, ["wait_s", "loss"], "WAI") == {"Wait": {"Wait": "wait_s"}}
    data.attrs["target"] = "function f"
    assert list(grouped(data, ["wait_s", "loss"])) == ["Metrics"]


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("14400.0", "4 h"),
        ("600.0", "10 min"),
        ("5000.0", "5000 s"),
        ("30", "30 s"),
        ("inf", "inf s"),
        ("0", "0 s"),
        (3600.0, "1 h"),
    ],
)
def test_times_in_titles_are_in_units_to_read(data, label, words):
    data["load"].attrs["units"] = "s"
    assert label_in_words(data, "load", label) == f"load = {words}"


@pytest.mark.parametrize("metrics", [2, 3])
def test_no_other_point_beats_one_of_the_front(metrics):
    random = np.random.default_rng(metrics)
    columns = [random.integers(0, 12, 150).astype(float) for _ in range(metrics)]
    columns[0][3] = np.nan
    higher = [True, False, True][:metrics]
    costs = np.stack([-c if up else c for c, up in zip(columns, higher, strict=True)], axis=1)
    beaten = [((costs <= own).all(1) & (costs < own).any(1)).any() or np.isnan(own).any() for own in costs]
    assert is_on_front(columns, higher).tolist() == [not one for one in beaten]


def test_the_sample_has_means_and_labels_of_each_configuration(data):
    sample = Sample(data)
    values = sample.values("wait_s")[0]
    means = in_units_to_read(data[["wait_s"]].mean("replicate", keep_attrs=True), ["wait_s"])["wait_s"].values.ravel()
    assert values.tolist() == pytest.approx(means[sample.ids].tolist())
    assert sample.describe()[0] == "load 0.5, policy never, nodes 64"
    assert 8 not in sample.ids  # load 2, never, 64 nodes: pending in every replicate
    assert labels_at(data, 11) == {"load": "2.0", "policy": "daly, 2 h", "nodes": "128"}


def test_points_of_all_views_know_their_configuration(data):
    chosen = ch.check(data, replace(ch.default_choices(data), at={"nodes": "128"}))
    figure = figure_of(data, chosen)
    assert [own.tolist() for own in ids_of_points(data, chosen, figure)[0]] == [[1, 5, 9], [3, 7, 11]]
    heat = replace(chosen, view="heat map", heat_x="load", heat_y="policy")
    assert ids_of_heat(data, heat).tolist() == [1, 5, 9, 3, 7, 11]
    cells = cells_at(data, np.array([3, 9]), ["wait_s"])
    assert cells["load"].tolist() == [0.5] * 4 + [2.0] * 4
    assert cells["wait_s"][:4].tolist() == data["wait_s"].sel(load=0.5, policy="daly, 2 h", nodes=128).values.tolist()
    assert len(table_to_take(Taken(data, chosen, "curves", np.array([3])))) == 4
    assert len(table_to_take(Taken(data, chosen, "curves", NOTHING))) == 24


def test_who_starts_at_once_has_not_waited():
    columns = {"submit_s": [0, 0, 3600, 7200], "start_s": [0, 3600, 7200, 7200], "finish_s": [3600, 7200, 9000, 9000]}
    jobs = xr.Dataset({name: ("job", np.array(own, float)) for name, own in columns.items()})
    chart = Gantt(jobs.assign(requested_size=("job", [1] * 4), job_id=("job", range(4))))
    steps = chart.layout.children[1].renderers[0].data_source.data
    assert (list(steps["x"]), list(steps["y"])) == ([0, 1, 2], [1, 1, 0])


@pytest.mark.parametrize("plot", [ParallelPlot, ParetoPlot])
def test_another_metric_makes_no_new_models(data, plot, monkeypatch):
    """Bokeh would list all models of the page again, which takes longer than all else that a knob does."""
    from bokeh.document import Document
    from bokeh.document.models import DocumentModelManager

    drawn, page = plot(data, Sample(data), ["wait_s", "loss"]), Document()
    page.add_root(drawn.layout)
    listed = []
    monkeypatch.setattr(DocumentModelManager, "recompute", lambda models: listed.append(models))
    assert drawn.take(data, Sample(data), ["loss", "wait_s"])
    assert listed == []


def test_metrics_change_places(path):
    page = Dashboard(FollowedStore(str(path)), {"metric": "wait_s", "second": "loss"})
    page._chosen_by_user({"metric": "loss"})
    assert page.choices.weighed == ["loss", "wait_s"]


def test_jobs_that_run_at_a_time_lie_above_each_other():
    random = np.random.default_rng(5)
    start = random.uniform(0, 50, 200)
    end, size = start + random.uniform(0.1, 9, 200), random.integers(1, 20, 200)
    low = lanes(start, end, size)
    for a in range(200):
        for b in range(a):
            if start[a] < end[b] and start[b] < end[a]:
                assert low[a] >= low[b] + size[b] or low[b] >= low[a] + size[a]
    assert lanes(np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.array([4, 4])).tolist() == [0, 0]


def test_a_store_that_is_not_there_yet_is_waited_for(path, tmp_path):
    store = FollowedStore(str(tmp_path / "later.zarr"), wait=True)
    assert not store.is_there
    assert not store.look()
    path.rename(tmp_path / "later.zarr")
    assert store.look()
    assert store.is_there
    assert store.facts().metrics == ["wait_s", "loss"]


def test_progress_of_a_run_is_said_before_its_chunks_are_written():
    share, words = describe_run({"done": 30, "total": 120, "failed": 0, "per_s": 4.0, "left_s": 22.5})
    assert (share, words.partition(", about")[0]) == (0.25, "Running: 30 of 120 simulations are done, 4 a second")
    share, words = describe_run({"done": 30, "total": 120}, (0.5, "50% done: 60 of 120 cells have a result"))
    assert (share, words) == (0.5, "Running: 50% done: 60 of 120 cells have a result")


def test_two_stores_are_compared_cell_by_cell(data):
    before = data.copy(deep=True)
    after = data.copy(deep=True)
    after["loss"] = after["loss"].where(after["policy"] != "never", after["loss"] + 5)
    for part in (before, after):
        part.attrs["metrics"] = '["loss"]'
    found = Difference(after, before)
    assert found.cells == 43
    assert found.equal == 43 - 20
    never = next(row for row in found.rows if row[0] == "never")
    assert never[-1] == "5 [5, 5]"
    assert len(found.most) == 5
    with pytest.raises(InputError, match="the stores have other axes"):
        Difference(after, before.rename(load="speed"))


def test_the_pareto_front_is_taken_away(data):
    data["loss"] = data["loss"].copy(data=np.random.default_rng(1).gamma(5, 10, SHAPE)).where(data["loss"].notnull())
    chosen = ch.check(data, replace(ch.default_choices(data), view="Pareto front", second="loss"))
    sample = Sample(data)
    figure = pareto_figure(data, sample, chosen.weighed)
    others, front = figure.panels[0].curves
    wait, loss = sample.values("wait_s")[0], sample.values("loss")[0]
    on = is_on_front([wait, loss], [False, False])
    assert sorted(zip(front.x, front.y, strict=True)) == sorted(zip(wait[on], loss[on], strict=True))
    assert len(others.x) + len(front.x) == len(sample.ids)


BEGINS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!doctype", "csv": b"", "parquet": b"PAR1"}


@pytest.mark.parametrize("view", [view for view in PICTURED if view != "distribution"])
@pytest.mark.sampled(3)
def test_every_view_is_taken_away_in_every_format(data, view):
    chosen = ch.check(data, replace(ch.default_choices(data), second="loss"))
    for _, suffix, make in DOWNLOADS:
        if suffix in BEGINS:
            content = make(Taken(data, chosen, view, NOTHING))
            assert content[:9].lower().startswith(BEGINS[suffix].lower())
            assert len(content) > 300


def test_parallel_coordinates_are_taken_away_as_they_stand(data):
    figure = parallel_figure(data, sample := Sample(data), ["wait_s", "loss"])
    found = figure.panels[0].parallel
    assert found.names == ["Load", "Policy", "Nodes", sample.values("wait_s")[1], "Loss"]
    assert found.lines.shape == (11, 5)
    assert found.lines[0, :3].tolist() == [0, 0, 0]
    assert found.lines[-1, :3].tolist() == [1, 1, 1]
    wait = sample.values("wait_s")[0]
    assert found.value.tolist() == wait.tolist()
    assert found.lines[:, 3] == pytest.approx((wait - wait.min()) / np.ptp(wait))
    assert [text for _, text in found.ticks[1]] == ["never", "daly, 2 h"]


def test_labels_that_reach_the_next_axis_say_that_they_go_on():
    assert shorten("4×4×8 torus") == "4×4×8 torus"
    assert shorten("flat machine of 128 nodes") == "flat machine…"


def test_titles_of_the_first_picture_have_lines(data):
    data = data.load().assign_coords(nodes=["a flat machine of sixty-four nodes", "a flat machine of many nodes"])
    titles = [pane.object.title.text for pane in small_multiple(make_overview(data))[1]]
    assert all(max(map(len, title.split("\n"))) <= 30 and "\n" in title for title in titles)
    assert len(titles) == 2


def test_the_table_of_a_view_has_what_it_shows(data):
    chosen = ch.check(data, replace(ch.default_choices(data), second="loss"))
    rows = {view: len(table_to_take(Taken(data, chosen, view, NOTHING))) for view in PICTURED if view != "distribution"}
    own = 11 * 4
    assert rows == {"curves": 24, "heat map": 24, "parallel coordinates": own, "Pareto front": own, OVERVIEW: 12}


def test_the_first_picture_is_a_figure(data):
    data["wait_s"] = data["wait_s"].load()
    found = make_overview(data)
    figure = overview_figure(found)
    assert [panel.title for panel in figure.panels] == ["nodes = 64", "nodes = 128"]
    assert [curve.label for curve in figure.panels[0].curves] == ["never", "daly, 2 h"]
    values = in_units_to_read(data[["wait_s"]], ["wait_s"])["wait_s"].sel(policy="daly, 2 h", nodes=64)
    assert figure.panels[0].curves[1].y.tolist() == pytest.approx(values.mean("replicate").values.tolist())


def test_whether_the_second_is_told_apart_minds_no_comma(data):
    """The second policy is "daly, 2 h", which is as good."""
    values = np.random.default_rng(2).gamma(50, 1, SHAPE)
    values[:, 1] += 0.01
    data["wait_s"] = data["wait_s"].copy(data=values).assign_attrs(units="s", better="lower")
    data["status"] = xr.full_like(data["status"].load(), STATUSES.index("done"))
    assert "no significant difference" in make_overview(data).sentence


def test_names_are_plain_and_equal_everywhere():
    axes = {"scheduler": ["fcfs", "backfill"], "checkpoint_interval_s": [3600.0, 14400.0], "node_mtbf_h": [5.0, 10.0]}
    data = make_results(axes, {"mean_wait_s": np.random.default_rng(0).gamma(5, 1e4, (2, 2, 2, 3))}, replicates=3)
    data["checkpoint_interval_s"].attrs["units"] = "s"
    data["node_mtbf_h"].attrs["units"] = "h"
    chosen = ch.check(data, replace(ch.default_choices(data), x="node_mtbf_h", facets="checkpoint_interval_s"))
    figure = figure_of(data, chosen)
    assert [panel.title for panel in figure.panels] == ["checkpoint interval = 1 h", "checkpoint interval = 4 h"]
    assert figure.panels[0].x_label == "Node MTBF (h)"
    assert [curve.label for curve in figure.panels[0].curves] == ["FCFS", "Backfill"]
    over = figure_of(data, ch.check(data, replace(chosen, x="checkpoint_interval_s", facets="", at={})))
    assert (over.panels[0].x_label, over.panels[0].curves[0].x.tolist()) == ("Checkpoint interval (h)", [1.0, 4.0])
    heat = heat_map(
        data, ch.check(data, replace(chosen, view="heat map", heat_x="checkpoint_interval_s", heat_y="scheduler"))
    )
    assert (heat.panels[0].x_label, heat.panels[0].heat.x_labels) == ("Checkpoint interval", ["1 h", "4 h"])
    assert heat.panels[0].heat.y_labels == ["FCFS", "Backfill"]
    compared = figure_of(data, ch.check(data, replace(chosen, show="ratio", baseline="scheduler=fcfs")))
    assert "ratio to scheduler = FCFS" in compared.panels[0].y_label
    assert in_words(data, "node_mtbf_h") == "node MTBF"


def test_labels_that_would_read_alike_stay_as_they_are():
    data = make_results({"scheduler": ["fcfs", "FCFS"]}, {"mean_wait_s": np.ones((2, 1))})
    assert labels_to_read(data, "scheduler") == ["fcfs", "FCFS"]


ODD = {
    "one cell": np.ones((1, 1, 1)),
    "one label": np.ones((1, 2, 3)),
    "nothing known": np.full((2, 2, 3), np.nan),
    "infinite": np.array([np.inf, 1.0, 2.0, -np.inf]).reshape(2, 2, 1),
    "all equal": np.zeros((2, 2, 3)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ODD)
def test_odd_stores_are_shown(tmp_path, name):
    """Every view is drawn, one configuration by itself too, and every table taken away."""
    from faultsweep.analysis.dashboard.app import Dashboard

    values = ODD[name]
    axes = {"load": [1.0, 2.0][: values.shape[0]], "policy": ["", "<i>$x$"][: values.shape[1]]}
    data = make_results(axes, {"mean_wait_s": values, "loss": -values}, replicates=values.shape[2])
    page = Dashboard(FollowedStore(str(write_results(tmp_path / "odd.zarr", data))), {})
    page._chosen(np.array([0]))
    assert "One run" in page.run._words.object
    assert all(page.boxes[view].objects for view in ("curves", "heat", "parallel"))
    assert not page.words["message"].object
    for view in page.taken.options:
        page.taken.value = view
        assert len(table_to_take(page._to_take())) or name == "nothing known"


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_an_infinite_result_has_no_share_in_the_variance():
    values = np.random.default_rng(2).random((3, 4, 2))
    data = make_results({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0, 4.0]}, {"y": values.copy()}, replicates=2)
    expected = variance_shares(data["y"].isel(a=[0, 2]))
    data["y"][1, :, :] = np.inf
    assert variance_shares(data["y"]) == expected


def test_a_policy_without_a_result_is_why_none_is_best_over_all():
    values = np.random.default_rng(2).random((2, 2, 3))
    values[0] = np.nan
    data = make_results({"policy": ["a", "b"], "x": [1.0, 2.0]}, {"mean_wait_s": values}, replicates=3)
    found = make_overview(data)
    assert found.note == "No best policy over all: each region lacks a result of some policy."
    assert found.regions["best"].tolist() == ["b", "b"]


def test_a_store_of_policies_alone_has_them_across():
    data = make_results({"scheduler": ["fcfs", "backfill"]}, {"mean_wait_s": np.array([[1.0], [2.0]])})
    found = make_overview(data)
    assert overview_figure(found).title == "Mean wait s over scheduler"
    assert "averaged" not in small_multiple(found).objects[0].object


def test_a_front_says_what_it_takes_as_better(data):
    metrics = ["wait_s", "loss"]
    assert taken_as_better(data, metrics) == ""
    data.attrs["target"] = "function f"  # whose metrics nobody knows
    data["loss"].attrs["better"] = "higher"
    words = "Less is taken as better of wait: nothing says so. The table [better] of the spec does."
    assert taken_as_better(data, metrics) == words
    assert words in pareto_figure(data, Sample(data), metrics).caption


def test_numbers_of_the_table_have_as_many_digits_as_people_read():
    frame = pd.DataFrame({"cell": [0, 1], "a0": [0.5, 2000.0], "m0": [873794559.3, 1.0], "m1": [0.25681, np.nan]})
    frame["m2"] = [1e-9, 2e-9]
    found = {field: one.format for field, one in formats_of(frame).items()}
    assert found == {"a0": "0,0.[000000]", "m0": "0,0", "m1": "0,0.0000", "m2": "0.000e+0"}


def test_a_verdict_on_a_part_says_on_which_part():
    """While a sweep runs, policies are compared where all of them have results, which may be nearly nowhere."""
    values = np.random.default_rng(2).random((2, 5, 3))
    values[0, 1:] = np.nan
    data = make_results({"policy": ["a", "b"], "x": [1.0, 2.0, 3.0, 4.0, 5.0]}, {"mean_wait_s": values}, replicates=3)
    assert make_overview(data).rests_on.endswith(" In 1 of 5 combinations of labels, where every policy has a result.")
    whole = make_overview(data.isel(x=[0])).rests_on
    assert "combinations" not in whole


def test_policies_are_the_curves_and_what_matters_most_is_across(tmp_path):
    """Of a store whose first axes say nothing; a wide metric has a logarithmic scale until one is chosen."""
    steps = np.geomspace(1.0, 400.0, 4)
    values = np.ones((2, 3, 2, 4, 1)) * steps[:, None] * np.array([1.0, 2.0])[:, None, None]
    axes = {"word": ["p", "q"], "dull": [1.0, 2.0, 3.0], "scheduler": ["fcfs", "backfill"], "load": list(steps)}
    data = make_results(axes, {"mean_wait_s": values, "utilisation": 1 / values})
    store = FollowedStore(str(write_results(tmp_path / "a.zarr", data)))
    page = Dashboard(store, {})
    first = page.choices
    assert (first.x, first.curves, first.heat_x, first.heat_y) == ("load", "scheduler", "load", "scheduler")
    assert first.log_y
    page._chosen_by_user({"metric": "utilisation"})
    assert not page.choices.log_y
    page._chosen_by_user({"metric": "mean_wait_s"})
    assert page.choices.log_y
    page._chosen_by_user({"log_y": False})
    page._chosen_by_user({"metric": "utilisation"})
    page._chosen_by_user({"metric": "mean_wait_s"})
    assert not page.choices.log_y
    assert not Dashboard(store, {"log_y": "false"}).choices.log_y


def test_zoom_is_kept_while_an_axis_shows_the_same(path):
    page = Dashboard(FollowedStore(str(path)), {})
    zoomed = [(page.curves._plots[0].x_range, 0.9, 1.1), (page.curves._plots[0].y_range, 30.0, 40.0)]
    zoomed += [(page.heat.layout.x_range, 0.5, 1.5), (page.pareto.layout.x_range, 20.0, 30.0)]
    zoomed += [(page.parallel.layout.x_range, 0.0, 1.0)]
    for ends, low, high in zoomed:
        ends.update(start=low, end=high)  # as the browser says
    page._stand("nodes", "128")
    assert [(ends.start, ends.end) for ends, *_ in zoomed] == [(low, high) for _, low, high in zoomed]
    page._chosen_by_user({"bands": False})
    drawn = page.curves._plots[0]
    assert (drawn.x_range.start, drawn.x_range.end, drawn.y_range.start, drawn.y_range.end) == (0.9, 1.1, 30.0, 40.0)
    page._chosen_by_user({"metric": "loss", "second": "wait_s"})
    drawn = page.curves._plots[0]
    assert (drawn.x_range.start, drawn.x_range.end) == (0.9, 1.1)
    assert drawn.y_range.end < 30, "another quantity is shown whole"
    assert page.pareto.layout.x_range.end < 20
    assert page.heat.layout.x_range.start == 0.5


def test_a_store_that_was_waited_for_and_has_no_numbers_says_so(tmp_path):
    from faultsweep.analysis.dashboard.app import make_page

    store = FollowedStore(str(tmp_path / "words.zarr"), wait=True)
    data = make_results({"load": [1.0, 2.0]}, {"y": np.ones((2, 1))})
    data["word"] = (data["y"].dims, np.array([["a"], ["b"]]))
    write_results(tmp_path / "words.zarr", data.drop_vars("y").assign_attrs({**data.attrs, "metrics": '["word"]'}))
    assert store.look()
    page = make_page(store)
    assert "nothing to show: the store has no metric with a number" in str(page.select(pn.pane.HTML)[0].object)


def test_axes_may_have_the_names_of_choices(tmp_path):
    """An axis that is called x, metric or view has a knob of its own."""
    from faultsweep.analysis.dashboard.app import Dashboard

    axes = {"x": [1.0, 2.0], "metric": ["a", "b"], "view": [3.0, 4.0]}
    values = np.random.default_rng(1).random((2, 2, 2, 1))
    path = write_results(tmp_path / "own.zarr", make_results(axes, {"y": values, "z": -values}))
    page = Dashboard(FollowedStore(str(path)), {})
    page.knobs._selects["x"].value = "view"
    assert (page.choices.x, page.choices.at["x"]) == ("view", "1.0")
    page.knobs._selects["metric"].value = "z"
    assert page.choices.metric == "z"
    page.knobs._at["x"].value = "2.0"
    assert (page.choices.x, page.choices.at["x"]) == ("view", "2.0")
    assert not page.words["message"].object


@pytest.mark.parametrize("installed", [True, False])
def test_parquet_is_offered_where_it_can_be_written(path, monkeypatch, installed):
    from faultsweep.analysis.dashboard import app

    monkeypatch.setattr(app, "is_installed", lambda package: installed)
    page = app.Dashboard(FollowedStore(str(path)), {}).page
    buttons = {each.label for each in page.select(app.pn.widgets.FileDownload)}
    assert ("Data (Parquet)" in buttons) == installed
    assert "Data (CSV)" in buttons


def test_a_baseline_is_read_back_whatever_signs_a_name_has():
    axes = {"a=b": ["c", "d=e"], "a": ["b=c", "x"], "s": ["u", "v"]}
    data = make_results(axes, {"mean_wait_s": np.ones((2, 2, 2, 3))}, replicates=3)
    assert {ch.baseline_of(data, one) for one in ch.baselines(data, "s")} <= {("a=b", "c"), ("a=b", "d=e"), ("a", "x")}
    assert ch.baseline_of(data, "") == ("", "")


def test_one_replicate_tells_nothing_apart(tmp_path):
    waits = np.array([[[1.0], [2.0]], [[3.0], [5.0]]])
    data = make_results({"scheduler": ["fcfs", "backfill"], "load": [1.0, 2.0]}, {"mean_wait_s": waits})
    found = make_overview(open_results(write_results(tmp_path / "a.zarr", data)))
    assert found.sentence.endswith("167 % worse: one replicate cannot tell them apart.")
    assert found.rests_on == "Means over load and one replicate."


def test_a_choice_waits_for_the_lock_of_its_page():
    """A row that is clicked while the server is busy is told without it; Bokeh refuses changes then."""
    told: list[list[int]] = []
    links = Links(lambda cells: told.append(cells.tolist()), lambda parts: None)
    page = Document()
    page.add_root(links.hub)
    links.choose(np.array([3, 1]))
    assert told == []
    (due,) = page.session_callbacks
    due.callback()
    assert told == [[1, 3]]


def test_without_a_result_there_are_no_axes_but_a_sentence(tmp_path):
    from faultsweep.analysis.dashboard.app import Dashboard

    data = make_results({"load": [1.0, 2.0]}, {"mean_wait_s": np.full((2, 2), np.nan)}, replicates=2)
    page = Dashboard(FollowedStore(str(write_results(tmp_path / "none.zarr", data))), {})
    assert page.curves is None
    assert [pane.object for pane in page.boxes["curves"].objects] == ["<p>No result yet.</p>"]


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKERS)
def test_every_view_of_an_odd_store_can_be_taken_away(tmp_path, make):
    """On linear and logarithmic scales, and without a warning, which would stand in the log of the server."""
    store = FollowedStore(str(write_results(tmp_path / "odd.zarr", make())))
    makers = {suffix: make for _, suffix, make in DOWNLOADS}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("error", module="matplotlib")
        page = Dashboard(store, {})
        for metric, log in product(ch.scalar_metrics(store.data)[:4], (False, True)):
            page._chosen_by_user({"metric": metric, "log_y": log})
            for view in page.taken.options:
                taken = Taken(store.data, page.choices, view, NOTHING)
                assert all(len(makers[suffix](taken)) > 20 for suffix in ("svg", "html", "csv")), (metric, view)


def test_variance_shares_do_not_depend_on_the_unit():
    values = xr.DataArray(np.random.default_rng(1).random((3, 4)), dims=("a", "b"))
    assert variance_shares(values * 2.0**990) == pytest.approx(variance_shares(values))


@pytest.mark.parametrize("largest", [2.0, 1.7e308])
@pytest.mark.filterwarnings("error")
def test_colours_of_points_are_spread_over_what_is_finite(largest):
    inks = _inks(np.array([-largest, 0.0, largest, np.inf, -np.inf, np.nan]))
    low, middle, high, above, below, unknown = inks.tolist()
    assert (above, below) == (high, low)
    assert len({low, middle, high, unknown}) == 4
    assert _inks(np.array([np.nan, np.inf, -np.inf])).tolist() == [unknown, high, low]
    assert _inks(np.array([7.0, 7.0])).tolist() == [low, low]
